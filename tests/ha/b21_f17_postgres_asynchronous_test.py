"""F01, F17 and B21: PostgreSQL with an asynchronous standby. What a failover loses is found."""

import unittest

from leaftest import HaCase, PostgresPair, Switch, wait_until

FIXED = {"segment.policy": "fixed"}
STRICT = {**FIXED, "store.min_durability": "replicated"}


class PairCase(HaCase):
    def start_pair(self, *options, **kind):
        self.pair = PostgresPair(*options, **kind)
        self.addCleanup(self.pair.remove)
        self.pair.start()
        self.switch = Switch(self.pair.primary, mysql=False)
        self.addCleanup(self.switch.close)

    def url(self):
        return self.pair.url(port=self.switch.port)

    def fail_over(self):
        self.pair.fail_over()
        self.switch.to(self.pair.primary)


class AsynchronousTest(PairCase):
    def test_f01_b21_lost_updates_are_found_repaired_and_stopped(self):
        self.start_pair()
        self.pair.put("t", step=100)
        server = self.start_on(self.url(), FIXED)
        store = self.store(server)
        self.assertEqual(store["durability"], "power")
        strict = self.start_on(self.url(), {**STRICT, "segment.wait": "300ms"})
        self.assert_refused(strict.get("/api/v1/ids/t"), "power", "replicated")
        server.ranges("t", 100)
        wait_until(self.pair.caught_up, what="the standby's catching up")
        self.pair.hold_standby()
        end = max(first + count for first, count in server.ranges("t", 2000))
        self.pair.fail_over()
        self.assertLess(self.pair.max_id("t"), end, "the failover lost nothing, so this test shows nothing")
        self.switch.to(self.pair.primary)
        answer = self.refusal(server, "t", n=100)
        self.assertEqual((answer.status, answer.code), (500, "regressed"), answer)
        wait_until(lambda: self.pair.max_id("t") >= end, what="the raised row")
        self.assertNotEqual(self.store(server)["identity"], store["identity"], "a new timeline is another identity")
        resumed = server.admin("POST", "/api/v1/tags/t/resume", {"skip": 1000})
        self.assertEqual(resumed.status, 200, resumed.text)
        self.assertGreaterEqual(server.ranges("t", 100)[0][0], end + 1000)

    def test_b21_three_servers_and_the_skip(self):
        self.start_pair()
        self.check_failover_of_three(self.pair, self.switch, self.pair.hold_standby)

    def test_b21_f17_a_standby_that_shows_late_is_not_read_and_has_it_all_when_promoted(self):
        self.start_pair(apply_delay="5s")
        self.pair.put("t", step=10)
        standby, primary = (f"127.0.0.1:{node.port}" for node in (self.pair.standby, self.pair.primary))
        both = self.start_on(f"postgres://leaf:leaf@{standby},{primary}/leaf?sslmode=disable", FIXED)
        self.assertEqual([both.id("t") for _ in range(35)], list(range(1, 36)))
        alone = self.start_on(f"postgres://leaf:leaf@{standby}/leaf?sslmode=disable", {"segment.wait": "300ms"})
        self.assert_refused(alone.get("/api/v1/ids/t"), "standby")
        server = self.start_on(self.url(), FIXED)
        for _ in range(20):
            last = server.ranges("t", 10)[-1]
        end = last[0] + last[1]
        wait_until(self.pair.caught_up, what="the standby's log")
        self.assertIsNone(self.pair.standby.max_id("t"), "it shows what was seconds ago")
        self.fail_over()
        self.assertGreaterEqual(self.pair.max_id("t"), end)
        for one in (server, both):
            wait_until(lambda: one.get("/api/v1/ranges/t?n=10").status == 200, 10, "ids after the failover")  # pylint: disable=cell-var-from-loop
        self.assertGreaterEqual(server.id("t"), end)
        self.assertEqual([one.status()["tags"]["regressed"] for one in (server, both)], [0, 0])


if __name__ == "__main__":
    unittest.main()
