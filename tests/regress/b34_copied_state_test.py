"""B34, F39 and F40: what a server's folder proves. It carries a restart, it does not carry a copy of the
folder, and it is never followed through a symlink (Leaf #97, #104: a local file without a time)."""

import os
import shutil
import unittest

from leaftest import TIME_FACTOR, wait_until
from leaftest.faketime import FakeClock
from leaftest.namespace import Namespace
from leaftest.rights import MariaDbRightCase, ZooKeeperRightCase, mode, parts, serves, snowflakes, wait_serving


def copy_state(of, to):
    """As an image or a volume that is restored elsewhere."""
    shutil.copytree(of.folder + "/state", to.folder + "/state", symlinks=True)
    for name in ("leafd.lock",):
        if os.path.exists(f"{to.folder}/state/{name}"):
            os.unlink(f"{to.folder}/state/{name}")


QUICK = {"snowflake.wait": "300ms"}  # what is to be refused need not wait long


class CopiedStateTest(MariaDbRightCase):
    def test_a_copy_with_a_shared_registry_is_another_server(self):
        first = self.server().start()
        ids = [wait_serving(first), *snowflakes(first, 1000)]
        first.kill()
        copy = self.server()
        copy_state(first, copy)
        for server in (first, copy):
            server.start()
        workers = [parts(wait_serving(server)).worker for server in (first, copy)]
        self.assertEqual(len(set(workers)), 2)
        for server in (first, copy):
            ids += snowflakes(server, 1000)
        self.assertEqual(len(set(ids)), len(ids))

    def test_a_copy_of_a_worker_given_by_hand_is_refused(self):
        """On another host, so that the kernel cannot tell; the file itself knows that it was copied."""
        settings = {**QUICK, "snowflake.registry": "fixed:5", "store.url": "sqlite:leafd.db"}
        first = self.server(settings).start()
        ids = [wait_serving(first), *snowflakes(first, 1000)]
        first.kill()
        copy = self.server(settings)
        copy_state(first, copy)
        Namespace(self).start(copy)
        wait_until(lambda: "cop" in mode(copy)["reason"], 5, "the refusal")
        self.assertEqual(mode(copy)["state"], "unavailable")
        self.assertIn(copy.folder, mode(copy)["reason"], "names the file")
        self.assertFalse(serves(copy))
        first.start()
        ids += [wait_serving(first), *snowflakes(first, 1000)]
        self.assertEqual(ids, sorted(set(ids)))

    def test_no_state_file_is_made_through_a_symlink(self):
        settings = {**QUICK, "snowflake.registry": "fixed:5", "store.url": "sqlite:leafd.db", "snowflake.identity": "app:8080"}
        model = self.server(settings).start()
        wait_serving(model)
        self.assertEqual(model.stop(), 0)
        names = [name for name in os.listdir(model.folder + "/state") if name.startswith("snowflake")]
        self.assertGreater(len(names), 2, names)
        for name in names:
            with self.subTest(name):
                victim = self.write("victim", b"")
                server = self.server(settings)
                os.mkdir(server.folder + "/state", 0o700)
                os.symlink(victim, f"{server.folder}/state/{name}")
                server.launch()
                # Refused by the program or by the mode, in words that name the file.
                wait_until(lambda server=server: not server.child.alive() or serves(server) or name in server.log(), 10, "an answer")
                self.assertFalse(serves(server))
                self.assertIn(name, server.log())
                self.assertEqual(os.path.getsize(victim), 0)
                server.kill()


class LeafLayoutTest(ZooKeeperRightCase):
    """Leaf's layout, where a restart needs the same worker: the journal lets it go on without ZooKeeper."""

    layout = "leaf"

    def setUp(self):
        super().setUp()
        self.addCleanup(self.up)

    def down(self):
        self.zookeeper.kill()

    def up(self):
        if not self.zookeeper.child.alive():
            self.zookeeper.start()

    def running(self, settings=None, **options):
        """A server that has minted, and its ids."""
        server = self.server(settings, **options).start()
        return server, [wait_serving(server, 20), *snowflakes(server, 1000)]

    def test_without_zookeeper_one_of_two_copies_serves(self):
        first, ids = self.running()
        self.down()
        first.kill()
        copy = self.server({**QUICK, "snowflake.identity": first.settings["snowflake.identity"]})
        copy_state(first, copy)
        first.start()
        Namespace(self, outside=[self.zookeeper.port]).start(copy)
        ids += [wait_serving(first), *snowflakes(first, 1000)]
        first.wait_log("goes on by this server's own journal")
        copy.wait_log("written elsewhere")
        self.assertEqual(mode(copy)["state"], "unavailable")
        # And when ZooKeeper is back, the one that lives is seen by the other.
        self.up()
        wait_until(lambda: mode(first) == {"state": "ok", "reason": ""}, 10, "the first one's claim")
        wait_until(lambda: "runs already" in mode(copy)["reason"], 15, "the copy's refusal")
        self.assertFalse(serves(copy))
        ids += snowflakes(first, 1000)
        self.assertEqual(ids, sorted(set(ids)))

    def test_a_restart_without_zookeeper_goes_on_up_to_its_limit(self):
        server, ids = self.running({**QUICK, "snowflake.lease": f"{int(5 * TIME_FACTOR)}s"})
        self.down()
        server.kill()
        server.start()
        ids += [wait_serving(server), *snowflakes(server, 1000)]
        wait_until(lambda: mode(server)["state"] == "unavailable", 15, "the limit")
        answer = server.get("/api/v1/snowflake", timeout=20)
        self.assertEqual((answer.status, answer.code), (503, "unavailable"))
        self.assertRegex(answer.json()["detail"], "was not extended: .*zookeeper")
        self.up()
        ids += [wait_serving(server, 20), *snowflakes(server, 1000)]
        self.assertEqual(ids, sorted(set(ids)))
        self.assertEqual(len({parts(one).worker for one in ids}), 1)

    def test_a_clock_that_went_back_an_hour(self):
        clock = FakeClock(self.folder)
        self.addCleanup(lambda: FakeClock.forget(server.child.pid))
        server, ids = self.running(QUICK, wrapper=clock.wrapper)
        self.down()
        server.kill()
        FakeClock.forget(server.child.pid)
        clock.step(-3600)
        server.start()
        wait_until(lambda: "the clock is behind" in mode(server)["reason"], 10, "the refusal")
        self.assertEqual(server.get("/api/v1/snowflake", timeout=20).code, "unavailable")
        clock.restore()
        self.up()
        ids += [wait_serving(server, 20), *snowflakes(server, 1000)]
        self.assertEqual(ids, sorted(set(ids)))


if __name__ == "__main__":
    unittest.main()
