"""A ZooKeeper that keeps the workers goes away in each way, or moves."""

import unittest

from leaftest import TIME_FACTOR, free_port, wait_until
from leaftest.away import Away, lease
from leaftest.history import read_ids
from leaftest.rights import ZooKeeperRightCase, parts, wait_serving


class NativeAwayTest(Away, ZooKeeperRightCase):
    def registry_proxy(self):
        return self.proxy(self.zookeeper.port, mysql=False)

    def test_a_restart_at_another_of_its_addresses_is_not_felt(self):
        """Both are named; the server moves from one to the other and back."""
        here, there = self.zookeeper.port, free_port()
        self.addCleanup(self.zookeeper.start, here)
        self.addCleanup(self.zookeeper.stop)
        url = f"zookeeper://127.0.0.1:{here},127.0.0.1:{there}/?layout={self.layout}"
        server = self.server({**lease(8 * TIME_FACTOR), "snowflake.registry": url}).start()
        first = parts(wait_serving(server, 20))
        load = self.start_mint(server, connections=4, duration=3600, rate=300)
        history = self.histories[-1]
        for port in (there, here):
            self.zookeeper.stop()
            self.zookeeper.start(port)
            limit = self.limit(server)
            wait_until(lambda limit=limit: self.limit(server) > limit, 30, f"an extension at port {port}")
        self.assert_all_served(load.stop())
        self.assertEqual({parts(one).worker for one in read_ids(history)}, {first.worker})


class LeafAwayTest(NativeAwayTest):
    """Its right is extended with each report, every three seconds."""

    layout = "leaf"
    lease, away = 6 * TIME_FACTOR, 4.5 * TIME_FACTOR


if __name__ == "__main__":
    unittest.main()
