"""The end of a right: given back at a clean stop, left behind by a kill, taken away by an operator."""

import time
import unittest

from leaftest import TIME_FACTOR, wait_until
from leaftest.history import read_ids
from leaftest.rights import MariaDbRightCase, parts, snowflakes, wait_serving, workers


class StopTest(MariaDbRightCase):
    def test_a_clean_stop_gives_the_worker_back(self):
        server, other = (self.server().start() for _ in range(2))
        wait_serving(other)
        last = parts(snowflakes(server, 5000)[-1])
        self.assertGreater(int(workers(other)[last.worker]["limit_ms"]), last.time_ms + 500_000)
        self.assertEqual(server.stop(), 0)
        record = workers(other)[last.worker]
        self.assertEqual(int(record["limit_ms"]), last.time_ms + 1, "the first millisecond that was not minted")
        begin = time.monotonic()
        server.start()
        again = parts(wait_serving(server))
        self.assertLess(time.monotonic() - begin, 2 * TIME_FACTOR)
        self.assertEqual(again.worker, last.worker, "a free record with this identity comes first")
        self.assertGreater(again.time_ms, last.time_ms)

    def test_a_stop_without_an_id_costs_no_worker(self):
        server = self.server().start()
        for _ in range(5):
            wait_until(lambda: server.admin_get("/readyz?mode=snowflake").status == 200, 10, "a worker")
            self.assertEqual(server.stop(), 0)
            server.start()
        self.assertEqual(parts(wait_serving(server)).worker, 0)

    def test_after_a_kill_the_worker_rests(self):
        server = self.server().start()
        before = parts(wait_serving(server))
        limit = int(workers(server)[before.worker]["limit_ms"])
        server.kill()
        server.start()
        after = parts(wait_serving(server))
        self.assertNotEqual(after.worker, before.worker)
        self.assertEqual(int(workers(server)[before.worker]["limit_ms"]), limit)

    def test_a_worker_retired_by_hand(self):
        """Its owner mints up to its limit at most, then as another worker, and nobody feels it."""
        server = self.server({"snowflake.lease": f"{int(3 * TIME_FACTOR)}s"}).start()
        old = parts(wait_serving(server)).worker
        load = self.start_mint(server, connections=8, duration=3600, rate=1000)
        history = self.histories[-1]
        wait_until(lambda: read_ids(history), 10, "ids")
        answer = server.admin("POST", f"/api/v1/workers/{old}/retire")
        self.assertEqual(answer.status, 200, answer.text)
        limit = int(workers(server)[old]["limit_ms"])
        wait_until(lambda: parts(read_ids(history)[-1]).worker != old, 10, "another worker")
        self.assert_all_served(load.stop())
        ids = read_ids(history)
        self.assertLess(max(parts(one).time_ms for one in ids if parts(one).worker == old), limit)
        self.assertEqual(len({parts(one).worker for one in ids}), 2)
        self.check("--min-ids", "100")
        # Once its limit has passed it is anybody's.
        wait_until(lambda: time.time() * 1000 > limit, 10, "the limit's passing")
        self.assertEqual(parts(wait_serving(self.server().start())).worker, old)

    def test_retiring_what_nobody_has(self):
        server = self.server().start()
        wait_serving(server)
        for worker, status, code in (("900", 404, "not_found"), ("-1", 400, "invalid_argument"), ("x", 400, "invalid_argument")):
            answer = server.admin("POST", f"/api/v1/workers/{worker}/retire")
            self.assertEqual((answer.status, answer.code), (status, code), answer.text)
        self.assertIn(server.get("/api/v1/workers/0/retire", method="POST").status, (404, 405), "not on the main listener")


if __name__ == "__main__":
    unittest.main()
