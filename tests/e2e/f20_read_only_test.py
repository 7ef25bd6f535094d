"""F20: the database turns read-only, or its disk is full: held ids go on, then a typed error."""

import os
import unittest

from leaftest import LONG, LeafdCase, MariaDbCase, wait_until


class ReadOnlyTest(MariaDbCase):
    def test_held_ids_then_an_error_that_says_why(self):
        tag = self.tag(step=50)
        server = self.start_mysql_leafd({"segment.wait": "1100ms", "segment.policy": "fixed"})
        first = server.id(tag)
        self.database.sql("SET GLOBAL read_only = 1")
        self.addCleanup(self.database.sql, "SET GLOBAL read_only = 0")
        held = [server.id(tag) for _ in range(20)]
        self.assertEqual(held, list(range(first + 1, first + 21)))
        answer = wait_until(lambda: (lambda a: a if a.status != 200 else None)(server.get(f"/api/v1/ids/{tag}")), what="the error")
        self.assertEqual((answer.status, answer.code), (503, "unavailable"), answer)
        self.assertRegex(answer.json()["detail"], "read.only")
        self.database.sql("SET GLOBAL read_only = 0")
        wait_until(lambda: server.leaf(tag).status == 200, 3, "ids after the end of read-only")

    def test_read_only_at_start_is_told(self):
        tag = self.tag()
        self.database.sql("SET GLOBAL read_only = 1")
        self.addCleanup(self.database.sql, "SET GLOBAL read_only = 0")
        server = self.start_mysql_leafd({"segment.wait": "400ms"})
        self.assertEqual(server.leaf(tag).code, "unavailable")
        self.assertRegex(server.ready()[1]["reason"], "read.only")
        self.database.sql("SET GLOBAL read_only = 0")
        wait_until(lambda: server.leaf(tag).status == 200, 5, "ids after the end of read-only")


if LONG:  # it mounts a file system
    class FullDiskTest(LeafdCase):
        def test_sqlite_on_a_full_disk(self):
            state = self.folder + "/small"
            os.mkdir(state, 0o700)
            self.assertEqual(os.system(f"mount -t tmpfs -o size=2m,mode=700 tmpfs {state}"), 0)
            self.addCleanup(os.system, f"umount -l {state}")
            server = self.start_leafd({"server.state_dir": state, "segment.wait": "400ms", "segment.policy": "fixed",
                                       "store.min_durability": "process"})
            server.put_tag("t", step=1)
            last = server.id("t")
            with open(state + "/filler", "wb", buffering=0) as filler:
                try:
                    while True:
                        filler.write(bytes(4096))
                except OSError:
                    pass
            wait_until(lambda: server.leaf("t").code == "unavailable", 60, "the error of a full disk")
            os.remove(state + "/filler")
            wait_until(lambda: server.leaf("t").status == 200, 5, "ids after room was made")
            self.assertGreater(server.id("t"), last)


if __name__ == "__main__":
    unittest.main()
