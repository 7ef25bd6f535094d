"""F19, F27 and B43 on etcd: compaction, a leader that hangs, members that die and join."""

import threading
import unittest

from leaftest import Etcd, HaCase, pick, wait_until

FIXED = {"segment.policy": "fixed"}
STRICT = {**FIXED, "store.min_durability": "replicated"}


class OneMemberTest(HaCase):
    def test_the_level_of_one_is_power(self):
        etcd = Etcd(1)
        self.addCleanup(etcd.remove)
        etcd.start().put("t")
        server = self.start_on(etcd.url())
        self.assertEqual(self.level(server), "power")
        self.assertEqual(server.id("t"), 1)
        self.assertEqual(etcd.row("t"), {"max_id": "1001", "step": 1000})
        strict = self.start_on(etcd.url(), {**STRICT, "segment.wait": "300ms"})
        self.assert_refused(strict.get("/api/v1/ids/t"), "power", "replicated")


class ThreeMembersTest(HaCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.etcd = Etcd(3)
        cls.addClassCleanup(cls.etcd.remove)
        cls.etcd.start()

    def start_servers(self, count, settings=None):
        servers = [self.start_on(self.etcd.url(), {**STRICT, **(settings or {})}) for _ in range(count)]
        self.assertEqual([self.level(server) for server in servers], ["replicated"] * count)
        return servers

    def assert_clean(self, tag, servers, loads, least):
        for load in loads:
            report = load.stop()
            self.assertLessEqual(set(report["by_code"]), {"unavailable"}, report)
        self.check("--high", f"{tag}={self.etcd.max_id(tag)}", "--min-ids", str(least))
        self.assertEqual([server.status()["tags"]["regressed"] for server in servers], [0] * len(servers))

    def test_f27_compaction_all_the_time(self):
        self.etcd.put("compacted", step=10)
        servers = self.start_servers(2)
        loads = [self.start_load(server, "compacted", connections=4, duration=600, rate=1000) for server in servers]
        stop, revisions = threading.Event(), []

        def compact():
            while not stop.wait(0.05):
                revisions.append(self.etcd.compact())
        thread = threading.Thread(target=compact)
        thread.start()
        try:
            for server in servers:
                self.wait_issued(server, pick(1000, 100_000))
        finally:
            stop.set()
            thread.join()
        self.assertGreater(len(revisions), 3)
        reports = [load.stop() for load in loads]
        for report in reports:
            self.assert_all_served(report)
        self.check("--high", f"compacted={self.etcd.max_id('compacted')}", "--min-ids", "2000")

    def test_b43_the_leader_hangs(self):
        """Nobody restarts, no worker changes hands, and the leader that comes back has lost its place."""
        self.etcd.put("stuck", step=20)
        servers = self.start_servers(pick(3, 8), {"snowflake.registry": "store"})

        def workers():
            return [server.get("/api/v1/snowflake").status == 200 and server.admin_get("/api/v1/workers").json() for server in servers]
        for server in servers:
            wait_until(lambda: server.get("/api/v1/snowflake").status == 200, 10, "a worker")  # pylint: disable=cell-var-from-loop
        before = self.mine(workers())
        loads = [self.start_load(server, "stuck", connections=2, duration=600, rate=400) for server in servers]
        for server in servers:
            self.wait_issued(server, 100)
        leader = self.etcd.leader()
        leader.freeze()
        for server in servers:
            self.wait_issued(server, pick(400, 6000))
        leader.thaw()
        self.etcd.wait_ready()
        for server in servers:
            self.wait_issued(server, 200)
        self.assertEqual(self.mine(workers()), before)
        self.assert_clean("stuck", servers, loads, 1000)

    @staticmethod
    def mine(lists):
        return [[one["worker"] for one in workers["workers"] if one["mine"]] for workers in lists]

    def test_members_die_one_after_the_other_and_one_joins(self):
        self.etcd.put("members", step=20)
        servers = self.start_servers(2)
        loads = [self.start_load(server, "members", connections=2, duration=600, rate=500) for server in servers]
        for member in list(self.etcd.members)[:pick(2, 3)]:
            member.kill()
            for server in servers:
                self.wait_issued(server, 400)
            self.etcd.boot(member)
        self.assert_clean("members", servers, loads, 1500)

    def test_without_a_majority_nothing_is_reserved(self):
        self.etcd.put("minority", step=10)
        server, = self.start_servers(1, {"segment.wait": "400ms"})
        last = server.id("minority")
        for member in self.etcd.members[:2]:
            member.freeze()
        try:
            self.assert_refused(self.refusal(server, "minority", n=10))
        finally:
            for member in self.etcd.members[:2]:
                member.thaw()
        self.etcd.wait_ready()
        self.wait_served(server, "minority")
        self.assertGreater(server.id("minority"), last)
        self.assertEqual(server.status()["tags"]["regressed"], 0)


if __name__ == "__main__":
    unittest.main()
