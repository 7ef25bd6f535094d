"""What a campaign runs on: stores and clusters by name, each with what can befall it.

A store starts its nodes, says where each leafd finds it (through Wires of that leafd's own), and names
the faults that fit. `nodes` is what can be killed, frozen and restarted; at most one at a time is.
`fail_over` and `rejoin` exist where a standby takes over.
"""

import re
import signal
import tempfile

from leaftest import (Etcd, Galera, Leafd, MariaDb, MariaDbPair, PgBouncer, Postgres, PostgresPair, wait_until)

from tags import TAGS
from wire import Wire

NODE_FAULTS = ("node-kill", "node-freeze", "node-restart")
WIRE_FAULTS = ("lost-answers", "cut-answers", "delay", "black-hole", "refuse", "reset", "drop")

# Above all that a lossy failover of a campaign can lose, some seconds of ids, however slow the machine is.
AMPLE_SKIP = {"store.failover_skip": "100000000"}


class Store:
    """Base. Made before the network namespace has anything in it; start() is called once."""

    name = ""
    node = pair = cluster = pooler = None  # what start() makes, of which a store has some
    servers = 3            # most leafd that may share it
    faults = ()            # kinds beside those of leafd itself
    forgets = False        # a failover may lose what was acknowledged
    settings = {}          # of each leafd, besides the URL

    def __init__(self, seed):
        self.seed = seed
        self.wires = []    # by leafd: its wires

    def start(self, servers):
        raise NotImplementedError

    def url(self, server):
        """store.url of that leafd; a number."""
        raise NotImplementedError

    def prepare(self, fleet, tags):
        """Makes the rows. tags: {name: step}."""
        for tag, step in tags.items():
            self.put(tag, step)

    def put(self, tag, step):
        raise NotImplementedError

    def max_id(self, fleet, tag):
        raise NotImplementedError

    @property
    def nodes(self):
        return []

    def kill(self, node):
        node.kill()

    def boot(self, node):
        """Starts a node that was killed or stopped, and waits until it takes part."""
        node.boot()

    def whole(self):
        """Whether all nodes take part."""
        return True

    def disk_pids(self, node):
        """Whose syncs are slowed for a slow disk of that node."""
        return [node.child.pid]

    def kill_sessions(self):
        """Ends leafd's sessions from inside the store; how many."""
        raise NotImplementedError

    def peer_port(self, node):
        """Where the other nodes reach this one."""
        raise NotImplementedError

    def all_wires(self):
        return [wire for wires in self.wires for wire in wires]

    def wire(self, servers, node_of):
        """Gives each leafd a wire to its node."""
        self.wires = [[Wire(node_of(i), self.seed + i)] for i in range(servers)]

    def remove(self):
        for wire in self.all_wires():
            wire.close()
        for node in self.nodes:
            node.remove()


class Standby:
    """What a store with `pair` can do: another node takes over."""

    def standby(self):
        return next(node for node in self.nodes if node is not self.primary())

    def abreast(self, tags):
        """Whether the standby has all that the primary had a moment ago."""
        tops = {tag: self.primary().max_id(tag) for tag in tags}
        return all((self.standby().max_id(tag) or 0) >= top for tag, top in tops.items())

    def fail_over(self, frozen=False):
        """The primary dies, or only hangs, and the standby takes its place."""
        if frozen:
            self.pair.primary.freeze()
            self.pair.promote()
        else:
            self.pair.fail_over()
        for wire in self.all_wires():
            wire.to(self.pair.primary)


class Sqlite(Store):
    """In the state folder of the one leafd that has it."""

    name, servers = "sqlite", 1
    faults = ("leafd-disk",)

    def start(self, servers):
        self.wires = [[] for _ in range(servers)]

    def url(self, server):
        return "sqlite:leafd.db"

    def prepare(self, fleet, tags):
        for tag, step in tags.items():
            fleet[0].put_tag(tag, step=step)

    def max_id(self, fleet, tag):
        return int(fleet[0].tag(tag)["max_id"])


def worker_table(url):
    """The statement that makes the table of workers, as leafd names it where it is missing."""
    with tempfile.TemporaryDirectory(prefix="leafd-table-") as folder:
        server = Leafd(folder, settings={"store.url": url})

        def reason():
            return server.admin_get("/readyz").json()["modes"]["snowflake"]["reason"]
        try:
            server.start()
            return wait_until(lambda: re.search(r"CREATE TABLE [^;]*", reason()), 10, "the statement in the reason of snowflake mode")[0]
        finally:
            server.kill()


