"""A MariaDB that keeps the workers goes away in each way, is slow, is killed."""

import unittest

from leaftest import TIME_FACTOR, wait_until
from leaftest.away import Away, lease
from leaftest.rights import MariaDbRightCase, mode, parts, wait_serving, workers


class MariaDbAwayTest(Away, MariaDbRightCase):
    def registry_proxy(self):
        return self.proxy(self.database.port)

    def test_slow_answers_extend_in_time(self):
        server, proxy = self.behind_a_proxy(lease(3 * TIME_FACTOR))
        wait_serving(server)
        proxy.rule("command", "delay", match="leafd_worker", seconds=0.15)
        load = self.start_mint(server, connections=4, duration=4 * TIME_FACTOR, rate=300)
        self.assert_all_served(load.report())
        self.assertEqual(mode(server)["state"], "ok")

    def test_a_restart_of_the_database_is_not_felt(self):
        server = self.server(lease(20 * TIME_FACTOR)).start()
        worker = parts(wait_serving(server)).worker
        load = self.start_mint(server, connections=4, duration=3600, rate=300)
        self.database.kill()
        self.database.boot()
        limit = self.limit(server)
        wait_until(lambda: self.limit(server) > limit, 30, "an extension by the new database")
        self.assert_all_served(load.stop())
        self.assertGreater(int(workers(server)[worker]["limit_ms"]), limit)

if __name__ == "__main__":
    unittest.main()
