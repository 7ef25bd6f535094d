"""F01, F02, B17 and a demoted primary: a MariaDB whose replica follows asynchronously, so that a failover
may lose what the primary had acknowledged. An address that moves (Switch) takes leafd along."""

import unittest

from leaftest import HaCase, MariaDbPair, Switch, pick, wait_until


class AsyncCase(HaCase):
    def setUp(self):
        super().setUp()
        self.pair = MariaDbPair().start()
        self.addCleanup(self.pair.remove)
        self.switch = Switch(self.pair.primary)
        self.addCleanup(self.switch.close)

    def url(self):
        return self.pair.url(port=self.switch.port)

    def lose(self, server, tag, ids):
        """The server hands out ids that the replica does not hear of; then the primary dies."""
        self.pair.wait_caught_up()
        self.pair.hold_replica()
        ranges = server.ranges(tag, ids)
        self.pair.fail_over()
        self.assertLess(self.pair.max_id(tag), max(first + count for first, count in ranges),
                        "the failover lost nothing, so this test shows nothing")
        self.switch.to(self.pair.primary)
        return ranges


class FailoverTest(AsyncCase):
    def test_the_level_is_told_and_replicated_is_refused(self):
        self.pair.put("t")
        server = self.start_on(self.url())
        self.assertEqual(self.level(server), "power")
        self.assertEqual(server.id("t"), 1)
        strict = self.start_on(self.url(), {"store.min_durability": "replicated", "segment.wait": "300ms"})
        self.assert_refused(strict.get("/api/v1/ids/t"), "power", "replicated")

    def test_f01_lost_updates_are_found_repaired_and_stopped(self):
        self.pair.put("t", step=100)
        server = self.start_on(self.url(), {"segment.policy": "fixed"})
        before = server.ranges("t", 100)
        lost = self.lose(server, "t", 500)
        end = max(first + count for first, count in lost)
        answer = self.refusal(server, "t", n=100)
        self.assertEqual((answer.status, answer.code), (500, "regressed"), answer)
        wait_until(lambda: self.pair.max_id("t") > end, what="the raised row")
        resumed = server.admin("POST", "/api/v1/tags/t/resume", {"skip": 1000})
        self.assertEqual(resumed.status, 200, resumed.text)
        self.assertGreaterEqual(server.ranges("t", 100)[0][0], end + 1000)
        self.assertGreaterEqual(lost[0][0], max(first + count for first, count in before))

    def test_f02_a_server_that_knew_nothing_begins_above_the_repair(self):
        self.pair.put("t", step=100)
        knowing = self.start_on(self.url(), {"segment.policy": "fixed"})
        end = max(first + count for first, count in self.lose(knowing, "t", 500))
        self.assertEqual(self.refusal(knowing, "t", n=100).code, "regressed")
        fresh = self.start_on(self.url(), {"segment.policy": "fixed"})
        self.assertGreaterEqual(fresh.id("t"), end)

    def test_f02_what_a_server_that_knew_nothing_cannot_see(self):
        """docs/high-availability.md says so, and how to avoid it."""
        self.pair.put("t", step=100)
        knowing = self.start_on(self.url(), {"segment.policy": "fixed"})
        lost = self.lose(knowing, "t", 500)
        knowing.kill()
        fresh = self.start_on(self.url(), {"segment.policy": "fixed"})
        self.assertLess(fresh.id("t"), max(first + count for first, count in lost))

    def test_f01_three_servers_and_the_skip(self):
        self.check_failover_of_three(self.pair, self.switch, self.pair.hold_replica)


class ChangeOfRolesTest(AsyncCase):
    def test_b17_there_and_back_twice_under_load(self):
        self.pair.put("t", step=50)
        servers = [self.start_on(self.url(), {"segment.policy": "fixed"}) for _ in range(2)]
        loads = [self.start_load(server, "t", connections=4, duration=600, rate=pick(1500, 3000)) for server in servers]
        for _ in range(4):
            for server in servers:
                self.wait_issued(server, 300)
            self.pair.demote()
            self.switch.to(self.pair.primary)
        for server in servers:
            self.wait_issued(server, 300)
        for load in loads:
            self.assert_all_served(load.stop())
        self.check("--high", f"t={self.pair.max_id('t')}", "--min-ids", "3000")
        self.assertEqual([server.status()["tags"]["regressed"] for server in servers], [0, 0])

    def test_a_primary_that_is_demoted_reserves_nothing(self):
        """leafd stays connected to it, and only the role has changed."""
        self.pair.put("t", step=10)
        server = self.start_on(self.pair.url(), {"segment.policy": "fixed", "segment.wait": "1500ms"})
        server.id("t")
        self.pair.demote()
        at = self.pair.replica.max_id("t")
        self.assert_refused(self.refusal(server, "t", n=10), "read-only")
        self.assertEqual(self.pair.replica.max_id("t"), at)
        self.pair.demote()
        self.wait_served(server, "t")


if __name__ == "__main__":
    unittest.main()
