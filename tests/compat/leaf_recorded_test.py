"""leafd, started from Leaf's own configuration file on Leaf's own table, answers what Leaf was recorded to answer."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from leaftest import MariaDbCase, ZooKeeper, wait_until  # noqa: E402
from replay_leaf import DEVIATIONS, RECORDING, replay  # noqa: E402

# biz_tag, max_id, step before the first request of the recording.
TABLE = [("leaf-segment-test", 1, 2000), ("small", 1, 50), ("zero", 0, 10), ("a.b", 1, 1000), ("a", 500000, 1000),
         ("grow", 1, 100), ("<b>x</b>", 1, 100), ("café", 1, 100)]


class LeafRecordedTest(MariaDbCase):
    def setUp(self):
        super().setUp()
        self.zookeeper = ZooKeeper().start()
        self.addCleanup(self.zookeeper.remove)

    def properties(self, name, enabled):
        lines = ["leaf.name=com.example.leaf", f"leaf.segment.enable={enabled}", f"leaf.jdbc.url={self.database.jdbc_url()}",
                 "leaf.jdbc.username=leaf", "leaf.jdbc.password=leaf", f"leaf.snowflake.enable={enabled}",
                 f"leaf.snowflake.zk.address=127.0.0.1:{self.zookeeper.port}", "leaf.snowflake.port=8080"]
        return self.write(name, "\n".join(lines) + "\n")

    def serve(self, name, enabled):
        server = self.leafd(config=self.properties(name, enabled), env={"TZ": "UTC"})
        return server.start()

    def test_every_answer_is_leafs_save_the_named_deviations(self):
        for row in TABLE:
            self.database.put(*row)
        on, off = self.serve("on.properties", "true"), self.serve("off.properties", "false")
        self.assertEqual(on.get("/api/segment/get/leaf-segment-test").text, "1", "taken before the recording")
        wait_until(lambda: on.admin_get("/readyz?mode=snowflake").status == 200, 20, "a worker")
        run = replay({"both modes on": ("127.0.0.1", on.port), "both modes off": ("127.0.0.1", off.port)})
        self.assertEqual(run.findings, [])
        self.assertEqual(run.used, set(DEVIATIONS), "each deviation of the table occurs, and no other")

    def test_the_recording_is_whole(self):
        self.assertEqual(RECORDING.read_text(encoding="utf-8").count('{"name": '), 81)


if __name__ == "__main__":
    unittest.main()