class _MySql(Store):
    faults = NODE_FAULTS + WIRE_FAULTS + ("node-disk", "kill-sessions")

    def primary(self):
        """The node that takes writes."""
        raise NotImplementedError

    def make_workers(self):
        node = self.primary()
        node.sql(worker_table(node.url()), database="leaf")
        node.sql("GRANT SELECT, INSERT, UPDATE ON leaf.leafd_worker TO leaf@'%'")

    def url(self, server):
        return self.primary().url(port=self.wires[server][0].port)

    def put(self, tag, step):
        self.primary().put(tag, 1, step)

    def max_id(self, fleet, tag):
        return self.primary().max_id(tag)

    def kill_sessions(self):
        ended = 0
        node = self.primary()
        with node.connect() as connection, connection.cursor() as cursor:
            for session in node.sessions():
                try:
                    cursor.execute(f"KILL {int(session)}")
                    ended += 1
                except Exception as error:  # pylint: disable=broad-exception-caught
                    if "Unknown thread" not in str(error):  # it had ended meanwhile
                        raise
        return ended


class MySql(_MySql):
    name = "mysql"

    def start(self, servers):
        self.node = MariaDb()
        self.node.start()
        self.make_workers()
        self.wire(servers, lambda _: self.node)

    def primary(self):
        return self.node

    @property
    def nodes(self):
        return [self.node] if self.node else []


class _MariaDbPairStore(Standby, _MySql):
    semisync = False

    def start(self, servers):
        self.pair = MariaDbPair(semisync=self.semisync)
        self.pair.start()
        self.make_workers()
        self.pair.wait_caught_up()
        self.wire(servers, lambda _: self.pair.primary)

    def primary(self):
        return self.pair.primary

    @property
    def nodes(self):
        return self.pair.nodes if self.pair else []

    def whole(self):
        return all(node.child.alive() for node in self.nodes) and self.pair.replica.status("Slave_running") == "ON"

    def hold_standby(self):
        self.pair.hold_replica()

    def rejoin(self):
        self.pair.rejoin()
        self._catch_up(self.pair.replica)

    def _catch_up(self, node):
        """It repeats all that was ever committed, for which a sync each would take minutes."""
        settings = ("sync_binlog", "innodb_flush_log_at_trx_commit")
        for name in settings:
            node.sql(f"SET GLOBAL {name} = 0")
        wait_until(lambda: node.sql("SHOW TABLES FROM leaf LIKE 'leafd_worker'") if node.sql("SHOW DATABASES LIKE 'leaf'") else None,
                   60, "the tables on the node that came back", 0.05)
        wait_until(lambda: self.abreast(TAGS), 60, "the catching up of the node that came back", 0.05)
        for name in settings:
            node.sql(f"SET GLOBAL {name} = 1")


class MariaDbAsync(_MariaDbPairStore):
    """A failover loses what the replica had not received."""

    name, forgets = "mariadb-async", True
    settings = AMPLE_SKIP
    faults = ("node-freeze", "failover", "lossy-failover", "node-disk", "kill-sessions") + WIRE_FAULTS


class MariaDbSemisync(_MariaDbPairStore):
    """A commit waits for the replica. A primary that died is not started again as one: what it had
    written and the replica not, it would commit by itself."""

    name, semisync = "mariadb-semisync", True
    settings = {"store.min_durability": "replicated"}
    faults = ("node-freeze", "failover", "node-disk", "kill-sessions") + WIRE_FAULTS


class GaleraStore(_MySql):
    """Each leafd has a node of its own."""

    name = "galera"
    faults = _MySql.faults + ("partition",)
    settings = {"store.min_durability": "replicated"}

    def start(self, servers):
        self.cluster = Galera()
        self.cluster.start()
        self.make_workers()
        self.wire(servers, lambda i: self.nodes[i % len(self.nodes)])

    def primary(self):
        return self.cluster.running()[0]

    @property
    def nodes(self):
        return self.cluster.nodes if self.cluster else []

    def boot(self, node):
        self.cluster.rejoin(node)

    def peer_port(self, node):
        return node.group_port

    def whole(self):
        return len(self.cluster.running()) == len(self.nodes) and all(
            node.cluster_size() == len(self.nodes) and node.status("wsrep_ready") == "ON" for node in self.nodes)

    def max_id(self, fleet, tag):
        return self.cluster.max_id(tag)


