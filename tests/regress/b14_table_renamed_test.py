"""B14: the table goes away under load and an older copy comes back (pingcap/tidb #52680)."""

import unittest

from leaftest import MariaDbCase, wait_until


class TableRenamedTest(MariaDbCase):
    def test_buffered_ids_then_errors_then_a_stop(self):
        self.database.create_table("leaf.moving")
        self.database.put("t", 1, 500, table="moving")
        self.database.sql("CREATE TABLE leaf.older AS SELECT * FROM leaf.moving")
        self.database.sql("ALTER TABLE leaf.older ADD PRIMARY KEY (biz_tag)")
        server = self.start_mysql_leafd({"store.table": "moving", "segment.wait": "500ms", "segment.policy": "fixed",
                                         "segment.refresh": "1s"})
        load = self.start_load(server, "t", rate=400, duration=6, connections=4)
        wait_until(lambda: server.metric("leafd_ids_issued_total") > 600, what="more than one lease")
        self.database.sql("RENAME TABLE leaf.moving TO leaf.aside")
        server.id("t")  # held ids go on
        answer = wait_until(lambda: (lambda a: a if a.status != 200 else None)(server.get("/api/v1/ids/t")), 5,
                            "a typed error while the table is gone")
        self.assertEqual(answer.code, "unavailable", answer)
        self.assertIn("moving", answer.json()["detail"], "the error names the table")
        self.database.sql("RENAME TABLE leaf.older TO leaf.moving")
        wait_until(lambda: server.leaf("t").code == "regressed", 5, "the stop when the table is back and lower")
        report = load.report()
        self.assertLessEqual(set(report["by_code"]), {"unavailable", "regressed"}, report)
        self.check()


if __name__ == "__main__":
    unittest.main()
