"""F33: kill -9, and the clock is elsewhere when the server starts again. Ids stay unique and rise from
before the kill; with steps of up to the drift no request fails."""

import os
import time
import unittest

from leaftest import HOUR, TIME_FACTOR, YEAR, SnowflakeCase, free_port

OFFSETS = (-0.001, -0.006, -1, 0, -2.5, 0, -4.9, 0, 5, 0)


class RestartTest(SnowflakeCase):
    def test_within_the_drift(self):
        server = self.start_leafd()
        self.wait_for_ids(server)
        load = self.start_mint(server, connections=8, rate=1000, duration=3600)
        for offset in OFFSETS:
            self.wait_for_more(server, 100)
            server.kill()
            self.clock.set(offset)
            self.restart_after_kill(server)
        self.wait_for_more(server, 100)
        report = load.stop()
        self.assertEqual(report["failed"], 0, report)
        self.assertGreaterEqual(report["reconnects"], len(OFFSETS) * 4, report)
        self.check("--min-ids", str(100 * len(OFFSETS)))

    def behind(self, step):
        server = self.start_leafd()
        self.mint(server, requests=500, connections=4)
        server.kill()
        self.clock.step(step)
        self.restart_after_kill(server)
        _, reason = self.wait_for_mode(server, "unavailable", "the clock is behind")
        self.assertIn("snowflake-order", reason, "how to give up the order")
        asked = time.monotonic()
        answer = server.get("/api/v1/snowflake")
        self.assertEqual((answer.status, answer.code), (503, "unavailable"), answer)
        self.assertLess(time.monotonic() - asked, 0.5 * TIME_FACTOR, "hopeless requests do not wait")
        self.clock.restore()
        self.wait_for_ids(server)
        self.assert_all_served(self.mint(server, requests=500, connections=4))
        self.check("--min-ids", "1000")

    def test_an_hour_behind(self):
        self.behind(-HOUR)

    def test_a_year_behind(self):
        self.behind(-YEAR)

    def ahead_and_right_again(self, step):
        """A local registry knows no other clock, so a restart trusts the wrong one; what was minted by
        it is never minted again."""
        server = self.start_leafd()
        self.mint(server, requests=300, connections=4)
        server.kill()
        self.clock.step(step)
        self.restart_after_kill(server)
        self.assert_all_served(self.mint(server, requests=300, connections=4))
        server.kill()
        self.clock.restore()
        self.restart_after_kill(server)
        _, reason = self.wait_for_mode(server, "unavailable", "the clock is behind")
        self.assertIn("removing the file snowflake-order", reason)
        server.kill()
        os.unlink(server.folder + "/state/snowflake-order")
        server.port = free_port()  # another name for idcheck: order is given up, uniqueness is not
        self.restart_after_kill(server)
        self.assert_all_served(self.mint(server, requests=300, connections=4))
        self.check("--min-ids", "900")

    def test_an_hour_ahead_and_right_again(self):
        self.ahead_and_right_again(HOUR)

    def test_a_year_ahead_and_right_again(self):
        self.ahead_and_right_again(YEAR)


if __name__ == "__main__":
    unittest.main()
