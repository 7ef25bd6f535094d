"""B42 and F31: an owner is stopped for longer than its lease at each place of its way, another server
takes its worker over and issues, and the owner wakes up with requests in its sockets."""

import glob
import os
import random
import re
import signal
import unittest

from leaftest import TIME_FACTOR, pick, wait_until
from leaftest.history import read_ids
from leaftest.namespace import Namespace, signal_inside
from leaftest.rights import MariaDbRightCase, ZooKeeperRightCase, parts, wait_serving

LEASE = 1.5 * TIME_FACTOR
SOURCES = os.path.join(os.path.dirname(__file__), "..", "..", "src")
# (place, pass): 1 is the first claim or the first request, later passes are under load.
STOPS = [
    ("snowflake.before_claim", 1), ("snowflake.after_claim", 1),
    ("snowflake.claim_place", 1), ("snowflake.claim_place", 300),
    ("snowflake.before_extend", 3), ("snowflake.after_extend", 3), ("snowflake.before_lower", 1),
    ("snowflake.before_mint", 300), ("snowflake.after_mint", 300), ("snowflake.before_send", 300),
]


def stopped(server):
    if not server.child.alive():
        raise AssertionError(f"leafd ended with {server.child.wait()}:\n{server.log()[-4000:]}")
    with open(f"/proc/{server.child.pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


class Pause:
    """One owner, stopped at one place, and its successor. There are two workers, and a third server
    that was killed holds one of them for minutes: the successor has to take the owner's. It is on
    another host, as on one host the kernel tells it that the owner lives."""

    def __init__(self, test, place, number):
        self.test, self.place = test, place
        self.name = f"{place}-{number}"
        settings = {**test.TWO_WORKERS, "snowflake.name": f"{test.cluster()[-20:]}-{place}-{number}".replace(".", "-"),
                    "snowflake.lease": f"{int(LEASE * 1000)}ms", "snowflake.wait": "50ms"}
        self.filler = test.server({**settings, "snowflake.lease": "10m"})
        self.owner = test.server(settings, env={"LEAFD_STOP_AT": f"{place}:{number}"})
        self.successor = test.server(settings)
        self.load = self.load_after = None

    def fill(self):
        wait_serving(self.filler.start())
        self.filler.kill()

    def run_into_it(self):
        self.owner.launch()
        self.load = self.test.start_mint(self.owner, self.name, connections=25, pipeline=40, duration=3600, rate=1500,
                                         timeout=60)
        self.history = self.test.histories[-1]

    def wait_stopped(self):
        if self.place == "snowflake.before_lower":
            wait_until(lambda: read_ids(self.history), 15, "ids before the end")
            self.owner.terminate()
        wait_until(lambda: stopped(self.owner), 20, f"the stop at {self.name}")

    def take_over(self):
        first = wait_serving(self.successor, 20)
        if before := read_ids(self.history):
            self.test.assertEqual(parts(first, 1).worker, parts(before[-1], 1).worker, self.name)
        self.load_after = self.test.start_mint(self.successor, self.name, connections=4, duration=3600, rate=1000)
        history = self.test.histories[-1]
        wait_until(lambda: len(read_ids(history)) > 300, 20, "ids of the successor", 0.05)

    def wake(self):
        self.answered = len(read_ids(self.history))
        self.owner.child.thaw()
        if self.place == "snowflake.before_lower":
            self.test.assertEqual(self.owner.child.wait(), 0, "a clean end although the right was lost")

    def recover(self):
        """The successor goes; the owner mints again, by itself."""
        self.test.assert_all_served(self.load_after.stop())
        signal_inside(self.successor, signal.SIGTERM)
        self.test.assertEqual(self.successor.child.wait(), 0)
        if self.place != "snowflake.before_lower":
            wait_until(lambda: len(read_ids(self.history)) > self.answered + 300, 20, f"ids of the owner after {self.name}", 0.05)

    def judge(self):
        report = self.load.stop()
        self.test.assertLessEqual(set(report["by_status"]), {"200", "503"}, f"{self.name}: {report}")


class Paused:
    """For each kind of registry whose workers are bound to nobody: elsewhere nobody can take over."""

    def take_over_at_each_place(self):
        seed = random.SystemRandom().randrange(2**32)
        print(f"seed {seed}")
        chance = random.Random(seed)
        for turn in range(pick(1, 20)):
            # In the long form also at passes that nobody chose.
            stops = STOPS if turn == 0 else [(place, number * chance.randint(1, 5) if number > 1 else 1)
                                             for place, number in STOPS]
            self.run_all([Pause(self, place, number) for place, number in dict.fromkeys(stops)])

    def run_all(self, pauses):
        """Step by step and all in each step, so that their leases run out side by side."""
        for step in ("fill", "run_into_it", "wait_stopped"):
            for pause in pauses:
                getattr(pause, step)()
        for pause in pauses:
            Namespace(self, outside=[self.registry_port()]).start(pause.successor)
        for step in ("take_over", "wake", "recover", "judge"):
            for pause in pauses:
                getattr(pause, step)()
        self.check("--min-ids", str(600 * len(pauses)))
        for server in self.servers:
            server.kill()


class MariaDbPausedTest(Paused, MariaDbRightCase):
    def registry_port(self):
        return self.database.port

    def test_a_successor_issues_while_the_owner_is_stopped(self):
        self.take_over_at_each_place()

    def test_every_failpoint_is_visited(self):
        """A place that is new in the sources has to be stopped at here too."""
        found = set()
        for path in glob.glob(SOURCES + "/**/*.*", recursive=True):
            if path.endswith((".cc", ".h")) and not path.endswith("failpoint.h"):
                with open(path, encoding="utf-8") as file:
                    found |= set(re.findall(r'LEAF_FAILPOINT\("([^"]+)"\)', file.read()))
        self.assertEqual(found, {place for place, _ in STOPS})


class ZooKeeperPausedTest(Paused, ZooKeeperRightCase):
    def registry_port(self):
        return self.zookeeper.port

    def test_a_successor_issues_while_the_owner_is_stopped(self):
        self.take_over_at_each_place()


if __name__ == "__main__":
    unittest.main()
