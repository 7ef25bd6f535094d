"""F30: kill -9 at random moments under load, and a start after each. A gap, never a duplicate."""

import random
import time
import unittest

from leaftest import TIME_FACTOR, MariaDbCase, can_connect, pick, wait_until

KILLS = pick(20, 1000)
STEP = 100


class KillTest(MariaDbCase):
    def judge(self, server, tag, max_id):
        seed = random.SystemRandom().randrange(2**32)
        print(f"seed {seed}")
        chance = random.Random(seed)
        load = self.start_load(server, tag, connections=16, duration=3600, timeout=3)
        to_first_id = []
        for _ in range(KILLS):
            time.sleep(chance.random() * 0.15)
            server.kill()
            begin = time.monotonic()
            server.launch()
            wait_until(lambda: can_connect(server.port) and server.leaf(tag).status == 200, 10, "the first id", interval=0.001)
            to_first_id.append(time.monotonic() - begin)
        report = load.stop()
        print(f"start to first id: median {sorted(to_first_id)[len(to_first_id) // 2] * 1000:.0f} ms, "
              f"longest {max(to_first_id) * 1000:.0f} ms; {report['ok']} answers, {report['unsure']} unsure")
        self.assertGreater(report["ok"], 20 * KILLS)
        self.assertGreater(report["reconnects"], KILLS // 2)
        self.assertLess(sorted(to_first_id)[len(to_first_id) // 2], 0.5 * TIME_FACTOR)
        self.assertEqual(server.stop(), 0)
        lost = self.lost_at_most(KILLS)
        result = self.check("--high", f"{tag}={max_id()}", "--low", f"{tag}=1", "--max-lost", f"{tag}={lost}")
        self.assertGreater(result["total"]["ids"], 20 * KILLS)

    @staticmethod
    def lost_at_most(kills):
        """Two leases a kill, and the ids of answers that were cut off. With policy `fixed` a lease is
        a step, or what is parked: 16 callers and the first id's own."""
        return (kills + 1) * 2 * STEP + kills * 17 + kills

    def test_sqlite(self):
        server = self.start_leafd({"segment.policy": "fixed"})
        server.put_tag("t", step=STEP)
        self.judge(server, "t", lambda: self.top_of(server))

    def top_of(self, server):
        server.start()
        return int(server.tag("t")["max_id"])

    def test_mariadb(self):
        tag = self.tag(step=STEP)
        server = self.start_mysql_leafd({"segment.policy": "fixed"})
        self.judge(server, tag, lambda: self.database.max_id(tag))


if __name__ == "__main__":
    unittest.main()
