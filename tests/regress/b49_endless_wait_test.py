"""B49: the wait for the next millisecond never ends when the clock goes back meanwhile (Leaf PR #153,
beyondfengyu/SnowFlake #9; sonyflake sleeps for the whole jump with its mutex held)."""

import time
import unittest

from leaftest import HOUR, TIME_FACTOR, SnowflakeCase, pick, wait_until

# 64 ids a millisecond: batches of 10,000 wear the sequence out and wait.
FEW_IDS = {"snowflake.layout": "custom", "snowflake.bits": "41/10/6", "snowflake.epoch_ms": "1288834974657"}


class EndlessWaitTest(SnowflakeCase):
    def exhaust(self, settings, connections=8):
        server = self.start_leafd(settings)
        self.wait_for_ids(server)
        load = self.start_mint(server, connections=connections, n=10_000, duration=3600)
        self.wait_for_more(server, 100_000)
        return server, load

    def watch(self, server, seconds):
        """The slowest /livez of that time, and the server's CPU in cores."""
        begin, cpu, slowest = time.monotonic(), server.child.cpu_seconds(), 0.0
        while time.monotonic() < begin + seconds:
            asked = time.monotonic()
            self.assertEqual(server.admin_get("/livez").status, 200)
            slowest = max(slowest, time.monotonic() - asked)
            time.sleep(0.02)
        return slowest, (server.child.cpu_seconds() - cpu) / (time.monotonic() - begin)

    def judge(self, server, load, slowest):
        report = load.stop()
        self.assertLessEqual(set(report["by_code"]), {"unavailable"}, report)
        self.assertLess(report["max_us"], 3.5e6 * TIME_FACTOR, report)
        self.assertLessEqual(slowest, 0.1 * TIME_FACTOR)
        self.check("--min-ids", "100000")
        return report

    def test_an_hour_back_while_batches_wait(self):
        server, load = self.exhaust(FEW_IDS)
        wait_until(lambda: self.view(server)["parked"] > 0, what="a batch that waits")
        self.clock.step(-HOUR)
        self.wait_for_mode(server, "unavailable", "the clock is behind")
        slowest, cores = self.watch(server, pick(0.7, 60))
        self.assertLessEqual(cores, 1.1, "of a core, refusing as fast as 8 connections ask")
        self.assertGreater(self.judge(server, load, slowest)["failed"], 0)

    def test_waiting_batches_cost_nothing(self):
        """A step back that the deadline of requests has room for: all wait, nobody spins or fails."""
        server, load = self.exhaust(FEW_IDS, connections=3)
        wait_until(lambda: self.view(server)["parked"] > 0, what="a batch that waits")
        self.clock.step(-1.5)
        self.wait_for_steps(server, 1)
        slowest, cores = self.watch(server, 1)
        self.assertLessEqual(cores, 0.05 * TIME_FACTOR)
        self.assertEqual(self.judge(server, load, slowest)["failed"], 0)

    def test_leafs_own_layout_under_all_that_can_be_asked(self):
        """F43: more than 4,096 ids a millisecond carry into the next one."""
        server, load = self.exhaust({})
        self.clock.step(-2)
        slowest, _ = self.watch(server, pick(0.7, 60))
        self.assertEqual(self.judge(server, load, slowest)["failed"], 0)


if __name__ == "__main__":
    unittest.main()
