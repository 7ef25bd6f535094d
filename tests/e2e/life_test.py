"""The life of a server: first id, restart, what it refuses to start with."""

import os
import signal
import unittest

from leaftest import LeafdCase, run_leafd


class LifeTest(LeafdCase):
    def test_the_first_id_needs_no_set_up(self):
        """An unknown tag is made on the embedded store."""
        server = self.start_leafd()
        self.assertEqual(server.id("order"), 1)
        self.assertEqual(server.id("order"), 2)
        self.assertEqual(server.ids("order", 3), [3, 4, 5])
        self.assertEqual(server.ready()[0], True)

    def test_kill_and_restart_give_a_larger_id(self):
        server = self.start_leafd()
        last = server.id("order")
        server.kill()
        server.start()
        self.assertGreater(server.id("order"), last)

    def test_a_clean_stop_loses_no_id(self):
        server = self.start_leafd()
        last = server.ids("order", 7)[-1]
        self.assertEqual(server.stop(), 0)
        server.start()
        self.assertEqual(server.id("order"), last + 1, "the rest was handed back")

    def test_interrupt_is_a_clean_stop_too(self):
        server = self.start_leafd()
        server.id("order")
        server.child.signal(signal.SIGINT)
        self.assertEqual(server.child.wait(), 0)

    def test_state_is_private(self):
        server = self.start_leafd()
        server.id("order")
        state = server.folder + "/state"
        self.assertEqual(os.stat(state).st_mode & 0o077, 0)
        for name in os.listdir(state):
            self.assertEqual(os.stat(f"{state}/{name}").st_mode & 0o077, 0, name)

    def test_a_taken_port_is_a_start_error(self):
        server = self.start_leafd()
        second = self.leafd()
        second.port = server.port
        second.launch()
        self.assertEqual(second.child.wait(5), 1)
        self.assertIn(str(server.port), second.log())

    def test_exit_codes_and_versions(self):
        self.assertEqual(run_leafd("--version").returncode, 0)
        self.assertEqual(run_leafd("--help").returncode, 0)
        self.assertEqual(run_leafd("--no-such-flag").returncode, 2)
        self.assertEqual(run_leafd("--set", "segment.stpe=1", "--check").returncode, 1)


if __name__ == "__main__":
    unittest.main()
