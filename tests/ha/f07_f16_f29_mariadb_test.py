"""F07, F16 and F29 on MariaDB: an engine that forgets, a column beyond 63 bits, names that a collation takes for one."""

import unittest
import urllib.parse

from leaftest import MariaDbCase, wait_until


class TableTest(MariaDbCase):
    def start_server(self, table, wait="1200ms"):
        return self.start_mysql_leafd({"store.table": table, "segment.policy": "fixed", "segment.wait": wait})

    def refused(self, server, *words, path="/api/v1/ids/t"):
        answer = wait_until(lambda: (lambda a: a if a.status != 200 else None)(server.get(path)), what="a refusal")
        self.assertEqual((answer.status, answer.code), (503, "unavailable"), answer)
        for word in words:
            self.assertIn(word, answer.json()["detail"])

    def test_f07_an_engine_that_forgets_is_refused_at_the_start_and_while_it_runs(self):
        self.database.create_table("leaf.engines", engine="MyISAM")
        self.database.put("t", step=10, table="engines")
        server = self.start_server("engines")
        self.refused(server, "MyISAM", "ENGINE=InnoDB")
        self.database.sql("ALTER TABLE leaf.engines ENGINE=InnoDB")
        wait_until(lambda: server.leaf("t").status == 200, 5, "ids after the engine was mended")
        before = self.database.max_id("t", "engines")
        self.database.sql("ALTER TABLE leaf.engines ENGINE=MyISAM")
        self.refused(server, "MyISAM", path="/api/v1/ranges/t?n=10")
        self.assertEqual(self.database.max_id("t", "engines"), before, "not one more reservation")

    def test_f16_a_column_beyond_63_bits_is_refused(self):
        self.database.create_table("leaf.wide")
        self.database.sql("ALTER TABLE leaf.wide MODIFY max_id BIGINT UNSIGNED NOT NULL")
        self.database.put("t", 2**63, 10, table="wide")
        self.refused(self.start_server("wide"), "max_id", "unsigned")
        self.assertEqual(self.database.max_id("t", "wide"), 2**63)

    def test_f29_a_name_is_its_bytes_whatever_the_collation_says(self):
        for charset, own in (("latin1", "\u00f3rder"), ("utf8mb4", "\u00e9t\u00e9")):
            with self.subTest(charset):
                table = "names_" + charset
                self.database.create_table("leaf." + table)
                self.database.sql(f"ALTER TABLE leaf.{table} CONVERT TO CHARACTER SET {charset}")
                self.database.put("order" if charset == "utf8mb4" else "invoice", 1, 1000, table=table)
                self.database.put(own, 5001, 1000, table=table)
                server = self.start_server(table)
                self.assertEqual(server.ids(urllib.parse.quote(own), 1), [5001])
                for other in ("ORDER", "order ", "INVOICE", "\u00d3rder", "o\u0301rder", "e\u0301te\u0301", "ete", "invoice "):
                    answer = server.get("/api/v1/ids/" + urllib.parse.quote(other))
                    self.assertIn(answer.code, ("not_found", "invalid_argument"), (other, answer))
                self.assertEqual(self.database.max_id(own, table), 6001)


if __name__ == "__main__":
    unittest.main()
