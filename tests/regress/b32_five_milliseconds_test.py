"""B32: one step of five milliseconds back at the busiest moment (bwmarrin/snowflake #11, #20: 149
duplicates, because only an equal time counted as old)."""

import unittest

from leaftest import SnowflakeCase, pick

STEPS = pick(60, 10_000)


class FiveMillisecondsTest(SnowflakeCase):
    def test_steps_while_the_sequence_is_worn_out(self):
        # 256 ids a millisecond: batches of 1,000 are always ahead of the clock or wait for it.
        server = self.start_leafd({"snowflake.layout": "custom", "snowflake.bits": "41/10/8",
                                   "snowflake.epoch_ms": "1288834974657"})
        self.wait_for_ids(server)
        load = self.start_mint(server, connections=8, n=1000, duration=3600)
        for _ in range(STEPS):
            seen = self.view(server)["steps_back"]
            self.clock.step(-0.005)
            self.wait_for_steps(server, seen + 1)
            if self.clock.offset < -0.5:
                self.clock.restore()
        self.assert_all_served(load.stop())
        self.check("--min-ids", str(5000 * STEPS))


if __name__ == "__main__":
    unittest.main()
