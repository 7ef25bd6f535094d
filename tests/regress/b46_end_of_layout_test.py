"""B46 and F44: the layout's time runs out (baidu/uid-generator #100: on 2024-11-21 several companies
saw negative or failing ids). Leaf's ends at 2080-07-10 17:30:30 UTC."""

import calendar
import unittest

from leaftest import SnowflakeCase, pick, wait_until

END = (1288834974657 + 2**41) / 1000
TEN_YEARS = 3652 * 86400


class EndOfLayoutTest(SnowflakeCase):
    def test_over_the_end(self):
        self.assertEqual(int(END), calendar.timegm((2080, 7, 10, 17, 30, 30)))
        self.clock.set_to(END - pick(3, 10))
        server = self.start_leafd()
        self.assertLess(self.wait_for_ids(server), 2**63)
        load = self.start_mint(server, connections=8, rate=1000, duration=3600)
        last = self.snowflakes(server)[0]
        wait_until(lambda: server.get("/api/v1/snowflake").status != 200, 15, "the end")
        for _ in range(3):
            answer = server.get("/api/v1/snowflake")
            self.assertEqual((answer.status, answer.code), (410, "exhausted"), answer)
            self.assertNotIn("-", answer.json()["detail"].split(":")[0], answer)
        leaf = server.get("/api/snowflake/get/x")
        self.assertEqual((leaf.status, leaf.code), (500, "exhausted"), leaf)
        self.assertIn("2080-07-10T17:30:30", self.wait_for_mode(server, "unavailable", "ended")[1])
        report = load.stop()
        self.assertEqual(set(report["by_code"]), {"exhausted"}, report)
        result = self.check("--high", f"snowflake={2**63 - 1}", "--min-ids", "1000")
        self.assertGreater(result["tags"]["snowflake"]["last"], last)
        self.assertLess(self.clock.now_ms() / 1000 - END, 12)
        parts = self.decoded(server, result["tags"]["snowflake"]["last"] - 1)
        self.assertGreater(parts["time_ms"], (END - 1) * 1000, "used to its end")

    def test_a_batch_does_not_pass_the_end(self):
        self.clock.set_to(END - 0.5)
        server = self.start_leafd()
        answer = wait_until(lambda: (a := server.get("/api/v1/snowflake?n=10000")).status == 410 and a, 10, "the end")
        self.assertEqual(answer.code, "exhausted")

    def test_started_behind_the_end(self):
        self.clock.set_to(END + 100)
        server = self.start_leafd()
        answer = server.get("/api/v1/snowflake")
        self.assertEqual((answer.status, answer.code), (410, "exhausted"), answer)

    def test_nine_years_before(self):
        left = 9 * 365 * 86400
        self.clock.set_to(END - left)
        server = self.start_leafd()
        self.wait_for_ids(server)
        server.wait_log("the snowflake layout ends within ten years")
        state, reason = self.mode(server)
        self.assertEqual(state, "ok")
        self.assertIn("2080-07-10T17:30:30", reason)
        self.assertAlmostEqual(server.metric("leafd_id_space_left_seconds"), left, delta=60)

    def test_eleven_years_before_there_is_no_warning(self):
        self.clock.set_to(END - TEN_YEARS - 365 * 86400)
        server = self.start_leafd()
        self.wait_for_ids(server)
        self.assertNotIn("within ten years", server.log())
        self.assertEqual(self.mode(server), ("ok", ""))


if __name__ == "__main__":
    unittest.main()
