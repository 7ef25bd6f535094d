"""B24 and F22: the database closes an idle session, or a firewall forgets it without a word. The first
query after a quiet night failed (amphp/mysql #77, ziutek/mymysql #22)."""

import time
import unittest

from leaftest import TIME_FACTOR, MariaDbCase, pick, wait_until


class IdleConnectionTest(MariaDbCase):
    def test_a_session_closed_by_the_server_is_not_felt(self):
        tag = self.tag(step=1)
        self.database.sql("SET GLOBAL wait_timeout = 1")
        server = self.start_mysql_leafd({"segment.policy": "fixed"})
        server.id(tag)
        for _ in range(pick(2, 200)):
            old = set(self.database.sessions())
            wait_until(lambda gone=old: not gone & set(self.database.sessions()), 10, "the server's end of the idle session")
            begin = time.monotonic()
            for _ in range(3):
                server.id(tag)
            self.assertLess(time.monotonic() - begin, 1 * TIME_FACTOR)

    def test_a_session_that_died_in_silence_costs_one_store_timeout(self):
        tag = self.tag(step=1)
        self.database.sql("SET GLOBAL wait_timeout = 600")
        proxy = self.proxy(self.database.port)
        server = self.mysql_leafd({"segment.policy": "fixed"}, port=proxy.port).start()
        for _ in range(3):
            server.id(tag)
        proxy.freeze()
        begin = time.monotonic()
        for _ in range(5):
            server.id(tag)
        self.assertLess(time.monotonic() - begin, 2.5 * TIME_FACTOR, "connect and query timeout")


if __name__ == "__main__":
    unittest.main()
