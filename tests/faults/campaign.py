"""The fault campaign, `./dev faults`: leafd on a store or a cluster, clients on all of them, and a seeded
schedule of faults. Afterwards everything must serve again, and idcheck judges all histories.

Ends 0: clean, 1: a breach (or something did not serve again), 2: usage, 3: void, the load was too little.
"""

import argparse
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

from leaftest import wait_until

import faults
import planted
from fleet import Clients, Fleet, regressed, resume, wait_serving
from stores import STORES
from tags import CLUSTER, TAGS

CLEAN, BREACH, VOID = 0, 1, 3
RECOVERY_SECONDS = 30
OWN_NETWORK = "LEAFD_FAULTS_OWN_NETWORK"


class Campaign:
    """One store under one schedule. run() fills `row`, a line of the table."""

    def __init__(self, store, arguments):
        self.arguments = arguments
        self.seed = arguments.seed
        self.store = STORES[store](self.seed)
        self.own_network = os.environ.get(OWN_NETWORK) == "yes"
        self.folder = tempfile.mkdtemp(prefix=f"leafd-faults-{store}-")
        os.chmod(self.folder, 0o755)
        self.fleet = self.clients = None
        self.chance = random.Random(f"schedule {self.seed}")
        self.injected = 0
        self.by_kind = collections.Counter()
        self.deck = []
        self.open = []       # (when it ends, fault)
        self.down = set()    # servers that a fault has ended
        self.planted = False
        self.resumed = 0     # tags, by the operator's word
        self.operated = 0.0  # when that was last looked after
        self.row = {"store": store, "seed": self.seed, "minutes": arguments.minutes, "verdict": "breach"}

    def log(self, text):
        if self.arguments.verbose:
            print(f"{time.monotonic() - self.began:7.2f} {text}", file=sys.stderr, flush=True)

    # What faults ask for.
    def start(self, server):
        """A server that a fault ended comes back. It must, also while its store is away."""
        server.start(20)
        self.down.discard(server)

    # The schedule.
    def kinds(self):
        wanted = {**faults.OF_LEAFD, **{kind: faults.OF_STORE[kind] for kind in self.store.faults}}
        if not self.own_network:
            for kind in faults.NEED_OWN_NETWORK & wanted.keys():
                del wanted[kind]
        return list(wanted.values())

    def begin_one(self):
        """The next of a shuffled deck of all kinds, so that a short campaign has them all."""
        if not self.deck:
            self.deck = self.kinds()
            self.chance.shuffle(self.deck)
        fault = self.deck.pop(0)(self, self.chance)
        if fault.target is None:
            return
        if any(other.target == fault.target for _, other in self.open):
            self.deck.append(type(fault))
            return
        self.log(f"begin {fault.kind} {fault.target} for {fault.seconds:.2f} s")
        self.injected += 1
        self.by_kind[fault.kind] += 1
        if fault.kind in ("leafd-kill", "leafd-restart"):
            self.down.add(fault.server)
        fault.begin()
        self.open.append((time.monotonic() + fault.seconds, fault))

    def end_due(self, now):
        for entry in [entry for entry in self.open if entry[0] <= now]:
            self.open.remove(entry)
            self.log(f"end   {entry[1].kind} {entry[1].target}")
            entry[1].end()

    def look_after(self):
        """What must not be at any time; and the word of the operator where a failover may lose."""
        crashed = self.fleet.crashed(self.down)
        if crashed:
            raise AssertionError(f"leafd ended by itself with {crashed[0].child.wait()}:\n{crashed[0].log()[-3000:]}")
        if self.store.forgets and time.monotonic() > self.operated + 1:
            self.operate()

    def plant(self):
        """The row falls under what was handed out, and no failover or restore says so."""
        self.log("plant")
        self.planted = True
        self.store.put("small", TAGS["small"])

    def shake(self):
        plant_at = time.monotonic() + self.arguments.minutes * 30 if self.arguments.plant == "lowered-row" else float("inf")
        end = time.monotonic() + self.arguments.minutes * 60
        next_fault = time.monotonic()
        while time.monotonic() < end or plant_at < float("inf"):
            now = time.monotonic()
            self.end_due(now)
            if now < min(end, plant_at) and now >= next_fault and len(self.open) < 3:
                self.begin_one()
                next_fault = time.monotonic() + self.chance.expovariate(1 / 0.5)
            if now >= plant_at and not any(fault.target[0] == "nodes" for _, fault in self.open):
                self.plant()
                plant_at = float("inf")
            self.look_after()
            time.sleep(0.02)

    def heal(self):
        self.log("heal")
        self.end_due(float("inf"))
        for wire in self.store.all_wires():
            wire.heal()
        wait_until(self.store.whole, 60, "the whole store after the last fault", 0.05)

    def operate(self):
        """Resumes the tags that a lossy failover stopped, on servers that nothing befalls now."""
        busy = {fault.server for _, fault in self.open if isinstance(fault, faults.OfServer)}
        for server in self.fleet:
            for tag in [] if server in busy else regressed(server):
                self.resumed += resume(server, tag, 16 * TAGS[tag])
                self.log(f"resumed {tag} on port {server.port}")
        self.operated = time.monotonic()

    def must_not_stop(self):
        """On a store that forgets nothing no row ever goes back."""
        for server in self.fleet:
            for tag in regressed(server):
                raise AssertionError(f"{tag} is stopped as regressed on port {server.port}, and this store forgets nothing")

    def recover(self):
        began = time.monotonic()
        meanwhile = self.operate if self.store.forgets else self.must_not_stop
        wait_serving(self.fleet, RECOVERY_SECONDS, meanwhile)
        meanwhile()
        self.row["recovered"] = time.monotonic() - began
        self.row["resumed"] = self.resumed

    def run(self):
        """The exit status."""
        self.began = time.monotonic()
        status = BREACH
        try:
            self.store.start(min(self.arguments.servers, self.store.servers))
            self.fleet = Fleet(self.folder, self.store, len(self.store.wires), self.seed)
            self.fleet.start()
            self.store.prepare(self.fleet, TAGS)
            wait_serving(self.fleet, RECOVERY_SECONDS)
            self.clients = Clients(self.folder, self.fleet, self.arguments.intensity)
            status = self.run_under_load()
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.fail(error)
        finally:
            self.clean_up()
        self.tell(status)
        return status

    def fail(self, error):
        """Something did not do what it must, whatever the ids are like."""
        self.row["verdict"] = "failed"
        print(f"campaign on {self.store.name}: {error}", file=sys.stderr)
        if not isinstance(error, AssertionError) or self.arguments.verbose:
            traceback.print_exception(error)

    def run_under_load(self):
        failure = None
        try:
            self.shake()
            self.heal()
            self.recover()
            time.sleep(0.5)  # some answers after it
        except Exception as error:  # pylint: disable=broad-exception-caught
            failure = error
        counts = self.clients.stop()
        self.log(f"clients: {counts}")
        # Where the store is gone its rows cannot be asked for; what was handed out is judged all the same.
        status = self.judge({} if failure or self.store.forgets else {tag: self.store.max_id(self.fleet, tag) for tag in TAGS})
        if failure is None:
            return status
        self.fail(failure)
        return BREACH

    # The verdict.
    def judge(self, tops):
        """tops: the rows after all; of a store that lost a failover they may stand below what it had
        acknowledged before."""
        seconds = self.arguments.minutes * 60
        argv = [os.environ["IDCHECK_BIN"], "--json", "--temp", self.folder, "--min-ids",
                str(int(1000 * seconds * len(self.fleet) * self.arguments.intensity))]
        for tag, top in tops.items():
            argv += ["--high", f"{tag}={top}", "--low", f"{tag}=1"]
        done = subprocess.run(argv + self.clients.histories, capture_output=True, text=True, check=False)
        if done.returncode not in (CLEAN, BREACH, VOID):
            raise AssertionError(f"idcheck ended with {done.returncode}: {done.stderr}")
        return self.put_down(json.loads(done.stdout), done.returncode)

    def put_down(self, report, status):
        total = report["total"]
        self.row.update(ids=total["ids"], unsure=total["unsure"], lost=total["lost"], duplicates=total["duplicates"],
                        order=total["connection_breaches"] + total["server_breaches"], verdict=report["verdict"])
        idle = [name for name in [*TAGS, CLUSTER] if report["tags"].get(name, {"ids": 0})["ids"] == 0]
        few = self.injected < self.arguments.minutes * 60 / 5
        if status == CLEAN and (idle or few):
            self.row["verdict"], status = "void", VOID
            print(f"void: {'no ids of ' + ', '.join(idle) if idle else 'too few faults'}", file=sys.stderr)
        for finding in report["findings"]:
            print("! " + finding, file=sys.stderr)
        return status

    def clean_up(self):
        """Also after a failure in the middle of anything."""
        for _, fault in self.open:
            if getattr(fault, "tracer", None) is not None:
                fault.tracer.kill()
        if self.own_network:
            subprocess.run(["nft", "flush ruleset"], check=False, capture_output=True)
        for load, _ in self.clients.loads if self.clients else []:
            if load.alive():
                load.kill()
        if self.fleet:
            self.fleet.kill()

    def tell(self, status):
        """What is left of it."""
        self.row["faults"] = dict(sorted(self.by_kind.items()))
        unwanted = status == BREACH and not self.arguments.plant
        if unwanted:
            command = (f"./dev faults --store {self.store.name} --minutes {self.arguments.minutes:g} --seed {self.seed} "
                       f"--servers {self.arguments.servers} --intensity {self.arguments.intensity:g}")
            print(f"again: {command}", file=sys.stderr)
        if self.arguments.keep or unwanted:
            for number, node in enumerate(node for node in self.store.nodes if node.child):
                shutil.copy(node.child.log_path, f"{self.folder}/node-{number}.log")
            print(f"histories and logs: {self.folder}", file=sys.stderr)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.store.remove()


