"""B04: a deleted row. Leaf went on serving it, could end in a null pointer between two look-ups, and
kept all tags when the table was emptied (Leaf, cache refresh; PR #204)."""

import random
import time
import unittest

from leaftest import MariaDbCase, pick, wait_until

REFRESH = 0.5


class DeletedTagTest(MariaDbCase):
    def start(self):
        return self.start_mysql_leafd({"segment.refresh": f"{REFRESH * 1000:.0f}ms", "segment.wait": "1s"})

    def test_ends_within_two_refresh_intervals_and_harms_nobody(self):
        doomed, other = self.tag("d", step=100000), self.tag("other", step=100000)
        server = self.start()
        on_doomed = self.start_load(server, doomed, duration=3 * REFRESH + 2, rate=50)
        on_other = self.start_load(server, other, duration=3 * REFRESH + 2, rate=50)
        wait_until(lambda: server.metric("leafd_ids_issued_total") > 20, what="ids under load")
        self.database.sql("DELETE FROM leaf.leaf_alloc WHERE biz_tag = %s", (doomed,))
        begin = time.monotonic()
        wait_until(lambda: server.get(f"/api/v1/ids/{doomed}").status == 404, 2 * REFRESH + 1, "not_found of the deleted tag")
        print(f"not_found after {time.monotonic() - begin:.2f} s")
        self.assertEqual(server.leaf(doomed).json()["message"], "Result{id=-2, status=EXCEPTION}")
        report = on_doomed.report()
        self.assertEqual(set(report["by_code"]), {"not_found"}, report)
        self.assert_all_served(on_other.report())
        self.check()

    def test_the_last_row_too(self):
        """An empty list of a complete pass is a valid list."""
        self.database.sql("CREATE TABLE leaf.sole LIKE leaf.leaf_alloc")
        self.database.put("t", table="sole")
        server = self.start_mysql_leafd({"store.table": "sole", "segment.refresh": f"{REFRESH * 1000:.0f}ms"})
        server.id("t")
        self.database.sql("TRUNCATE leaf.sole")
        wait_until(lambda: server.leaf("t").code == "not_found", 2 * REFRESH + 1, "not_found after TRUNCATE")

    def delete(self, tag):
        """Deletes the row; the max_id that it had then."""
        with self.database.connect(database="leaf", autocommit=False) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT max_id FROM leaf_alloc WHERE biz_tag = %s FOR UPDATE", (tag,))
            top = cursor.fetchone()[0]
            cursor.execute("DELETE FROM leaf_alloc WHERE biz_tag = %s", (tag,))
            connection.commit()
        return top

    def test_tags_deleted_and_added_again_at_random(self):
        seed = random.SystemRandom().randrange(2**32)
        print(f"seed {seed}")
        chance = random.Random(seed)
        tags = [self.tag(f"r{i}", step=50) for i in range(pick(40, 1000))]
        server = self.start()
        load = self.start_load(server, tags, connections=8, duration=pick(2, 120))
        while load.running():
            tag = chance.choice(tags)
            top = self.delete(tag)
            time.sleep(chance.random() * 0.02)
            self.database.put(tag, top, 50)
        report = load.report()
        self.assertGreater(report["ok"], 100)
        # Added again at its old maximum, a tag is the same counter: no stop, at most "not there" meanwhile.
        self.assertLessEqual(set(report["by_code"]), {"not_found"}, report)
        self.assertEqual(report["unsure"], 0)
        self.check()


if __name__ == "__main__":
    unittest.main()
