"""B06 and F09: an operator sets max_id back while several servers hold buffers (Leaf #96)."""

import time
import unittest

from leaftest import MariaDbCase, pick, wait_until


class ResetByHandTest(MariaDbCase):
    def reset(self, tag):
        self.database.sql("UPDATE leaf.leaf_alloc SET max_id = 1 WHERE biz_tag = %s", (tag,))

    def test_ten_resets_under_three_servers_issue_nothing_twice(self):
        for round_number in range(pick(1, 50)):
            tag = self.tag(f"t{round_number}", step=50)
            servers = [self.start_mysql_leafd({"segment.policy": "fixed", "segment.refresh": "1s"}) for _ in range(3)]
            load = self.start_load(servers, tag, connections=6, rate=3000, duration=2.5)
            for server in servers:
                wait_until(lambda one=server: one.metric("leafd_ids_issued_total") > 200, what="load on each server")
            for _ in range(10):
                self.reset(tag)
                time.sleep(0.1)
            report = load.report()
            self.assertGreater(report["by_code"].get("regressed", 0), 0, report)
            for server in servers:
                self.assertEqual(server.status()["tags"]["regressed"], 1)
                self.assertEqual(server.tag(tag)["state"], "regressed")
                server.kill()
        self.check()

    def test_one_server_stops_says_so_and_goes_on_after_resume(self):
        tag, other = self.tag(step=10), self.tag("other", step=10)
        server = self.start_mysql_leafd()
        last = max(server.id(tag) for _ in range(25))
        self.reset(tag)
        answer = wait_until(lambda: (lambda a: a if a.status != 200 else None)(server.get(f"/api/v1/ids/{tag}")),
                            what="the stop of the tag")
        self.assertEqual((answer.status, answer.code), (500, "regressed"))
        self.assertIn("resume", answer.json()["detail"], "the error says what to do")
        self.assertEqual(server.leaf(tag).json()["message"], "Result{id=-3, status=EXCEPTION}")
        server.id(other)
        wait_until(lambda: self.database.max_id(tag) > last, what="the raised row")
        before = self.database.max_id(tag)
        resumed = server.admin("POST", f"/api/v1/tags/{tag}/resume", {"skip": 1000})
        self.assertEqual(resumed.status, 200, resumed.text)
        self.assertGreaterEqual(server.id(tag), before + 1000)

    def test_the_stop_outlives_a_restart(self):
        tag = self.tag(step=10)
        server = self.start_mysql_leafd()
        for _ in range(25):
            server.id(tag)
        self.reset(tag)
        wait_until(lambda: server.leaf(tag).code == "regressed", what="the stop of the tag")
        server.journal_written()
        server.kill()
        server.start()
        self.assertEqual(server.leaf(tag).code, "regressed")


if __name__ == "__main__":
    unittest.main()
