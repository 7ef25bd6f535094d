"""B03: the key names of both branches of Leaf. Users set the other branch's key and got a null pointer
at start (Leaf #217, #95)."""

import time
import unittest

from leaftest import TIME_FACTOR, MariaDbCase, run_leafd

MASTER = "leaf.jdbc"
STARTER = "leaf.segment"


class ConfigAliasesTest(MariaDbCase):
    def properties(self, *lines):
        return self.write("leaf.properties", "\n".join(["leaf.snowflake.enable=false", *lines]) + "\n")

    def account(self, prefix, user="leaf"):
        url = self.database.jdbc_url("?useSSL=false&characterEncoding=utf8")
        return [f"{prefix}.url={url}", f"{prefix}.username={user}", f"{prefix}.password=leaf"]

    def test_each_branchs_keys_lead_to_the_table(self):
        tag = self.tag()
        for prefix in (MASTER, STARTER):
            with self.subTest(prefix):
                server = self.leafd(config=self.properties(*self.account(prefix))).start()
                self.assertGreater(server.id(tag), 0)

    def test_both_with_equal_values_are_no_conflict(self):
        path = self.properties(*self.account(MASTER), *self.account(STARTER))
        done = run_leafd("--config", path, "--check")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_differing_values_are_a_start_error_that_names_both_lines(self):
        path = self.properties(*self.account(MASTER), *self.account(STARTER, user="other"))
        self.refused(path, f"{path}:3", f"{path}:6")

    def test_neither_is_a_start_error_that_names_key_and_way_out(self):
        path = self.properties("leaf.segment.enable=true")
        self.refused(path, path, "leaf.jdbc.url", "leaf.segment.enable=false")

    def test_snowflake_addresses_conflict_too(self):
        path = self.properties("leaf.segment.enable=false", "leaf.snowflake.zk.address=a:2181", "leaf.snowflake.address=b:2181")
        self.refused(path, f"{path}:3", f"{path}:4")

    def refused(self, path, *words):
        begin = time.monotonic()
        done = run_leafd("--config", path)
        self.assertLess(time.monotonic() - begin, 2 * TIME_FACTOR)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)


if __name__ == "__main__":
    unittest.main()
