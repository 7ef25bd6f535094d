"""B40 and F42: servers that nothing tells apart but that they are others: the same name, address, port
and process number, in containers of their own. Each has a worker of its own."""

import unittest

from leaftest import pick
from leaftest.namespace import Namespace
from leaftest.rights import MariaDbRightCase, ZooKeeperRightCase, at_once, parts, snowflakes, wait_serving

SAME = {"snowflake.identity": "app:8080"}
ADDRESS = "ip link add eth0 address 02:00:00:00:00:01 type bridge; ip addr add 10.1.2.3/24 dev eth0; ip link set eth0 up"


class Alike:
    """For each kind of registry."""

    def containers(self, port):
        """Network and process namespaces: the same address, hardware address and process number."""
        servers = [self.server(SAME) for _ in range(pick(2, 64))]
        for server in servers:
            Namespace(self, ADDRESS, outside=[port]).start(server)
        owners = [parts(wait_serving(server)).worker for server in servers]
        self.assertEqual(len(set(owners)), len(servers), owners)

    def processes(self):
        servers = [self.server({**SAME, "server.threads": "1"}) for _ in range(64)]
        for server in servers:
            server.launch()
        owners = [parts(one).worker for one in at_once(lambda server: wait_serving(server, 30), servers)]
        self.assertEqual(len(set(owners)), 64, owners)
        # And they keep them.
        self.assertEqual([parts(snowflakes(server)[0]).worker for server in servers], owners)
        for server in servers:
            server.kill()


class MariaDbAlikeTest(Alike, MariaDbRightCase):
    def test_containers(self):
        self.containers(self.database.port)

    def test_sixty_four_processes(self):
        self.processes()


class ZooKeeperAlikeTest(Alike, ZooKeeperRightCase):
    def test_containers(self):
        self.containers(self.zookeeper.port)

    def test_sixty_four_processes(self):
        self.processes()


if __name__ == "__main__":
    unittest.main()
