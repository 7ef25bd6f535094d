"""F23 and the start without a database: leafd listens, says why it cannot serve, tries with back-off,
and serves within two seconds of the database's return."""

import time
import unittest

from leaftest import TIME_FACTOR, MariaDbCase, pick, wait_until


class StoreReturnsTest(MariaDbCase):
    def first_success(self, server, tag):
        begin = time.monotonic()
        wait_until(lambda: server.leaf(tag).status == 200, 10, "the first id", interval=0.005)
        return time.monotonic() - begin

    def test_after_an_outage(self):
        tag = self.tag(step=20)
        server = self.start_mysql_leafd({"segment.wait": "500ms", "segment.policy": "fixed"})
        server.id(tag)
        self.addCleanup(lambda: self.database.child.alive() or self.database.boot())
        self.database.stop()
        held = 0
        while server.leaf(tag).status == 200:
            held += 1
        self.assertGreater(held, 10, "held ids go on without the database")
        answer = server.get(f"/api/v1/ids/{tag}")
        self.assertEqual((answer.status, answer.code), (503, "unavailable"), answer)
        self.assertEqual(server.ready()[0], False)
        begin = time.monotonic()
        wait_until(lambda: time.monotonic() - begin > pick(1, 600), pick(10, 700), "the outage's length")
        self.database.boot()
        self.assertLess(self.first_success(server, tag), 2 * TIME_FACTOR)
        self.assertEqual(server.ready()[0], True)

    def test_refused_at_start(self):
        tag = self.tag()
        proxy = self.proxy(self.database.port)
        proxy.refuse()
        begin = time.monotonic()
        server = self.mysql_leafd({"segment.wait": "300ms"}, port=proxy.port).start()
        self.assertLess(time.monotonic() - begin, 2 * TIME_FACTOR, "it listens without its database")
        self.assertEqual(server.admin_get("/livez").status, 200)
        answer = server.get(f"/api/v1/ids/{tag}")
        self.assertEqual((answer.status, answer.code), (503, "unavailable"), answer)
        ready, mode = server.ready()
        self.assertFalse(ready)
        self.assertIn(f"127.0.0.1:{proxy.port}", mode["reason"], "the reason names the server")
        self.assertIn("(111)", mode["reason"], "and why: the connection was refused")
        proxy.listen()
        self.assertLess(self.first_success(server, tag), 2 * TIME_FACTOR)

    def test_it_tries_with_back_off(self):
        """A running Leaf tried about a thousand times a second."""
        proxy = self.proxy(self.database.port)
        proxy.rule("bytes", "reset", direction="down", at=0)
        server = self.mysql_leafd({"segment.wait": "300ms"}, port=proxy.port).start()
        begin, accepted = time.monotonic(), proxy.accepted
        load = self.start_load(server, self.tag(), connections=20, duration=2, history=False)
        load.report()
        rate = (proxy.accepted - accepted) / (time.monotonic() - begin)
        print(f"{rate:.1f} connection attempts a second")
        self.assertLess(rate, 15)
        self.assertGreater(proxy.accepted, 1)


if __name__ == "__main__":
    unittest.main()
