"""F06: a database that acknowledges before it has written. A killed MariaDB with flush setting 0 lost
318 of 358 acknowledged reservations."""

import unittest

from leaftest import MariaDbCase, wait_until


class UnsafeFlushTest(MariaDbCase):
    def flush(self, value):
        self.database.sql(f"SET GLOBAL innodb_flush_log_at_trx_commit = {value}")
        self.addCleanup(self.database.sql, "SET GLOBAL innodb_flush_log_at_trx_commit = 1")

    def level(self, server):
        wait_until(lambda: server.status()["store"]["identity"], what="the first probe")
        return server.status()["store"]["durability"]

    def test_the_level_is_told_as_it_is(self):
        for value, level in ((1, "power"), (2, "process"), (0, "volatile")):
            with self.subTest(value):
                self.flush(value)
                self.assertEqual(self.level(self.start_mysql_leafd()), level)

    def test_less_than_required_is_refused_and_heals(self):
        tag = self.tag()
        self.flush(2)
        server = self.start_mysql_leafd({"segment.wait": "400ms"})
        answer = server.get(f"/api/v1/ids/{tag}")
        self.assertEqual((answer.status, answer.code), (503, "unavailable"), answer)
        ready, mode = server.ready()
        self.assertFalse(ready)
        self.assertIn("process", mode["reason"])
        self.assertEqual(self.database.max_id(tag), 1)
        self.flush(1)
        wait_until(lambda: server.leaf(tag).status == 200, 5, "ids after the setting was mended")

    def test_what_is_asked_for_is_served(self):
        tag = self.tag()
        self.flush(2)
        server = self.start_mysql_leafd({"store.min_durability": "process"})
        self.assertEqual(server.id(tag), 1)


if __name__ == "__main__":
    unittest.main()
