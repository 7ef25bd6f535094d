"""F06, F07, F16, F29 and B14, B18, B22 on PostgreSQL: what a table or a setting may do to its counters."""

import unittest
import urllib.parse

from leaftest import HaCase, Postgres, wait_until

FIXED = {"segment.policy": "fixed"}


class PostgresCase(HaCase):
    # A commit that does not wait for the disk is lost for certain if the server dies within seconds.
    options = ("wal_writer_delay=10s", "wal_writer_flush_after=0")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.database = Postgres(*cls.options)
        cls.addClassCleanup(cls.database.remove)
        cls.database.start()

    def start_server(self, settings=None, **options):
        return self.start_on(self.database.url(), {"segment.wait": "1200ms", **(settings or {})}, **options)


class UnsafeSettingsTest(PostgresCase):
    def test_f06_synchronous_commit_off_for_the_role_loses_nothing(self):
        self.database.put("acknowledged", step=1)
        self.database.put("control", step=1)
        self.database.sql("ALTER ROLE leaf SET synchronous_commit = off")
        self.addCleanup(self.database.sql, "ALTER ROLE leaf RESET synchronous_commit")
        server = self.start_server(FIXED)
        self.assertEqual(self.level(server), "power")
        last = max(server.id("acknowledged") for _ in range(50))
        # Without what leafd asks for, the same statement of the same role is forgotten.
        self.database.sql("SET ROLE leaf; SET synchronous_commit = off; UPDATE leaf_alloc SET max_id = 77 WHERE biz_tag = 'control'",
                          "leaf")
        self.database.kill()
        self.database.boot()
        self.assertEqual(self.database.max_id("control"), 1, "nothing was at stake")
        self.assertGreater(self.database.max_id("acknowledged"), last)
        self.wait_served(server, "acknowledged")
        self.assertGreater(server.id("acknowledged"), last)

    def test_f06_fsync_off_is_less_than_power_and_found_while_it_runs(self):
        self.database.put("synced", step=10)
        running = self.start_server(FIXED)
        running.id("synced")
        self.database.set("fsync", "off")
        self.addCleanup(self.database.set, "fsync", "on")
        self.assertEqual(self.level(self.start_server()), "process")
        self.assert_refused(self.refusal(running, "synced", n=10), "process")
        self.database.set("fsync", "on")
        self.wait_served(running, "synced")

    def test_f07_an_unlogged_table_is_refused_also_while_it_runs(self):
        self.database.create_table("forgetful", kind=" UNLOGGED")
        self.database.put("t", step=10, table="forgetful")
        server = self.start_server({**FIXED, "store.table": "forgetful"})
        self.assert_refused(server.get("/api/v1/ids/t"), "UNLOGGED", "SET LOGGED")
        self.database.sql("ALTER TABLE forgetful SET LOGGED", "leaf")
        self.wait_served(server, "t")
        self.database.sql("ALTER TABLE forgetful SET UNLOGGED", "leaf")
        self.assert_refused(self.refusal(server, "t", n=10), "UNLOGGED")
        self.assertEqual(self.database.max_id("t", "forgetful") % 10, 1, "no doubtful ids were served")

    def test_f16_a_column_that_is_no_bigint_is_refused(self):
        for kind in ("numeric(20)", "int"):
            with self.subTest(kind):
                table = "typed_" + kind[:3]
                self.database.create_table(table)
                self.database.put("t", step=10, table=table)
                self.database.sql(f"ALTER TABLE {table} ALTER COLUMN max_id TYPE {kind}", "leaf")
                server = self.start_server({"store.table": table})
                self.assert_refused(server.get("/api/v1/ids/t"), "max_id", "ALTER COLUMN max_id TYPE bigint")

    def test_f20_a_database_that_turns_read_only(self):
        self.database.put("readonly", step=10)
        self.database.sql("ALTER ROLE leaf SET default_transaction_read_only = on")
        self.addCleanup(self.database.sql, "ALTER ROLE leaf RESET default_transaction_read_only")
        server = self.start_server(FIXED)
        self.assert_refused(server.get("/api/v1/ids/readonly"), "read-only")
        self.database.sql("ALTER ROLE leaf RESET default_transaction_read_only")
        self.wait_served(server, "readonly")


class NamesTest(PostgresCase):
    def test_f29_names_are_compared_byte_by_byte(self):
        self.database.put("order", max_id=1)
        self.database.put("\u00e9t\u00e9", max_id=5001)
        server = self.start_server()
        self.assertEqual(server.id("order"), 1)
        self.assertEqual(server.ids(urllib.parse.quote("\u00e9t\u00e9"), 1), [5001])
        for other in ("ORDER", "order ", "\u00f3rder", "e\u0301te\u0301"):
            with self.subTest(other):
                answer = server.get("/api/v1/ids/" + urllib.parse.quote(other))
                self.assertIn(answer.code, ("not_found", "invalid_argument"), answer)
        self.assertEqual(self.database.max_id("order"), 1001)


class RowsTest(PostgresCase):
    def test_b14_the_table_goes_away_and_an_older_one_comes_back(self):
        self.database.create_table("moving")
        self.database.put("t", step=500, table="moving")
        self.database.sql("CREATE TABLE older (LIKE moving INCLUDING ALL); INSERT INTO older SELECT * FROM moving; "
                          "GRANT SELECT, UPDATE ON older TO leaf", "leaf")
        server = self.start_server({**FIXED, "store.table": "moving", "segment.wait": "500ms", "segment.refresh": "1s"})
        load = self.start_load(server, "t", rate=400, duration=600, connections=4)
        self.wait_issued(server, 600)
        self.database.sql("ALTER TABLE moving RENAME TO aside", "leaf")
        answer = self.refusal(server, "t")
        self.assertEqual(answer.code, "unavailable", answer)
        self.assertIn("moving", answer.json()["detail"])
        self.database.sql("ALTER TABLE older RENAME TO moving", "leaf")
        wait_until(lambda: server.leaf("t").code == "regressed", 10, "the stop when the table is back and lower")
        self.assertLessEqual(set(load.stop()["by_code"]), {"unavailable", "regressed"})
        self.check()

    def test_b18_after_drop_the_next_id_is_above_what_a_tool_has_set(self):
        self.database.put("moved")
        server = self.start_server()
        self.assertEqual(server.id("moved"), 1)
        self.database.sql("UPDATE leaf_alloc SET max_id = max_id + 10000000 WHERE biz_tag = 'moved'", "leaf")
        moved = self.database.max_id("moved")
        self.assertLess(server.id("moved"), moved, "held ids are still its own")
        self.assertEqual(server.admin("POST", "/api/v1/tags/moved/drop").status, 200)
        wait_until(lambda: server.id("moved") >= moved, 1, "ids above the new mark")

    def test_b22_a_restored_row_stops_the_tag(self):
        self.database.put("restored")
        server = self.start_server()
        end = max(first + count for first, count in server.ranges("restored", 100_000))
        self.database.put("restored", 1, 1000)
        answer = self.refusal(server, "restored", n=1000)
        self.assertEqual((answer.status, answer.code), (500, "regressed"), answer)
        wait_until(lambda: self.database.max_id("restored") >= end, what="the raised row")


if __name__ == "__main__":
    unittest.main()
