"""A MariaDB whose commits wait for the replica: nothing is lost in a failover, if it is set up for that. What
is set up for less is found."""

import unittest

from leaftest import HaCase, MariaDbPair, Switch, pick, wait_until

STRICT = {"store.min_durability": "replicated", "segment.policy": "fixed"}


class SettingsTest(HaCase):
    """One pair for all of it; each test leaves the settings as it found them."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pair = MariaDbPair(semisync=True)
        cls.addClassCleanup(cls.pair.remove)
        cls.pair.start()

    def set(self, name, value, back):
        self.pair.primary.sql(f"SET GLOBAL {name} = {value}")
        self.addCleanup(self.pair.primary.sql, f"SET GLOBAL {name} = {back}")

    def test_the_right_settings_are_replicated(self):
        self.pair.put("right")
        server = self.start_on(self.pair.url(), STRICT)
        self.assertEqual(self.level(server), "replicated")
        self.assertEqual(server.id("right"), 1)

    def test_less_is_told(self):
        for name, value, back in (("rpl_semi_sync_master_timeout", "10000", "18446744073709551615"),
                                  ("rpl_semi_sync_master_wait_point", "AFTER_COMMIT", "AFTER_SYNC"),
                                  ("rpl_semi_sync_master_wait_no_slave", "OFF", "ON")):
            with self.subTest(name):
                self.set(name, value, back)
                self.assertEqual(self.level(self.start_on(self.pair.url())), "power")
                self.doCleanups_of(name, back)
        self.set("sync_binlog", 0, 1)
        self.assertEqual(self.level(self.start_on(self.pair.url())), "process")

    def doCleanups_of(self, name, back):
        self.pair.primary.sql(f"SET GLOBAL {name} = {back}")

    def test_less_while_it_runs_is_found_and_heals(self):
        self.pair.put("changed", step=10)
        server = self.start_on(self.pair.url(), {**STRICT, "segment.wait": "1500ms"})
        server.id("changed")
        self.set("rpl_semi_sync_master_timeout", "100", "18446744073709551615")
        self.assert_refused(self.refusal(server, "changed", n=10), "replicated")
        at = self.pair.max_id("changed")
        server.leaf("changed")
        self.assertEqual(self.pair.max_id("changed"), at)
        self.pair.primary.sql("SET GLOBAL rpl_semi_sync_master_timeout = 18446744073709551615")
        self.wait_served(server, "changed")

    def test_without_its_replica_nothing_is_granted(self):
        """The primary would keep the statement waiting; no id leaves on the strength of it."""
        self.pair.put("alone", step=10)
        server = self.start_on(self.pair.url(), {**STRICT, "segment.wait": "1500ms"})
        first = server.id("alone")
        self.pair.hold_replica()
        try:
            answer = self.refusal(server, "alone", n=10)
            self.assertEqual(answer.code, "unavailable", answer)
            self.assertEqual(self.pair.max_id("alone"), first + 10, "no statement was committed")
        finally:
            self.pair.resume_replica()
        self.wait_served(server, "alone")
        self.assertEqual(server.status()["tags"]["regressed"], 0)


class FailoverTest(HaCase):
    def test_nothing_is_lost_under_load(self):
        pair = MariaDbPair(semisync=True).start()
        self.addCleanup(pair.remove)
        switch = Switch(pair.primary)
        self.addCleanup(switch.close)
        pair.put("t", step=50)
        servers = [self.start_on(pair.url(port=switch.port), STRICT) for _ in range(2)]
        loads = [self.start_load(server, "t", connections=4, duration=600, rate=1500) for server in servers]
        for _ in range(pick(2, 20)):
            for server in servers:
                self.wait_issued(server, 300)
            pair.fail_over()
            switch.to(pair.primary)
            pair.rejoin()
        for server in servers:
            self.wait_issued(server, 300)
        reports = [load.stop() for load in loads]
        for report in reports:
            self.assertLessEqual(set(report["by_code"]), {"unavailable"}, report)
        self.check("--high", f"t={pair.max_id('t')}", "--min-ids", "1500")
        self.assertEqual([server.status()["tags"]["regressed"] for server in servers], [0, 0])

    def test_alone_after_a_failover_it_is_not_replicated(self):
        pair = MariaDbPair(semisync=True).start()
        self.addCleanup(pair.remove)
        switch = Switch(pair.primary)
        self.addCleanup(switch.close)
        pair.put("t", step=10)
        server = self.start_on(pair.url(port=switch.port), {**STRICT, "segment.wait": "400ms"})
        last = server.id("t")
        pair.fail_over()
        switch.to(pair.primary)
        self.assert_refused(self.refusal(server, "t", n=10))
        pair.rejoin()
        self.wait_served(server, "t")
        self.assertGreater(server.id("t"), last)
        wait_until(lambda: self.level(server) == "replicated", what="the level of the pair")


if __name__ == "__main__":
    unittest.main()
