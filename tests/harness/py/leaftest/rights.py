"""Servers in snowflake mode that share a registry of workers, and what the ids say about it."""

import collections
import concurrent.futures
import os
import re
import tempfile

from .case import LeafdCase, MariaDbCase
from .history import write_history
from .leafd import Leafd, request
from .process import wait_until
from .zookeeper import ZooKeeper

EPOCH_MS = 1288834974657
Parts = collections.namedtuple("Parts", "time_ms worker sequence")


def parts(number, worker_bits=10, sequence_bits=12):
    """What an id of a layout with Leaf's epoch is made of."""
    worker = number >> sequence_bits & (1 << worker_bits) - 1
    return Parts((number >> sequence_bits + worker_bits) + EPOCH_MS, worker, number & (1 << sequence_bits) - 1)


def snowflakes(server, n=1, timeout=10):
    """n ids in one request."""
    answer = request(server.port, f"/api/v1/snowflake?n={n}", timeout=timeout)
    assert answer.status == 200, f"{answer.status} {answer.code}: {answer.text}"
    return [int(text) for text in answer.json()["ids"]]


def serves(server):
    """Whether it mints; a server that is not there does not."""
    try:
        return request(server.port, "/api/v1/snowflake").status == 200
    except OSError:
        return False


def wait_serving(server, timeout=10):
    """Its first ids, once it has a worker; says why not otherwise."""
    answers = []

    def try_once():
        if not server.child.alive():
            raise AssertionError(f"leafd ended with {server.child.wait()}:\n{server.log()[-4000:]}")
        try:
            answers[:] = [request(server.port, "/api/v1/snowflake")]
        except ConnectionRefusedError:
            return False  # launched a moment ago
        return answers[0].status == 200
    try:
        wait_until(try_once, timeout, "snowflake mode")
    except AssertionError as error:
        raise AssertionError(f"{error}: {answers[0].text if answers else 'no answer'}") from None
    return int(answers[0].json()["ids"][0])


def mode(server, name="snowflake"):
    """{"state", "reason"} of a mode, as readiness tells it."""
    return server.admin_get("/readyz").json()["modes"][name]


def workers(server):
    """The registry's records, by worker."""
    answer = server.admin_get("/api/v1/workers")
    assert answer.status == 200, f"{answer.status}: {answer.text}"
    return {int(one["worker"]): one for one in answer.json()["workers"]}


def at_once(call, over):
    """call(x) for all x, side by side; the results in order."""
    over = list(over)
    with concurrent.futures.ThreadPoolExecutor(max_workers=len(over)) as pool:
        return list(pool.map(call, over))


class RightCase(LeafdCase):
    """Registry in the server's own SQLite file, unless a class says otherwise."""

    # One bit of workers: whoever comes third has to take one over.
    TWO_WORKERS = {"snowflake.layout": "custom", "snowflake.bits": "41/1/12", "snowflake.epoch_ms": str(EPOCH_MS)}

    def cluster(self):
        """A name that no other test has."""
        return re.sub(r"[^A-Za-z0-9]+", "-", self.id().partition(".")[2])[-60:]

    def registry_settings(self, port=None):
        """The settings of a server that uses this class's registry, behind `port` if given."""
        return {}

    def leafd(self, **options):
        """None of many has a port that another will bind."""
        taken = {port for server in self.servers for port in (server.port, server.admin_port)}
        while True:
            server = super().leafd(**options)
            if len({server.port, server.admin_port} - taken) == 2:
                return server
            self.servers.remove(server)

    def server(self, settings=None, port=None, segment=False, **options):
        """A server in snowflake mode, not started; in segment mode too if asked for."""
        settings = {"snowflake.name": self.cluster(), "segment.enabled": str(segment).lower(), **self.registry_settings(port),
                    **(settings or {})}
        return self.leafd(settings=settings, **options)

    def start_mint(self, servers, name="snowflake", n=1, **options):
        """idload on the snowflake path; all histories of one name are judged as one cluster."""
        return self.start_load(servers, name, path="snowflake", n=n, **options)

    def note(self, name, answers):
        """Ids that were had without idload, for check(): (server, sent_ns, received_ns, [ids])."""
        for server, sent, received, ids in answers:
            self.histories.append(os.path.join(self.folder, f"history{len(self.histories)}"))
            write_history(self.histories[-1], name, server.target, [(sent, received, number, 1) for number in ids])


class MariaDbRightCase(RightCase, MariaDbCase):
    """Registry in a MariaDB."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        make_worker_table(cls.database)

    def registry_settings(self, port=None):
        return {"store.url": self.database.url(port=port)}


def make_worker_table(database):
    """The table of workers, by the statement that leafd names where it is missing."""
    with tempfile.TemporaryDirectory(prefix="leafd-table-") as folder:
        server = Leafd(folder, settings={"store.url": database.url()})
        try:
            server.start()
            reason = wait_until(lambda: re.search(r"CREATE TABLE [^;]*", mode(server)["reason"]), 10,
                                "the statement in the reason why snowflake mode is unavailable")
        finally:
            server.kill()
    database.sql(reason[0], database="leaf")
    database.sql("GRANT SELECT, INSERT, UPDATE ON leaf.leafd_worker TO leaf@'%'")


class ZooKeeperRightCase(RightCase):
    """Registry in a ZooKeeper, in the layout that a class names."""

    layout = "native"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.zookeeper = ZooKeeper()
        cls.addClassCleanup(cls.zookeeper.remove)
        cls.zookeeper.start()

    def registry_settings(self, port=None):
        return {"snowflake.registry": f"zookeeper://127.0.0.1:{port or self.zookeeper.port}/?layout={self.layout}"}

    def server(self, settings=None, **options):
        """Leaf's nodes are named by addresses."""
        server = super().server(settings, **options)
        server.settings.setdefault("snowflake.identity", f"127.0.0.1:{server.port}")
        return server
