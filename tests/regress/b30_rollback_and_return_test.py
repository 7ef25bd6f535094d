"""B30: the clock goes back for a moment and returns, over and over, under full load
(twitter-archive/snowflake #6: the sequence was reset before the check)."""

import random
import time
import unittest

from leaftest import SnowflakeCase, pick

ROUNDS = pick(40, 1000)


class RollbackAndReturnTest(SnowflakeCase):
    def test_fifty_milliseconds_for_thirty(self):
        chance = random.Random(self.seed())
        server = self.start_leafd()
        self.wait_for_ids(server)
        load = self.start_mint(server, connections=8, n=50, duration=3600)
        for _ in range(ROUNDS):
            self.clock.step(-0.05)
            time.sleep(0.03)
            self.clock.step(0.05)
            time.sleep(chance.uniform(0, 0.1))
        self.assert_all_served(load.stop())
        self.assertGreater(self.view(server)["steps_back"], ROUNDS // 20, "it saw steps")
        self.check("--min-ids", str(500 * ROUNDS))


if __name__ == "__main__":
    unittest.main()
