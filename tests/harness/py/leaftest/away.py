"""What a registry of workers that goes away may do to a server, for each kind of registry: for a lease
nobody feels it, after that every answer says why there is no id, and when it is back minting goes on
without a restart."""

import time

from .history import read_ids
from .process import TIME_FACTOR, wait_until
from .rights import at_once, mode, parts, wait_serving

SHORT_LEASE = 1.2 * TIME_FACTOR


def lease(seconds):
    return {"snowflake.lease": f"{int(seconds * 1000)}ms"}


def refuse(proxy):
    proxy.refuse()
    proxy.reset_all()


def black_hole(proxy):
    """Nothing comes back, and nobody is told."""
    proxy.hold_new = True
    proxy.freeze()


def reset(proxy):
    proxy.rule("bytes", "reset", direction="up", at=0)
    proxy.reset_all()


def unanswered(proxy):
    """What is asked arrives and is done; the answers are lost, save those to a greeting."""
    proxy.rule("bytes", "reset", direction="down", at=200 if proxy.mysql else 50)
    proxy.reset_all()


def back(proxy):
    proxy.clear()
    proxy.listen()


WAYS = (refuse, black_hole, reset, unanswered)


class Away:
    """A class adds registry_proxy(), a FaultProxy before its registry."""

    lease, away = 4 * TIME_FACTOR, 3 * TIME_FACTOR

    def behind_a_proxy(self, settings):
        proxy = self.registry_proxy()
        return self.server({"snowflake.wait": "1s", **settings}, port=proxy.port).start(), proxy

    def limit(self, server):
        """Of its right, as the server itself knows it."""
        return int(server.status()["snowflake"]["limit_ms"])

    def just_extended(self, server):
        """Waits until the right has its whole length."""
        before = self.limit(server)
        wait_until(lambda: self.limit(server) > before, 20, "an extension", 0.002)

    def test_away_for_most_of_a_lease(self):
        """No request fails, and none waits: each way with a server of its own, side by side."""
        pairs = [(way, *self.behind_a_proxy(lease(self.lease))) for way in WAYS]
        for _, server, _ in pairs:
            wait_serving(server)
        loads = [self.start_mint(server, way.__name__, connections=4, duration=3600, rate=300) for way, server, _ in pairs]
        at_once(lambda pair: self.lose_for_a_while(*pair), pairs)
        for load in loads:
            report = load.stop()
            self.assert_all_served(report)
            self.assertLess(report["max_us"], 1_000_000 * TIME_FACTOR, report)
        self.check("--min-ids", "1000")

    def lose_for_a_while(self, way, server, proxy):
        self.just_extended(server)
        way(proxy)
        begin = time.monotonic()
        limit = self.limit(server)
        wait_until(lambda: time.monotonic() > begin + self.away, 2 * self.away)
        self.assertEqual(mode(server)["state"], "ok", way.__name__)
        self.assertEqual(self.limit(server), limit, f"{way.__name__}: nothing was extended meanwhile")
        self.assertNotEqual(mode(server)["reason"], "", f"{way.__name__}: people are told before it ends")
        back(proxy)
        wait_until(lambda: self.limit(server) > limit, 10, f"an extension after {way.__name__}")

    def test_away_for_longer_than_a_lease(self):
        pairs = [(way, *self.behind_a_proxy(lease(SHORT_LEASE))) for way in WAYS]
        loads = []
        for way, server, proxy in pairs:
            wait_serving(server)
            loads.append((self.start_mint(server, way.__name__, connections=4, duration=3600, rate=300), self.histories[-1]))
            way(proxy)
        for way, server, proxy in pairs:
            wait_until(lambda server=server: mode(server)["state"] == "unavailable", 10, f"the end of the right after {way.__name__}")
            limit = self.limit(server)
            begin = time.monotonic()
            answer = server.get("/api/v1/snowflake", timeout=20)
            self.assertEqual((answer.status, answer.code), (503, "unavailable"), way.__name__)
            self.assertIn("ended at", answer.json()["detail"])
            self.assertRegex(answer.json()["detail"], "was not extended: .+", "and why")
            self.assertLess(time.monotonic() - begin, 4 * TIME_FACTOR, "snowflake.wait")
            self.assertEqual(self.limit(server), limit)
            back(proxy)
        for (way, server, _), (load, history) in zip(pairs, loads):
            had = len(read_ids(history))
            wait_serving(server, 15)
            wait_until(lambda had=had, history=history: len(read_ids(history)) > had + 100, 10, f"ids after {way.__name__}")
            report = load.stop()
            self.assertLessEqual(set(report["by_status"]), {"200", "503"}, report)
            self.assertEqual(len({parts(one).worker for one in read_ids(history)}), 1, "nobody wanted the worker: it is still ours")
        self.check("--min-ids", "500")

    def test_a_stop_while_it_is_away_is_quick(self):
        pairs = [(way, *self.behind_a_proxy(lease(60))) for way in WAYS]
        for way, server, proxy in pairs:
            wait_serving(server)
            way(proxy)
        for _, server, _ in pairs:
            server.terminate()
        begin = time.monotonic()
        for way, server, _ in pairs:
            self.assertEqual(server.child.wait(), 0, way.__name__)
        self.assertLess(time.monotonic() - begin, 5 * TIME_FACTOR)

    def test_away_at_the_start(self):
        """It serves as soon as the registry is there, and says meanwhile what is missing."""
        for way in (refuse, black_hole):
            proxy = self.registry_proxy()
            way(proxy)
            server = self.server(port=proxy.port).start()
            wait_until(lambda server=server: mode(server)["reason"] not in ("", "no worker was claimed yet"), 10, "the reason")
            self.assertEqual(mode(server)["state"], "unavailable")
            self.assertEqual(server.admin_get("/readyz?mode=snowflake").status, 503)
            back(proxy)
            wait_serving(server, 10)
            wait_until(lambda server=server: mode(server) == {"state": "ok", "reason": ""}, 10, "readiness")
            self.assertEqual(server.stop(), 0)
