"""What idload does with servers that behave, and with some that do not; and that idcheck sees it."""

import os
import socket
import threading
import unittest

from leaftest import LeafdCase


class ScriptedServer:
    """Answers Leaf's path with rising numbers; `script(n)` may change the n-th answer (None: RST)."""

    def __init__(self, script=lambda n, normal: normal):
        self.script = script
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.target = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.lock = threading.Lock()
        self.served = 0
        self.connections = 0
        self.targets = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        pending = b""
        with connection:
            while data := connection.recv(65536):
                pending += data
                while b"\r\n\r\n" in pending:
                    head, _, pending = pending.partition(b"\r\n\r\n")
                    self.targets.add(head.split(b" ")[1].decode())
                    with self.lock:
                        self.served += 1
                        answer = self.script(self.served, self.ok(self.served))
                    if answer is None:
                        return
                    connection.sendall(answer)

    @staticmethod
    def ok(number):
        return b"HTTP/1.1 200 \r\nContent-Length: %d\r\n\r\n%d" % (len(str(number)), number)


class IdloadTest(LeafdCase):
    def serve(self, *script):
        server = ScriptedServer(*script)
        self.addCleanup(server.listener.close)
        return server

    def test_counts_what_it_got(self):
        server = self.serve()
        report = self.load(server, "t", requests=500, connections=10, pipeline=4)
        self.assert_all_served(report)
        self.assertEqual((report["requests"], report["ok"], report["ids"], report["by_status"]), (500, 500, 500, {"200": 500}))
        self.assertEqual(self.check()["total"]["ids"], 500)

    def test_asks_on_the_path_that_it_is_told(self):
        listed = lambda n, _: b'HTTP/1.1 200 \r\nContent-Length: 18\r\n\r\n{"ids":["%03d","9"]}' % n
        for path, target in (("leaf", "/api/segment/get/t"), ("ids", "/api/v1/ids/t?n=2"),
                             ("leaf-snowflake", "/api/snowflake/get/t"), ("snowflake", "/api/v1/snowflake?n=2")):
            server = self.serve(*([] if path.startswith("leaf") else [listed]))
            report = self.load(server, "t", requests=3, n=2, path=path, history=False)
            self.assert_all_served(report)
            self.assertEqual(server.targets, {target})
            self.assertEqual(report["ids"], 3 if path.startswith("leaf") else 6)

    def test_releases_all_connections_at_once_in_each_round(self):
        server = self.serve()
        report = self.load(server, "t", rounds=3, connections=50, barrier=True)
        self.assertEqual((report["ok"], server.connections), (150, 50))

    def test_keeps_to_a_rate(self):
        server = self.serve()
        report = self.load(server, "t", duration=1, rate=100, connections=4)
        self.assertTrue(60 <= report["ok"] <= 101, report)

    def test_a_cut_connection_makes_its_requests_unsure_and_is_opened_again(self):
        server = self.serve(lambda n, normal: None if n == 50 else normal)
        report = self.load(server, "t", requests=100, connections=1, pipeline=4)
        self.assertGreaterEqual(report["unsure"], 1)
        self.assertEqual(report["ok"] + report["unsure"], 100)
        self.assertEqual(report["reconnects"], 1)
        self.assertEqual(self.check()["total"]["unsure"], report["unsure"])

    def test_connection_close_is_obeyed_without_losing_a_request(self):
        closing = b"HTTP/1.1 200 \r\nConnection: close\r\nContent-Length: 2\r\n\r\n10"
        server = self.serve(lambda n, normal: closing if n == 10 else normal)
        report = self.load(server, "t", requests=20)
        self.assert_all_served(report)
        self.assertEqual(server.connections, 2)

    def test_errors_are_counted_by_their_code(self):
        refusal = b"HTTP/1.1 500 \r\nX-Leafd-Code: regressed\r\nContent-Length: 0\r\n\r\n"
        server = self.serve(lambda n, normal: refusal if n % 2 else normal)
        report = self.load(server, "t", requests=10)
        self.assertEqual((report["failed"], report["by_code"]), (5, {"regressed": 5}))

    def test_planted_duplicates_reach_the_verdict(self):
        server = self.serve(lambda n, normal: ScriptedServer.ok(7) if n == 30 else normal)
        self.load(server, "t", requests=60, connections=3)
        report = self.check(expect=1)
        self.assertEqual(report["total"]["duplicates"], 1)
        self.assertGreaterEqual(report["total"]["server_breaches"], 1)

    def test_idle_server_gives_a_void_run(self):
        self.serve()
        dead = socket.create_server(("127.0.0.1", 0))
        target = type("Target", (), {"target": f"127.0.0.1:{dead.getsockname()[1]}"})
        dead.close()
        load = self.start_load(target, "t", requests=1, give_up=0.2)
        self.assertEqual(load.child.wait(), 1, "without any connection it gives up")
        self.check(expect=3)

    def test_a_torn_history_is_judged_up_to_its_tear(self):
        server = self.serve()
        self.load(server, "t", requests=50)
        os.truncate(self.histories[0], os.path.getsize(self.histories[0]) - 5)
        self.assertEqual(self.check()["truncated_files"], 1)


if __name__ == "__main__":
    unittest.main()
