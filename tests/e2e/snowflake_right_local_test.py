"""Workers without a shared registry: two servers of one host never have the same one, and a server that
other hosts can reach does not guess."""

import unittest

from leaftest import free_port, wait_until
from leaftest.rights import RightCase, mode, parts, snowflakes, wait_serving, workers


def worker(server):
    return parts(wait_serving(server)).worker


class LocalRightTest(RightCase):
    def test_stores_of_their_own_and_workers_of_their_own(self):
        """Each SQLite file would give its worker 0."""
        servers = [self.server().start() for _ in range(3)]
        self.assertEqual(sorted(worker(server) for server in servers), [0, 1, 2])
        servers[0].kill()
        servers[2].kill()
        # What the dead had is free on this host at once; in their own files it rests until its limit.
        again = self.server().start()
        self.assertNotEqual(worker(again), worker(servers[1]))
        self.assertEqual(worker(again), 0)

    def test_clusters_do_not_meet(self):
        servers = [self.server({"snowflake.name": f"{self.cluster()}-{n}"}).start() for n in range(2)]
        self.assertEqual([worker(server) for server in servers], [0, 0])

    def test_a_worker_given_by_hand_is_given_once(self):
        first, second = (self.server({"snowflake.registry": "fixed:7", "snowflake.wait": "300ms"}).start() for _ in range(2))
        self.assertEqual(worker(first), 7)
        wait_until(lambda: "worker 7" in mode(second)["reason"], 5, "the reason")
        self.assertEqual(mode(second)["state"], "unavailable")
        self.assertIn("another process of this host", mode(second)["reason"])
        answer = second.get("/api/v1/snowflake", timeout=10)
        self.assertEqual((answer.status, answer.code), (503, "unavailable"))
        self.assertIn("worker 7 is in use by another process of this host", answer.json()["detail"])
        self.assertIn("retry-after", answer.headers)
        last = parts(snowflakes(first, 100)[-1])
        self.assertEqual(first.stop(), 0)
        # Its limit lies in the first one's folder, and nobody took that along: the clock has to do.
        taken = parts(wait_serving(second))
        self.assertEqual(taken.worker, 7)
        self.assertGreater(taken.time_ms, last.time_ms)

    def test_a_worker_given_by_hand_comes_back_at_once(self):
        """Its limit is in the journal and runs a few seconds ahead, not a lease."""
        server = self.server({"snowflake.registry": "fixed:1023"}).start()
        ids = [wait_serving(server)]
        for end in (server.kill, server.stop, server.kill):
            end()
            server.start()
            ids.append(wait_serving(server, 3))
            ids += snowflakes(server, 1000)
        self.assertEqual(ids, sorted(set(ids)))
        self.assertEqual({parts(one).worker for one in ids}, {1023})

    def test_beyond_loopback_a_local_file_is_no_registry(self):
        open_to_all = ["--listen", f"0.0.0.0:{free_port()}"]
        server = self.server(segment=True, arguments=open_to_all).start()
        self.assertEqual(mode(server)["state"], "unavailable")
        self.assertIn("snowflake.registry", mode(server)["reason"])
        answer = server.get("/api/v1/snowflake")
        self.assertEqual((answer.status, answer.code), (503, "unavailable"))
        self.assertIn("snowflake.registry", answer.json()["detail"])
        server.wait_log("snowflake.registry")
        server.id("order")
        self.assertEqual(mode(server, "segment")["state"], "ok")
        by_hand = self.server({"snowflake.registry": "store"}, segment=True, arguments=["--listen", f"0.0.0.0:{free_port()}"])
        self.assertEqual(worker(by_hand.start()), 0)

    def test_readiness_tells_the_modes_apart(self):
        def readiness(server, query=""):
            answer = server.admin_get("/readyz" + query)
            return answer.status, {name: one["state"] for name, one in answer.json()["modes"].items()}
        both = self.server(segment=True, arguments=["--listen", f"0.0.0.0:{free_port()}"]).start()
        states = {"segment": "ok", "snowflake": "unavailable"}
        wait_until(lambda: readiness(both) == (200, states), 10, "readiness by the mode that serves")
        self.assertEqual(readiness(both, "?mode=segment")[0], 200)
        self.assertEqual(readiness(both, "?mode=snowflake")[0], 503)
        alone = self.server(arguments=["--listen", f"0.0.0.0:{free_port()}"]).start()
        self.assertEqual(readiness(alone), (503, {"segment": "disabled", "snowflake": "unavailable"}))
        off = self.server({"snowflake.enabled": "false"}, segment=True).start()
        wait_until(lambda: readiness(off) == (200, {"segment": "ok", "snowflake": "disabled"}), 10, "readiness of segment mode alone")
        serving = self.server().start()
        wait_serving(serving)
        self.assertEqual(readiness(serving), (200, {"segment": "disabled", "snowflake": "ok"}))

    def test_the_list_of_workers(self):
        server = self.server({"snowflake.identity": "db-7:8080"}).start()
        last = parts(wait_serving(server))
        record = workers(server)[last.worker]
        self.assertEqual(record["identity"], "db-7:8080")
        self.assertGreater(int(record["limit_ms"]), last.time_ms + 500_000, "a lease of ten minutes")


if __name__ == "__main__":
    unittest.main()
