"""Child processes that never outlive the test, free ports, and waiting for conditions."""

import atexit
import faulthandler
import os
import random
import signal
import socket
import subprocess
import time

LONG = os.environ.get("LEAF_LONG") == "1"
# Sanitizer builds are slower; bounds on time are multiplied by this.
TIME_FACTOR = float(os.environ.get("LEAF_TIME_FACTOR", "1"))

if not LONG and "LEAF_TEST_TIMEOUT" in os.environ:
    # Says where it hangs; the kernel ends the children with it.
    faulthandler.dump_traceback_later(float(os.environ["LEAF_TEST_TIMEOUT"]), exit=True)

_children = set()


def pick(short, long):
    """The amount of work of the short form, or of the long one (LEAF_LONG=1)."""
    return long if LONG else short


def wait_until(condition, timeout=10.0, what="the condition", interval=0.01):
    """Polls until condition() is true and returns its value; AssertionError after `timeout` seconds.
    what: it in words, or a function that finds them when they are needed."""
    deadline = time.monotonic() + timeout * TIME_FACTOR
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what() if callable(what) else what} did not come true within {timeout * TIME_FACTOR:g} s")
        time.sleep(interval)


def free_port():
    """A port that nothing listens on, below the range from which the kernel takes ports of clients."""
    while True:
        port = random.SystemRandom().randrange(10000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def can_connect(port, host="127.0.0.1"):
    try:
        socket.create_connection((host, port), timeout=1).close()
        return True
    except OSError:
        return False


class Child:
    """A process with its output in files. It is killed when this program ends, however that happens:
    start it from the main thread, because the kernel watches the thread that started it."""

    def __init__(self, argv, log_path, env=None, cwd=None):
        self.argv = [str(word) for word in argv]
        self.log_path = log_path
        self.out_path = log_path + ".out"
        with open(log_path, "ab") as err, open(self.out_path, "ab") as out:
            self._popen = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--"] + self.argv,
                stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env, cwd=cwd)
        _children.add(self)

    @property
    def pid(self):
        return self._popen.pid

    def alive(self):
        return self._popen.poll() is None

    def wait(self, timeout=20):
        """The exit status; negative is the signal that ended it."""
        status = self._popen.wait(timeout * TIME_FACTOR)
        _children.discard(self)
        return status

    def signal(self, number):
        if self.alive():
            self._popen.send_signal(number)

    def kill(self):
        """Ends it at once, also while it is stopped."""
        self.signal(signal.SIGKILL)
        return self.wait()

    def freeze(self):
        """Stopped when this returns, and not only told to."""
        self.signal(signal.SIGSTOP)
        wait_until(lambda: self.state() in "TtZ", what="the stop of the process")

    def state(self):
        """The kernel's letter for the process: T is stopped."""
        with open(f"/proc/{self.pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0]

    def thaw(self):
        self.signal(signal.SIGCONT)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    # What /proc says about it.
    def _status_field(self, name):
        with open(f"/proc/{self.pid}/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith(name + ":"):
                    return int(line.split()[1])
        raise AssertionError(f"no {name} in /proc/{self.pid}/status")

    def rss_kib(self):
        return self._status_field("VmRSS")

    def threads(self):
        return self._status_field("Threads")

    def fds(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def cpu_seconds(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@atexit.register
def _kill_children():
    for child in list(_children):
        child.kill()
