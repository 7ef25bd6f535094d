"""F32, F34 where the registry is a database, whose clock judges that of the server: a step of the
server's clock alone is not followed, and one that the database's clock made too is."""

import time
import unittest

from leaftest import HOUR, TIME_FACTOR, YEAR, FakeClock, MariaDbSnowflakeCase, wait_until

LEASE_MS, DRIFT_MS, TOLERANCE_MS = 10_000, 5_000, 60_000


class DatabaseClockTest(MariaDbSnowflakeCase):
    """The database has the machine's clock."""

    def limit_ms(self, server):
        """What the registry holds for it."""
        view = self.view(server)
        rows = self.database.sql("SELECT limit_ms FROM leaf.leafd_worker WHERE worker = %s AND owner = %s",
                                 (view["worker"], view["owner"]))
        self.assertEqual(len(rows), 1, view)
        return int(rows[0][0])

    def assert_within_bounds(self, server):
        real_ms, view = time.time() * 1000, self.view(server)
        self.assertLessEqual(self.limit_ms(server), real_ms + LEASE_MS + TOLERANCE_MS)
        self.assertLess(abs(view["now_ms"] - real_ms), 1000 * TIME_FACTOR, view)
        self.assertLess(view["last_ms"], real_ms + DRIFT_MS)

    def contradicted(self, step):
        server = self.mysql_leafd({"snowflake.lease": f"{LEASE_MS}ms"}).start()
        self.wait_for_ids(server)
        load = self.start_mint(server, connections=16, rate=2000, duration=3600)
        self.clock.step(step)
        self.wait_for_mode(server, "ok", "the registry's clock contradicts it")
        self.wait_for_more(server, 1000)
        self.assert_within_bounds(server)
        self.clock.restore()
        wait_until(lambda: self.mode(server) == ("ok", ""), what="the end of the doubt")
        self.assert_all_served(load.stop())
        self.assert_within_bounds(server)
        self.check("--min-ids", "1000")

    def test_an_hour_back(self):
        self.contradicted(-HOUR)

    def test_an_hour_forward(self):
        self.contradicted(HOUR)

    def test_a_year_back(self):
        self.contradicted(-YEAR)

    def test_a_year_forward(self):
        self.contradicted(YEAR)

    def test_a_start_a_year_ahead_is_refused(self):
        self.clock.step(YEAR)
        server = self.mysql_leafd({"snowflake.lease": f"{LEASE_MS}ms"}).start()
        self.wait_for_mode(server, "unavailable", "clock_ahead")
        answer = server.get("/api/v1/snowflake")
        self.assertEqual((answer.status, answer.code), (503, "unavailable"), answer)
        self.assertIn("clock_ahead", answer.json()["detail"])
        far = int((time.time() + HOUR) * 1000)
        poisoned = self.database.sql("SELECT worker FROM leaf.leafd_worker WHERE limit_ms > %s", (far,))
        self.assertEqual(poisoned, [], "no worker has a limit in the next year")
        self.clock.restore()
        self.wait_for_ids(server)
        self.assert_all_served(self.mint(server, requests=500, connections=4))
        self.assert_within_bounds(server)

    def test_killed_and_started_an_hour_behind(self):
        """The database's clock is right, so the server minds that its own is not."""
        server = self.mysql_leafd({"snowflake.lease": f"{LEASE_MS}ms"}).start()
        self.assert_all_served(self.mint(server, requests=500, connections=4))
        server.kill()
        self.clock.step(-HOUR)
        self.restart_after_kill(server)
        self.wait_for_mode(server, "unavailable", "the clock is behind")
        self.clock.restore()
        self.wait_for_ids(server)
        self.assert_all_served(self.mint(server, requests=500, connections=4))
        self.check("--min-ids", "1000")


class SharedClockTest(MariaDbSnowflakeCase):
    """Server and database are under one clock."""

    @classmethod
    def setUpClass(cls):
        cls.class_clock = None
        super().setUpClass()
        cls.database.stop()
        cls.class_clock = FakeClock(cls.database.folder)
        with cls.class_clock.over_children("/usr/sbin/mariadbd"):
            cls.database.boot()
        cls.addClassCleanup(lambda: FakeClock.forget(cls.database.child.pid))

    def setUp(self):
        super().setUp()
        self.clock = self.class_clock
        self.clock.restore()

    def database_ms(self):
        return int(self.database.sql("SELECT CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)")[0][0])

    def test_a_confirmed_step_is_followed(self):
        server = self.mysql_leafd({"snowflake.lease": f"{LEASE_MS}ms"}).start()
        self.wait_for_ids(server)
        load = self.start_mint(server, connections=8, rate=400, duration=3600)
        self.clock.step(HOUR)
        self.assertLess(abs(self.database_ms() - self.clock.now_ms()), 1000, "the database has this clock")
        self.wait_for_clock(server)
        self.wait_for_more(server, 200)
        number = self.snowflakes(server)[0]
        self.assertLess(abs(self.decoded(server, number)["time_ms"] - self.clock.now_ms()), 2000)
        self.assertEqual(self.view(server)["steps_forward"], 1)
        self.clock.restore()
        self.wait_for_mode(server, "unavailable", "the clock is behind")
        self.clock.step(HOUR)
        self.wait_for_ids(server)
        report = load.stop()
        self.assertLessEqual(set(report["by_code"]), {"unavailable"}, report)
        self.check("--min-ids", "200")


if __name__ == "__main__":
    unittest.main()
