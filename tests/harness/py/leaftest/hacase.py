"""The base of the tests on clusters of databases."""

import random
import sys

from .case import LeafdCase
from .process import wait_until


class HaCase(LeafdCase):
    @staticmethod
    def chance():
        seed = random.SystemRandom().randrange(2**32)
        print(f"seed {seed}", file=sys.stderr)
        return random.Random(seed)

    def start_on(self, url, settings=None, **options):
        """A server on that store."""
        return self.start_leafd({"store.url": url, **(settings or {})}, **options)

    @staticmethod
    def store(server):
        """What the first probe has found."""
        wait_until(lambda: server.status()["store"]["identity"], 10, "the first probe")
        return server.status()["store"]

    def level(self, server):
        return self.store(server)["durability"]

    @staticmethod
    def refusal(server, tag, timeout=10, n=1):
        """The first answer that is no id, once held ids have been used up; n ids a request."""
        path = f"/api/v1/ranges/{tag}?n={n}"
        return wait_until(lambda: (lambda a: a if a.status != 200 else None)(server.get(path)), timeout, "a refusal")

    @staticmethod
    def wait_served(server, tag, timeout=10, n=3000):
        """Until the store serves: n is more than a server holds by itself."""
        wait_until(lambda: server.get(f"/api/v1/ranges/{tag}?n={n}").status == 200, timeout, f"ids of {tag}")

    @staticmethod
    def wait_issued(server, more=1):
        """Until a load has got so many more ids of this server."""
        now = server.metric("leafd_ids_issued_total")
        wait_until(lambda: server.metric("leafd_ids_issued_total") >= now + more, 20, f"{more} more ids")

    def assert_refused(self, answer, *words):
        """503 for the store, and the reason names these words."""
        self.assertEqual((answer.status, answer.code), (503, "unavailable"), answer)
        for word in words:
            self.assertIn(word, answer.json()["detail"])

    def check_failover_of_three(self, pair, switch, hold):
        """Three servers have leased from an asynchronous pair. Two of them lease on while the replica hears
        nothing (hold), and then it takes over. The third, which has no mark above the row, goes on above all
        that was lost; the two do so as well, or stop the tag if they are there before it. No id comes twice."""
        pair.put("three", step=100)
        servers = [self.start_on(pair.url(port=switch.port), {"segment.policy": "fixed"}) for _ in range(3)]
        for server in servers:
            self.load(server, "three", connections=2, requests=150)
        wait_until(pair.caught_up, 20, "the replica's catching up")
        hold()
        kept = pair.max_id("three")
        for server, leases in zip(servers, (5, 3)):
            self.load(server, "three", connections=2, requests=100 * leases)
        lost = pair.max_id("three")
        self.assertGreater(lost, kept + 600)
        pair.fail_over()
        self.assertEqual(pair.max_id("three"), kept, "the failover lost nothing, so this test shows nothing")
        switch.to(pair.primary)
        # The one that knows nothing of the loss is asked first.
        third = servers[2]
        self.load(third, "three", connections=2, requests=1000)
        self.wait_served(third, "three", 15)
        self.assertGreater(pair.max_id("three"), lost)
        for server in servers[:2]:
            report = self.load(server, "three", connections=2, requests=500)
            self.assertLessEqual(set(report["by_code"]), {"unavailable", "regressed"}, report)
        self.check("--min-ids", "2000")
        self.assertEqual(third.status()["tags"]["regressed"], 0)
