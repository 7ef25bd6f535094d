"""A wall clock that a test turns, for the real binary: Debian's libfaketime, preloaded.

Only CLOCK_REALTIME is turned; the monotonic clock stays the machine's, or leases and time-outs would
be faked with it. The offset stands in a file that is read at each reading of the clock, so that a
turn acts at once and on every process that was started under the same clock.
"""

import contextlib
import functools
import glob
import os
import random
import re
import subprocess
import tempfile
import threading
import time

from .case import LeafdCase, MariaDbCase
from .process import TIME_FACTOR, wait_until
from .rights import make_worker_table

HOUR, YEAR = 3600, 365 * 86400


@functools.lru_cache
def _library():
    found = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    assert found, "no libfaketimeMT.so.1: install the Debian package faketime"
    return found[0]


@functools.lru_cache
def _preload(binary):
    """AddressSanitizer wants to stand first; its calls go on to libfaketime."""
    linked = subprocess.run(["ldd", binary], capture_output=True, text=True, check=True).stdout
    sanitizers = [line.split()[2] for line in linked.splitlines() if "libasan.so" in line]
    return ":".join(sanitizers + [_library()])


class FakeClock:
    """The clock of the processes that are started under it. Steps add up until restore()."""

    def __init__(self, folder):
        self.path = os.path.join(tempfile.mkdtemp(prefix="clock-", dir=folder), "offset")
        self.offset = 0.0  # seconds ahead of the machine's clock
        self._wave = None
        self.turns = 0
        self._write(0.0)

    def _variables(self, binary):
        return {"LD_PRELOAD": _preload(binary), "FAKETIME_TIMESTAMP_FILE": self.path, "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1"}

    @property
    def wrapper(self):
        """Words before a leafd's command line."""
        return ["env", *(f"{k}={v}" for k, v in self._variables(os.environ["LEAFD_BIN"]).items())]

    @contextlib.contextmanager
    def over_children(self, binary):
        """Processes that are started inside are under the clock."""
        before = dict(os.environ)
        os.environ.update(self._variables(binary))
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)

    # Reading and turning it.
    def now_ms(self):
        """What a reading says now, while no wave turns it."""
        return int((time.time() + self.offset) * 1000)

    def _write(self, offset):
        # A rename, so that no reader sees half of it.
        with open(self.path + ".new", "w", encoding="ascii") as file:
            file.write(f"{offset:+.6f}")
        os.rename(self.path + ".new", self.path)
        self.turns += 1

    def step(self, seconds):
        self.set(self.offset + seconds)

    def set(self, offset):
        """So many seconds ahead of the machine's clock from now on."""
        self.calm()
        self.offset = offset
        self._write(offset)

    def set_to(self, epoch_seconds):
        self.set(epoch_seconds - time.time())

    def restore(self):
        self.set(0.0)

    def _start_wave(self, interval, offset_at):
        self.calm()
        stop, base, began = threading.Event(), self.offset, time.monotonic()

        def turn():
            while not stop.wait(interval):
                self._write(base + offset_at(time.monotonic() - began))
        thread = threading.Thread(target=turn, daemon=True)
        thread.start()
        self._wave = (stop, thread)

    def jitter(self, seconds, seed):
        """Each reading is off by up to so much: the offset changes far more often than leafd reads."""
        chance = random.Random(seed)
        self._start_wave(0.001, lambda _: chance.uniform(0, seconds))

    def strobe(self, seconds, times_a_second, seed):
        """To and fro by up to so much."""
        chance = random.Random(seed)
        self._start_wave(1 / times_a_second, lambda _: chance.uniform(-seconds, seconds))

    def run_at(self, rate):
        """Slow or fast, as a clock that is being slewed (libfaketime's own rates also scale sleeps)."""
        self._start_wave(0.001, lambda elapsed: (rate - 1) * elapsed)

    def calm(self):
        """Ends a wave; the clock is again where it was before."""
        if self._wave is None:
            return
        stop, thread = self._wave
        self._wave = None
        stop.set()
        thread.join()
        self._write(self.offset)

    @staticmethod
    def forget(pid):
        """Removes the names that libfaketime leaves in /dev/shm; a later process of that number would
        refuse to start."""
        for name in (f"/dev/shm/faketime_shm_{pid}", f"/dev/shm/sem.faketime_sem_{pid}"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


class SnowflakeCase(LeafdCase):
    """Servers under a clock; what they say of snowflake mode."""

    def setUp(self):
        super().setUp()
        self.clock = FakeClock(self.folder)
        self.addCleanup(self.clock.calm)
        self.addCleanup(self._forget)

    def _forget(self):
        for server in self.servers:
            if server.child is not None:
                self.forget(server)

    def seed(self):
        seed = random.SystemRandom().randrange(2**32)
        print(f"seed {seed}")
        return seed

    def leafd(self, settings=None, clock=None, **options):
        """clock: another than the test's own."""
        # A cluster of its own, so that no other test on this machine has its workers.
        settings = {"snowflake.name": re.sub(r"\W", "", os.path.basename(self.folder)), **(settings or {})}
        return super().leafd(settings=settings, wrapper=(clock or self.clock).wrapper, **options)

    def forget(self, server):
        """To be called when a server was killed that will be started again."""
        FakeClock.forget(server.child.pid)

    def restart_after_kill(self, server):
        """kill -9, if it still lives, and a start at once."""
        server.kill()
        self.forget(server)
        return server.start()

    # What a server says.
    @staticmethod
    def view(server):
        return server.status()["snowflake"]

    @staticmethod
    def mode(server):
        """(state, reason) of snowflake mode in /readyz."""
        mode = server.admin_get("/readyz").json()["modes"]["snowflake"]
        return mode["state"], mode["reason"]

    @staticmethod
    def snowflakes(server, n=1):
        answer = server.get(f"/api/v1/snowflake?n={n}")
        assert answer.status == 200, f"{answer.status} {answer.code}: {answer.text}"
        return [int(text) for text in answer.json()["ids"]]

    @staticmethod
    def decoded(server, number):
        answer = server.get(f"/api/v1/decode/{number}")
        assert answer.status == 200, f"{answer.status} {answer.code}: {answer.text}"
        return answer.json()

    def wait_for_ids(self, server, timeout=5):
        """The first id that the server gives; it is asked until it does, also while it starts."""
        def ask():
            try:
                answer = server.get("/api/v1/snowflake")
            except ConnectionRefusedError:
                assert server.child.alive(), f"leafd ended: {server.log()[-3000:]}"
                return False
            return answer.status == 200 and int(answer.json()["ids"][0])
        return wait_until(ask, timeout, "an id")

    def wait_for_mode(self, server, state, reason="", timeout=5):
        def holds():
            now = self.mode(server)
            return now if now[0] == state and reason in now[1] else None
        return wait_until(holds, timeout, f"snowflake mode {state} {reason!r}, now {self.mode(server)}")

    def wait_for_clock(self, server, timeout=5):
        """Until the server believes what its clock says, within 50 ms."""
        return wait_until(lambda: abs(self.view(server)["now_ms"] - self.clock.now_ms()) <= 50 * TIME_FACTOR, timeout,
                          f"the clock followed: {self.view(server)}")

    def wait_for_steps(self, server, count):
        """Until it has followed so many steps back."""
        wait_until(lambda: self.view(server)["steps_back"] >= count, 5, f"{count} steps back")

    def wait_for_more(self, server, ids):
        """Until so many more ids were issued."""
        goal = self.view(server)["issued"] + ids
        wait_until(lambda: self.view(server)["issued"] >= goal, 20, f"{ids} more ids")

    # Load.
    def start_mint(self, servers, name="snowflake", n=1, **options):
        """idload on the snowflake path; the histories of one name are judged as one cluster."""
        return self.start_load(servers, name, path="snowflake", n=n, **{"timeout": 8, **options})

    def mint(self, servers, name="snowflake", n=1, **options):
        return self.start_mint(servers, name, n, **options).report(120)


class MariaDbSnowflakeCase(SnowflakeCase, MariaDbCase):
    """The same with the registry in a MariaDB."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        make_worker_table(cls.database)

    def mysql_leafd(self, settings=None, port=None, user="leaf", **options):
        return self.leafd(settings={"store.url": self.database.url(user, port), **(settings or {})}, **options)
