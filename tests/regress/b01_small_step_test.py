"""B01: a small step under many callers. Leaf answered many of them with an error, because the next
segment was not there yet (Meituan-Dianping/Leaf #143)."""

import unittest

from leaftest import TIME_FACTOR, MariaDbCase, pick


class SmallStepTest(MariaDbCase):
    def storm(self, step):
        tag = self.tag(step=step)
        proxy = self.proxy(self.database.port)
        server = self.mysql_leafd(port=proxy.port).start()
        updates = proxy.watch("^UPDATE")
        report = self.load(server, tag, connections=1000, rounds=pick(3, 100), barrier=True)
        self.assert_all_served(report)
        self.assertEqual(report["ok"], 1000 * pick(3, 100))
        self.assertLess(report["p99_us"], 1e6 * TIME_FACTOR, report)
        self.assertGreater(updates.count, 0)
        self.assertEqual(updates.most, 1, "one reservation of a tag is under way at a time")
        self.assertLess(updates.count, report["ok"], "a reservation covers those who wait")
        self.check("--high", f"{tag}={self.database.max_id(tag)}")

    def test_step_1(self):
        self.storm(1)

    def test_step_10(self):
        self.storm(10)

    def test_step_100(self):
        self.storm(100)


if __name__ == "__main__":
    unittest.main()
