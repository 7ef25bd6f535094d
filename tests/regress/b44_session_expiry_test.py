"""B44 and F36: the session ends while the process lives and is told nothing (ZOOKEEPER-4508: expiry is
heard of only after reconnecting). A right hangs on no session: minting goes on, and so does the right."""

import time
import unittest

from leaftest import TIME_FACTOR, pick, wait_until
from leaftest.history import read_ids
from leaftest.rights import ZooKeeperRightCase, parts, wait_serving, workers

SESSION_TIMEOUT = 6  # that leafd asks for, as Leaf does
CUT = SESSION_TIMEOUT * pick(1, 4) + 2


class SessionExpiryTest(ZooKeeperRightCase):
    def cut_off(self):
        proxy = self.proxy(self.zookeeper.port, mysql=False)
        server = self.server({"snowflake.lease": f"{2.5 * CUT:g}s"}, port=proxy.port).start()
        first = parts(wait_serving(server))
        load = self.start_mint(server, connections=4, duration=3600, rate=300)
        history = self.histories[-1]
        proxy.hold_new = True
        proxy.freeze()
        begin = time.monotonic()
        beside = self.server().start()
        self.assertNotEqual(parts(wait_serving(beside, 20)).worker, first.worker)
        load_beside = self.start_mint(beside, connections=4, duration=3600, rate=300)
        wait_until(lambda: time.monotonic() > begin + CUT, CUT + 5)
        limit = int(workers(beside)[first.worker]["limit_ms"])
        proxy.clear()
        wait_until(lambda: int(workers(beside)[first.worker]["limit_ms"]) > limit, 2 * CUT + 10, "an extension by a new session")
        for one in (load, load_beside):
            self.assert_all_served(one.report() if not one.running() else one.stop())
        self.assertEqual({parts(one).worker for one in read_ids(history)}, {first.worker})
        self.check("--min-ids", str(int(300 * CUT / TIME_FACTOR / 2)))

    def test_native(self):
        self.cut_off()


class LeafSessionExpiryTest(SessionExpiryTest):
    layout = "leaf"


if __name__ == "__main__":
    unittest.main()
