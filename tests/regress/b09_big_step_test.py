"""B09: steps near 2^31. A threshold computed in 32 bits went negative, and each call reserved (tinyid)."""

import unittest

from leaftest import MariaDbCase


class BigStepTest(MariaDbCase):
    def test_ten_thousand_ids_need_few_reservations(self):
        for step in (200_000_000, 2_147_483_647):
            with self.subTest(step):
                tag = self.tag(str(step), step=step)
                proxy = self.proxy(self.database.port)
                updates = proxy.watch("^UPDATE")
                server = self.mysql_leafd(port=proxy.port).start()
                report = self.load(server, tag, connections=8, pipeline=8, requests=10_000)
                self.assert_all_served(report)
                self.assertTrue(1 <= updates.count <= 3, updates.count)
                self.assertGreaterEqual(self.database.max_id(tag), 1 + step)
        self.check()


if __name__ == "__main__":
    unittest.main()
