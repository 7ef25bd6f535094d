"""A real HAProxy for a test, before database servers: its own folder and port, ended with the test."""

import atexit
import os
import shutil
import socket
import tempfile

from .process import Child, can_connect, free_port, wait_until

# Told the address and port of a server as its 3rd and 4th argument; ends 0 if it may be used.
_GALERA_CHECK = """#!/bin/sh
mariadb --no-defaults --connect-timeout=1 --user=leaf --password=leaf --host="$3" --port="$4" \\
  --skip-column-names --execute="SHOW STATUS LIKE 'wsrep_ready'" 2>/dev/null | grep -q ON
"""


class HaProxy:
    """Passes connections to the first server that is up, and closes those to a server that went down.
    ports: of the servers, in the order of preference. galera: a server counts as up while it is in the
    primary component of its cluster, and otherwise while it takes connections."""

    def __init__(self, ports, galera=False):
        self.ports = list(ports)
        self.galera = galera
        self.folder = tempfile.mkdtemp(prefix="leafd-haproxy-")
        self.port = free_port()
        self.child = None
        atexit.register(self.remove)

    def start(self):
        check = os.path.join(self.folder, "check")
        with open(check, "w", encoding="ascii") as file:
            file.write(_GALERA_CHECK)
        os.chmod(check, 0o755)
        config = os.path.join(self.folder, "cfg")
        with open(config, "w", encoding="ascii") as file:
            file.write(self._config(check))
        self.child = Child(["haproxy", "-db", "-f", config], os.path.join(self.folder, "log"), cwd="/")
        wait_until(self._listens, 10, f"HAProxy's start ({self.folder}/log)")
        return self

    def _config(self, check):
        external = f"  external-check command {check}\n  external-check path /usr/bin:/bin\n" if self.galera else ""
        servers = "".join(
            f"  server s{i} 127.0.0.1:{port} check inter 300ms fall 2 rise 2 on-marked-down shutdown-sessions{' backup' if i else ''}\n"
            for i, port in enumerate(self.ports))
        return ("global\n" + ("  external-check\n  insecure-fork-wanted\n" if self.galera else "")
                + f"  stats socket {self.folder}/stats level admin\n"
                "defaults\n  mode tcp\n  timeout connect 1s\n  timeout client 1h\n  timeout server 1h\n  timeout check 2s\n"
                f"listen db\n  bind 127.0.0.1:{self.port}\n"
                + ("  option external-check\n" + external if self.galera else "  option tcp-check\n") + servers)

    def _listens(self):
        if not self.child.alive():
            raise AssertionError("HAProxy ended:\n" + self.child.log()[-3000:])
        return can_connect(self.port) and os.path.exists(self.folder + "/stats")

    def up(self):
        """For each server, in their order, whether HAProxy takes it for up."""
        with socket.socket(socket.AF_UNIX) as talk:
            talk.connect(self.folder + "/stats")
            talk.sendall(b"show stat\n")
            lines = talk.makefile(encoding="ascii").read().splitlines()
        names = lines[0].lstrip("# ").split(",")
        rows = [dict(zip(names, line.split(","))) for line in lines[1:] if line]
        return [row["status"].startswith("UP") for row in rows if row["svname"].startswith("s")]

    def freeze(self):
        self.child.freeze()

    def thaw(self):
        self.child.thaw()

    def kill(self):
        self.child.kill()

    def remove(self):
        if self.child is not None and self.child.alive():
            self.child.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
