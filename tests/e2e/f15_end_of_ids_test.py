"""F15: the end of 2^63. The remainder is handed out, the last id is 2^63 - 2, then it is a plain error."""

import time
import unittest

from leaftest import TIME_FACTOR, MariaDbCase, wait_until

LAST = 2**63 - 2
NEAR = 9223372036854775000


class EndOfIdsTest(MariaDbCase):
    def drain(self, server, tag):
        """All ids up to the end; the answer that ended it."""
        ids = []
        while True:
            answer = server.leaf(tag)
            if answer.status != 200:
                return ids, answer
            ids.append(int(answer.text))

    def judge(self, server, tag):
        ids, answer = self.drain(server, tag)
        self.assertEqual(answer.code, "exhausted", answer)
        self.assertEqual(ids, list(range(NEAR, LAST + 1)))
        self.assertEqual(server.get(f"/api/v1/ids/{tag}").status, 410)
        before = server.child.cpu_seconds()
        begin = time.monotonic()
        wait_until(lambda: time.monotonic() - begin >= 1, what="a second")
        self.assertLess(server.child.cpu_seconds() - before, 0.05 * TIME_FACTOR, "no busy loop at the end")
        self.assertEqual(server.leaf(tag).code, "exhausted")

    def test_mariadb(self):
        tag = self.tag(max_id=NEAR, step=1000)
        self.judge(self.start_mysql_leafd({"segment.wait": "1s"}), tag)
        self.assertLessEqual(self.database.max_id(tag), 2**63 - 1)

    def test_sqlite(self):
        server = self.start_leafd({"segment.wait": "1s"})
        server.put_tag("t", step=1000, max_id=NEAR)
        self.judge(server, "t")


if __name__ == "__main__":
    unittest.main()
