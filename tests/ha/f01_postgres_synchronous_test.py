"""F01 on PostgreSQL with a synchronous standby: nothing is lost, whatever happens to the wait for the standby."""

import unittest

from leaftest import HaCase, PgBouncer, PostgresPair, Switch, pick, wait_until
from leaftest.history import read_ids

STRICT = {"segment.policy": "fixed", "store.min_durability": "replicated"}


class SynchronousTest(HaCase):
    """One pair for all; each test leaves it whole, with whichever primary."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pair = PostgresPair(synchronous=True)
        cls.addClassCleanup(cls.pair.remove)
        cls.pair.start()

    def setUp(self):
        super().setUp()
        self.switch = Switch(self.pair.primary, mysql=False)
        self.addCleanup(self.switch.close)

    def url(self):
        return self.pair.url(port=self.switch.port)

    def test_a_failover_under_load_loses_nothing(self):
        """Two servers come by an address that moves, one by PgBouncer in transaction mode, whose role does
        not wait for commits by itself. The new primary is alone until the old one is back, and serves
        nobody who wants two copies."""
        self.pair.put("t", step=20)
        self.pair.primary.sql("ALTER ROLE leaf SET synchronous_commit = off")
        bouncer = PgBouncer(self.pair.primary.port).start()
        self.addCleanup(bouncer.remove)
        servers = [self.start_on(url, STRICT) for url in (self.url(), self.url(), self.pair.url(port=bouncer.port))]
        self.assertEqual([self.level(server) for server in servers], ["replicated"] * 3)
        loads = [self.start_load(server, "t", connections=4, duration=600, rate=500) for server in servers]
        for _ in range(pick(1, 20)):
            for server in servers:
                self.wait_issued(server, 500)
            self.pair.fail_over()
            self.switch.to(self.pair.primary)
            bouncer.retarget(self.pair.primary.port)
            for server in servers:
                self.assert_refused(self.refusal(server, "t"))
            self.pair.rejoin()
        for server in servers:
            self.wait_issued(server, 200)
        for load in loads:
            report = load.stop()
            self.assertLessEqual(set(report["by_code"]), {"unavailable"}, report)
        self.check("--high", f"t={self.pair.max_id('t')}", "--min-ids", "2000")
        self.assertEqual([server.status()["tags"]["regressed"] for server in servers], [0, 0, 0])

    def test_a_wait_for_the_standby_that_is_ended_grants_nothing(self):
        """PostgreSQL answers a cancelled wait with success and a mere warning; a failover then loses it."""
        self.pair.put("waiting", step=10)
        server = self.start_on(self.url(), {**STRICT, "segment.wait": "1500ms"})
        held = server.ranges("waiting", 10)
        self.pair.standby.freeze()
        end = self.pair.max_id("waiting")  # what waits for the standby is not seen yet
        load = self.start_load(server, "waiting", duration=600, connections=1, timeout=5)
        waiting = ("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND usename = 'leaf'")
        for _ in range(pick(2, 20)):
            wait_until(lambda: self.pair.primary.sql(waiting), 10, "a commit that waits for the standby", 0.05)
        self.assertEqual(self.refusal(server, "waiting").code, "unavailable")
        load.stop()
        self.assertLess(max(read_ids(self.histories[-1]), default=0), end)
        self.pair.standby.thaw()
        self.pair.fail_over()
        self.switch.to(self.pair.primary)
        self.pair.rejoin()
        self.wait_served(server, "waiting")
        self.assertGreaterEqual(server.id("waiting"), held[-1][0] + held[-1][1])
        self.load(server, "waiting", requests=100)
        self.check("--min-ids", "100")
        self.assertEqual(server.status()["tags"]["regressed"], 0)


if __name__ == "__main__":
    unittest.main()
