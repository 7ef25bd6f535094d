"""ZooKeeper with digest authentication: the right user serves, a wrong password and none at all are told
what is missing, and no secret is shown."""

import unittest

from leaftest import wait_until
from leaftest.rights import ZooKeeperRightCase, mode, parts, serves, snowflakes, wait_serving, workers


class AuthTest(ZooKeeperRightCase):
    def registry_as(self, user):
        """Nodes that it makes are that user's alone."""
        at = f"{user}@" if user else ""
        private = "&acl=creator" if user else ""
        return {"snowflake.wait": "300ms", "snowflake.registry": f"zookeeper://{at}127.0.0.1:{self.zookeeper.port}/?layout={self.layout}{private}"}

    def test_users(self):
        first = self.server(self.registry_as("leaf:s3cret")).start()
        ids = [wait_serving(first, 20)]
        strangers = {user: self.server(self.registry_as(user)).start() for user in ("leaf:wr0ng", "")}
        for user, server in strangers.items():
            wait_until(lambda server=server: "refuse" in mode(server)["reason"], 10, f"the refusal of {user!r}")
            self.assertEqual(mode(server)["state"], "unavailable")
            self.assertIn("user", mode(server)["reason"], "and what to do")
            answer = server.get("/api/v1/snowflake", timeout=20)
            self.assertEqual((answer.status, answer.code), (503, "unavailable"))
            self.assertIn("refuse", answer.json()["detail"])
        second = self.server(self.registry_as("leaf:s3cret")).start()
        ids += [wait_serving(second, 20), *snowflakes(first, 100), *snowflakes(second, 100)]
        self.assertEqual(len(set(ids)), len(ids))
        self.assertEqual({parts(one).worker for one in ids}, set(workers(first)))
        # What a refused server does harms nobody, and what it says betrays nobody.
        self.assertFalse(any(serves(server) for server in strangers.values()))
        for server in (first, second, *strangers.values()):
            shown = server.log() + server.admin_get("/api/v1/config").text + server.admin_get("/api/v1/status").text
            self.assertNotRegex(shown, "s3cret|wr0ng")
            self.assertEqual(server.stop(), 0)


class LeafAuthTest(AuthTest):
    layout = "leaf"


if __name__ == "__main__":
    unittest.main()
