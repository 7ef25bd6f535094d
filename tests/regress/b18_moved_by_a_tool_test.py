"""B18: a migration tool moves the row up, and the server must let go of what it holds
(vitessio/vitess #9442)."""

import unittest

from leaftest import MariaDbCase, wait_until


class MovedByAToolTest(MariaDbCase):
    def test_after_drop_the_next_id_is_above_the_new_mark(self):
        tag = self.tag(step=1000)
        server = self.start_mysql_leafd()
        self.assertEqual(server.id(tag), 1)
        self.database.sql("UPDATE leaf.leaf_alloc SET max_id = max_id + 10000000 WHERE biz_tag = %s", (tag,))
        moved = self.database.max_id(tag)
        self.assertLess(server.id(tag), moved, "held ids are still its own")
        dropped = server.admin("POST", f"/api/v1/tags/{tag}/drop")
        self.assertEqual(dropped.status, 200, dropped.text)
        wait_until(lambda: server.id(tag) >= moved, 1, "ids above the new mark")
        self.assertEqual(server.tag(tag)["state"], "active")
        self.assertGreater(server.metric("leafd_ids_discarded_total", reason="dropped"), 0)

    def test_drop_changes_nothing_without_the_admin_header(self):
        tag = self.tag(step=1000)
        server = self.start_mysql_leafd()
        first = server.id(tag)
        refused = server.admin_get(f"/api/v1/tags/{tag}/drop", method="POST")
        self.assertIn(refused.status, (401, 403), refused)
        self.assertEqual(server.id(tag), first + 1)


if __name__ == "__main__":
    unittest.main()