class _Postgres(Store):
    faults = NODE_FAULTS + WIRE_FAULTS + ("node-disk", "kill-sessions")

    def primary(self):
        raise NotImplementedError

    def make_workers(self):
        node = self.primary()
        node.sql(worker_table(node.url()) + "; GRANT SELECT, INSERT, UPDATE ON leafd_worker TO leaf", "leaf")

    def url(self, server):
        return self.primary().url(port=self.wires[server][0].port)

    def put(self, tag, step):
        self.primary().put(tag, 1, step)

    def max_id(self, fleet, tag):
        return self.primary().max_id(tag)

    def disk_pids(self, node):
        with open(f"/proc/{node.child.pid}/task/{node.child.pid}/children", encoding="ascii") as children:
            return [node.child.pid] + [int(pid) for pid in children.read().split()]

    def kill_sessions(self):
        return len(self.primary().sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'leaf'"))


class PostgresStore(_Postgres):
    name = "postgres"

    def start(self, servers):
        self.node = Postgres()
        self.node.start()
        self.make_workers()
        self.wire(servers, lambda _: self.node)

    def primary(self):
        return self.node

    @property
    def nodes(self):
        return [self.node] if self.node else []


class PgBouncerStore(PostgresStore):
    """The same through a pooler in transaction mode, which is a node too."""

    name = "pgbouncer"

    def start(self, servers):
        self.node = Postgres()
        self.node.start()
        self.make_workers()
        self.pooler = PgBouncer(self.node.port)
        self.pooler.start()
        self.pooler.boot = self.pooler.start  # over the same folder and port
        self.pooler.stop = lambda: (self.pooler.child.thaw(), self.pooler.child.signal(signal.SIGINT), self.pooler.child.wait(20))
        self.wire(servers, lambda _: self.pooler)

    @property
    def nodes(self):
        return [node for node in (self.node, self.pooler) if node]


class _PostgresPairStore(Standby, _Postgres):
    synchronous = False

    def start(self, servers):
        self.pair = PostgresPair(synchronous=self.synchronous)
        self.pair.start()
        self.make_workers()
        self.wire(servers, lambda _: self.pair.primary)

    def primary(self):
        return self.pair.primary

    @property
    def nodes(self):
        return self.pair.nodes if self.pair else []

    def whole(self):
        return all(node.child.alive() for node in self.nodes) and bool(
            self.pair.primary.sql("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"))

    def hold_standby(self):
        self.pair.hold_standby()

    def rejoin(self):
        self.pair.rejoin()


class PostgresAsync(_PostgresPairStore):
    """A failover loses what the standby had not received."""

    name, forgets = "postgres-async", True
    settings = AMPLE_SKIP
    faults = _Postgres.faults + ("failover", "lossy-failover")


class PostgresSync(_PostgresPairStore):
    name, synchronous = "postgres-sync", True
    settings = {"store.min_durability": "replicated"}
    faults = _Postgres.faults + ("failover",)


class EtcdStore(Store):
    """One member."""

    name, members = "etcd", 1
    faults = NODE_FAULTS + WIRE_FAULTS + ("node-disk", "compact")

    def start(self, servers):
        self.cluster = Etcd(self.members)
        self.cluster.start()
        self.wires = [[Wire(member, self.seed + 16 * i + j) for j, member in enumerate(self.cluster.members)] for i in range(servers)]

    def url(self, server):
        return self.cluster.url(ports=[wire.port for wire in self.wires[server]])

    @property
    def nodes(self):
        return self.cluster.members if self.cluster else []

    def boot(self, node):
        self.cluster.boot(node)

    def whole(self):
        return all(member.alive() and member.has_leader() for member in self.nodes)

    def put(self, tag, step):
        self.cluster.put(tag, 1, step)

    def max_id(self, fleet, tag):
        return self.cluster.max_id(tag)

    def compact(self):
        self.cluster.compact()

    def peer_port(self, node):
        return node.peer_port


class Etcd3(EtcdStore):
    """Each leafd knows all members. With one of them gone, two still agree."""

    name, members = "etcd3", 3
    faults = EtcdStore.faults + ("partition",)
    settings = {"store.min_durability": "replicated"}


STORES = {store.name: store for store in (
    Sqlite, MySql, PostgresStore, EtcdStore, GaleraStore, MariaDbAsync, MariaDbSemisync, PostgresAsync, PostgresSync,
    PgBouncerStore, Etcd3)}
