"""A TCP proxy that breaks things on purpose.

It stands between a server and its database. A rule says where and how: `on` a command (of the MySQL
protocol, matched by its SQL text, prepared or not), on the reply to such a command, or once a number
of bytes has passed in one direction; then it delays, slices, stalls, resets, half-closes, swallows or
answers with an error. Whole modes refuse connections, hold them unanswered, or freeze the ones that
stand. Rules and modes change while it runs, by calls from any thread or through the control socket:
one JSON object a line, {"cmd": "rule", "on": "reply", "match": "^UPDATE", "action": "swallow"}.
"""

import argparse
import asyncio
import json
import random
import re
import socket
import struct
import sys
import threading

COM_QUIT, COM_INIT_DB, COM_QUERY, COM_PING, COM_PREPARE, COM_EXECUTE = 0x01, 0x02, 0x03, 0x0E, 0x16, 0x17
_NAMES = {COM_QUIT: "QUIT", COM_INIT_DB: "INIT_DB", COM_PING: "PING"}
ACTIONS = ("delay", "slice", "stall", "reset", "half_close", "swallow", "error")


class Rule:
    """on: "command", "reply" or "bytes".  match: regular expression for the SQL text ("PING" and the
    like for other commands; "PREPARE text" for preparing).  direction ("up", "down") and at (bytes
    passed on that connection): for "bytes".  times: how often it acts (0: always).  probability: of
    acting where it matches.  seconds: of "delay", and between the pieces of "slice"; size: of a piece."""

    def __init__(self, on, action, match="", direction="down", at=0, times=0, probability=1.0, seconds=0.0, size=1,
                 errno=1205, message="planted"):
        if on not in ("command", "reply", "bytes") or action not in ACTIONS:
            raise ValueError(f"no such rule: {on} {action}")
        self.on, self.action, self.match = on, action, re.compile(match, re.I | re.S)
        self.direction, self.at, self.times, self.probability = direction, at, times, probability
        self.seconds, self.size, self.errno, self.message = seconds, size, errno, message
        self.hits = 0

    def acts(self, chance):
        if (self.times and self.hits >= self.times) or chance.random() >= self.probability:
            return False
        self.hits += 1
        return True


class Watch:
    """Counts commands whose text matches: how many were sent, are under way, were so at most."""

    def __init__(self, match):
        self.match = re.compile(match, re.I | re.S)
        self.count = self.now = self.most = 0


class _Connection:
    def __init__(self, client_reader, client_writer):
        self.readers = {"up": client_reader}
        self.writers = {"down": client_writer}
        self.passed = {"up": 0, "down": 0}
        self.frozen = asyncio.Event()  # set: nothing passes any more
        self.ended = asyncio.Event()
        self.statements = {}           # prepared: number -> text
        self.preparing = None
        self.reply_rule = None
        self.under_way = []            # watches that wait for the reply
        self.tasks = []

    def reset(self):
        """RST to both sides."""
        self.ended.set()
        for writer in self.writers.values():
            plain = writer.get_extra_info("socket")
            if plain is not None and plain.fileno() >= 0:
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()


class _Ended(Exception):
    """The connection was ended by a rule."""


