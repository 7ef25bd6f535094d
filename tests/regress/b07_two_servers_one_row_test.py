"""B07 and F07: servers that reserve together. On InnoDB each range is one server's; on MyISAM two
sessions got the same one, so leafd does not reserve there (Leaf #151)."""

import unittest

from leaftest import MariaDbCase, pick, wait_until


class TwoServersOneRowTest(MariaDbCase):
    def alter(self, table, engine):
        self.database.sql(f"ALTER TABLE leaf.{table} ENGINE={engine}")

    def test_four_servers_share_a_row(self):
        tag = self.tag(step=5)
        servers = [self.start_mysql_leafd() for _ in range(4)]
        report = self.load(servers, tag, connections=16, requests=pick(20_000, 1_000_000))
        self.assert_all_served(report)
        for server in servers:
            self.assertEqual(server.stop(), 0)
        self.check("--min-ids", str(pick(20_000, 1_000_000)), "--high", f"{tag}={self.database.max_id(tag)}")

    def test_myisam_is_refused_at_start_and_heals(self):
        self.database.create_table("leaf.my1", "MyISAM")
        self.database.put("t", table="my1")
        server = self.start_mysql_leafd({"store.table": "my1", "segment.wait": "500ms"})
        answer = server.get("/api/v1/ids/t")
        self.assertEqual((answer.status, answer.code), (503, "unavailable"), answer)
        ready, mode = server.ready()
        self.assertFalse(ready)
        self.assertIn("MyISAM", mode["reason"])
        self.assertEqual(self.database.max_id("t", "my1"), 1, "nothing was reserved")
        self.alter("my1", "InnoDB")
        wait_until(lambda: server.leaf("t").status == 200, 5, "ids after the table was mended")

    def test_myisam_found_while_running_stops_reserving(self):
        self.database.create_table("leaf.my2")
        self.database.put("t", 1, 10, table="my2")
        server = self.start_mysql_leafd({"store.table": "my2", "segment.wait": "500ms", "segment.policy": "fixed",
                                         "segment.refresh": "1s"})
        server.id("t")
        self.alter("my2", "MyISAM")
        wait_until(lambda: server.leaf("t").code == "unavailable", 10, "the end of reserving")
        self.assertIn("MyISAM", server.status()["store"]["last_error"])


if __name__ == "__main__":
    unittest.main()
