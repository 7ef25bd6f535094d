"""leafd in the tree of a Leaf fleet on a real ZooKeeper: it joins, leaves what Leaf accepts, comes back
as the same worker at once, and a twin is refused."""

import time
import unittest

from leaftest import LeafdCase, ZooKeeper, wait_until

CLUSTER = "com.example.leaf"
SELF = "192.0.2.7:8080"


class ZooKeeperLeafLayoutTest(LeafdCase):
    def setUp(self):
        super().setUp()
        self.zookeeper = ZooKeeper().start()
        self.addCleanup(self.zookeeper.remove)
        for port in (8080, 8082):
            self.zookeeper.put_leaf(CLUSTER, f"192.0.2.2:{port}", 1796071753590)

    def server(self):
        return self.start_leafd(settings={
            "snowflake.registry": self.zookeeper.url(), "snowflake.name": CLUSTER, "snowflake.identity": SELF})

    def next_id(self, server):
        answer = wait_until(lambda: (a := server.get("/api/v1/snowflake")).status == 200 and a, 20, "an id")
        return int(answer.json()["ids"][0])

    def own_node(self):
        return self.zookeeper.leaf_nodes(CLUSTER)[f"{SELF}-0000000002"]

    def test_joins_leaves_and_comes_back(self):
        server = self.server()
        first = self.next_id(server)
        self.assertEqual((first >> 12) & 1023, 2, "the counter is the worker")
        node, version = self.own_node()
        self.assertEqual(list(node), ["ip", "port", "timestamp"])
        self.assertEqual((node["ip"], node["port"]), ("192.0.2.7", "8080"))
        self.assertGreater(node["timestamp"], time.time() * 1000, "our limit")
        wait_until(lambda: self.own_node()[1] > version, 10, "a report")
        server.stop()
        node, _ = self.own_node()
        self.assertLessEqual(node["timestamp"], time.time() * 1000 + 1000, "a server in Java may take it back")
        self.assertEqual(len(self.zookeeper.leaf_nodes(CLUSTER)), 3)

        begun = time.monotonic()
        server.start()
        again = self.next_id(server)
        self.assertLess(time.monotonic() - begun, 6, "its journal proves that nobody else wrote: no watch")
        self.assertEqual((again >> 12) & 1023, 2)
        self.assertGreater(again, first)

    def test_a_foreign_write_ends_minting(self):
        server = self.server()
        self.next_id(server)
        path = f"/snowflake/{CLUSTER}/forever/{SELF}-0000000002"

        def refused():
            now = int(time.time() * 1000)
            self.zookeeper.set(path, f'{{"ip":"192.0.2.7","port":"8080","timestamp":{now}}}')
            answer = server.get("/api/v1/snowflake")
            return answer.status == 503 and answer

        answer = wait_until(refused, 15, "the end of minting", 0.5)
        self.assertEqual(answer.code, "unavailable")
        self.assertEqual(self.zookeeper.children(f"/snowflake/{CLUSTER}"), ["forever"])


if __name__ == "__main__":
    unittest.main()
