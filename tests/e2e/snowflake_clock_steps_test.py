"""F32, F34: the wall clock steps while ids are minted under load. Ids stay unique and rise; a step of
up to the drift fails no request; beyond it requests get a typed error in time, nothing burns CPU, and
ids go on when the clock is right again."""

import re
import time
import unittest

from leaftest import HOUR, TIME_FACTOR, YEAR, SnowflakeCase, wait_until

LEASE_MS, DRIFT_MS, TOLERANCE_MS = 60_000, 5_000, 60_000


class StepsTest(SnowflakeCase):
    def serve(self, lease_ms=LEASE_MS, **load):
        server = self.start_leafd({"snowflake.lease": f"{lease_ms}ms"})
        self.wait_for_ids(server)
        return server, self.start_mint(server, duration=3600, **{"connections": 16, "rate": 2000, **load})

    def assert_fails_only_in_time(self, report):
        self.assertEqual(set(report["by_code"]), {"unavailable"}, report)
        self.assertEqual(report["unsure"], 0, report)
        self.assertLess(report["max_us"], 3.5e6 * TIME_FACTOR, "an answer by the deadline")

    def test_steps_up_to_the_drift_fail_no_request(self):
        server, load = self.serve()
        for step in (-0.001, -0.005, -2, 2, -0.9, 0.9, -4.9, 4.9, 5, -5):
            self.clock.step(step)
            self.wait_for_more(server, 600)  # the clock is looked at ten times a second
        self.clock.step(-4)
        self.wait_for_clock(server)
        self.wait_for_more(server, 1000)
        view = self.view(server)
        self.assert_all_served(load.stop())
        self.assertGreaterEqual(view["steps_back"], 4, view)
        self.assertLessEqual(view["last_ms"], view["now_ms"] + DRIFT_MS, view)
        self.check("--min-ids", "5000")

    def back_and_forth(self, step):
        server, load = self.serve(rate=400, connections=8)
        wait_until(lambda: self.view(server)["issued"] >= 100, what="some ids")
        self.clock.step(step)
        _, reason = self.wait_for_mode(server, "unavailable", "the clock is behind")
        self.assertIn("ids go on when it has caught up", reason)
        answer = server.get("/api/v1/snowflake")
        self.assertEqual((answer.status, answer.code), (503, "unavailable"), answer)
        self.assertIn("the clock is behind", answer.json()["detail"])
        self.assertIn("retry-after", answer.headers)
        self.clock.restore()
        self.wait_for_ids(server)
        self.wait_for_mode(server, "ok")
        self.wait_for_more(server, 200)
        self.assert_fails_only_in_time(load.stop())
        self.check("--min-ids", "200")

    def test_an_hour_back_and_again(self):
        self.back_and_forth(-HOUR)

    def test_a_year_back_and_again(self):
        self.back_and_forth(-YEAR)

    def forward_and_back(self, step):
        """A local file has no clock of its own: a step forward has to stand for a lease."""
        server, load = self.serve()
        self.clock.step(step)
        _, reason = self.wait_for_mode(server, "ok", "has to stand for one lease first")
        self.assertAlmostEqual(int(re.search(r"by (\d+) ms", reason)[1]), step * 1000, delta=1000)
        self.wait_for_more(server, 600)
        view, real_ms = self.view(server), time.time() * 1000
        self.assertLess(view["last_ms"], real_ms + DRIFT_MS)
        self.assertLess(view["limit_ms"], real_ms + LEASE_MS + TOLERANCE_MS)
        self.clock.restore()
        wait_until(lambda: self.mode(server) == ("ok", ""), what="the end of the doubt")
        self.assert_all_served(load.stop())
        self.check("--min-ids", "600")

    def test_an_hour_forward_is_not_followed_at_once(self):
        self.forward_and_back(HOUR)

    def test_a_year_forward_is_not_followed_at_once(self):
        self.forward_and_back(YEAR)

    def test_a_step_forward_that_stands_is_followed(self):
        server, load = self.serve(lease_ms=1000, rate=400)
        self.clock.step(HOUR)
        self.wait_for_clock(server)
        self.wait_for_more(server, 100)
        self.assertGreater(self.decoded(server, self.snowflakes(server)[0])["time_ms"], time.time() * 1000 + HOUR * 900)
        self.clock.restore()
        self.wait_for_mode(server, "unavailable", "the clock is behind")
        self.clock.step(HOUR)
        self.wait_for_ids(server)
        self.assert_fails_only_in_time(load.stop())
        self.check("--min-ids", "100")


class WaitingTest(SnowflakeCase):
    """What it costs to wait for the clock."""

    def watch(self, server, seconds, while_true=lambda: True):
        """CPU of the server, in cores, and its slowest /livez meanwhile."""
        cpu, begin, slowest = server.child.cpu_seconds(), time.monotonic(), 0.0
        while time.monotonic() < begin + seconds and while_true():
            asked = time.monotonic()
            self.assertEqual(server.admin_get("/livez").status, 200)
            slowest = max(slowest, time.monotonic() - asked)
            time.sleep(0.05)
        return (server.child.cpu_seconds() - cpu) / (time.monotonic() - begin), slowest

    def assert_idle(self, watched):
        cores, slowest = watched
        print(f"{cores * 100:.1f} % of a core, slowest /livez {slowest * 1000:.1f} ms")
        self.assertLessEqual(cores, 0.05 * TIME_FACTOR)
        self.assertLessEqual(slowest, 0.1 * TIME_FACTOR)

    def test_parked_requests_cost_nothing(self):
        server = self.start_leafd()
        self.wait_for_ids(server)
        self.clock.step(-7)
        self.wait_for_clock(server)
        load = self.start_mint(server, requests=40, connections=40)
        wait_until(lambda: self.view(server)["parked"] == 40, what="40 parked requests")
        self.assert_idle(self.watch(server, 5, lambda: self.view(server)["parked"] == 40))
        report = load.report()
        self.assert_all_served(report)
        self.assertGreater(report["p50_us"], 1_000_000, "they waited for the clock")
        self.check("--min-ids", "40")

    def test_a_clock_an_hour_behind_costs_nothing(self):
        server = self.start_leafd()
        self.wait_for_ids(server)
        self.clock.step(-HOUR)
        self.wait_for_mode(server, "unavailable")
        asked = time.monotonic()
        self.assertEqual(server.get("/api/v1/snowflake?n=10000").code, "unavailable")
        self.assertLess(time.monotonic() - asked, 0.5 * TIME_FACTOR, "hopeless requests do not wait")
        self.assert_idle(self.watch(server, 1.5))


if __name__ == "__main__":
    unittest.main()
