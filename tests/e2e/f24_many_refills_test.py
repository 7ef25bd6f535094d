"""F24: thousands of tags want a refill at once. All are served, and the database is not flooded with
sessions."""

import unittest

from leaftest import TIME_FACTOR, MariaDbCase, pick, wait_until

TAGS = pick(1200, 10_000)  # more than a page of the tag list


class ManyRefillsTest(MariaDbCase):
    def test_all_tags_are_served(self):
        with self.database.connect(database="leaf") as connection, connection.cursor() as cursor:
            cursor.executemany("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES (%s, 1, 10)",
                               [(f"herd{i}",) for i in range(TAGS)])
        proxy = self.proxy(self.database.port)
        server = self.mysql_leafd({"segment.wait": "10s"}, port=proxy.port).start()
        wait_until(lambda: server.status()["tags"]["list_complete"], what="the tag list")
        updates = proxy.watch("^UPDATE")
        load = self.start_load(server, [], history=True, tags=f"herd:0:{TAGS}", connections=200, pipeline=1, requests=TAGS,
                               timeout=30)
        report = load.report(120)
        print(f"{TAGS} tags in {report['seconds']:.1f} s, longest wait {report['max_us'] / 1e6:.1f} s, {proxy.accepted} sessions opened")
        self.assert_all_served(report)
        self.assertEqual(report["ok"], TAGS)
        self.assertGreaterEqual(updates.count, TAGS)
        self.assertLessEqual(proxy.accepted, 12, "sessions are few, however many tags wait")
        self.assertLess(report["max_us"], 10e6 * TIME_FACTOR, "no tag starves")
        self.check()


if __name__ == "__main__":
    unittest.main()
