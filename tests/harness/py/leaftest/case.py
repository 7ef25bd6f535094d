"""The base of the end-to-end tests: servers are made through it and end with the test."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from .faultproxy import FaultProxy
from .leafd import Leafd
from .mariadb import MariaDb
from .process import TIME_FACTOR, Child


class Load:
    """An idload that runs beside the test."""

    def __init__(self, child):
        self.child = child

    def running(self):
        return self.child.alive()

    def stop(self):
        """Ends it early; its report."""
        self.child.signal(15)
        return self.report()

    def report(self, timeout=60):
        status = self.child.wait(timeout)
        with open(self.child.out_path, encoding="utf-8") as file:
            text = file.read()
        assert status == 0, f"idload ended with {status}: {text}{self.child.log()}"
        return json.loads(text)


class LeafdCase(unittest.TestCase):
    maxDiff = None
    database = None  # of MariaDbCase

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="leafd-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.servers, self.histories = [], []
        self.addCleanup(self._end_servers)

    def _failed(self):
        outcome = getattr(self, "_outcome", None)
        if outcome is None or outcome.result is None:
            return False
        failures = getattr(outcome.result, "failures", []) + getattr(outcome.result, "errors", [])
        return any(test is self for test, _ in failures) or not outcome.success

    def _end_servers(self):
        failed = self._failed()
        for server in self.servers:
            alive = server.child is not None and server.child.alive()
            server.kill()
            if failed and server.child is not None:
                state = "" if alive else " (had ended by itself)"
                print(f"--- log of leafd on port {server.port}{state}\n{server.log()[-6000:]}", file=sys.stderr)

    # Servers.
    def leafd(self, **options):
        """A server on SQLite in a folder of its own, unless the settings say otherwise; not started."""
        server = Leafd(self.folder, **options)
        self.servers.append(server)
        return server

    def start_leafd(self, settings=None, **options):
        return self.leafd(settings=settings, **options).start()

    def write(self, name, text):
        """A file in the test's folder; its path."""
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path

    def proxy(self, port, **options):
        proxy = FaultProxy(port, **options)
        self.addCleanup(proxy.close)
        print(f"fault proxy seed {proxy.seed}", file=sys.stderr)
        return proxy

    # Load and verdict.
    def start_load(self, servers, tag_names, history=True, **options):
        """options: of idload, with _ for - ; True for a switch."""
        argv = [os.environ["IDLOAD_BIN"]]
        for server in servers if isinstance(servers, (list, tuple)) else [servers]:
            argv += ["--target", server.target]
        for tag in [tag_names] if isinstance(tag_names, str) else tag_names:
            argv += ["--tag", tag]
        number = len(self.histories)
        if history:
            self.histories.append(os.path.join(self.folder, f"history{number}"))
            argv += ["--history", self.histories[-1]]
        for name, value in options.items():
            argv += ["--" + name.replace("_", "-")] + ([] if value is True else [str(value)])
        return Load(Child(argv, os.path.join(self.folder, f"load{number}-{id(argv)}")))

    def load(self, servers, tag_names, **options):
        """Runs idload to its end; its report."""
        return self.start_load(servers, tag_names, **options).report(120)

    def check(self, *arguments, expect=0):
        """idcheck over all histories of this test; its report. Fails unless the verdict is clean."""
        argv = [os.environ["IDCHECK_BIN"], "--json", *arguments, *self.histories]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120 * TIME_FACTOR, check=False)
        self.assertEqual(done.returncode, expect, done.stdout[:4000] + done.stderr)
        return json.loads(done.stdout)

    def assert_all_served(self, report):
        self.assertEqual((report["failed"], report["unsure"]), (0, 0), report)
        self.assertGreater(report["ok"], 0, report)


class MariaDbCase(LeafdCase):
    """One MariaDB for the tests of a class; each test uses tags of its own."""

    database_options = ()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.database = MariaDb(*cls.database_options)
        cls.addClassCleanup(cls.database.remove)
        cls.database.start()

    def tag(self, name="t", max_id=1, step=1000):
        """A row whose name no other test has; its name."""
        name = f"{name}-{self.id().rpartition('.')[2]}"[:128]
        self.database.put(name, max_id, step)
        return name

    def mysql_leafd(self, settings=None, port=None, user="leaf", **options):
        """A server on this database (or on a proxy's port before it); not started."""
        return self.leafd(settings={"store.url": self.database.url(user, port), **(settings or {})}, **options)

    def start_mysql_leafd(self, settings=None, **options):
        return self.mysql_leafd(settings, **options).start()
