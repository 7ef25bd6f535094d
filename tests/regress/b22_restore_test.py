"""B22 and F08: a restored backup leaves the counters behind the data, and nothing shows until the
first collision (DeliciousBuding/metapi-go #1217, vectorize-io/hindsight #3841)."""

import shutil
import unittest

from leaftest import MariaDbCase, wait_until


class RestoreTest(MariaDbCase):
    def restore(self, tag, row):
        self.database.put(tag, *row)

    def run_past_a_dump(self, settings=None):
        """A server that has handed out more than the dump knows, stopped."""
        tag = self.tag(step=1000)
        dump = (self.database.max_id(tag), 1000)
        server = self.start_mysql_leafd({"segment.refresh": "1s", **(settings or {})})
        for first, count in server.ranges(tag, 100_000):
            self.assertGreaterEqual(first, 1)
            self.assertGreater(count, 0)
        server.journal_written()
        return server, tag, dump

    def test_kept_state_refuses_a_restored_row(self):
        server, tag, dump = self.run_past_a_dump()
        server.kill()
        self.restore(tag, dump)
        server.start()
        answer = server.get(f"/api/v1/ids/{tag}")
        self.assertEqual((answer.status, answer.code), (500, "regressed"), answer)
        wait_until(lambda: self.database.max_id(tag) > 100_000, what="the raised row")

    def test_a_clean_stop_keeps_the_mark_too(self):
        server, tag, dump = self.run_past_a_dump()
        self.assertEqual(server.stop(), 0)
        self.assertEqual(self.database.max_id(tag), 100_001, "the rest was handed back")
        self.restore(tag, dump)
        server.start()
        self.assertEqual(server.leaf(tag).code, "regressed")

    def test_restored_while_running(self):
        server, tag, dump = self.run_past_a_dump()
        self.restore(tag, dump)
        wait_until(lambda: server.get(f"/api/v1/ranges/{tag}?n=1000").code == "regressed", what="the stop of the tag")
        wait_until(lambda: self.database.max_id(tag) > 100_000, what="the raised row")

    def test_wiped_state_starts_where_the_row_stands(self):
        """What a server without memory cannot notice; docs/guarantees.md says so."""
        server, tag, dump = self.run_past_a_dump()
        server.kill()
        self.restore(tag, dump)
        shutil.rmtree(server.folder + "/state")
        server.start()
        self.assertEqual(server.id(tag), 1)
        self.assertIn("no memory of an earlier maximum", server.ready()[1]["reason"])

    def test_wiped_state_is_refused_where_marks_are_required(self):
        server, tag, dump = self.run_past_a_dump({"segment.require_marks": "false"})
        server.kill()
        self.restore(tag, dump)
        shutil.rmtree(server.folder + "/state")
        server.settings["segment.require_marks"] = "true"
        server.launch()
        self.assertEqual(server.child.wait(10), 1)
        self.assertIn("require_marks", server.log())
        self.assertEqual(self.database.max_id(tag), 1)


if __name__ == "__main__":
    unittest.main()
