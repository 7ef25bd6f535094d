"""B19 and F25: sessions with the database must not grow with reservations (vitessio/vitess #9851)."""

import time
import unittest

from leaftest import MariaDbCase, pick, wait_until

CEILING = 4  # sessions a server keeps at most


class ConnectionLeakTest(MariaDbCase):
    def test_sessions_and_descriptors_stay_constant(self):
        tag = self.tag(step=1)
        server = self.start_mysql_leafd({"segment.policy": "fixed"})
        load = self.start_load(server, tag, connections=8, requests=pick(10_000, 100_000))
        wait_until(lambda: server.metric("leafd_ids_issued_total") > 100, what="load")
        sessions, descriptors = [], []
        while load.running():
            sessions.append(len(self.database.sessions()))
            descriptors.append(server.child.fds())
            time.sleep(0.05)
        self.assert_all_served(load.report())
        self.assertGreater(len(sessions), 5)
        self.assertLessEqual(max(sessions), CEILING, sessions)
        self.assertLessEqual(max(descriptors) - min(descriptors), 8 + 2 * CEILING, descriptors)
        self.check()


if __name__ == "__main__":
    unittest.main()
