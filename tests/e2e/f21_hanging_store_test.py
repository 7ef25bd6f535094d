"""F21: the database takes connections and never answers. Every request ends by its deadline, and
nothing grows meanwhile."""

import time
import unittest

from leaftest import TIME_FACTOR, MariaDbCase, wait_until

WAIT = 0.8


class HangingStoreTest(MariaDbCase):
    def start(self, port):
        return self.mysql_leafd({"segment.wait": f"{WAIT * 1000:.0f}ms", "store.timeout": "300ms", "segment.policy": "fixed"}, port=port).start()

    def judge(self, server, proxy, tag, hang):
        while server.id(tag) < 5:
            pass
        report = self.load(server, tag, connections=50, duration=0.3, history=False)
        self.assert_all_served(report)
        hang()
        load = self.start_load(server, tag, connections=50, duration=2.2, history=False)
        wait_until(lambda: server.leaf(tag).code == "unavailable", what="the first error")
        threads, fds = [], []
        while load.running():
            threads.append(server.child.threads())
            fds.append(server.child.fds())
            time.sleep(0.05)
        report = load.report()
        self.assertEqual(set(report["by_code"]), {"unavailable"}, report)
        self.assertEqual(report["unsure"], 0)
        self.assertLess(report["max_us"], (WAIT + 0.5) * 1e6 * TIME_FACTOR)
        middle = threads[len(threads) // 3:]
        self.assertEqual((max(middle) - min(middle)), 0, f"threads: {threads}")
        # The load's own connections come and go at its ends.
        inner = fds[len(fds) // 3:-len(fds) // 5]
        self.assertLessEqual(max(inner) - min(inner), 4, f"descriptors: {fds}")
        proxy.clear()
        proxy.reset_all()
        wait_until(lambda: server.leaf(tag).status == 200, 2, "ids after the hang")

    def test_connected_sessions_fall_silent_and_new_ones_are_not_greeted(self):
        tag = self.tag(step=1)
        proxy = self.proxy(self.database.port)

        def hang():
            proxy.hold_new = True
            proxy.freeze()
        self.judge(self.start(proxy.port), proxy, tag, hang)

    def test_the_greeting_drips(self):
        """Byte by byte, so that no single read ever times out."""
        tag = self.tag(step=1)
        proxy = self.proxy(self.database.port)

        def hang():
            proxy.rule("bytes", "slice", direction="down", at=0, seconds=0.1)
            proxy.freeze()
        self.judge(self.start(proxy.port), proxy, tag, hang)


if __name__ == "__main__":
    unittest.main()
