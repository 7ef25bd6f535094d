"""The faults of a campaign. Each picks its target and its length from the seed, begins, and ends; what
it broke is whole again after end(). No two act on one target at once."""

import subprocess
import time

from leaftest import Child, FakeClock, wait_until

from tags import TAGS


class Fault:
    """kind: its name in schedule and table."""

    kind = ""
    shortest, longest = 0.1, 2.0   # seconds

    def __init__(self, campaign, chance):
        self.campaign = campaign
        self.seconds = chance.uniform(self.shortest, self.longest)
        self.target = self.pick(chance)

    def pick(self, chance):
        """What it acts on; None: there is nothing that it could act on now."""
        raise NotImplementedError

    def begin(self):
        raise NotImplementedError

    def end(self):
        pass


class OfServer(Fault):
    def pick(self, chance):
        self.server = chance.choice(self.campaign.fleet)
        return ("leafd", self.server.port)

    def come_back(self):
        self.campaign.start(self.server)


class LeafdKill(OfServer):
    kind, longest = "leafd-kill", 1.0

    def begin(self):
        pid = self.server.child.pid
        self.server.kill()
        FakeClock.forget(pid)

    def end(self):
        self.come_back()


class LeafdFreeze(OfServer):
    """Longer than the lease of a worker now and then."""

    kind, longest = "leafd-freeze", 5.0

    def begin(self):
        self.server.child.freeze()

    def end(self):
        self.server.child.thaw()


class LeafdRestart(OfServer):
    kind, shortest, longest = "leafd-restart", 0.0, 0.3

    def begin(self):
        self.server.terminate()

    def end(self):
        pid = self.server.child.pid
        status = self.server.child.wait(30)
        FakeClock.forget(pid)
        if status != 0:
            raise AssertionError(f"leafd on port {self.server.port} ended its clean stop with {status}")
        self.come_back()


class ClockStep(OfServer):
    """Steps of the wall clock; the monotonic one goes on, as it does under a bad NTP server."""

    kind, longest = "clock-step", 4.0
    STEPS = (-6.0, -2.0, -0.1, -0.005, 0.005, 0.1, 2.0, 6.0)

    def pick(self, chance):
        super().pick(chance)
        self.step = chance.choice(self.STEPS)
        return ("clock", self.server.port)

    def begin(self):
        self.server.clock.step(self.step)

    def end(self):
        self.server.clock.restore()


class _Traced(Fault):
    """Slow syncs, by strace."""

    longest = 3.0

    def slow_down(self, pids, chance_ms):
        argv = ["strace", "-f", "-o", "/dev/null", "-e", "trace=fdatasync,fsync",
                "-e", f"inject=fdatasync,fsync:delay_enter={chance_ms * 1000}"]
        for pid in pids:
            argv += ["-p", pid]
        self.tracer = Child(argv, f"{self.campaign.folder}/strace-{self.campaign.injected}")
        # A session that ended meanwhile cannot be attached to any more; then nothing is slow, and no harm done.
        wait_until(lambda: "attached" in self.tracer.log() or not self.tracer.alive(), what="strace")

    def end(self):
        self.tracer.signal(15)
        self.tracer.wait()


class LeafdDisk(_Traced, OfServer):
    kind = "slow-disk"

    def pick(self, chance):
        self.ms = chance.choice((20, 200, 800))
        return super().pick(chance)

    def begin(self):
        self.slow_down([self.server.child.pid], self.ms)


class _OfNode(Fault):
    """One node at a time, so that a majority stays."""

    def pick(self, chance):
        self.store = self.campaign.store
        self.node = chance.choice(self.store.nodes)
        return ("nodes",)


class NodeKill(_OfNode):
    kind, longest = "node-kill", 2.0

    def begin(self):
        self.store.kill(self.node)

    def end(self):
        self.store.boot(self.node)


class NodeRestart(_OfNode):
    kind, shortest, longest = "node-restart", 0.0, 0.5

    def begin(self):
        self.node.stop()

    def end(self):
        self.store.boot(self.node)


class NodeFreeze(_OfNode):
    kind, longest = "node-freeze", 3.0

    def begin(self):
        self.node.freeze()

    def end(self):
        self.node.thaw()


class NodeDisk(_Traced, _OfNode):
    kind = "slow-disk"

    def pick(self, chance):
        self.ms = chance.choice((20, 200, 800))
        return super().pick(chance)

    def begin(self):
        self.slow_down(self.store.disk_pids(self.node), self.ms)


