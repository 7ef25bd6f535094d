"""F03: the database commits and its answer is lost. The range is burnt: a gap, never a second try."""

import unittest

from leaftest import TIME_FACTOR, MariaDbCase, pick

ROUNDS = pick(20, 1000)


class LostAcknowledgementTest(MariaDbCase):
    def test_a_swallowed_answer_costs_one_range(self):
        tag = self.tag(step=1)
        proxy = self.proxy(self.database.port)
        server = self.mysql_leafd({"segment.policy": "fixed"}, port=proxy.port).start()
        updates = proxy.watch("^UPDATE")
        ids = [server.id(tag)]
        for _ in range(ROUNDS):
            lost = proxy.rule("reply", "swallow", match="^UPDATE", times=1)
            while not lost.hits:
                ids.append(server.id(tag))
            ids.append(server.id(tag))
        self.assertEqual(ids, sorted(set(ids)), "rising, none twice")
        # Step 1, one caller: each UPDATE, lost or not, took one id. None was repeated by the driver.
        self.assertEqual(self.database.max_id(tag) - 1, updates.count)
        self.assertGreaterEqual(server.metric("leafd_ids_discarded_total", reason="burnt"), ROUNDS)

    def test_under_load_with_lost_answers_nobody_fails(self):
        tag = self.tag(step=20)
        proxy = self.proxy(self.database.port)
        server = self.mysql_leafd({"segment.policy": "fixed"}, port=proxy.port).start()
        rule = proxy.rule("reply", "swallow", match="^UPDATE", probability=0.1)
        report = self.load(server, tag, connections=16, duration=pick(2.5, 60), rate=1000)
        self.assert_all_served(report)
        self.assertGreater(rule.hits, 0)
        self.assertLess(report["max_us"], 3e6 * TIME_FACTOR)
        self.check("--high", f"{tag}={self.database.max_id(tag)}")

    def test_a_cut_before_the_statement_costs_nothing(self):
        tag = self.tag(step=1)
        proxy = self.proxy(self.database.port)
        server = self.mysql_leafd({"segment.policy": "fixed"}, port=proxy.port).start()
        last = server.id(tag)
        for _ in range(5):
            cut = proxy.rule("command", "reset", match="^UPDATE", times=1)
            while not cut.hits:
                last = server.id(tag)
        self.assertGreater(server.id(tag), last)
        # A cut connection looks the same to the server whether the statement ran or not: it is burnt
        # in the books, but the row shows that no id was spent.
        self.assertLessEqual(self.database.max_id(tag), last + 6)


if __name__ == "__main__":
    unittest.main()
