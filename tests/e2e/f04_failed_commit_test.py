"""F04: the store refuses a reservation. No id leaves, the error is typed, and it heals."""

import shutil
import unittest

from leaftest import Child, MariaDbCase, wait_until


class FailedCommitTest(MariaDbCase):
    def test_an_error_of_the_database_is_told_to_the_caller(self):
        tag = self.tag(step=1)
        proxy = self.proxy(self.database.port)
        server = self.mysql_leafd({"segment.policy": "fixed", "segment.wait": "400ms"}, port=proxy.port).start()
        while server.id(tag) < 3:
            pass
        rule = proxy.rule("command", "error", match="^UPDATE", message="planted refusal")
        answer = wait_until(lambda: (lambda a: a if a.status != 200 else None)(server.get(f"/api/v1/ids/{tag}")), what="the error")
        self.assertEqual((answer.status, answer.code), (503, "unavailable"), answer)
        self.assertIn("retry-after", answer.headers)
        self.assertIn("planted refusal", answer.json()["detail"], "the store's own words")
        top = self.database.max_id(tag)
        for _ in range(3):
            self.assertEqual(server.leaf(tag).code, "unavailable")
        self.assertEqual(self.database.max_id(tag), top)
        self.assertGreater(rule.hits, 1)
        proxy.clear()
        wait_until(lambda: server.leaf(tag).status == 200, 3, "ids after the fault")

    def test_sqlite_that_cannot_sync_issues_nothing(self):
        self.assertTrue(shutil.which("strace"), "strace is missing")
        server = self.start_leafd({"segment.policy": "fixed", "segment.wait": "400ms"})
        server.put_tag("t", step=1)
        last = server.id("t")
        tracer = Child(["strace", "-f", "-p", server.child.pid, "-o", "/dev/null", "-e", "trace=fdatasync,fsync",
                        "-e", "inject=fdatasync,fsync:error=EIO"], self.folder + "/strace")
        wait_until(lambda: "attached" in tracer.log(), what="strace")
        # What was reserved before the fault may still be handed out.
        wait_until(lambda: server.leaf("t").status != 200, what="the error")
        answer = server.get("/api/v1/ids/t")
        self.assertEqual((answer.status, answer.code), (503, "unavailable"), answer)
        tracer.signal(15)
        tracer.wait()
        wait_until(lambda: server.leaf("t").status == 200, 5, "ids after the fault")
        self.assertGreater(server.id("t"), last)
        self.assertTrue(server.child.alive())


if __name__ == "__main__":
    unittest.main()
