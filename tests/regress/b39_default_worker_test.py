"""B39: two servers without any setting must not both be worker 0 without a word
(apache/shardingsphere #5822, #17055; baidu/uid-generator #46, #99; mybatis-plus #6055)."""

import unittest

from leaftest import SnowflakeCase, free_port


class DefaultWorkerTest(SnowflakeCase):
    def leafd(self, settings=None, **options):
        server = super().leafd(settings, **options)
        del server.settings["snowflake.name"]
        return server

    def test_on_one_host_each_has_its_own(self):
        servers = [self.start_leafd() for _ in range(4)]
        workers = [self.decoded(server, self.wait_for_ids(server))["worker"] for server in servers]
        self.assertEqual(len(set(workers)), 4, workers)
        self.assertEqual(workers, [self.view(server)["worker"] for server in servers])
        self.assert_all_served(self.mint(servers, requests=4000, connections=8, n=10))
        self.check("--min-ids", "40000")

    def test_whoever_listens_beyond_this_host_has_to_be_told(self):
        server = self.leafd()
        server.arguments += ["--listen", f"0.0.0.0:{free_port()}"]
        server.start()
        _, reason = self.wait_for_mode(server, "unavailable", "snowflake.registry")
        answer = server.get("/api/v1/snowflake")
        self.assertEqual((answer.status, answer.code), (503, "unavailable"), answer)
        self.assertIn("snowflake.registry", answer.json()["detail"])
        self.assertEqual(server.get("/api/snowflake/get/x").status, 500)
        server.wait_log("snowflake.registry")  # the log of the start says so too
        server.put_tag("t")
        self.assertEqual(server.id("t"), 1, reason)

    def test_told_by_hand_it_serves(self):
        server = self.leafd({"snowflake.registry": "fixed:703"})
        server.arguments += ["--listen", f"0.0.0.0:{free_port()}"]
        server.start()
        self.assertEqual(self.decoded(server, self.wait_for_ids(server))["worker"], 703)


if __name__ == "__main__":
    unittest.main()
