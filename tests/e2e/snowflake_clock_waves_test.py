"""F35: a clock that trembles, jumps to and fro, or runs at a wrong rate. No request fails, ids rise,
and minted time keeps within the drift."""

import time
import unittest

from leaftest import SnowflakeCase, pick

DRIFT_MS = 5_000


class WavesTest(SnowflakeCase):
    def run_through(self, turn):
        server = self.start_leafd()
        self.wait_for_ids(server)
        load = self.start_mint(server, connections=16, rate=2000, duration=pick(1.5, 600))
        turn()
        while load.running():
            view = self.view(server)
            self.assertTrue(view["serving"], view)
            self.assertLess(view["last_ms"], view["now_ms"] + DRIFT_MS, view)
            time.sleep(0.05)
        turns = self.clock.turns
        self.clock.restore()
        self.assert_all_served(load.report())
        self.check("--min-ids", "1500")
        self.assertGreater(turns, 100, "the clock was turned")
        return self.view(server)

    def test_jitter(self):
        view = self.run_through(lambda: self.clock.jitter(0.1, self.seed()))
        self.assertGreater(view["steps_back"], 3, view)

    def test_strobe(self):
        view = self.run_through(lambda: self.clock.strobe(0.5, 100, self.seed()))
        self.assertGreater(view["steps_back"], 3, view)

    def test_slow(self):
        view = self.run_through(lambda: self.clock.run_at(0.9))
        self.assertGreater(view["steps_back"], 3, view)

    def test_fast(self):
        self.run_through(lambda: self.clock.run_at(1.1))


if __name__ == "__main__":
    unittest.main()
