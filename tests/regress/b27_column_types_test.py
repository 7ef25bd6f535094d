"""B27 and F16: columns that cannot hold the ids. 32-bit counters ended long before the data did
(hibernate-ogm PR #424, microsoft/BCApps PR #10508)."""

import unittest

from leaftest import LEAF_DDL, MariaDbCase, wait_until


class ColumnTypesTest(MariaDbCase):
    def serve(self, table, column, max_id):
        ddl = LEAF_DDL.format(table=f"leaf.{table}", engine="InnoDB").replace("bigint(20)", column)
        self.database.sql(ddl)
        self.database.put("t", max_id, 100, table=table)
        return self.start_mysql_leafd({"store.table": table, "segment.wait": "300ms"})

    def test_a_wrong_type_is_named_and_nothing_is_reserved(self):
        for column, max_id in (("int", 2147483000), ("bigint unsigned", 2**63), ("decimal(20)", 10**19)):
            with self.subTest(column):
                table = "w" + column[:3] + str(len(column))
                server = self.serve(table, column, max_id)
                answer = server.get("/api/v1/ids/t")
                self.assertEqual((answer.status, answer.code), (503, "unavailable"), answer)
                ready, mode = server.ready()
                self.assertFalse(ready)
                self.assertIn("max_id", mode["reason"])
                self.assertIn("bigint", mode["reason"].lower(), "the reason says what it should be")
                self.assertEqual(self.database.max_id("t", table), max_id)

    def test_mending_the_column_heals_without_a_restart(self):
        server = self.serve("mended", "int", 5)
        self.assertEqual(server.get("/api/v1/ids/t").status, 503)
        self.database.sql("ALTER TABLE leaf.mended MODIFY max_id bigint NOT NULL DEFAULT 1")
        wait_until(lambda: server.leaf("t").status == 200, 5, "ids after the column was mended")


if __name__ == "__main__":
    unittest.main()
