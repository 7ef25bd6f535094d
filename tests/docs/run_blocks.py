"""Runs the shell blocks of a document, as a reader would: in order, in one folder, with one leafd.

Every ```sh block runs, but for `./dev test`, which .ci/run runs. A line that starts a server (`./dev run`,
or leafd without --check, --print-config, --help, --version) is started in the background and awaited. The ports of the document are
replaced by free ones, so that two documents can be tested side by side. Behind `curl ... #` may stand a status, 200 if
absent, and JSON that the answer must contain.
"""

import argparse
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time


def blocks(text):
    """(first line number, body) of each ```sh block."""
    lines = text.splitlines()
    start = None
    for number, line in enumerate(lines, 1):
        if start is None and re.fullmatch(r"```(sh|bash|shell|console)", line.strip()):
            start = number
        elif start is not None and line.strip() == "```":
            yield start + 1, lines[start : number - 1]
            start = None


def commands(body):
    """The block's commands, continuation lines and here-documents joined."""
    current, until = [], None
    for line in body:
        current.append(line)
        if until is not None:
            if line.strip() != until:
                continue
            until = None
        else:
            match = re.search(r"<<-?\s*'?(\w+)'?", line)
            if match:
                until = match[1]
                continue
        if line.endswith("\\"):
            continue
        text = "\n".join(current)
        current = []
        if text.strip() and not text.strip().startswith("#"):
            yield text
    if current:
        yield "\n".join(current)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def is_server(command):
    if re.search(r"--(check|print-config|help|version)\b", command):
        return False
    return bool(re.match(r"\s*(\S+=\S+\s+)*(\./dev run|\S*leafd)(\s|$)", command))


class Reader:
    def __init__(self, root, leafd, folder):
        self.root, self.leafd, self.folder = root, leafd, pathlib.Path(folder)
        self.ports = {"8080": str(free_port()), "8081": str(free_port())}
        self.server = None
        self.environment = dict(
            os.environ,
            STATE_DIRECTORY=str(self.folder / "state"),
            LEAFD_SERVER_LISTEN="127.0.0.1:" + self.ports["8080"],
            LEAFD_SERVER_ADMIN_LISTEN="127.0.0.1:" + self.ports["8081"],
            TMPDIR=str(self.folder),
        )
        (self.folder / "state").mkdir()

    def prepare(self, command):
        for port, other in self.ports.items():
            command = re.sub(rf"(?<=:){port}\b", other, command)
        command = re.sub(r"(\./dev run|\bbuild/release/bin/leafd)", str(self.leafd), command)
        return command

    def start(self, command):
        self.stop()
        self.server = subprocess.Popen(["bash", "-c", "exec " + command], cwd=self.root, env=self.environment)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if self.server.poll() is not None:
                raise RuntimeError(f"the server ended with {self.server.returncode}: {command}")
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", int(self.ports["8080"]))) == 0:
                    return
            time.sleep(0.01)
        raise RuntimeError(f"the server does not listen: {command}")

    def stop(self):
        if self.server is not None and self.server.poll() is None:
            self.server.send_signal(signal.SIGTERM)
            self.server.wait(20)
        self.server = None

    def run(self, command):
        status, expected = "200", None
        comment = re.search(r"#\s*([1-5]\d\d)?\s*([{\"].*)?$", command)
        if command.startswith("curl "):
            command = command.replace("curl ", "curl -sS -w '\\n%{http_code}' ", 1)
            if comment:
                status, expected = comment[1] or status, comment[2]
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=self.root, env=self.environment,
                              capture_output=True, text=True, timeout=120)
        sys.stdout.write(done.stdout + "\n")
        sys.stderr.write(done.stderr)
        if done.returncode != 0:
            raise RuntimeError(f"ended with {done.returncode}: {command}")
        if command.startswith("curl ") and done.stdout.splitlines()[-1] != status:
            raise RuntimeError(f"expected status {status}: {command}")
        if expected and expected.strip() not in done.stdout:
            raise RuntimeError(f"expected {expected}, got {done.stdout!r}: {command}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--leafd", type=pathlib.Path, required=True)
    parser.add_argument("document", type=pathlib.Path)
    options = parser.parse_args()
    ran = 0
    with tempfile.TemporaryDirectory() as folder:
        reader = Reader(options.root, options.leafd.resolve(), folder)
        try:
            for line, body in blocks(options.document.read_text()):
                for command in commands(body):
                    if command.strip().startswith("./dev test"):
                        continue
                    print(f"{options.document.name}:{line}: {command}", flush=True)
                    command = reader.prepare(command)
                    if is_server(command):
                        reader.start(command)
                    else:
                        reader.run(command)
                    ran += 1
        finally:
            reader.stop()
    print(f"{ran} commands ran")


if __name__ == "__main__":
    main()
