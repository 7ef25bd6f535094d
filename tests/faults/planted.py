"""Planted faults: what they break must show, or neither the campaign nor idcheck can be believed."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

from leaftest import Child, wait_until

from fleet import Fleet
from stores import MariaDbAsync

TAG, STEP, IDS = "planted", 100, 3000


class AsyncLoss:
    """An asynchronous replica takes over without what the primary had acknowledged last, and a skip of one
    id cannot bridge that. One server has handed out ids of the lost leases, another has no memory of them:
    it hands them out again."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.folder = tempfile.mkdtemp(prefix="leafd-faults-planted-")
        self.store = MariaDbAsync(arguments.seed)
        self.store.settings = {"store.failover_skip": "1", "segment.policy": "fixed"}
        self.fleet = []
        self.histories = []

    def ask(self, server):
        """Some leases' worth of ids from one server, with a history."""
        history = f"{self.folder}/history-{len(self.histories)}"
        argv = [os.environ["IDLOAD_BIN"], "--target", server.target, "--tag", TAG, "--requests", str(IDS), "--connections", "4",
                "--history", history]
        load = Child(argv, f"{self.folder}/load-{len(self.histories)}")
        assert load.wait(60) == 0, load.log()
        self.histories.append(history)

    def check(self):
        argv = [os.environ["IDCHECK_BIN"], "--json", "--temp", self.folder, *self.histories]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1, 3), done.stderr
        return done.returncode, json.loads(done.stdout)

    def run(self):
        self.store.start(2)
        self.fleet = Fleet(self.folder, self.store, 2, self.arguments.seed)
        self.fleet.start()
        self.store.prepare(self.fleet, {TAG: STEP})
        self.store.pair.wait_caught_up()
        knows, knows_nothing = self.fleet
        wait_until(lambda: knows_nothing.store_up() and knows.store_up(), 20, "both servers' store")
        self.store.pair.hold_replica()
        self.ask(knows)
        lost = self.store.max_id(self.fleet, TAG)
        self.store.fail_over()
        kept = self.store.max_id(self.fleet, TAG)
        assert kept < lost, f"nothing was lost: the row stands at {kept}, it was at {lost}"
        wait_until(lambda: knows_nothing.leaf(TAG).status == 200, 20, "ids after the failover")
        self.ask(knows_nothing)
        status, report = self.check()
        print(f"the row fell from {lost} to {kept}; idcheck: {report['verdict']}, {report['total']['duplicates']} duplicates")
        for finding in report["findings"][:3]:
            print("! " + finding)
        return status == 1 and report["total"]["duplicates"] > 0

    def clean_up(self):
        for server in self.fleet:
            server.kill()
        self.store.remove()
        if self.arguments.keep:
            print(f"histories and logs: {self.folder}", file=sys.stderr)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)


def async_loss(arguments):
    """The exit status: 0 if idcheck found what was planted."""
    planted = AsyncLoss(arguments)
    try:
        found = planted.run()
    finally:
        planted.clean_up()
    print("found" if found else "NOT FOUND: a failover that lost leases gave no duplicates, or they were not seen")
    return 0 if found else 1
