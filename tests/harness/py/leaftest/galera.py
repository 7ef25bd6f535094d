"""A real Galera cluster of MariaDB for a test, in temporary folders, on free ports."""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
import uuid

import pymysql

from .accounts import as_user, give
from .mariadb import MariaDb
from .process import TIME_FACTOR, free_port, wait_until

# As root, the transfer of a state would run rsync's server as nobody, who may not write there.
USER = "mysql"
_PROVIDERS = ("/usr/lib/galera/libgalera_smm.so", "/usr/lib/libgalera_smm.so")


def _provider():
    for path in _PROVIDERS:
        if os.path.exists(path):
            return path
    raise AssertionError("no libgalera_smm.so: install the package galera-4")


class GaleraNode(MariaDb):
    def __init__(self, name, options=(), template=None):
        super().__init__(template=template)
        give(USER, self.folder)
        self.name = name
        self.group_port, self.ist_port, self.sst_port = free_port(), free_port(), free_port()
        self.own_options = list(options)
        self.members = [self]

    def argv(self):
        # The group's timeouts are a fifth of the defaults, so that a test need not wait 5 s for each fault.
        suspect, inactive = 1.5 * TIME_FACTOR, 3 * TIME_FACTOR
        provider = (f"gmcast.listen_addr=tcp://127.0.0.1:{self.group_port};ist.recv_addr=127.0.0.1:{self.ist_port};"
                    f"gcache.size=16M;gcache.page_size=16M;evs.keepalive_period=PT0.2S;evs.inactive_check_period=PT0.2S;"
                    f"evs.suspect_timeout=PT{suspect}S;evs.inactive_timeout=PT{inactive}S;evs.install_timeout=PT{inactive}S;"
                    f"gmcast.peer_timeout=PT1S;pc.announce_timeout=PT1S")
        group = ",".join(f"127.0.0.1:{member.group_port}" for member in self.members)
        plain = [word for word in super().argv() if word != "--user=root"]
        return as_user(USER, plain + [
            "--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--wsrep-on=ON", f"--wsrep-provider={_provider()}",
            "--wsrep-cluster-name=leaf", f"--wsrep-cluster-address=gcomm://{group}", f"--wsrep-node-name={self.name}",
            "--wsrep-node-address=127.0.0.1", "--wsrep-sst-method=rsync",
            f"--wsrep-sst-receive-address=127.0.0.1:{self.sst_port}", f"--wsrep-provider-options={provider}", *self.own_options])

    def boot(self, first=False):
        """Starts it and waits until it is in the cluster. first: it is the whole cluster. After a kill it
        first finds out where it stands, as MariaDB's own start script does."""
        options = ["--wsrep-new-cluster"] if first else []
        position = self._position()
        if position:
            options.append(f"--wsrep-start-position={position}")
        self.launch(*options)
        wait_until(self.ready, 60, f"{self.name} in the Galera cluster ({self.folder}/log)", 0.02)

    def _position(self):
        with open(os.path.join(self.data, "grastate.dat"), encoding="ascii") as file:
            if not re.search(r"^seqno:\s*-1$", file.read(), re.M):
                return None  # it was stopped cleanly, and knows
        log = os.path.join(self.folder, "recover.log")
        done = subprocess.run([*self.argv(), "--wsrep-recover", f"--log-error={log}"], capture_output=True, text=True, check=False)
        if not os.path.exists(log):
            raise AssertionError(f"{self.name} did not begin its recovery: {done.stdout}{done.stderr}")
        with open(log, encoding="utf-8", errors="replace") as file:
            found = re.findall(r"Recovered position:\s*(\S+)", file.read())
        os.remove(log)
        if not found:
            raise AssertionError(f"{self.name} has no position: {done.stdout}{done.stderr}")
        return found[-1]

    def ready(self):
        """Whether it takes statements: it answers, is synced, and in the primary component."""
        try:
            return self._answers() and self.status("wsrep_ready") == "ON"
        except pymysql.err.OperationalError:
            return False  # it begins anew with the state that it was sent

    def stop(self, timeout=20):
        """A clean stop; one that hangs, as it can while the node is sent a state, ends as systemd ends it."""
        try:
            super().stop(timeout)
        except subprocess.TimeoutExpired:
            self.kill()

    def cluster_size(self):
        return int(self.status("wsrep_cluster_size"))

    def primary_component(self):
        return self.status("wsrep_cluster_status") == "Primary"


