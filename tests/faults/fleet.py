"""The leafd of a campaign, and the clients that ask them."""

import json
import os
import random

from leaftest import Child, FakeClock, Leafd, request, wait_until

from tags import CLUSTER, TAGS


class Fleet(list):
    """Servers on one store, each with a wall clock of its own."""

    def __init__(self, folder, store, count, seed):
        super().__init__()
        chance = random.Random(f"fleet {seed}")
        taken = set()
        for number in range(count):
            clock = FakeClock(folder)
            server = self._server(folder, store, number, chance, clock, taken)
            server.clock = clock
            self.append(server)

    @staticmethod
    def _server(folder, store, number, chance, clock, taken):
        settings = {
            "store.url": store.url(number),
            "segment.policy": chance.choice(("fixed", "leaf")),
            # Short, so that workers are lost, rest and are taken over within a campaign.
            "snowflake.lease": "10s",
            "snowflake.name": "campaign" + str(os.getpid()),
            "server.drain": "2s",
            **store.settings,
        }
        while True:
            server = Leafd(folder, settings=settings, wrapper=clock.wrapper)
            if not {server.port, server.admin_port} & taken:
                taken |= {server.port, server.admin_port}
                return server

    def start(self):
        for server in self:
            server.start()

    def crashed(self, down):
        """The servers that ended though nobody ended them."""
        return [server for server in self if server not in down and not server.child.alive()]

    def kill(self):
        for server in self:
            server.kill()
            if server.child is not None:
                FakeClock.forget(server.child.pid)


# What each client process asks for: its path, its tags, ids a request, requests a second and leafd.
CLIENTS = (
    ("leaf", ("small", "middle"), 1, 150),
    ("ids", ("small", "big"), 7, 40),
    ("ids", ("middle", "big"), 300, 20),
    ("ranges", ("big",), 20000, 30),
    ("snowflake", (CLUSTER,), 1, 60),
    ("snowflake", (CLUSTER,), 100, 20),
)


class Clients:
    """idload processes, each with connections to all servers and a history."""

    def __init__(self, folder, fleet, intensity):
        self.folder = folder
        self.loads = []
        for number, (path, tags, n, rate) in enumerate(CLIENTS):
            history = f"{folder}/history-{number}-{path}"
            argv = [os.environ["IDLOAD_BIN"], "--path", path, "--n", str(n), "--rate", str(int(rate * len(fleet) * intensity)),
                    "--connections", str(4 * len(fleet)), "--duration", "1000000", "--timeout", "5", "--give-up", "1000000",
                    "--history", history]
            for server in fleet:
                argv += ["--target", server.target]
            for tag in tags:
                argv += ["--tag", tag]
            self.loads.append((Child(argv, f"{folder}/load-{number}"), history))

    @property
    def histories(self):
        return [history for _, history in self.loads]

    def stop(self):
        """Ends them; the sum of what they count."""
        for child, _ in self.loads:
            child.signal(15)
        total = {"ok": 0, "failed": 0, "unsure": 0, "by_code": {}}
        for child, history in self.loads:
            status = child.wait(30)
            if status != 0:
                raise AssertionError(f"idload for {history} ended with {status}: {child.log()}")
            with open(child.out_path, encoding="utf-8") as file:
                report = json.load(file)
            for key in ("ok", "failed", "unsure"):
                total[key] += report[key]
            for code, count in report["by_code"].items():
                total["by_code"][code] = total["by_code"].get(code, 0) + count
        return total


def serves(server, path):
    """Whether this path answers with an id; the code if it does not."""
    try:
        answer = request(server.port, path, timeout=10)
    except OSError as error:
        return False, repr(error)
    return answer.status == 200, f"{answer.code}: {answer.text[:200]}"


def wait_serving(fleet, seconds, meanwhile=lambda: None):
    """Until each server answers for each tag and in snowflake mode; AssertionError with what does not."""
    open_ends = {(server, path): "" for server in fleet
                 for path in [f"/api/v1/ids/{tag}" for tag in TAGS] + ["/api/v1/snowflake"]}

    def all_served():
        meanwhile()
        for end in list(open_ends):
            good, open_ends[end] = serves(*end)
            if good:
                del open_ends[end]
        return not open_ends
    try:
        wait_until(all_served, seconds, "service after the last fault", 0.05)
    except AssertionError as error:
        raise AssertionError(f"{error}: " + "; ".join(f"port {server.port} {path}: {why}"
                                                      for (server, path), why in open_ends.items())) from None


def regressed(server):
    """Its tags that are stopped; none of a server that is not there to tell."""
    try:
        answer = server.admin_get("/api/v1/tags?limit=1000", timeout=3)
    except OSError:
        return []
    if answer.status != 200:
        return []
    return [tag["tag"] for tag in answer.json()["tags"] if tag["state"] == "regressed"]


def resume(server, tag, skip):
    answer = server.admin("POST", f"/api/v1/tags/{tag}/resume", {"skip": skip})
    return answer.status == 200
