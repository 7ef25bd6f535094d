"""F31 in Leaf's layout, where a node belongs to one identity: the only successor that an owner can have
is a twin."""

import unittest

from leaftest import TIME_FACTOR, wait_until
from leaftest.history import read_ids
from leaftest.namespace import Namespace
from leaftest.rights import ZooKeeperRightCase, mode, parts, wait_serving


class LeafLayoutTest(ZooKeeperRightCase):
    layout = "leaf"

    def test_an_owner_that_wakes_up_finds_its_successor(self):
        settings = {"snowflake.lease": f"{int(2 * TIME_FACTOR)}s", "snowflake.wait": "50ms", "snowflake.identity": "127.0.0.1:8080"}
        first = self.server(settings).start()
        wait_serving(first, 20)
        load = self.start_mint(first, connections=25, pipeline=40, duration=3600, rate=1500, timeout=60)
        history = self.histories[-1]
        wait_until(lambda: read_ids(history), 10, "ids")
        first.child.freeze()
        # The same identity on another host, with a folder of its own.
        successor = Namespace(self, outside=[self.zookeeper.port]).start(self.server(settings))
        wait_serving(successor, 60)
        load_after = self.start_mint(successor, connections=4, duration=3600, rate=500)
        after = self.histories[-1]
        wait_until(lambda: len(read_ids(after)) > 300, 20, "ids of the successor")
        first.child.thaw()
        wait_until(lambda: mode(first)["state"] == "unavailable", 15, "the first one's end")
        wait_until(lambda: "another process writes" in mode(first)["reason"], 15, "the reason")
        had = len(read_ids(after))
        wait_until(lambda: len(read_ids(after)) > had + 300, 20, "more of the successor")
        self.assert_all_served(load_after.stop())
        self.assertLessEqual(set(load.stop()["by_status"]), {"200", "503"})
        self.assertEqual({parts(one).worker for one in read_ids(history) + read_ids(after)}, {parts(read_ids(after)[0]).worker})
        self.check("--min-ids", "600")


if __name__ == "__main__":
    unittest.main()
