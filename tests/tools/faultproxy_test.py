"""What the fault proxy does to bytes, and its control socket. MySQL marks: see the F tests."""

import json
import pathlib
import socket
import subprocess
import sys
import threading
import time
import unittest

from leaftest import Control, FaultProxy, wait_until


class EchoServer:
    def __init__(self, prefix=b""):
        self.prefix = prefix
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._echo, args=(connection,), daemon=True).start()

    def _echo(self, connection):
        with connection:
            try:
                while data := connection.recv(65536):
                    connection.sendall(self.prefix + data)
            except OSError:
                pass


class FaultProxyTest(unittest.TestCase):
    def setUp(self):
        self.echo = EchoServer()
        self.addCleanup(self.echo.listener.close)
        self.proxy = FaultProxy(self.echo.port, mysql=False, seed=1)
        self.addCleanup(self.proxy.close)

    def connect(self, timeout=2):
        connection = socket.create_connection(("127.0.0.1", self.proxy.port), timeout=timeout)
        self.addCleanup(connection.close)
        return connection

    def exchange(self, connection, data):
        connection.sendall(data)
        got = b""
        while len(got) < len(data):
            more = connection.recv(65536)
            if not more:
                break
            got += more
        return got

    def test_passes_bytes_both_ways_and_the_end(self):
        connection = self.connect()
        data = bytes(range(256)) * 1000
        self.assertEqual(self.exchange(connection, data), data)
        connection.shutdown(socket.SHUT_WR)
        self.assertEqual(connection.recv(1), b"")
        wait_until(lambda: self.proxy.live() == 0, what="the end of the connection")

    def test_resets_at_a_byte_count(self):
        rule = self.proxy.rule("bytes", "reset", direction="down", at=3)
        connection = self.connect()
        connection.sendall(b"abcdef")
        got = b""
        with self.assertRaises(ConnectionResetError):
            while True:
                got += connection.recv(10)
                self.assertLessEqual(len(got), 3)
        self.assertEqual(rule.hits, 1)

    def test_a_stall_lets_nothing_more_pass_and_tells_nobody(self):
        self.proxy.rule("bytes", "stall", direction="down", at=2, times=1)
        connection = self.connect(timeout=0.3)
        connection.sendall(b"abc")
        self.assertEqual(connection.recv(10), b"ab")
        with self.assertRaises(TimeoutError):
            connection.recv(10)
        self.assertEqual(self.exchange(self.connect(), b"xyz"), b"xyz", "others go on")

    def test_delays_and_slices(self):
        self.proxy.rule("bytes", "delay", direction="down", at=0, seconds=0.2, times=1)
        begin = time.monotonic()
        self.assertEqual(self.exchange(self.connect(), b"abc"), b"abc")
        self.assertGreaterEqual(time.monotonic() - begin, 0.2)
        self.proxy.rule("bytes", "slice", direction="down", at=0, seconds=0.01, times=1)
        connection = self.connect()
        connection.sendall(b"abc")
        self.assertEqual(connection.recv(10), b"a")

    def test_half_closes(self):
        self.proxy.rule("bytes", "half_close", direction="down", at=2)
        connection = self.connect()
        connection.sendall(b"abc")
        self.assertEqual(connection.recv(10), b"ab")
        self.assertEqual(connection.recv(10), b"")
        connection.sendall(b"still open this way")

    def test_refuses_and_listens_again_on_the_same_port(self):
        self.proxy.refuse()
        with self.assertRaises(ConnectionRefusedError):
            self.connect()
        self.proxy.listen()
        self.assertEqual(self.exchange(self.connect(), b"abc"), b"abc")

    def test_freezes_standing_connections_only(self):
        old = self.connect(timeout=0.3)
        self.exchange(old, b"a")
        self.proxy.freeze()
        old.sendall(b"b")
        with self.assertRaises(TimeoutError):
            old.recv(1)
        self.assertEqual(self.exchange(self.connect(), b"abc"), b"abc")

    def test_retargets(self):
        other = EchoServer(prefix=b"2")
        self.addCleanup(other.listener.close)
        old = self.connect()
        self.exchange(old, b"a")
        self.proxy.retarget(other.port)
        with self.assertRaises(ConnectionResetError):
            old.recv(1)
        self.assertEqual(self.exchange(self.connect(), b"ab")[:2], b"2a")

    def test_the_same_seed_acts_on_the_same_connections(self):
        def pattern(seed):
            proxy = FaultProxy(self.echo.port, mysql=False, seed=seed)
            rule = proxy.rule("bytes", "reset", direction="up", at=0, probability=0.5)
            hits = []
            for _ in range(12):
                before = rule.hits
                with socket.create_connection(("127.0.0.1", proxy.port), timeout=2) as connection:
                    try:
                        self.exchange(connection, b"a")
                    except ConnectionError:
                        pass
                hits.append(rule.hits - before)
            proxy.close()
            return hits
        self.assertEqual(pattern(7), pattern(7))
        self.assertIn(1, pattern(7))

    def test_the_control_socket_does_the_same(self):
        control = Control(self.proxy)
        self.addCleanup(control.close)
        with socket.create_connection(("127.0.0.1", control.port), timeout=2) as connection:
            lines = connection.makefile("rw", encoding="utf-8")

            def ask(**command):
                lines.write(json.dumps(command) + "\n")
                lines.flush()
                return json.loads(lines.readline())
            self.assertTrue(ask(cmd="rule", on="bytes", action="reset", direction="up", at=0)["ok"])
            with self.assertRaises(ConnectionResetError):
                self.exchange(self.connect(), b"a")
                self.connect().recv(1)
            self.assertEqual(ask(cmd="stats")["rules"], [1])
            self.assertFalse(ask(cmd="rule", on="never", action="reset")["ok"])
            self.assertFalse(ask(cmd="nonsense")["ok"])

    def test_runs_as_a_command(self):
        command = pathlib.Path(__file__).with_name("faultproxy.py")
        with subprocess.Popen([sys.executable, str(command), "--target", f"127.0.0.1:{self.echo.port}", "--raw"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            ports = json.loads(child.stdout.readline())
            with socket.create_connection(("127.0.0.1", ports["port"]), timeout=2) as connection:
                self.assertEqual(self.exchange(connection, b"abc"), b"abc")
            child.stdin.close()
            self.assertEqual(child.wait(10), 0)


if __name__ == "__main__":
    unittest.main()
