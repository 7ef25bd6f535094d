"""What surrounds the process: standard files that are missing, a terminal that goes away, few files,
readers of the log. And the command that an error tells an operator to run."""

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import sqlite3
import subprocess
import unittest

from leaftest import LeafdCase, wait_until


class SurroundingsTest(LeafdCase):
    def test_without_standard_files_the_log_goes_nowhere(self):
        """The numbers 0 to 2 would go to the next files that are opened."""
        server = self.leafd(wrapper=["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh"])
        server.start()
        server.id("order")
        with open(server.folder + "/state/leafd.lock", encoding="utf-8") as lock:
            pid = int(lock.read())
        self.assertEqual([os.readlink(f"/proc/{pid}/fd/{n}") for n in range(3)], ["/dev/null"] * 3)
        self.assertEqual(server.stop(), 0)

    def test_a_terminal_that_goes_away_is_a_clean_stop(self):
        server = self.start_leafd()
        last = server.id("order")
        server.child.signal(signal.SIGHUP)
        self.assertEqual(server.child.wait(), 0)
        server.start()
        self.assertEqual(server.id("order"), last + 1, "the rest was handed back")

    def test_a_limit_on_the_size_of_files_is_the_stores_trouble(self):
        server = self.leafd(wrapper=["prlimit", "--fsize=40000:40000"])
        server.start()
        for n in range(30):
            answer = server.get(f"/api/v1/ids/tag{n}", timeout=20)
            self.assertTrue(answer.status == 200 or answer.code == "unavailable", answer)
        self.assertEqual(server.stop(), 0, "not ended by SIGXFSZ")

    def test_a_flood_of_connections_leaves_files_for_the_others(self):
        server = self.leafd(wrapper=["prlimit", "--nofile=256:256"])
        server.start()
        server.id("order")
        with self.flood(server.port):
            self.assertTrue(server.ready()[0])
            self.assertGreater(server.metric("leafd_connections_refused_total"), 0)
        with self.flood(server.admin_port):
            server.id("order")
        self.assertEqual(server.stop(), 0)
        self.assertNotIn("Too many open files", server.log())

    @contextlib.contextmanager
    def flood(self, port):
        connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(600)]
        try:
            yield
        finally:
            for connection in connections:
                connection.close()

    def test_the_log_is_json_and_the_told_command_works_whatever_a_tag_holds(self):
        server = self.start_leafd(settings={"log.format": "json"})
        server.id("order")
        database = sqlite3.connect(server.folder + "/state/leafd.db", timeout=5)
        self.addCleanup(database.close)
        odd = "CAST(x'ff22200a' AS TEXT)"
        database.execute(f"INSERT INTO leaf_alloc(biz_tag, max_id, step) VALUES ({odd}, 1000, 10)")
        database.commit()
        path = "/api/v1/ids/%ff%22%20%0a?n=10"
        self.assertEqual(server.get(path).status, 200)
        database.execute(f"UPDATE leaf_alloc SET max_id = 1 WHERE biz_tag = {odd}")
        database.commit()
        answer = wait_until(lambda: (lambda a: a if a.code == "regressed" else None)(server.get(path)), 5, "the stop")
        command = re.search(r"curl .*", answer.json()["detail"])[0]
        done = subprocess.run([*shlex.split(command), "--silent", "--fail-with-body"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(server.get(path).status, 200)
        self.assertEqual(server.stop(), 0)
        with open(server.child.log_path, "rb") as log:
            for line in log:
                json.loads(line.decode("utf-8"))


if __name__ == "__main__":
    unittest.main()
