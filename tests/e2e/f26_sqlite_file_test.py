"""F26: what can happen to the file of the embedded store."""

import os
import shutil
import sqlite3
import unittest

from leaftest import LeafdCase, wait_until


class SqliteFileTest(LeafdCase):
    def test_a_second_server_on_the_same_state_folder_ends(self):
        first = self.start_leafd()
        first.put_tag("t")
        second = self.leafd(settings={"server.state_dir": first.folder + "/state"})
        second.launch()
        self.assertEqual(second.child.wait(5), 1)
        self.assertIn(str(first.child.pid), second.log(), "it names the process that holds the folder")
        first.id("t")

    def test_a_second_server_on_the_same_file_does_not_serve(self):
        first = self.start_leafd()
        first.put_tag("t")
        first.id("t")
        second = self.leafd(settings={"store.url": f"sqlite:{first.folder}/state/leafd.db", "segment.wait": "300ms"}).start()
        answer = second.get("/api/v1/ids/t")
        self.assertEqual((answer.status, answer.code), (503, "unavailable"), answer)
        self.assertFalse(second.ready()[0])
        first.id("t")
        first.kill()
        wait_until(lambda: second.leaf("t").status == 200, 5, "the second after the first has ended")
        self.assertGreater(second.id("t"), 1)

    def test_the_lock_does_not_outlive_kill_9(self):
        server = self.start_leafd()
        server.put_tag("t")
        for _ in range(3):
            last = server.id("t")
            server.kill()
            server.start()
            self.assertGreater(server.id("t"), last)

    def test_a_lost_write_ahead_log_is_a_regression(self):
        """The -wal file held the last reservations; without it the row went back, and the marks tell."""
        server = self.start_leafd({"segment.policy": "fixed"})
        server.put_tag("t", step=10)
        for _ in range(35):
            last = server.id("t")
        server.journal_written()
        server.kill()
        wal = server.folder + "/state/leafd.db-wal"
        if not os.path.exists(wal):
            self.fail("no -wal file: has the journal mode changed?")
        os.remove(wal)
        server.start()
        answer = server.leaf("t")
        self.assertTrue(answer.code in ("regressed", "not_found", "unavailable") or int(answer.text) > last, answer)

    def test_a_copied_file_is_noticed_by_its_marks(self):
        server = self.start_leafd({"segment.policy": "fixed"})
        server.put_tag("t", step=10)
        server.id("t")
        self.assertEqual(server.stop(), 0)
        file = server.folder + "/state/leafd.db"
        shutil.copy(file, server.folder + "/copy")
        server.start()
        for _ in range(30):
            server.id("t")
        self.assertEqual(server.stop(), 0)
        shutil.copy(server.folder + "/copy", file)
        for suffix in ("-wal", "-shm"):
            if os.path.exists(file + suffix):
                os.remove(file + suffix)
        server.start()
        self.assertEqual(server.leaf("t").code, "regressed")

    def test_a_busy_file_makes_it_wait_and_not_fail(self):
        server = self.start_leafd({"segment.policy": "fixed"})
        server.put_tag("t", step=1)
        server.id("t")
        with sqlite3.connect(server.folder + "/state/leafd.db", isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            load = self.start_load(server, "t", requests=3, history=False)
            wait_until(lambda: server.tag("t")["segments"] is not None, what="the server's answer meanwhile")
            other.execute("ROLLBACK")
        self.assert_all_served(load.report())

    def test_a_symlink_in_its_place_is_refused(self):
        server = self.leafd(settings={"segment.wait": "300ms"})
        os.makedirs(server.folder + "/state", mode=0o700)
        target = server.folder + "/elsewhere"
        os.symlink(target, server.folder + "/state/leafd.db")
        server.start()
        self.assertEqual(server.leaf("t").code, "unavailable")
        self.assertFalse(os.path.exists(target))


if __name__ == "__main__":
    unittest.main()
