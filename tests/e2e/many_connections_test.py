"""500 connections on one tag of a small step: no request fails. A running Leaf failed 93 of 45,260
with step 10, 242 of 46,561 with 100, 103 of 49,972 with 2000."""

import unittest

from leaftest import MariaDbCase, pick


class ManyConnectionsTest(MariaDbCase):
    def judge(self, server, tag):
        report = self.load(server, tag, connections=500, duration=pick(0.7, 20), barrier=True)
        print(f"{tag}: {report['ok']} requests, p99 {report['p99_us'] / 1000:.1f} ms, longest {report['max_us'] / 1000:.1f} ms")
        self.assert_all_served(report)
        self.assertGreater(report["ok"], 500)

    def test_sqlite(self):
        server = self.start_leafd()
        for step in (1, 10, 100, 2000):
            with self.subTest(step):
                server.put_tag(f"step{step}", step=step)
                self.judge(server, f"step{step}")
        self.check()

    def test_mariadb(self):
        server = self.start_mysql_leafd()
        for step in (1, 10, 100, 2000):
            with self.subTest(step):
                self.judge(server, self.tag(f"step{step}", step=step))
        self.check()


if __name__ == "__main__":
    unittest.main()
