"""B08: many servers on one row at each isolation level. An optimistic update gave up after three
tries, and re-read the same old row under REPEATABLE READ (didi/tinyid)."""

import unittest

from leaftest import MariaDbCase, pick

LEVELS = ("READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE")


class IsolationLevelsTest(MariaDbCase):
    def test_no_request_fails_at_any_level(self):
        for level in LEVELS:
            with self.subTest(level):
                self.database.sql(f"SET GLOBAL tx_isolation = '{level}'")
                tag = self.tag(level, step=1)
                servers = [self.start_mysql_leafd() for _ in range(pick(3, 8))]
                report = self.load(servers, tag, connections=2 * len(servers), duration=pick(0.7, 60))
                self.assert_all_served(report)
                for server in servers:
                    server.kill()
        self.check()


if __name__ == "__main__":
    unittest.main()
