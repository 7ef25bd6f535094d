"""A real PgBouncer for a test, before a PostgreSQL: its own folder and port, ended with the test."""

import atexit
import os
import shutil
import signal
import tempfile

from .accounts import as_user, give
from .postgres import USER
from .process import Child, can_connect, free_port, wait_until


class PgBouncer:
    """mode: "transaction" gives each transaction whatever connection is free; "session" and "statement"
    as PgBouncer has them. pool: connections to the server, fewer than clients so that they are shared."""

    def __init__(self, port, mode="transaction", pool=2):
        self.target_port, self.mode, self.pool = port, mode, pool
        self.folder = tempfile.mkdtemp(prefix="leafd-bouncer-")
        self.port = free_port()
        self.child = None
        atexit.register(self.remove)

    def start(self):
        users, config = os.path.join(self.folder, "users"), os.path.join(self.folder, "ini")
        with open(users, "w", encoding="ascii") as file:
            file.write('"leaf" "leaf"\n"admin" "leaf"\n')
        self._write(config, users)
        give(USER, self.folder)
        self.child = Child(as_user(USER, ["pgbouncer", config]), os.path.join(self.folder, "log"), cwd="/")
        wait_until(self._listens, 10, f"PgBouncer's start ({self.folder}/log)")
        return self

    def _write(self, config, users):
        with open(config, "w", encoding="ascii") as file:
            file.write(f"[databases]\nleaf = host=127.0.0.1 port={self.target_port} dbname=leaf\n[pgbouncer]\n"
                       f"listen_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\nauth_type = scram-sha-256\n"
                       f"auth_file = {users}\npool_mode = {self.mode}\ndefault_pool_size = {self.pool}\n"
                       "server_login_retry = 0.2\nserver_connect_timeout = 2\n")

    def _listens(self):
        if not self.child.alive():
            raise AssertionError("PgBouncer ended:\n" + self.child.log()[-3000:])
        return can_connect(self.port)

    def retarget(self, port):
        """New connections to the server go there, as after a failover: the configuration is read again."""
        self.target_port = port
        self._write(os.path.join(self.folder, "ini"), os.path.join(self.folder, "users"))
        self.child.signal(signal.SIGHUP)

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