class Failover(_OfNode):
    """The primary dies or hangs, the standby takes its place, the other comes back as its standby."""

    kind, shortest, longest = "failover", 0.5, 2.0

    def pick(self, chance):
        self.frozen = chance.random() < 0.5
        return super().pick(chance)

    def begin(self):
        # One that is far behind, as after it has come back, would lose more than any skip bridges; nobody
        # may promote that.
        if self.store.forgets:
            wait_until(lambda: self.store.abreast(TAGS), 30, "a standby that has what the primary has", 0.05)
        self.take_over()

    def take_over(self):
        self.store.fail_over(self.frozen)

    def end(self):
        self.store.rejoin()


class LossyFailover(Failover):
    """The same when the standby had not received the last leases. What the skip bridges must do no harm;
    more than that is a planted fault."""

    kind = "lossy-failover"

    def take_over(self):
        rows = self.rows()
        self.store.hold_standby()
        # Mostly some tag moves at once; not if its servers hold enough, or none of them is well.
        give_up = time.monotonic() + 2
        while self.rows() == rows and time.monotonic() < give_up:
            time.sleep(0.005)
        super().take_over()

    def rows(self):
        return [self.store.max_id(self.campaign.fleet, tag) for tag in TAGS]


class KillSessions(_OfNode):
    kind, shortest, longest = "kill-sessions", 0.0, 0.0

    def begin(self):
        self.store.kill_sessions()


class Compact(_OfNode):
    kind, shortest, longest = "compact", 0.0, 0.0

    def begin(self):
        self.store.compact()


class _OfWire(Fault):
    def pick(self, chance):
        wires = self.campaign.store.all_wires()
        if not wires:
            return None
        self.wire = chance.choice(wires)
        self.count = chance.choice((1, 1, 2, 5))
        self.lag = chance.choice((0.02, 0.3, 1.5))
        return ("wire", self.wire.port)

    def end(self):
        self.wire.heal()


class LostAnswers(_OfWire):
    """The statement arrives, what it says does not."""

    kind = "lost-answers"

    def begin(self):
        self.wire.lose = self.count


class CutAnswers(_OfWire):
    kind = "cut-answers"

    def begin(self):
        self.wire.cut = self.count


class Delay(_OfWire):
    kind, longest = "delay", 4.0

    def begin(self):
        self.wire.lag = self.lag


class BlackHole(_OfWire):
    """Nothing passes and nobody is told; what is new is accepted and not answered."""

    kind, longest = "black-hole", 4.0

    def begin(self):
        self.wire.hold_new = True
        self.wire.freeze()


class Refuse(_OfWire):
    kind = "refuse"

    def begin(self):
        self.wire.refuse()
        self.wire.reset_all()


class Reset(_OfWire):
    kind, shortest, longest = "reset", 0.0, 0.0

    def begin(self):
        self.wire.reset_all()


class Drop(_OfNode):
    """Packets to a node are dropped by the kernel. Only in a network namespace of the campaign's own."""

    kind, longest = "drop", 4.0

    def begin(self):
        nft("add table inet faults", "add chain inet faults in { type filter hook input priority 0; }",
            f"add rule inet faults in tcp dport {self.node.port} drop")

    def end(self):
        nft("delete table inet faults")


class Partition(Drop):
    """The other nodes and this one do not reach each other; leafd reaches it."""

    kind = "partition"

    def begin(self):
        port = self.store.peer_port(self.node)
        nft("add table inet faults", "add chain inet faults in { type filter hook input priority 0; }",
            f"add rule inet faults in tcp dport {port} drop", f"add rule inet faults in tcp sport {port} drop")


def nft(*commands):
    subprocess.run(["nft", "; ".join(commands)], check=True, capture_output=True, text=True)


OF_LEAFD = {"leafd-kill": LeafdKill, "leafd-freeze": LeafdFreeze, "leafd-restart": LeafdRestart, "clock-step": ClockStep}
OF_STORE = {
    "leafd-disk": LeafdDisk, "node-disk": NodeDisk, "node-kill": NodeKill, "node-restart": NodeRestart, "node-freeze": NodeFreeze,
    "failover": Failover, "lossy-failover": LossyFailover, "partition": Partition, "kill-sessions": KillSessions, "compact": Compact, "lost-answers": LostAnswers, "cut-answers": CutAnswers,
    "delay": Delay, "black-hole": BlackHole, "refuse": Refuse, "reset": Reset, "drop": Drop,
}
NEED_OWN_NETWORK = {"drop", "partition"}