def _template():
    """The data folder of a cluster of one node that holds database `leaf`, made once for a build folder.
    Nodes that begin with it are at the same position, so no state needs to be transferred."""
    build = os.environ["BUILD_DIR"]
    os.makedirs(build, exist_ok=True)
    folder = os.path.join(build, "galera-template")
    with open(folder + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(folder):
            node = GaleraNode("template")
            node.launch("--wsrep-new-cluster")
            wait_until(node.ready, 60, f"a cluster of one node ({node.folder}/log)", 0.02)
            node.make_database()
            node.stop()
            fresh = tempfile.mkdtemp(prefix="galera-template-", dir=build)
            shutil.rmtree(fresh)
            subprocess.run(["cp", "-a", node.data, fresh], check=True)
            for name in ("galera.cache", "gvwstate.dat"):
                if os.path.exists(os.path.join(fresh, name)):
                    os.remove(os.path.join(fresh, name))
            os.rename(fresh, folder)
            node.remove()
    return folder


class Galera:
    """A cluster of `size` nodes with database `leaf`, as MariaDb makes it. Options are mariadbd's own."""

    def __init__(self, *options, size=3):
        self.nodes = [GaleraNode(f"n{i}", options, _template()) for i in range(size)]
        for node in self.nodes:
            node.members = self.nodes

    def start(self):
        """All nodes at once, as after a loss of power: each remembers the same primary component and the
        same position, so they need no state from each other."""
        view = uuid.uuid1()
        members = [uuid.uuid1() for _ in self.nodes]
        for node, member in zip(self.nodes, members):
            with open(os.path.join(node.data, "gvwstate.dat"), "w", encoding="ascii") as file:
                file.write(f"my_uuid: {member}\n#vwbeg\nview_id: 3 {view} 1\nbootstrap: 0\n"
                           + "".join(f"member: {one} 0\n" for one in members) + "#vwend\n")
            give(USER, node.data)
            node.launch()
        for node in self.nodes:
            wait_until(node.ready, 60, f"{node.name} in the Galera cluster ({node.folder}/log)", 0.02)
        self.wait_size(len(self.nodes))
        return self

    def wait_size(self, size, nodes=None):
        """Until these nodes (all that run) see so many members."""
        nodes = nodes or self.running()
        wait_until(lambda: all(node.cluster_size() == size and node.primary_component() for node in nodes), 30,
                   f"a Galera cluster of {size}", 0.02)

    def running(self):
        return [node for node in self.nodes if node.child is not None and node.child.alive() and node.child.state() not in "Tt"]

    def rejoin(self, node):
        """A node that was killed or stopped comes back."""
        node.boot()
        self.wait_size(len(self.running()))

    def put(self, tag, max_id=1, step=1000):
        self.running()[0].put(tag, max_id, step)

    def max_id(self, tag):
        """What the cluster agrees on: read behind all that was committed before."""
        node = next(node for node in self.running() if node.primary_component())
        with node.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION wsrep_sync_wait = 1")
            cursor.execute("SELECT max_id FROM leaf.leaf_alloc WHERE biz_tag = %s", (tag,))
            row = cursor.fetchone()
            return int(row[0]) if row else None

    def url(self, node=None, user="leaf", port=None):
        return (node or self.nodes[0]).url(user, port)

    def remove(self):
        for node in self.nodes:
            node.remove()
