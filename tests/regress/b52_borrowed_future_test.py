"""B52: a generator that runs ahead of the clock forgets it at a restart (baidu/uid-generator #85)."""

import unittest

from leaftest import SnowflakeCase, pick, wait_until

DRIFT_MS = 5000
# 64 ids a millisecond, so that minted time is ahead of the clock within a moment.
FEW_IDS = {"snowflake.layout": "custom", "snowflake.bits": "41/10/6", "snowflake.epoch_ms": "1288834974657"}


class BorrowedFutureTest(SnowflakeCase):
    def time_of(self, number):
        return (number >> 16) + 1288834974657

    def test_killed_while_ahead_of_the_clock(self):
        server = self.start_leafd(FEW_IDS)
        for _ in range(pick(2, 60)):
            self.wait_for_ids(server)
            load = self.start_mint(server, connections=8, n=2000, duration=3600)
            self.wait_for_more(server, 20_000)
            wait_until(lambda: self.view(server)["last_ms"] > self.clock.now_ms() + 2000, 20, "minted time two seconds ahead")
            server.kill()
            load.stop()
            self.restart_after_kill(server)
            first = self.wait_for_ids(server)
            known = self.check("--min-ids", "100000")["tags"]["snowflake"]
            self.assertGreaterEqual(first, known["last"])
            self.assertGreater(self.time_of(known["last"]), self.clock.now_ms() + 500, "it was ahead at the kill")
            self.assertLess(self.time_of(first), self.clock.now_ms() + DRIFT_MS)


if __name__ == "__main__":
    unittest.main()
