"""Two servers on one MariaDB table, one of them restarted meanwhile in each way: unique, and no
request fails at the one that stays."""

import unittest

from leaftest import MariaDbCase, pick, wait_until


class TwoServersTest(MariaDbCase):
    def test_unique_over_stops_and_kills(self):
        tag = self.tag(step=50)
        # Leases of one step, so that both reserve all the time and each stop finds the other above it.
        staying, restarted = (self.start_mysql_leafd({"segment.policy": "fixed"}) for _ in range(2))
        steady = self.start_load(staying, tag, connections=4, duration=pick(4, 60), rate=3000)
        shaken = self.start_load(restarted, tag, connections=4, duration=pick(4, 60), rate=3000)
        rounds = 0
        while steady.running():
            issued = restarted.metric("leafd_ids_issued_total")
            wait_until(lambda now=issued: not steady.running() or restarted.metric("leafd_ids_issued_total") > now + 200, 10,
                       "load on the restarted server")
            if rounds % 2:
                restarted.kill()
            else:
                self.assertEqual(restarted.stop(), 0)
            restarted.start()
            rounds += 1
        self.assert_all_served(steady.report())
        self.assertEqual(shaken.report()["failed"], 0)
        self.assertGreater(rounds, 3)
        self.check("--high", f"{tag}={self.database.max_id(tag)}")


if __name__ == "__main__":
    unittest.main()
