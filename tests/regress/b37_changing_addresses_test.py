"""B37 and F37: servers that come with ever new identities do not use the workers up, whether they end
cleanly or not (sequential persistent nodes per IP:port ran past 1,023: Leaf #84, #26, #57, #21)."""

import random
import unittest

from leaftest import TIME_FACTOR, pick
from leaftest.rights import EPOCH_MS, MariaDbRightCase, RightCase, ZooKeeperRightCase, parts, snowflakes, wait_serving, workers

STARTS = pick(40, 5000)
WORKER_BITS = 2
# Limits of what was killed pass before the next starts that need them.
SETTINGS = {"snowflake.layout": "custom", "snowflake.bits": f"41/{WORKER_BITS}/12", "snowflake.epoch_ms": str(EPOCH_MS),
            "snowflake.lease": f"{int(1000 * TIME_FACTOR)}ms"}


class Churn:
    """Starts one after the other, for each kind of registry."""

    def churn(self, settings):
        seed = random.SystemRandom().randrange(2**32)
        print(f"seed {seed}")
        chance = random.Random(seed)
        free_from = {}  # worker -> the first millisecond that its last owner could not mint
        taken = set()
        for number in range(STARTS):
            identity = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}:{chance.randrange(1024, 65536)}"
            server = self.server({**SETTINGS, **settings, "snowflake.identity": identity}).start()
            first = parts(wait_serving(server, 10), WORKER_BITS)
            self.assertGreaterEqual(first.time_ms, free_from.get(first.worker, 0), f"start {number}: above the old limit")
            last = parts(snowflakes(server, 100)[-1], WORKER_BITS)
            self.assertEqual(last.worker, first.worker)
            if chance.random() < 0.25:
                free_from[last.worker] = self.limit_of(server, last.worker)
                server.kill()
            else:
                self.assertEqual(server.stop(), 0)
                free_from[last.worker] = last.time_ms + 1
            taken.add(first.worker)
            self.servers.remove(server)
        self.assertLessEqual(taken, set(range(2**WORKER_BITS)))
        self.assertGreater(len(taken), 1, "what was killed rests for a while")

    @staticmethod
    def limit_of(server, worker):
        """What it had at least when it was killed."""
        return int(workers(server)[worker]["limit_ms"])


class MariaDbChurnTest(Churn, MariaDbRightCase):
    def test_ever_new_identities(self):
        self.churn({})


class NativeChurnTest(Churn, ZooKeeperRightCase):
    """ZooKeeper, where Leaf would use up a number with each address."""

    def test_ever_new_identities(self):
        self.churn({})


class SqliteChurnTest(Churn, RightCase):
    def test_ever_new_identities(self):
        """One file after the other's: a volume that goes from container to container."""
        self.churn({"store.url": f"sqlite:{self.folder}/shared.db"})


if __name__ == "__main__":
    unittest.main()
