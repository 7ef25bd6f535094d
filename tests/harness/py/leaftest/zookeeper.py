"""A real ZooKeeper server for a test: its own folder, its own port, ended with the test; and nodes,
seen through another client than leafd's."""

import atexit
import json
import logging
import os
import shutil
import signal
import socket
import tempfile

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import make_digest_acl

from .process import TIME_FACTOR, Child, free_port, wait_until

# Tests break its connection on purpose.
logging.getLogger("kazoo").setLevel(logging.CRITICAL)

CLASS_PATH = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar"


class ZooKeeper:
    """Over one folder, whatever the port: stop() and start(port) move it."""

    def __init__(self, max_session_ms=60000):
        self.folder = tempfile.mkdtemp(prefix="leafd-zookeeper-")
        self.max_session_ms = max_session_ms
        self.port = free_port()
        self.child = None
        self._client = None
        atexit.register(self.remove)

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def url(self, path="/", query="layout=leaf", user=""):
        """As snowflake.registry has it; `user` is NAME:PASSWORD."""
        return f"zookeeper://{user + '@' if user else ''}{self.address}{path}?{query}"

    def start(self, port=None):
        self.port = port or self.port
        config = os.path.join(self.folder, "zoo.cfg")
        with open(config, "w", encoding="ascii") as file:
            file.write(f"tickTime=500\nminSessionTimeout=1000\nmaxSessionTimeout={self.max_session_ms}\n"
                       f"dataDir={self.folder}/data\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
                       "admin.enableServer=false\n4lw.commands.whitelist=ruok,srvr\nmaxClientCnxns=0\n")
        # Nothing here outlives the machine, so the disk need not be waited for.
        self.child = Child(
            ["java", "-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dzookeeper.forceSync=no",
             "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", CLASS_PATH,
             "org.apache.zookeeper.server.quorum.QuorumPeerMain", config], os.path.join(self.folder, "log"))
        wait_until(self._answers, 30, f"ZooKeeper's start ({self.folder}/log)", 0.02)
        return self

    def _answers(self):
        if not self.child.alive():
            raise AssertionError("ZooKeeper ended:\n" + self.child.log()[-3000:])
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"ruok")
                return connection.recv(4) == b"imok"
        except OSError:
            return False

    # Nodes.
    def connect(self, user=None):
        """A client of the caller's own; `user` is NAME:PASSWORD."""
        auth = [("digest", user)] if user else None
        client = KazooClient(hosts=self.address, timeout=20, auth_data=auth)
        try:
            client.start(timeout=20 * TIME_FACTOR)
        except KazooTimeoutError as error:
            raise AssertionError(f"no session with ZooKeeper at {self.address}") from error
        return client

    @property
    def client(self):
        """One as nobody; it is made anew after each stop."""
        if self._client is None:
            self._client = self.connect()
        return self._client

    def get(self, path):
        """The node's bytes; None: there is none."""
        try:
            return self.client.get(path)[0]
        except NoNodeError:
            return None

    def version(self, path):
        return self.client.get(path)[1].version

    def set(self, path, data):
        """Makes the node, and all above it, or writes it."""
        data = data.encode() if isinstance(data, str) else data
        self.client.ensure_path(path)
        self.client.set(path, data)

    def children(self, path):
        """Sorted; none where the node is missing."""
        try:
            return sorted(self.client.get_children(path))
        except NoNodeError:
            return []

    def delete(self, path):
        self.client.delete(path, recursive=True)

    def make_private(self, path, user):
        """Only `user`, NAME:PASSWORD, may do anything there."""
        name, password = user.split(":", 1)
        self.client.set_acls(path, [make_digest_acl(name, password, all=True)])

    # Leaf's part of the tree.
    def put_leaf(self, cluster, identity, timestamp):
        """A node as a server in Java makes it; its worker."""
        ip, port = identity.rsplit(":", 1)
        data = f'{{"ip":"{ip}","port":"{port}","timestamp":{timestamp}}}'.encode()
        made = self.client.create(f"/snowflake/{cluster}/forever/{identity}-", data, sequence=True, makepath=True)
        return int(made[-10:])

    def leaf_nodes(self, cluster):
        """Name -> (its three fields in their order, version)."""
        forever = f"/snowflake/{cluster}/forever"
        nodes = {}
        for name in self.children(forever):
            data, stat = self.client.get(f"{forever}/{name}")
            nodes[name] = (json.loads(data.decode()), stat.version)
        return nodes

    # What befalls it.
    def freeze(self):
        self.child.freeze()

    def thaw(self):
        self.child.thaw()

    def _drop_client(self):
        client, self._client = self._client, None
        if client is not None:
            client.stop()
            client.close()

    def stop(self):
        """The data stays for the next start()."""
        self._drop_client()
        self.child.thaw()
        self.child.signal(signal.SIGTERM)
        self.child.wait(30)

    def kill(self):
        self._drop_client()
        self.child.kill()

    def remove(self):
        if self.child is not None and self.child.alive():
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
