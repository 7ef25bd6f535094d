"""leafctl: makes the tables that are missing, says so, and ends with a code for scripts."""

import os
import subprocess
import unittest

from leaftest import MariaDbCase

LEAFCTL = os.environ["LEAFCTL_BIN"]


class LeafctlTest(MariaDbCase):
    def run_ctl(self, *arguments):
        return subprocess.run([LEAFCTL, *arguments], capture_output=True, text=True, timeout=60, check=False)

    def tables(self):
        return sorted(row[0] for row in self.database.sql("SHOW TABLES IN leaf"))

    def test_makes_what_is_missing_and_leaves_what_is_there(self):
        self.database.sql("DROP TABLE IF EXISTS leaf.leafd_worker")
        tag = self.tag(max_id=77)
        done = self.run_ctl("store", "init", "--store", self.database.url("admin"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("there already: `leaf`.`leaf_alloc`", done.stdout)
        self.assertIn("made: `leaf`.`leafd_worker`", done.stdout)
        self.assertEqual(self.tables(), ["leaf_alloc", "leafd_worker"])
        again = self.run_ctl("store", "init", "--store", self.database.url("admin"))
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("there already: `leaf`.`leafd_worker`", again.stdout)
        self.assertEqual(self.database.max_id(tag), 77)

    def test_a_user_who_may_not_is_told_the_statement(self):
        self.database.sql("DROP TABLE IF EXISTS leaf.leafd_worker")
        done = self.run_ctl("store", "init", "--store", self.database.url("leaf"))
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("CREATE TABLE IF NOT EXISTS `leaf`.`leafd_worker`", done.stderr)

    def test_print_changes_nothing_and_prints_what_a_server_takes(self):
        self.database.sql("DROP TABLE IF EXISTS leaf.leafd_worker")
        done = self.run_ctl("store", "init", "--print", "--store", self.database.url("admin"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("leafd_worker", self.tables())
        for statement in done.stdout.splitlines():
            self.database.sql(statement)
        self.assertEqual(self.tables(), ["leaf_alloc", "leafd_worker"])

    def test_sqlite(self):
        path = self.folder + "/leafd.db"
        done = self.run_ctl("store", "init", "--store", "sqlite:" + path, "--set", "store.min_durability=process")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.exists(path))

    def test_usage(self):
        self.assertEqual(self.run_ctl("--help").returncode, 0)
        self.assertRegex(self.run_ctl("--version").stdout, r"^leafctl \d")
        for wrong in ([], ["store"], ["frob"], ["store", "init", "--frob"]):
            self.assertEqual(self.run_ctl(*wrong).returncode, 2, wrong)
        unreachable = self.run_ctl("store", "init", "--store", "mysql://u:p@127.0.0.1:1/leaf")
        self.assertEqual(unreachable.returncode, 1)
        self.assertIn("cannot connect", unreachable.stderr)


if __name__ == "__main__":
    unittest.main()
