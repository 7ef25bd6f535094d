"""F10: a row is deleted and made again below what was issued."""

import unittest

from leaftest import LeafdCase, MariaDbCase, wait_until


class RecreatedTagTest(MariaDbCase):
    def test_below_its_mark_it_is_stopped(self):
        tag = self.tag(step=100)
        server = self.start_mysql_leafd({"segment.refresh": "1s"})
        last = server.ids(tag, 250)[-1]
        self.database.sql("DELETE FROM leaf.leaf_alloc WHERE biz_tag = %s", (tag,))
        wait_until(lambda: server.leaf(tag).code == "not_found", 4, "the deletion's effect")
        self.database.put(tag, 1, 100)
        answer = wait_until(lambda: (lambda a: a if a.code != "not_found" else None)(server.get(f"/api/v1/ids/{tag}")), 4,
                            "the new row's effect")
        self.assertEqual((answer.status, answer.code), (500, "regressed"), answer)
        wait_until(lambda: self.database.max_id(tag) > last, what="the raised row")

    def test_at_its_mark_it_goes_on(self):
        tag = self.tag(step=100)
        server = self.start_mysql_leafd({"segment.refresh": "1s"})
        last = server.ids(tag, 250)[-1]
        # The row's own last word: a refill may be under way until the very moment of the deletion.
        [(top,)] = self.database.sql("DELETE FROM leaf.leaf_alloc WHERE biz_tag = %s RETURNING max_id", (tag,))
        wait_until(lambda: server.leaf(tag).code == "not_found", 4, "the deletion's effect")
        self.database.put(tag, top, 100)
        wait_until(lambda: server.leaf(tag).status == 200, 4, "ids of the new row")
        self.assertGreater(server.id(tag), last)

    def test_a_new_row_is_served_at_once(self):
        """An unknown tag is looked up, not waited for until the next refresh."""
        server = self.start_mysql_leafd()
        wait_until(lambda: server.status()["tags"]["list_complete"], what="the first list")
        tag = self.tag()
        self.assertEqual(server.id(tag), 1)


class RecreatedByTheAdminApiTest(LeafdCase):
    def test_the_api_deletes_at_once_and_creates_at_or_above_the_mark(self):
        server = self.start_leafd()
        server.put_tag("t", step=100)
        last = server.ids("t", 250)[-1]
        self.assertEqual(server.admin("DELETE", "/api/v1/tags/t").status // 100, 2)
        auto = self.start_leafd({"segment.auto_create": "false"})
        auto.put_tag("u")
        auto.id("u")
        self.assertEqual(auto.admin("DELETE", "/api/v1/tags/u").status // 100, 2)
        self.assertEqual(auto.leaf("u").code, "not_found")
        server.put_tag("t", step=100, max_id=1)
        self.assertGreater(server.id("t"), last)

    def test_another_max_id_on_an_existing_tag_is_a_conflict(self):
        server = self.start_leafd()
        server.put_tag("t", step=100, max_id=500)
        self.assertEqual(server.admin("PUT", "/api/v1/tags/t", {"step": 100, "max_id": "7"}).code, "conflict")
        changed = server.admin("PUT", "/api/v1/tags/t", {"step": 200})
        self.assertEqual(changed.status, 200, changed)
        self.assertEqual(server.tag("t")["step"], 200)
        self.assertEqual(server.id("t"), 500)


if __name__ == "__main__":
    unittest.main()
