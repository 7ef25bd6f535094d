"""SIGTERM: readiness goes off first, requests under way are answered, the rest is handed back; a second
signal ends at once."""

import socket
import threading
import time
import unittest

from leaftest import TIME_FACTOR, MariaDbCase, raw, wait_until

ASK = b"GET /api/segment/get/%s HTTP/1.1\r\nHost: x\r\n\r\n"


class DrainTest(MariaDbCase):
    def test_readiness_goes_first_and_answers_go_on(self):
        server = self.start_leafd({"server.drain_delay": "1s"})
        server.id("order")
        server.terminate()
        answer = wait_until(lambda: (lambda a: a if a.status == 503 else None)(server.admin_get("/readyz")), 1, "readiness off")
        self.assertIn("draining", answer.text)
        self.assertEqual(server.admin_get("/livez").status, 200)
        self.assertGreater(server.id("order"), 1, "ids are served during server.drain_delay")
        self.assertEqual(server.child.wait(5), 0)

    def test_no_answer_is_lost_over_a_drain(self):
        server = self.start_leafd({"server.drain_delay": "300ms"})
        server.put_tag("order", step=10)
        load = self.start_load(server, "order", connections=16, pipeline=1, duration=1.5, rate=2000)
        wait_until(lambda: server.metric("leafd_ids_issued_total") > 200, what="load")
        self.assertEqual(server.stop(), 0)
        server.start()
        report = load.report()
        # A connection that lies idle may be closed just as its client sends: unsure, and safe to retry.
        self.assertEqual(report["failed"], 0, report)
        self.assertLessEqual(report["unsure"], 2, report)
        server.id("order")
        self.check()

    def test_a_request_under_way_is_answered_and_the_connection_closed(self):
        tag = self.tag(step=1)
        proxy = self.proxy(self.database.port)
        server = self.mysql_leafd({"segment.policy": "fixed"}, port=proxy.port).start()
        server.id(tag)
        delay = proxy.rule("command", "delay", match="^UPDATE", seconds=0.6)
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            while not delay.hits:
                connection.sendall(ASK % tag.encode())
                if not delay.hits:
                    wait_until(lambda: delay.hits or self.peek(connection), what="an answer or a delay")
                if self.peek(connection):
                    connection.recv(4096)
            server.terminate()
            answer = b""
            while more := connection.recv(4096):
                answer += more
            if not answer:
                self.fail("the request under way got no answer")
            self.assertTrue(answer.startswith(b"HTTP/1.1 200"), answer)
            self.assertIn(b"connection: close", answer.lower())
        self.assertEqual(server.child.wait(), 0)

    @staticmethod
    def peek(connection):
        connection.setblocking(False)
        try:
            return bool(connection.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False
        finally:
            connection.settimeout(10)

    def test_idle_connections_do_not_hold_the_drain(self):
        server = self.start_leafd()
        idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
        for connection in idle:
            self.addCleanup(connection.close)
        for connection in idle[:10]:
            connection.sendall(ASK % b"order")
            self.assertTrue(connection.recv(4096).startswith(b"HTTP/1.1 200"))
        begin = time.monotonic()
        self.assertEqual(server.stop(), 0)
        self.assertLess(time.monotonic() - begin, 4 * TIME_FACTOR, "far below server.drain")

    def test_a_second_signal_ends_at_once(self):
        tag = self.tag()
        proxy = self.proxy(self.database.port)
        server = self.mysql_leafd({"segment.wait": "30s", "server.drain": "30s"}, port=proxy.port).start()
        wait_until(server.store_up, what="the store")
        proxy.hold_new = True
        proxy.freeze()
        waiting = threading.Thread(target=raw, args=(server.port, ASK % tag.encode(), 20), daemon=True)
        waiting.start()
        wait_until(lambda: server.status()["connections"]["http"] > 1, what="the held request")
        server.terminate()
        wait_until(lambda: server.admin_get("/readyz").status == 503, what="the drain")
        self.assertTrue(server.child.alive(), "the held request keeps it")
        begin = time.monotonic()
        server.terminate()
        server.child.wait(5)
        self.assertLess(time.monotonic() - begin, 1 * TIME_FACTOR)
        waiting.join(5)

    def test_a_dead_store_does_not_hold_the_stop(self):
        tag = self.tag()
        proxy = self.proxy(self.database.port)
        server = self.mysql_leafd(port=proxy.port).start()
        server.id(tag)
        proxy.hold_new = True
        proxy.freeze()
        begin = time.monotonic()
        self.assertEqual(server.stop(), 0)
        self.assertLess(time.monotonic() - begin, 5 * TIME_FACTOR, "hand-back is tried once, for store.timeout")

    def test_hand_back_on_mariadb(self):
        tag, other = self.tag(step=100), self.tag("other", step=100)
        server = self.start_mysql_leafd()
        self.assertEqual([server.id(tag) for _ in range(7)], list(range(1, 8)))
        server.id(other)
        self.database.sql("UPDATE leaf.leaf_alloc SET max_id = max_id + 100 WHERE biz_tag = %s", (other,))
        self.assertEqual(server.stop(), 0)
        self.assertEqual(self.database.max_id(tag), 8)
        self.assertEqual(self.database.max_id(other), 201, "another has reserved above: the rest is a gap")


if __name__ == "__main__":
    unittest.main()