COLUMNS = ("store", "seed", "minutes", "ids", "faults", "unsure", "lost", "duplicates", "order", "resumed", "recovered", "verdict")


def table(rows):
    """The rows as Markdown."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * len(COLUMNS)]
    for row in rows:
        cells = []
        for column in COLUMNS:
            value = row.get(column, "-")
            if column == "faults":
                value = f"{sum(value.values())}: " + ", ".join(f"{kind} {count}" for kind, count in value.items())
            elif isinstance(value, float):
                value = f"{value:.3g}"
            cells.append(str(value))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def enter_own_network():
    """Starts over in a network namespace, where packets may be dropped without harm to the host."""
    if OWN_NETWORK in os.environ:
        return
    enter = ["unshare", "--net", "--", "sh", "-c", 'ip link set lo up && nft list ruleset >/dev/null && exec "$@"', "sh"]
    possible = os.geteuid() == 0 and subprocess.run([*enter, "true"], check=False, capture_output=True).returncode == 0
    os.environ[OWN_NETWORK] = "yes" if possible else "no"
    if not possible:
        print("no network namespace (that needs root and nft): packets are not dropped", file=sys.stderr)
        return
    os.execvp(enter[0], [*enter, sys.executable, *sys.argv])


def parse(words):
    parser = argparse.ArgumentParser(prog="./dev faults", description="A campaign of faults on a real store; idcheck judges it.")
    parser.add_argument("--store", choices=[*STORES, "all"], default="all", help="default: all, one after the other")
    parser.add_argument("--minutes", type=float, default=1.0, help="of faults, on each store (1)")
    parser.add_argument("--seed", type=int, default=None, help="of the schedule (random)")
    parser.add_argument("--servers", type=int, default=3, help="leafd on the store (3)")
    parser.add_argument("--intensity", type=float, default=1.0, help="factor on the load")
    parser.add_argument("--plant", choices=("async-loss", "lowered-row"), help="a fault that must be found: ends 0 if it is")
    parser.add_argument("--keep", action="store_true", help="leave histories and logs")
    parser.add_argument("--verbose", action="store_true", help="tell each fault")
    arguments = parser.parse_args(words)
    if arguments.minutes <= 0 or arguments.servers < 1 or arguments.intensity <= 0:
        parser.error("--minutes, --servers and --intensity must be positive")
    if arguments.seed is None:
        arguments.seed = random.SystemRandom().randrange(2**32)
    return arguments


def lowered_row(arguments):
    """A whole campaign on MariaDB with that fault among the others: it must not pass for clean."""
    campaign = Campaign("mysql", arguments)
    status = campaign.run()
    print(table([campaign.row]))
    found = status == BREACH and campaign.planted
    print("found" if found else "NOT FOUND: a row that fell made neither duplicates nor a stopped tag")
    return CLEAN if found else BREACH


def main():
    arguments = parse(sys.argv[1:])
    enter_own_network()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what runs is ended
    print(f"seed {arguments.seed}", flush=True)
    if arguments.plant == "async-loss":
        return planted.async_loss(arguments)
    if arguments.plant == "lowered-row":
        return lowered_row(arguments)
    rows, worst = [], CLEAN
    for store in STORES if arguments.store == "all" else [arguments.store]:
        campaign = Campaign(store, arguments)
        status = campaign.run()
        rows.append(campaign.row)
        worst = BREACH if BREACH in (status, worst) else max(status, worst)
        print(table(rows), flush=True)
    return worst


if __name__ == "__main__":
    sys.exit(main())
