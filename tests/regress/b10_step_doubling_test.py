"""B10: a step whose double does not fit 32 bits made max_id fall (Leaf, step doubling)."""

import unittest

from leaftest import MariaDbCase, pick

STEP = 1_500_000_000


class StepDoublingTest(MariaDbCase):
    def test_max_id_never_falls_and_two_servers_stay_apart(self):
        tag = self.tag(step=STEP)
        servers = [self.start_mysql_leafd() for _ in range(2)]
        seen = [1]
        while seen[-1] < 1 + pick(6, 20) * STEP:
            load = self.start_load(servers, tag, path="ranges", n=1_000_000, connections=4, pipeline=8, requests=1000)
            while load.running():
                seen.append(self.database.max_id(tag))
            self.assert_all_served(load.report())
            seen.append(self.database.max_id(tag))
        self.assertEqual(seen, sorted(seen))
        self.check("--high", f"{tag}={seen[-1]}")


if __name__ == "__main__":
    unittest.main()
