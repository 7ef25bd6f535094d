"""F11: a client that reserves as a Leaf node does (one transaction: UPDATE by the row's own step, then
SELECT; the range is half-open) beside leafd on the same rows."""

import time
import unittest

from leaftest import MariaDbCase, pick, write_history


class BesideLeafTest(MariaDbCase):
    def lease_like_leaf(self, connection, tag, step=None):
        """One range as Leaf takes it: (first, count); with a step of its own from the third lease on."""
        with connection.cursor() as cursor:
            amount = "step" if step is None else "%s"
            arguments = (tag,) if step is None else (step, tag)
            cursor.execute(f"UPDATE leaf_alloc SET max_id = max_id + {amount} WHERE biz_tag = %s", arguments)
            cursor.execute("SELECT biz_tag, max_id, step FROM leaf_alloc WHERE biz_tag = %s", (tag,))
            _, max_id, row_step = cursor.fetchone()
            connection.commit()
        count = row_step if step is None else step
        return max_id - count, count

    def test_no_overlap_at_any_border(self):
        tag = self.tag(step=7)
        server = self.start_mysql_leafd()
        load = self.start_load(server, tag, connections=4, duration=pick(3, 60), rate=4000)
        ranges = []
        with self.database.connect(user="leaf", password="leaf", database="leaf", unix_socket=None, host="127.0.0.1",
                                   port=self.database.port, autocommit=False) as connection:
            while load.running():
                sent = time.monotonic_ns()
                first, count = self.lease_like_leaf(connection, tag, None if len(ranges) % 3 else 11)
                ranges.append((sent, time.monotonic_ns(), first, count))
        self.assert_all_served(load.report())
        self.assertGreater(len(ranges), pick(200, 10_000))
        self.histories.append(self.folder + "/leaf")
        write_history(self.histories[-1], tag, "leaf", ranges)
        self.assertEqual(server.stop(), 0)
        report = self.check("--high", f"{tag}={self.database.max_id(tag)}", "--low", f"{tag}=1")
        self.assertEqual(report["tags"][tag]["first"], 1)

    def test_leafd_leaves_step_and_description_alone(self):
        tag = self.tag(step=7)
        self.database.sql("UPDATE leaf.leaf_alloc SET description = 'mine' WHERE biz_tag = %s", (tag,))
        server = self.start_mysql_leafd()
        for _ in range(100):
            server.id(tag)
        self.assertEqual(server.stop(), 0)
        self.assertEqual(self.database.sql("SELECT step, description, max_id FROM leaf.leaf_alloc WHERE biz_tag = %s", (tag,)),
                         [(7, "mine", 101)])


if __name__ == "__main__":
    unittest.main()
