"""Other hosts and containers on this machine: a leafd in network and process namespaces of its own.

There it is process 1, has the interfaces that the test gives it and reaches nothing outside. Ports
are carried over the border by two relays, one on each side, that meet at a unix socket in the test's
folder: a socket file belongs to no network namespace.
"""

import argparse
import asyncio
import os
import shlex
import socket
import sys
import tempfile
import threading

from .process import wait_until


async def _pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.transport.abort()


class _Relay:
    """Carries connections between pairs of places, each the path of a unix socket or a port of
    127.0.0.1."""

    def __init__(self):
        self._servers, self._tasks = [], set()

    async def listen(self, place, target):
        """Connections to `place` go on to `target`; a target that refuses ends them with a reset."""
        async def serve(reader, writer):
            self._tasks.add(asyncio.current_task())
            asyncio.current_task().add_done_callback(self._tasks.discard)
            try:
                far_reader, far_writer = await self._connect(target)
            except OSError:
                writer.transport.abort()
                return
            try:
                await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
            finally:
                far_writer.close()
                writer.close()
        if isinstance(place, str):
            self._servers.append(await asyncio.start_unix_server(serve, place))
        else:
            self._servers.append(await asyncio.start_server(serve, "127.0.0.1", place))

    @staticmethod
    async def _connect(target):
        if isinstance(target, str):
            return await asyncio.open_unix_connection(target)
        return await asyncio.open_connection("127.0.0.1", target)

    async def close(self):
        for server in self._servers:
            server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _OuterRelay(_Relay):
    """A relay on a thread of this program."""

    def __init__(self):
        super().__init__()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    def add(self, place, target):
        self._call(self.listen(place, target))

    def end(self):
        self._call(self.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()


class Namespace:
    """The surroundings of one leafd.

    setup: shell commands that make the interfaces; `lo` is up already unless loopback=False.
    outside: ports of this machine's 127.0.0.1 that the inside reaches at the same place.
    """

    def __init__(self, test, setup="", outside=(), loopback=True):
        self.folder = tempfile.mkdtemp(prefix="ns-", dir=test.folder)
        self._setup, self._loopback = setup, loopback
        self._relay = _OuterRelay()
        test.addCleanup(self.close)
        self._inner = []
        for port in outside:
            path = f"{self.folder}/out-{port}"
            self._relay.add(path, port)
            self._inner.append(f"{port}={path}")

    def wrap(self, server):
        """Makes `server`, not started yet, one that starts in here; its ports are reachable from
        outside as before."""
        for port in (server.port, server.admin_port):
            path = f"{self.folder}/in-{port}"
            self._relay.add(port, path)
            self._inner.append(f"{path}={port}")
        server.wrapper = self.wrapper()
        return server

    def wrapper(self):
        """Words before a command line that runs it in here, as process 1."""
        relay = ["/usr/bin/python3", "-m", "leaftest.namespace", *self._inner]
        lines = ["set -e", "ip link set lo up" if self._loopback else "", self._setup,
                 shlex.join(relay) + " &" if self._inner else "", 'exec "$@"']
        user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        return ["unshare", *user, "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
                "\n".join(line for line in lines if line), "sh"]

    def close(self):
        """Ends the relay outside; what runs inside ends with its leafd."""
        if self._relay is not None:
            self._relay.end()
            self._relay = None

    def _answers(self, server):
        """The relays take connections before leafd does: only an answer counts."""
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(f"{self.folder}/in-{server.admin_port}")
                probe.settimeout(1)
                probe.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                return probe.recv(12).startswith(b"HTTP/1.1 200")
        except OSError:
            return False

    def start(self, server, timeout=20):
        """wrap, launch, and wait until it answers."""
        self.wrap(server).launch()

        def answers():
            if not server.child.alive():
                raise AssertionError(f"leafd ended with {server.child.wait()}:\n{server.log()[-4000:]}")
            return self._answers(server)
        wait_until(answers, timeout, "leafd's first answer from its namespace")
        return server


def signal_inside(server, number):
    """To the leafd itself: the child of the test is the `unshare` that waits for it."""
    with open(f"/proc/{server.child.pid}/task/{server.child.pid}/children", encoding="ascii") as children:
        (leafd,) = children.read().split()
    os.kill(int(leafd), number)


def main():
    parser = argparse.ArgumentParser(description="Relays between unix sockets and ports, until it is killed.")
    parser.add_argument("pairs", nargs="+", metavar="LISTEN=CONNECT")
    pairs = [tuple(int(place) if place.isdigit() else place for place in pair.split("=", 1)) for pair in parser.parse_args().pairs]

    async def run():
        relay = _Relay()
        for place, target in pairs:
            await relay.listen(place, target)
        await asyncio.Event().wait()
    asyncio.run(run())


if __name__ == "__main__":
    sys.exit(main())
