"""A real PostgreSQL for a test: one server, or a primary with a standby; in temporary folders, on free
ports, ended with the test. PostgreSQL refuses to run as root, so there it runs as user `postgres`."""

import atexit
import fcntl
import glob
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile

from .accounts import as_user, give, run_as
from .process import Child, can_connect, free_port, wait_until

USER = "postgres"  # PostgreSQL and PgBouncer refuse to run as root

LEAF_POSTGRES_DDL = """CREATE{kind} TABLE {table} (
  biz_tag varchar(128) PRIMARY KEY,
  max_id bigint NOT NULL DEFAULT 1,
  step int NOT NULL,
  description varchar(256),
  update_time timestamp NOT NULL DEFAULT now()
)"""


def programs():
    """The folder with initdb and postgres, which Debian keeps out of PATH."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))
    if not found:
        raise AssertionError("no PostgreSQL below /usr/lib/postgresql: install the package postgresql")
    return found[-1]


class Postgres:
    """start() begins with database `leaf` and table `leaf_alloc`, and two users: `leaf` may SELECT and
    UPDATE, as serving needs; `admin` owns all of it. Options are "name=value" as in postgresql.conf."""

    def __init__(self, *options):
        self.options = list(options)
        self.folder = tempfile.mkdtemp(prefix="leafd-pg-")
        self.data = os.path.join(self.folder, "data")
        self.port = free_port()
        self.child = None
        self.name = "postgres"
        atexit.register(self.remove)
        give(USER, self.folder)

    # Its life.
    def start(self):
        subprocess.run(["cp", "-a", "--reflink=auto", _template(), self.data], check=True)
        self.boot()
        return self

    def make_database(self):
        self.sql("CREATE ROLE leaf LOGIN PASSWORD 'leaf'; CREATE ROLE admin LOGIN PASSWORD 'leaf'")
        self.sql("CREATE DATABASE leaf OWNER admin")
        self.create_table()

    def boot(self):
        """Starts the server over its folder and waits until it answers."""
        settings = ["listen_addresses=127.0.0.1", f"port={self.port}", f"unix_socket_directories={self.folder}",
                    "max_connections=200", "shared_buffers=16MB", "min_wal_size=4MB", "max_wal_size=64MB", "wal_keep_size=32MB", "jit=off",
                    "autovacuum=off", "cluster_name=" + self.name, *self.options]
        argv = [f"{programs()}/postgres", "-D", self.data]
        for setting in settings:
            argv += ["-c", setting]
        self.child = Child(as_user(USER, argv), os.path.join(self.folder, "log"), cwd="/")
        wait_until(self._answers, 30, f"PostgreSQL's start ({self.folder}/log)", 0.02)

    def _answers(self):
        if not self.child.alive():
            raise AssertionError("PostgreSQL ended:\n" + self.child.log()[-3000:])
        return can_connect(self.port) and self._psql("SELECT 1", "postgres").returncode == 0

    # Statements.
    def _psql(self, statement, database):
        argv = ["psql", "-XAtq", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-p", str(self.port), "-U", "root",
                "-d", database, "-c", statement]
        env = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return subprocess.run(argv, capture_output=True, text=True, check=False, env=env, stdin=subprocess.DEVNULL)

    def sql(self, statement, database="postgres"):
        """Runs statements as superuser; the rows of the last one, each a list of texts."""
        done = self._psql(statement, database)
        if done.returncode != 0:
            raise AssertionError(f"{statement}: {done.stderr.strip()}")
        return [line.split("\t") for line in done.stdout.splitlines()]

    def value(self, statement, database="postgres"):
        """The one value of a query."""
        return self.sql(statement, database)[0][0]

    def set(self, name, value):
        """A setting of the server's configuration, changed while it runs."""
        self.sql(f"ALTER SYSTEM SET {name} = {value}")
        before = self.value("SELECT pg_conf_load_time()")
        self.sql("SELECT pg_reload_conf()")
        wait_until(lambda: self.value("SELECT pg_conf_load_time()") != before, what=f"the server's reading of {name}")

    def create_table(self, table="leaf_alloc", kind=""):
        """kind: " UNLOGGED" for a table that a crash empties."""
        self.sql(LEAF_POSTGRES_DDL.format(table=table, kind=kind) + f"; ALTER TABLE {table} OWNER TO admin; "
                 f"GRANT SELECT, UPDATE ON {table} TO leaf", "leaf")

    def put(self, tag, max_id=1, step=1000, table="leaf_alloc"):
        self.sql(f"INSERT INTO {table} (biz_tag, max_id, step) VALUES ('{tag}', {max_id}, {step}) ON CONFLICT (biz_tag) "
                 f"DO UPDATE SET max_id = {max_id}, step = {step}", "leaf")

    def max_id(self, tag, table="leaf_alloc"):
        rows = self.sql(f"SELECT max_id FROM {table} WHERE biz_tag = '{tag}'", "leaf")
        return int(rows[0][0]) if rows else None

    def url(self, user="leaf", port=None, query="sslmode=disable"):
        return f"postgres://{user}:leaf@127.0.0.1:{port or self.port}/leaf{'?' + query if query else ''}"

    # What befalls it. Each session is a process of its own.
    def _processes(self):
        """The server's process and all of its children, now."""
        with open(f"/proc/{self.child.pid}/task/{self.child.pid}/children", encoding="ascii") as children:
            return [self.child.pid] + [int(pid) for pid in children.read().split()]

    def freeze(self):
        """All of it is stopped when this returns; the first of them, which makes the others, before them."""
        self.child.freeze()
        pids = self._processes()
        for pid in pids:
            _signal(pid, signal.SIGSTOP)
        wait_until(lambda: all(_state(pid) in "TtZX" for pid in pids), what="the stop of its processes")

    def thaw(self):
        for pid in reversed(self._processes()):
            _signal(pid, signal.SIGCONT)

    def kill(self):
        """All processes at once, as a power loss of the machine would, but for what the kernel holds."""
        if not self.child.alive():
            return
        self.child.freeze()
        pids = self._processes()
        for pid in pids[1:]:
            _signal(pid, signal.SIGKILL)
        self.child.kill()
        wait_until(lambda: all(_state(pid) in "ZX" for pid in pids), what="the end of its processes")

    def stop(self):
        """A clean stop that ends sessions; the folder stays, boot() goes on with it."""
        self.thaw()
        self.child.signal(signal.SIGINT)
        self.child.wait(60)

    def remove(self):
        if self.child is not None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def _template():
    """The data folder of a server with database `leaf`, made once for a build folder and copied for each
    server. It is made where user `postgres` may write, which a build folder need not be."""
    build = os.environ["BUILD_DIR"]
    os.makedirs(build, exist_ok=True)
    options = ["--encoding=UTF8", "--locale=C", "--auth-local=trust", "--auth-host=scram-sha-256", "--wal-segsize=1"]
    version = programs().split("/")[4]
    made_by = hashlib.sha256(" ".join([version, *options, LEAF_POSTGRES_DDL]).encode()).hexdigest()[:8]
    folder = os.path.join(build, f"postgres-template-{made_by}")
    with open(folder + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(folder):
            server = Postgres()
            run_as(USER, f"{programs()}/initdb", "--pgdata", server.data, "--username=root", "--no-sync", *options)
            server.boot()
            server.make_database()
            server.stop()
            shutil.rmtree(folder + ".new", ignore_errors=True)
            subprocess.run(["cp", "-a", server.data, folder + ".new"], check=True)
            os.rename(folder + ".new", folder)
            server.remove()
    return folder


def _signal(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # it has ended meanwhile


def _state(pid):
    """The kernel's letter; X: there is no such process any more."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "X"


class PostgresPair:
    """A primary and a streaming standby. synchronous: a commit waits for the standby's disk.
    apply_delay: the standby has the log, but shows it that much later (as "5s")."""

    def __init__(self, *options, synchronous=False, apply_delay=None):
        self.options = list(options)
        self.synchronous = synchronous
        self.apply_delay = apply_delay
        self.primary = self.standby = None

    @property
    def nodes(self):
        return [node for node in (self.primary, self.standby) if node is not None]

    def start(self):
        self.primary = self._node("a")
        self.primary.start()
        self.standby = self._node("b")
        self._follow()
        if self.synchronous:
            self._require()
        return self

    def _node(self, name):
        node = Postgres("hot_standby=on", "wal_receiver_status_interval=1s", "wal_retrieve_retry_interval=100ms", *self.options)
        node.name = name
        return node

    def _require(self):
        """Commits on the primary wait for the standby from now on."""
        self.primary.set("synchronous_standby_names", f"'FIRST 1 ({self.standby.name})'")
        wait_until(lambda: self.primary.sql("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"),
                   what="a synchronous standby")

    def _follow(self):
        """Makes the standby anew from the primary and starts it."""
        shutil.rmtree(self.standby.data, ignore_errors=True)
        run_as(USER, f"{programs()}/pg_basebackup", "--pgdata", self.standby.data, "--checkpoint=fast", "--wal-method=stream",
                        "--no-sync", "--host", self.primary.folder, "--port", str(self.primary.port), "--username=root")
        with open(self.standby.data + "/postgresql.auto.conf", "w", encoding="utf-8") as file:
            file.write(f"primary_conninfo = 'host={self.primary.folder} port={self.primary.port} user=root "
                       f"application_name={self.standby.name}'\n")
            if self.apply_delay:
                file.write(f"recovery_min_apply_delay = '{self.apply_delay}'\n")
        with open(self.standby.data + "/standby.signal", "w", encoding="ascii"):
            pass
        self.standby.boot()
        wait_until(lambda: self.primary.sql("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"), 20,
                   "the standby's connection")

    def caught_up(self):
        """Whether the standby has on its disk all that the primary has committed."""
        return self.primary.value(
            "SELECT COALESCE(bool_and(flush_lsn >= pg_current_wal_flush_lsn()), false) FROM pg_stat_replication") == "t"

    def hold_standby(self):
        """From now on the standby receives nothing; what the primary commits is what a failover loses.
        A synchronous primary waits instead."""
        self.standby.set("primary_conninfo", "''")
        wait_until(lambda: not self.primary.sql("SELECT 1 FROM pg_stat_replication"), what="the end of streaming")

    def promote(self):
        """The standby becomes the primary, on a new timeline; the old one is left as it is."""
        self.standby.sql("SELECT pg_promote(true, 30)")
        self.primary, self.standby = self.standby, self.primary

    def fail_over(self):
        """The primary dies and the standby takes its place."""
        self.primary.kill()
        self.promote()

    def rejoin(self):
        """The node that is not the primary comes back as a standby of it, copied anew."""
        self.standby.kill()
        self._follow()
        if self.synchronous:
            self._require()

    def url(self, user="leaf", port=None, query="sslmode=disable"):
        return self.primary.url(user, port, query)

    def put(self, tag, max_id=1, step=1000):
        self.primary.put(tag, max_id, step)

    def max_id(self, tag):
        return self.primary.max_id(tag)

    def remove(self):
        for node in self.nodes:
            node.remove()
