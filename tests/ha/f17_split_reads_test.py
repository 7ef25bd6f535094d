"""F17: a proxy that sends reads to a replica, as MaxScale and ProxySQL do; the replica is far behind. Ranges come
from the statement that moves the row, so nothing that is read can make two of one."""

import contextlib
import socket
import struct
import threading
import unittest

from leaftest import HaCase, MariaDbPair, pick, wait_until

import pymysql

QUERY, PREPARE = 0x03, 0x16
BY_STATEMENT = (0x17, 0x18, 0x19, 0x1A, 0x1C)  # execute, long data, close, reset, fetch
# What both servers' answers must agree on: no TLS, no session state, the old ends of results, no extras.
HIDDEN = (1 << 11) | (1 << 23) | (1 << 24)


class ReadSplitter:
    """Takes connections for the primary; each SELECT, prepared or not, is answered by the replica."""

    FIRST = 300  # prepared statements of the replica are numbered from here on

    def __init__(self, primary, replica):
        self.primary, self.replica = primary, replica
        self.reads = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        ends, pumps = [client], []
        with contextlib.suppress(OSError, EOFError, pymysql.err.OperationalError):  # a server has gone
            upstream = socket.create_connection(("127.0.0.1", self.primary.port))
            ends.append(upstream)
            session = self.replica.connect(user="leaf", password="leaf", unix_socket=None, host="127.0.0.1",
                                           port=self.replica.port, database="leaf")
            reader = session._sock  # pylint: disable=protected-access
            ends.append(reader)
            self._shake_hands(client, upstream)
            for _ in range(self.FIRST):
                reader.sendall(packet(0, bytes([PREPARE]) + b"DO 0"))
                receive(reader)
            for source in (upstream, reader):
                pumps.append(threading.Thread(target=pump, args=(source, client), daemon=True))
                pumps[-1].start()
            self._route(client, upstream, reader)
        for end in ends:
            shut(end)
        for one in pumps:
            one.join()
        for end in ends:
            end.close()

    def _route(self, client, upstream, reader):
        while True:
            number, payload = receive(client)
            to_replica = self._reads(payload)
            self.reads += to_replica
            (reader if to_replica else upstream).sendall(packet(number, payload))

    def _reads(self, payload):
        if payload[0] in (QUERY, PREPARE):
            return payload[1:].lstrip().upper().startswith(b"SELECT")
        return payload[0] in BY_STATEMENT and struct.unpack("<I", payload[1:5])[0] > self.FIRST

    @staticmethod
    def _shake_hands(client, upstream):
        number, greeting = receive(upstream)
        at = greeting.index(b"\0", 1) + 1 + 4 + 8 + 1  # version, session, half of the salt, a zero
        low, = struct.unpack_from("<H", greeting, at)
        high, = struct.unpack_from("<H", greeting, at + 5)
        changed = bytearray(greeting)
        struct.pack_into("<H", changed, at, low & ~HIDDEN & 0xFFFF)
        struct.pack_into("<H", changed, at + 5, high & ~(HIDDEN >> 16) & 0xFFFF)
        changed[at + 14:at + 18] = bytes(4)  # MariaDB's own
        client.sendall(packet(number, bytes(changed)))
        while True:
            number, answer = receive(client)
            upstream.sendall(packet(number, answer))
            number, word = receive(upstream)
            client.sendall(packet(number, word))
            if word[0] == 0x00:
                return
            if word[0] == 0xFF:
                raise EOFError


def packet(number, payload):
    return len(payload).to_bytes(3, "little") + bytes([number]) + payload


def receive(connection):
    header = exactly(connection, 4)
    return header[3], exactly(connection, int.from_bytes(header[:3], "little"))


def exactly(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def pump(source, target):
    with contextlib.suppress(OSError):  # one side has gone, and the other is told
        while data := source.recv(65536):
            target.sendall(data)
    shut(source)
    shut(target)


def shut(connection):
    with contextlib.suppress(OSError):  # it has ended already
        connection.shutdown(socket.SHUT_RDWR)


class SplitReadsTest(HaCase):
    def test_f17_ranges_do_not_come_from_what_is_read(self):
        pair = MariaDbPair()
        self.addCleanup(pair.remove)
        pair.start().put("t", step=10)
        wait_until(pair.caught_up, 20, "the replica's catching up")
        pair.hold_replica()
        splitter = ReadSplitter(pair.primary, pair.replica)
        self.addCleanup(splitter.close)
        servers = [self.start_on(pair.url(port=splitter.port), {"segment.policy": "fixed", "segment.refresh": "200ms"})
                   for _ in range(2)]
        loads = [self.start_load(server, "t", connections=4, duration=600, rate=1000) for server in servers]
        reads = splitter.reads
        for server in servers:
            self.wait_issued(server, pick(2000, 100_000))
        for load in loads:
            self.assert_all_served(load.stop())
        self.check("--high", f"t={pair.max_id('t')}", "--min-ids", "4000")
        self.assertEqual([server.status()["tags"]["regressed"] for server in servers], [0, 0])
        self.assertEqual(pair.replica.max_id("t"), 1)
        self.assertGreater(splitter.reads, reads + 10, "nothing was read from the replica, so this test shows nothing")


if __name__ == "__main__":
    unittest.main()
