"""B35 and F38: servers that start together on an empty registry each take a worker of their own (on an
empty path several machines kept the default 0, Leaf PR #108)."""

import unittest

from leaftest import pick
from leaftest.rights import MariaDbRightCase, ZooKeeperRightCase, at_once, parts, wait_serving

SERVERS = 16


class Starters:
    """The rounds, for each kind of registry."""

    def rounds(self, amount):
        for number in range(amount):
            settings = {"snowflake.name": f"{self.cluster()}-{number}"}
            servers = [self.server(settings) for _ in range(SERVERS)]
            for server in servers:
                server.launch()
            owners = [parts(one).worker for one in at_once(lambda server: wait_serving(server, 20), servers)]
            self.assertEqual(sorted(owners), list(range(SERVERS)), f"round {number}: the lowest workers, one each")
            for server in servers:
                server.kill()


class MariaDbStartersTest(Starters, MariaDbRightCase):
    def test_sixteen_start_together(self):
        self.rounds(pick(3, 200))


class NativeStartersTest(Starters, ZooKeeperRightCase):
    def test_sixteen_start_together(self):
        self.rounds(pick(3, 200))


class LeafStartersTest(Starters, ZooKeeperRightCase):
    layout = "leaf"

    def test_sixteen_start_together(self):
        self.rounds(pick(3, 200))


if __name__ == "__main__":
    unittest.main()
