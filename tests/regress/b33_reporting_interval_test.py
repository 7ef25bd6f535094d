"""B33: a crash within the interval in which time is reported, and a clock that went back by less
(Leaf #216: up to three seconds of ids once more). Each cell of the grid is a server of its own with
a clock of its own; a worker that is bound to its node (fixed:N) must be taken again, so that nothing
but the reported time keeps the two runs apart; the file that serves order alone is taken away."""

import os
import random
import time
import unittest

from leaftest import FakeClock, SnowflakeCase, pick

QUARTERS = [i * 0.25 for i in range(13)]  # 0 to 3 s


class Cell:
    def __init__(self, case, worker, crash, rollback):
        self.crash, self.rollback = crash, rollback
        self.name = f"crash-{crash}-rollback-{rollback}"
        self.clock = FakeClock(case.folder)
        self.server = case.leafd({"snowflake.registry": f"fixed:{worker}", "snowflake.lease": "4s", "segment.enabled": "false",
                                  "server.threads": "1"}, clock=self.clock)
        self.load = None


class ReportingIntervalTest(SnowflakeCase):
    def run_cells(self, pairs):
        """Thirteen at a time, each with its own worker, or they would keep each other from it."""
        cells = [Cell(self, worker, *pair) for worker, pair in enumerate(pairs)]
        for cell in cells:
            cell.server.launch()
        for cell in cells:
            self.wait_for_ids(cell.server, 10)
            cell.load = self.start_mint(cell.server, cell.name, rate=100, duration=3600, timeout=8)
        reported = time.monotonic()  # nearly: a report comes with the first id and each second
        for cell in sorted(cells, key=lambda one: one.crash):
            time.sleep(max(0.0, reported + cell.crash - time.monotonic()))
            cell.server.kill()
            os.unlink(cell.server.folder + "/state/snowflake-order")
            cell.clock.step(-cell.rollback)
            self.forget(cell.server)
            cell.server.launch()
        for cell in cells:
            first = self.wait_for_ids(cell.server, 10)
            self.assertEqual(self.decoded(cell.server, first)["worker"], cells.index(cell), "the same worker again")
        for cell in cells:
            self.wait_for_more(cell.server, 5)
            report = cell.load.stop()
            self.assertEqual(report["failed"], 0, f"{cell.name}: {report}")
        return cells

    def test_grid(self):
        chance = random.Random(self.seed())
        rounds = pick(1, len(QUARTERS))
        shift = chance.randrange(len(QUARTERS))
        seen = set()
        for turn in range(rounds):  # a Latin square: each round has each crash and each rollback once
            pairs = [(crash, QUARTERS[(i + shift + turn) % len(QUARTERS)]) for i, crash in enumerate(QUARTERS)]
            for cell in self.run_cells(pairs):
                seen.add((cell.crash, cell.rollback))
                cell.server.kill()
        report = self.check()
        self.assertEqual((len(seen), len(report["tags"])), (rounds * len(QUARTERS),) * 2)
        for name, tag in report["tags"].items():
            self.assertGreater(tag["ids"], 5, name)


if __name__ == "__main__":
    unittest.main()
