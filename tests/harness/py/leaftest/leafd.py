"""The leafd binary as a test drives it."""

import collections
import glob
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time

from .process import TIME_FACTOR, Child, can_connect, free_port, wait_until


class Response(collections.namedtuple("Response", "status headers body")):
    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    @property
    def code(self):
        """The stable error code, from the header of Leaf's paths or from the problem."""
        header = self.headers.get("x-leafd-code")
        if header:
            return header
        try:
            return json.loads(self.body).get("code")
        except (ValueError, AttributeError):
            return None

    def json(self):
        return json.loads(self.body)


def request(port, path, method="GET", headers=None, body=None, timeout=10):
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout * TIME_FACTOR)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return Response(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
    finally:
        connection.close()


def raw(port, data, timeout=5):
    """Sends bytes as they are, then reads until the server has nothing more to say for a moment after
    its first answer, or has closed. (all bytes received, whether it closed)"""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout * TIME_FACTOR) as connection:
        connection.sendall(data)
        got = b""
        try:
            while more := connection.recv(65536):
                got += more
                connection.settimeout(0.05 * TIME_FACTOR)
        except TimeoutError:
            return got, False
        except ConnectionResetError:
            pass
        return got, True


def raw_request(port, target, method="GET", headers=""):
    """One request whose target is sent byte for byte; its Response."""
    target = target if isinstance(target, bytes) else target.encode()
    got, _ = raw(port, method.encode() + b" " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + headers.encode() + b"\r\n")
    head, _, body = got.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    fields = (line.partition(":") for line in lines[1:])
    status = lines[0].split(" ")
    assert len(status) > 1, f"no answer to {target!r}: {got!r}"
    return Response(int(status[1]), {name.lower(): value.strip() for name, _, value in fields}, body)


def environment(extra=None):
    """This process's environment without settings of leafd."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("LEAFD_")}
    env.pop("STATE_DIRECTORY", None)
    env.update(extra or {})
    return env


def run_leafd(*arguments, env=None, timeout=10):
    """Runs leafd to its end (--check and the like); a CompletedProcess with text."""
    return subprocess.run([os.environ["LEAFD_BIN"], *arguments], capture_output=True, text=True, errors="replace",
                          env=environment(env), timeout=timeout * TIME_FACTOR, check=False, stdin=subprocess.DEVNULL)


class Leafd:
    """One server. `settings` become --set flags; values are given as on the command line."""

    def __init__(self, folder, config=None, settings=None, env=None, arguments=(), wrapper=()):
        self.folder = tempfile.mkdtemp(prefix="leafd-", dir=folder)
        self.port = free_port()
        self.admin_port = free_port()
        self.config = config
        self.settings = {"server.admin_listen": f"127.0.0.1:{self.admin_port}", "server.state_dir": self.folder + "/state",
                         **(settings or {})}
        self.env = env
        self.arguments = list(arguments)
        self.wrapper = list(wrapper)
        self.child = None

    def argv(self):
        argv = [*self.wrapper, os.environ["LEAFD_BIN"], "--listen", f"127.0.0.1:{self.port}"]
        if self.config:
            argv += ["--config", self.config]
        for key, value in self.settings.items():
            argv += ["--set", f"{key}={value}"]
        return argv + self.arguments

    def launch(self):
        """Starts it without waiting."""
        os.makedirs(self.folder + "/state", mode=0o700, exist_ok=True)
        self.child = Child(self.argv(), self.folder + "/log", env=environment(self.env), cwd=self.folder)
        return self

    def start(self, timeout=10):
        """Starts it and waits until its listeners take connections."""
        self.launch()
        ports = [self.port] + ([self.admin_port] if self.settings["server.admin_listen"] else [])
        wait_until(lambda: self._listens(ports), timeout, "a listening leafd", 0.002)
        return self

    def _listens(self, ports):
        if not self.child.alive():
            raise AssertionError(f"leafd ended with {self.child.wait()}:\n{self.log()[-4000:]}")
        return all(can_connect(port) for port in ports)

    @property
    def target(self):
        return f"127.0.0.1:{self.port}"

    def log(self):
        return self.child.log() if self.child else ""

    def wait_log(self, text):
        """The log is written behind."""
        wait_until(lambda: text in self.log(), what=f"a line with '{text}' in the log of port {self.port}")

    # Requests. Paths on the main listener and, with admin_..., on the admin listener.
    def get(self, path, **options):
        return request(self.port, path, **options)

    def admin_get(self, path, **options):
        return request(self.admin_port, path, **options)

    def admin(self, method, path, body=None, **options):
        """A request that may change something."""
        headers = {"X-Leafd-Admin": "1", "Content-Type": "application/json"}
        text = None if body is None else json.dumps(body)
        return request(self.admin_port, path, method=method, headers=headers, body=text, **options)

    def leaf(self, tag, **options):
        return self.get("/api/segment/get/" + tag, **options)

    def id(self, tag, **options):
        """The next id by Leaf's path; AssertionError if there is none."""
        answer = self.leaf(tag, **options)
        assert answer.status == 200, f"{answer.status} {answer.code}: {answer.text}"
        return int(answer.text)

    def ids(self, tag, n, **options):
        answer = self.get(f"/api/v1/ids/{tag}?n={n}", **options)
        assert answer.status == 200, f"{answer.status} {answer.code}: {answer.text}"
        return [int(text) for text in answer.json()["ids"]]

    def ranges(self, tag, n, **options):
        """[(first, count), ...]"""
        answer = self.get(f"/api/v1/ranges/{tag}?n={n}", **options)
        assert answer.status == 200, f"{answer.status} {answer.code}: {answer.text}"
        return [(int(one["first"]), one["count"]) for one in answer.json()["ranges"]]

    def put_tag(self, tag, step=1000, max_id=1):
        answer = self.admin("PUT", f"/api/v1/tags/{tag}", {"step": step, "max_id": str(max_id)})
        assert answer.status in (200, 201), f"{answer.status}: {answer.text}"

    def tag(self, tag):
        answer = self.admin_get(f"/api/v1/tags/{tag}")
        assert answer.status == 200, f"{answer.status}: {answer.text}"
        return answer.json()

    def status(self):
        return self.admin_get("/api/v1/status").json()

    def ready(self):
        """(ready, state and reason of segment mode)"""
        answer = self.admin_get("/readyz")
        body = answer.json()
        assert (answer.status == 200) == body["ready"], answer
        return body["ready"], body["modes"]["segment"]

    def store_up(self):
        return self.status()["store"]["up"]

    def metric(self, name, **labels):
        """The sum over the samples of that name that carry these labels."""
        total = 0.0
        for line in self.admin_get("/metrics").text.splitlines():
            match = re.fullmatch(r"([a-z_]+)(?:\{(.*)\})? (\S+)", line)
            if match and match[1] == name and all(f'{k}="{v}"' in (match[2] or "") for k, v in labels.items()):
                total += float(match[3])
        return total

    def journal_written(self):
        """Waits until the journal of marks, which is written behind if anything changed,
        holds what was before."""
        begin = time.time()
        marks = self.folder + "/state/marks-*"
        wait_until(lambda: any(os.stat(path).st_mtime > begin for path in glob.glob(marks)) or time.time() > begin + 1.5, 5,
                   "the journal's next write")

    # Its end.
    def terminate(self):
        self.child.signal(signal.SIGTERM)

    def stop(self, timeout=20):
        """SIGTERM; the exit status."""
        self.terminate()
        return self.child.wait(timeout)

    def kill(self):
        """kill -9"""
        if self.child is not None and self.child.alive():
            self.child.kill()
