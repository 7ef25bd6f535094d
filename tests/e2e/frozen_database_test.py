"""The database is frozen (no answer, not closed) and 300 callers ask for a tag that was never used:
tags that hold ids go on as if nothing were. A running Leaf stopped altogether."""

import time
import unittest

from leaftest import TIME_FACTOR, MariaDbCase, pick, wait_until


class FrozenDatabaseTest(MariaDbCase):
    def test_tags_that_hold_ids_go_on(self):
        held, cold = self.tag("held", step=1_000_000), self.tag("cold")
        server = self.start_mysql_leafd({"segment.wait": "1s"})
        wait_until(lambda: server.status()["tags"]["list_complete"], what="the tag list")
        server.id(held)
        self.addCleanup(self.database.thaw)
        self.database.freeze()
        callers = self.start_load(server, cold, connections=300, duration=pick(4, 60), history=False)
        wait_until(lambda: server.status()["connections"]["http"] >= 300, what="300 callers")
        threads = [server.child.threads()]
        load = self.start_load(server, held, connections=8, duration=pick(2.5, 50), rate=1000)
        connections = []
        while load.running():
            threads.append(server.child.threads())
            connections.append(server.status()["connections"]["http"])
            time.sleep(0.05)
        report = load.report()
        print(f"held: p99 {report['p99_us'] / 1000:.1f} ms, longest {report['max_us'] / 1000:.1f} ms")
        self.assert_all_served(report)
        self.assertLess(report["max_us"], 250_000 * TIME_FACTOR)
        self.assertLess(report["longest_silence_us"], 250_000 * TIME_FACTOR)
        self.assertLessEqual(max(threads) - min(threads), 2, f"threads: {threads}")
        self.assertLessEqual(max(connections), 312)
        refused = callers.report()
        self.assertEqual(set(refused["by_code"]), {"unavailable"}, refused)
        self.assertLess(refused["max_us"], 1.5e6 * TIME_FACTOR, "each caller has its answer by segment.wait")
        self.database.thaw()
        wait_until(lambda: server.leaf(cold).status == 200, 3, "ids of the cold tag after the thaw")
        self.check()


if __name__ == "__main__":
    unittest.main()
