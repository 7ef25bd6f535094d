"""F14: steps that no range can have."""

import unittest

from leaftest import LEAF_DDL, MariaDbCase, wait_until


class BadStepTest(MariaDbCase):
    def assert_refused(self, server, tag, table="leaf_alloc"):
        top = self.database.max_id(tag, table)
        answer = server.get(f"/api/v1/ids/{tag}")
        self.assertEqual((answer.status, answer.code), (503, "unavailable"), answer)
        self.assertIn("step", answer.json()["detail"])
        self.assertEqual(self.database.max_id(tag, table), top, "max_id is untouched")

    def test_zero_and_below_are_refused_and_heal(self):
        server = self.start_mysql_leafd({"segment.wait": "300ms", "segment.refresh": "1s"})
        for step in (0, -1, -2147483648):
            with self.subTest(step):
                tag = self.tag(str(step), step=step)
                self.assert_refused(server, tag)
                self.database.sql("UPDATE leaf.leaf_alloc SET step = 10 WHERE biz_tag = %s", (tag,))
                wait_until(lambda one=tag: server.leaf(one).status == 200, 4, "ids after the step was mended")
        self.assertEqual(server.leaf(self.tag("good", step=1)).status, 200, "others are not held up")

    def test_the_largest_step_is_served(self):
        tag = self.tag(step=2147483647)
        server = self.start_mysql_leafd()
        self.assertEqual(server.id(tag), 1)
        self.assertEqual(self.database.max_id(tag), 2147483648)

    def test_a_step_that_became_bad_while_running(self):
        tag = self.tag(step=5)
        server = self.start_mysql_leafd({"segment.wait": "300ms", "segment.refresh": "1s", "segment.policy": "fixed"})
        server.id(tag)
        self.database.sql("UPDATE leaf.leaf_alloc SET step = 0 WHERE biz_tag = %s", (tag,))
        wait_until(lambda: server.leaf(tag).status != 200, what="the end of held ids")
        self.assert_refused(server, tag)

    def test_null_is_refused(self):
        self.database.sql(LEAF_DDL.format(table="leaf.nulls", engine="InnoDB").replace("step int(11) NOT NULL", "step int(11) NULL"))
        self.database.sql("INSERT INTO leaf.nulls (biz_tag, max_id) VALUES ('t', 1)")
        server = self.start_mysql_leafd({"store.table": "nulls", "segment.wait": "300ms"})
        answer = server.get("/api/v1/ids/t")
        self.assertEqual((answer.status, answer.code), (503, "unavailable"), answer)
        self.assertEqual(self.database.max_id("t", "nulls"), 1)


if __name__ == "__main__":
    unittest.main()
