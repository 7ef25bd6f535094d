"""F18, F19 and B25: MariaDB on Galera with three nodes. A reservation that another node's overtook is refused
by certification, and none of it is granted."""

import unittest

from leaftest import Galera, HaCase, pick

FIXED = {"segment.policy": "fixed", "store.min_durability": "replicated"}


class GaleraTest(HaCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.galera = Galera()
        cls.addClassCleanup(cls.galera.remove)
        cls.galera.start()

    def tearDown(self):
        for node in self.galera.nodes:
            if not node.child.alive():
                self.galera.rejoin(node)

    def conflicts(self):
        return sum(int(node.status(name)) for node in self.galera.nodes if node.child.alive()
                   for name in ("wsrep_local_cert_failures", "wsrep_local_bf_aborts"))

    def test_f18_b25_one_tag_on_three_nodes(self):
        """Each node has a leafd of its own, and all reserve all the time; one node is stopped and rejoins."""
        self.galera.put("shared", step=20)
        servers = [self.start_on(self.galera.url(node), FIXED) for node in self.galera.nodes]
        before = self.conflicts()
        loads = [self.start_load(server, "shared", connections=4, duration=600, rate=400) for server in servers]
        for server in servers:
            self.wait_issued(server, pick(300, 30000))
        node = self.galera.nodes[2]
        node.stop()
        for server in servers[:2]:
            self.wait_issued(server, pick(100, 30000))
        self.galera.rejoin(node)
        for server in servers:
            self.wait_issued(server, pick(100, 30000))
        reports = [load.stop() for load in loads]
        self.assertGreater(self.conflicts(), before, "nobody was in another's way")
        for report in reports[:2]:
            self.assertLess(report["failed"], report["ok"] / 100, report)
        for report in reports:
            self.assertLessEqual(set(report["by_code"]), {"unavailable"}, report)
        self.check("--high", f"shared={self.galera.max_id('shared')}", "--min-ids", "1000")
        self.assertEqual([server.status()["tags"]["regressed"] for server in servers], [0, 0, 0])

    def test_f19_the_levels_and_what_multi_master_does_to_auto_increment(self):
        self.galera.put("level", step=10)
        node = self.galera.nodes[0]
        store = self.store(self.start_on(self.galera.url(node)))
        self.assertEqual(store["durability"], "replicated")
        self.assertTrue(store["identity"].startswith("galera:"), store)
        other = self.store(self.start_on(self.galera.url(self.galera.nodes[1])))
        self.assertEqual(store["identity"], other["identity"], "one cluster is one store")
        self.assertEqual(int(node.sql("SELECT @@global.auto_increment_increment")[0][0]), 3)
        server = self.start_on(self.galera.url(node), {"segment.policy": "fixed"})
        self.assertEqual([server.id("level") for _ in range(25)], list(range(1, 26)))
        for flush in (0, 2):
            with self.subTest(flush):
                node.sql(f"SET GLOBAL innodb_flush_log_at_trx_commit = {flush}")
                self.addCleanup(node.sql, "SET GLOBAL innodb_flush_log_at_trx_commit = 1")
                self.assertEqual(self.level(self.start_on(self.galera.url(node))), "process")

    def test_the_last_node_is_not_replicated_also_under_a_running_server(self):
        self.galera.put("last", step=10)
        last = self.galera.nodes[0]
        server = self.start_on(self.galera.url(last), {**FIXED, "segment.wait": "1200ms"})
        server.id("last")
        for node in self.galera.nodes[1:]:
            node.stop()
        self.galera.wait_size(1, [last])
        self.assert_refused(self.refusal(server, "last", n=10))
        self.assertEqual(self.level(server), "power")
        self.galera.rejoin(self.galera.nodes[1])
        self.wait_served(server, "last")


if __name__ == "__main__":
    unittest.main()
