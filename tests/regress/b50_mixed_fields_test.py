"""B50: an algorithm for turned-back clocks that mixes its fields (yitter/IdGenerator #77). Over a
random trace of the clock every field of every id is in its bounds and the time is never ahead of the
clock by more than the drift, on each path that gives ids."""

import random
import unittest

from leaftest import SnowflakeCase, pick

STEPS = (-1.9, -0.9, -0.2, -0.005, -0.001, 0.001, 0.005, 0.2, 0.9)
DRIFT_MS = 5000
LAYOUTS = {"leaf": (1288834974657, 10, 12), "js53": (1577836800000, 5, 7)}


class MixedFieldsTest(SnowflakeCase):
    def run_trace(self, layout, steps):
        chance = random.Random(self.seed())
        epoch, worker_bits, sequence_bits = LAYOUTS[layout]
        server = self.start_leafd({"snowflake.layout": layout})
        self.wait_for_ids(server)
        worker, last, latest_ms, starts = self.view(server)["worker"], 0, self.clock.now_ms(), set()
        for number in range(steps):
            if number % 20 == 0 and abs(self.clock.offset) < 1.9:
                self.clock.step(chance.choice(STEPS))
            elif number % 20 == 0:
                self.clock.restore()
            if number % 2:
                ids = [int(server.get("/api/snowflake/get/any").text)]
            else:
                ids = self.snowflakes(server, chance.choice((1, 2, 100, 5000)))
            latest_ms = max(latest_ms, self.clock.now_ms())
            for one in ids:
                time_ms = (one >> (worker_bits + sequence_bits)) + epoch
                self.assertGreater(one, last)
                self.assertEqual(one >> sequence_bits & (1 << worker_bits) - 1, worker)
                self.assertLessEqual(time_ms, latest_ms + DRIFT_MS)
                last = one
            starts.add(ids[0] & (1 << sequence_bits) - 1)
            parts = self.decoded(server, ids[-1])
            self.assertEqual((parts["layout"], parts["worker"], parts["sequence"], parts["time_ms"]),
                             (layout, worker, last & (1 << sequence_bits) - 1,
                              (last >> (worker_bits + sequence_bits)) + epoch))
        self.assertGreater(self.view(server)["steps_back"], 0)
        self.assertGreater(len(starts), 3, "the sequence does not always start at the same number")

    def test_leaf(self):
        self.run_trace("leaf", pick(300, 20_000))

    def test_js53(self):
        self.run_trace("js53", pick(300, 20_000))


if __name__ == "__main__":
    unittest.main()
