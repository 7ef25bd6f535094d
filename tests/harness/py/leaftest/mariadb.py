"""A real MariaDB server for a test: its own folder, its own port, ended with the test."""

import atexit
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile

import pymysql

from .process import Child, can_connect, free_port, wait_until

# Leaf's table as its users have it.
LEAF_DDL = """CREATE TABLE {table} (
  biz_tag varchar(128) NOT NULL DEFAULT '',
  max_id bigint(20) NOT NULL DEFAULT '1',
  step int(11) NOT NULL,
  description varchar(256) DEFAULT NULL,
  update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (biz_tag)
) ENGINE={engine}"""


def server_options(folder):
    # A server that starts clears its temporary folder of what others made there, so that is no folder to share.
    options = [
        "--no-defaults", f"--datadir={folder}", f"--tmpdir={folder}", "--innodb-buffer-pool-size=24M", "--innodb-log-file-size=16M",
        "--innodb-flush-log-at-trx-commit=1", "--performance-schema=OFF", "--skip-log-bin", "--skip-name-resolve",
    ]
    return options + (["--user=root"] if os.geteuid() == 0 else [])


def fresh_data_folder():
    """A fresh data folder, made once for a build folder and copied for each server."""
    build = os.environ["BUILD_DIR"]
    os.makedirs(build, exist_ok=True)
    folder = os.path.join(build, "mariadb-template")
    with open(folder + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(folder):
            fresh = tempfile.mkdtemp(prefix="mariadb-template-", dir=build)
            done = subprocess.run(
                ["mariadb-install-db", *server_options(fresh), "--auth-root-authentication-method=normal", "--skip-test-db"],
                capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise AssertionError("mariadb-install-db failed:\n" + done.stdout + done.stderr)
            os.rename(fresh, folder)
    return folder


class MariaDb:
    """start() makes database `leaf` with table `leaf_alloc`, and two users: `leaf` may SELECT and
    UPDATE, as serving needs; `admin` may do all in the database."""

    def __init__(self, *options, template=None):
        """Options are mariadbd's own. template: the data folder to begin with, instead of a fresh one."""
        self.options = list(options)
        self.folder = tempfile.mkdtemp(prefix="leafd-db-")
        self.data = os.path.join(self.folder, "data")
        self.socket = os.path.join(self.folder, "s")
        self.port = free_port()
        self.child = None
        atexit.register(self.remove)
        subprocess.run(["cp", "-a", "--reflink=auto", template or fresh_data_folder(), self.data], check=True)

    def start(self):
        self.boot()
        if not self.sql("SHOW DATABASES LIKE 'leaf'"):
            self.make_database()
        return self

    def make_database(self):
        self.sql("CREATE DATABASE leaf")
        self.create_table()
        self.sql("CREATE USER leaf@'%' IDENTIFIED BY 'leaf'")
        self.sql("GRANT SELECT, UPDATE ON leaf.* TO leaf@'%'")
        self.sql("CREATE USER admin@'%' IDENTIFIED BY 'leaf'")
        self.sql("GRANT ALL ON leaf.* TO admin@'%'")

    def boot(self):
        """Starts the server over its folder and waits until it answers."""
        self.launch()
        wait_until(self._answers, 30, f"MariaDB's start ({self.folder}/log)", 0.02)

    def launch(self, *options):
        """Starts it without waiting."""
        self.child = Child([*self.argv(), *options], os.path.join(self.folder, "log"))

    def argv(self):
        return ["mariadbd", *server_options(self.data), f"--socket={self.socket}", f"--port={self.port}",
                "--bind-address=127.0.0.1", "--max-connections=300", f"--pid-file={self.folder}/pid", *self.options]

    def _answers(self):
        if not self.child.alive():
            raise AssertionError("MariaDB ended:\n" + self.child.log()[-3000:])
        if not can_connect(self.port):
            return False
        try:
            self.connect().close()
            return True
        except pymysql.err.OperationalError:
            return False

    def connect(self, **options):
        options = {"user": "root", "unix_socket": self.socket, "autocommit": True, "charset": "utf8mb4", **options}
        connection = pymysql.connect(**options)
        return connection

    def sql(self, statement, args=None, database=None):
        """Runs a statement as root; the rows."""
        with self.connect(database=database) as connection, connection.cursor() as cursor:
            cursor.execute(statement, args)
            return list(cursor.fetchall())

    def create_table(self, table="leaf.leaf_alloc", engine="InnoDB"):
        self.sql(LEAF_DDL.format(table=table, engine=engine))

    def put(self, tag, max_id=1, step=1000, table="leaf_alloc"):
        self.sql(f"REPLACE INTO leaf.{table} (biz_tag, max_id, step) VALUES (%s, %s, %s)", (tag, max_id, step))

    def max_id(self, tag, table="leaf_alloc"):
        rows = self.sql(f"SELECT max_id FROM leaf.{table} WHERE biz_tag = %s", (tag,))
        return int(rows[0][0]) if rows else None

    def url(self, user="leaf", port=None):
        return f"mysql://{user}:leaf@127.0.0.1:{port or self.port}/leaf"

    def jdbc_url(self, parameters=""):
        return f"jdbc:mysql://127.0.0.1:{self.port}/leaf{parameters}"

    def status(self, name):
        """A status of the server's, as text; None: it has none of that name."""
        rows = self.sql("SHOW GLOBAL STATUS LIKE %s", (name,))
        return rows[0][1] if rows else None

    def sessions(self, user="leaf"):
        """Ids of the sessions of that user."""
        return [row[0] for row in self.sql("SELECT id FROM information_schema.processlist WHERE user = %s", (user,))]

    def log_statements(self, on=True):
        if on:
            self.sql("SET GLOBAL log_output = 'TABLE'")
            self.sql("TRUNCATE mysql.general_log")
        self.sql("SET GLOBAL general_log = %s", (1 if on else 0,))

    def logged(self, pattern):
        """How many executed statements match the SQL pattern since log_statements()."""
        rows = self.sql("SELECT COUNT(*) FROM mysql.general_log WHERE command_type IN ('Query', 'Execute') "
                        "AND argument LIKE %s AND argument NOT LIKE '%%general_log%%'", (pattern,))
        return rows[0][0]

    def freeze(self):
        self.child.freeze()

    def thaw(self):
        self.child.thaw()

    def stop(self, timeout=60):
        """A clean stop; the folder stays, boot() goes on with it."""
        self.child.thaw()
        self.child.signal(signal.SIGTERM)
        self.child.wait(timeout)

    def kill(self):
        self.child.kill()

    def remove(self):
        if self.child is not None and self.child.alive():
            self.child.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
