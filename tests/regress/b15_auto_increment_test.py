"""B15: odd auto-increment settings of the server. With offset above increment the first value after a
restart was an old one (pingcap/tidb #52622)."""

import unittest

from leaftest import MariaDbCase


class AutoIncrementTest(MariaDbCase):
    database_options = ("--auto-increment-increment=66", "--auto-increment-offset=9527")

    def test_has_no_influence(self):
        tag = self.tag(step=10)
        server = self.start_mysql_leafd()
        before = [server.id(tag) for _ in range(30)]
        self.assertEqual(before, list(range(1, 31)))
        server.kill()
        server.start()
        after = [server.id(tag) for _ in range(30)]
        self.assertGreater(after[0], before[-1])
        self.assertEqual(after, list(range(after[0], after[0] + 30)))


if __name__ == "__main__":
    unittest.main()