class FaultProxy:
    """Listens on 127.0.0.1:port. mysql=False: no command marks, bytes only. Thread-safe."""

    def __init__(self, target_port, target_host="127.0.0.1", port=0, mysql=True, seed=None):
        self.target = (target_host, target_port)
        self.mysql = mysql
        self.seed = random.SystemRandom().randrange(2**32) if seed is None else seed
        self.rules, self.watches = [], []
        self.hold_new = False          # take connections and leave them without an answer
        self.accepted = 0
        self._chance = random.Random(self.seed)
        self._connections = set()
        self._server = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.port = port
        self.listen()

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    # Control.
    def rule(self, on, action, **options):
        one = Rule(on, action, **options)
        self.rules = self.rules + [one]
        return one

    def watch(self, match):
        one = Watch(match)
        self.watches = self.watches + [one]
        return one

    def clear(self):
        """Forgets all rules and takes new connections again; frozen connections stay frozen."""
        self.rules = []
        self.hold_new = False

    def listen(self):
        if self._server is None:
            self._server = self._call(asyncio.start_server(self._serve, "127.0.0.1", self.port))
            self.port = self._server.sockets[0].getsockname()[1]

    def refuse(self):
        """Connections are refused until listen()."""
        async def close():
            self._server.close()
        if self._server is not None:
            self._call(close())
            self._server = None

    def freeze(self):
        """Nothing passes any more on the connections that stand, and nobody is told."""
        async def freeze():
            for connection in self._connections:
                connection.frozen.set()
        self._call(freeze())

    def reset_all(self):
        async def reset():
            for connection in list(self._connections):
                connection.reset()
        self._call(reset())

    def retarget(self, port, host="127.0.0.1"):
        """New connections go there; the standing ones are reset."""
        self.target = (host, port)
        self.reset_all()

    def live(self):
        return len(self._connections)

    def stats(self):
        return {"accepted": self.accepted, "live": self.live(), "seed": self.seed, "rules": [rule.hits for rule in self.rules],
                "watches": [{"count": w.count, "now": w.now, "most": w.most} for w in self.watches]}

    def close(self):
        self.refuse()
        self.reset_all()
        self._call(self._cancel_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    @staticmethod
    async def _cancel_all():
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    # One connection.
    async def _serve(self, reader, writer):
        connection = _Connection(reader, writer)
        self.accepted += 1
        self._connections.add(connection)
        try:
            if self.hold_new:
                await reader.read()  # until the client leaves
                return
            try:
                up_reader, up_writer = await asyncio.open_connection(*self.target)
            except OSError:
                connection.reset()
                return
            connection.readers["down"], connection.writers["up"] = up_reader, up_writer
            connection.tasks = [asyncio.ensure_future(self._pump(connection, way)) for way in ("up", "down")]
            await asyncio.wait(connection.tasks, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for task in connection.tasks:
                task.cancel()
            await asyncio.gather(*connection.tasks, return_exceptions=True)
            for watch in connection.under_way:
                watch.now -= 1
            for one in connection.writers.values():
                one.close()
            self._connections.discard(connection)

    @staticmethod
    async def _until_ended(connection):
        await connection.ended.wait()
        raise _Ended

    async def _pump(self, connection, way):
        reader, writer = connection.readers[way], connection.writers[way]
        try:
            while True:
                data = await (self._read_packet(reader) if self.mysql else reader.read(65536))
                if not data:
                    break
                if connection.frozen.is_set():
                    await self._until_ended(connection)
                await self._pass(connection, way, data)
            if not connection.frozen.is_set() and writer.can_write_eof():
                writer.write_eof()
        except OSError:
            connection.reset()
            raise _Ended from None

    @staticmethod
    async def _read_packet(reader):
        try:
            header = await reader.readexactly(4)
            return header + await reader.readexactly(int.from_bytes(header[:3], "little"))
        except asyncio.IncompleteReadError as short:
            return short.partial

    async def _pass(self, connection, way, data):
        rule = None
        if self.mysql and len(data) > 4:
            rule = self._on_command(connection, data) if way == "up" and data[3] == 0 else None
            rule = self._on_reply(connection, data) if way == "down" else rule
        if rule is None:
            await self._pass_bytes(connection, way, data)
        else:
            await self._act(connection, way, data, rule)

    def _text(self, connection, data):
        command, payload = data[4], data[5:]
        if command == COM_QUERY:
            return payload.decode("utf-8", "replace")
        if command == COM_PREPARE:
            connection.preparing = payload.decode("utf-8", "replace")
            return "PREPARE " + connection.preparing
        if command == COM_EXECUTE:
            return connection.statements.get(int.from_bytes(payload[:4], "little"), "")
        return _NAMES.get(command, f"COMMAND {command}")

    def _on_command(self, connection, data):
        text = self._text(connection, data)
        for watch in self.watches:
            if watch.match.search(text):
                watch.count += 1
                watch.now += 1
                watch.most = max(watch.most, watch.now)
                connection.under_way.append(watch)
        for rule in self.rules:
            if rule.on == "reply" and rule.match.search(text) and rule.acts(self._chance):
                connection.reply_rule = rule
        for rule in self.rules:
            if rule.on == "command" and rule.match.search(text) and rule.acts(self._chance):
                return rule
        return None

    def _on_reply(self, connection, data):
        if connection.preparing is not None and data[4] == 0 and len(data) >= 9:
            connection.statements[int.from_bytes(data[5:9], "little")] = connection.preparing
        connection.preparing = None
        for watch in connection.under_way:
            watch.now -= 1
        connection.under_way = []
        rule, connection.reply_rule = connection.reply_rule, None
        return rule

    async def _pass_bytes(self, connection, way, data):
        for rule in self.rules:
            left = rule.at - connection.passed[way]
            if rule.on != "bytes" or rule.direction != way or not 0 <= left < len(data) or not rule.acts(self._chance):
                continue
            await self._forward(connection, way, data[:left])
            await self._act(connection, way, data[left:], rule)
            return
        await self._forward(connection, way, data)

    async def _forward(self, connection, way, data):
        connection.passed[way] += len(data)
        connection.writers[way].write(data)
        await connection.writers[way].drain()

    async def _act(self, connection, way, data, rule):
        if rule.action == "delay":
            await asyncio.sleep(rule.seconds)
            await self._forward(connection, way, data)
        elif rule.action == "slice":
            for at in range(0, len(data), rule.size):
                await self._forward(connection, way, data[at:at + rule.size])
                await asyncio.sleep(rule.seconds)
        elif rule.action == "stall":
            connection.frozen.set()
            await self._until_ended(connection)
        elif rule.action in ("reset", "swallow"):  # swallow: the bytes are lost, and then the connection
            connection.reset()
            raise _Ended
        elif rule.action == "half_close":
            connection.writers[way].write_eof()
            await self._until_ended(connection)
        else:
            message = rule.message.encode()
            body = b"\xff" + struct.pack("<H", rule.errno) + b"#HY000" + message
            packet = len(body).to_bytes(3, "little") + bytes([1 if way == "up" else data[3]]) + body
            await self._forward(connection, "down", packet)


class Control:
    """The control socket of a proxy: JSON commands, one a line, each answered by one line."""

    def __init__(self, proxy, port=0):
        self.proxy = proxy
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection):
        with connection, connection.makefile("rw", encoding="utf-8") as lines:
            for line in lines:
                try:
                    answer = {"ok": True, **self.handle(json.loads(line))}
                except (ValueError, TypeError, KeyError, re.error) as error:
                    answer = {"ok": False, "error": str(error)}
                lines.write(json.dumps(answer) + "\n")
                lines.flush()

    def handle(self, command):
        name = command.pop("cmd")
        if name == "rule":
            self.proxy.rule(**command)
        elif name == "watch":
            self.proxy.watch(**command)
        elif name == "hold_new":
            self.proxy.hold_new = bool(command.get("on", True))
        elif name == "retarget":
            self.proxy.retarget(**command)
        elif name in ("clear", "listen", "refuse", "freeze", "reset_all"):
            getattr(self.proxy, name)()
        elif name != "stats":
            raise ValueError(f"no such command: {name}")
        return self.proxy.stats() if name == "stats" else {}

    def close(self):
        self._listener.close()


def main():
    parser = argparse.ArgumentParser(description="A TCP proxy that breaks things on purpose; standard input's end stops it.")
    parser.add_argument("--target", required=True, metavar="HOST:PORT")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--control", type=int, default=0, metavar="PORT")
    parser.add_argument("--raw", action="store_true", help="not MySQL: bytes only")
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    host, _, port = options.target.rpartition(":")
    proxy = FaultProxy(int(port), host, options.port, not options.raw, options.seed)
    control = Control(proxy, options.control)
    print(json.dumps({"port": proxy.port, "control": control.port, "seed": proxy.seed}), flush=True)
    sys.stdin.read()
    proxy.close()
