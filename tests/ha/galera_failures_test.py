"""MariaDB on Galera when nodes fail: one outside of the primary component serves nothing, and HAProxy takes
leafd to another one."""

import unittest

from leaftest import Galera, HaCase, HaProxy, wait_until

FIXED = {"segment.policy": "fixed", "store.min_durability": "replicated"}


class GaleraFailuresTest(HaCase):
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

    def test_a_node_outside_of_the_primary_component_reserves_nothing(self):
        self.galera.put("minority", step=10)
        first, second, alone = self.galera.nodes
        server = self.start_on(self.galera.url(alone), {**FIXED, "segment.wait": "400ms"})
        server.id("minority")
        first.kill()
        second.kill()
        wait_until(lambda: not alone.primary_component(), 20, "the loss of the primary component")
        self.assert_refused(self.refusal(server, "minority", n=10))
        fresh = self.start_on(self.galera.url(alone), {**FIXED, "segment.wait": "400ms"})
        self.assert_refused(fresh.get("/api/v1/ids/minority"))
        # The two that died had nothing that this one lacks, so an operator makes it the primary component.
        alone.sql("SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'")
        wait_until(alone.ready, 20, "a primary component of one")
        self.assert_refused(self.refusal(server, "minority", n=10))
        for node in (first, second):
            self.galera.rejoin(node)
        for one in (server, fresh):
            self.wait_served(one, "minority")
        self.assertEqual(server.status()["tags"]["regressed"], 0)

    def test_through_haproxy_a_node_may_hang_or_die(self):
        self.galera.put("proxied", step=50)
        proxy = HaProxy([node.port for node in self.galera.nodes], galera=True).start()
        self.addCleanup(proxy.remove)
        wait_until(lambda: proxy.up() == [True] * 3, 20, "HAProxy's view of three nodes")
        servers = [self.start_on(self.galera.url(port=proxy.port), FIXED) for _ in range(2)]
        loads = [self.start_load(server, "proxied", connections=2, duration=600, rate=500) for server in servers]
        first, second = self.galera.nodes[:2]
        for server in servers:
            self.wait_issued(server, 200)
        first.freeze()
        for server in servers:
            self.wait_issued(server, 400)
        first.thaw()
        self.galera.wait_size(3)
        wait_until(lambda: proxy.up()[0], 20, "HAProxy's view of the node that hung")
        first.kill()
        for server in servers:
            self.wait_issued(server, 400)
        self.galera.rejoin(first)
        reports = [load.stop() for load in loads]
        for report in reports:
            self.assertLessEqual(set(report["by_code"]), {"unavailable"}, report)
        self.check("--high", f"proxied={self.galera.max_id('proxied')}", "--min-ids", "1500")
        self.assertEqual([server.status()["tags"]["regressed"] for server in servers], [0, 0])


if __name__ == "__main__":
    unittest.main()
