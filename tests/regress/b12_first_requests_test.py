"""B12: the first requests after a start come all at once. Each of them built a generator, and ranges
were burnt (flike/idgo PR #8)."""

import unittest

from leaftest import MariaDbCase, pick

CLIENTS = 500
STEP = 10_000  # far above the share of a segment that asks for the next


class FirstRequestsTest(MariaDbCase):
    def test_a_cold_tag_is_reserved_once(self):
        tag = self.tag(step=STEP)
        server = self.mysql_leafd()
        top = 1
        for _ in range(pick(3, 50)):
            server.start()
            report = self.load(server, tag, connections=CLIENTS, rounds=1, barrier=True)
            self.assert_all_served(report)
            self.assertEqual(report["ok"], CLIENTS)
            server.kill()
            top += STEP
            self.assertEqual(self.database.max_id(tag), top)
        self.check()


if __name__ == "__main__":
    unittest.main()
