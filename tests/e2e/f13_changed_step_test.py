"""F13: the step is changed while reservations are under way. A range computed from the step that was
read later would overlap with another."""

import random
import time
import unittest

from leaftest import MariaDbCase, pick, wait_until


class ChangedStepTest(MariaDbCase):
    def test_random_steps_under_load(self):
        seed = random.SystemRandom().randrange(2**32)
        print(f"seed {seed}")
        chance = random.Random(seed)
        tag = self.tag(step=10)
        servers = [self.start_mysql_leafd({"segment.refresh": "1s", "segment.policy": "fixed"}) for _ in range(2)]
        load = self.start_load(servers, tag, connections=8, path="ids", n=50, duration=pick(3, 3600))
        changes = 0
        while load.running():
            step = int(10 ** (chance.random() * 5))
            self.database.sql("UPDATE leaf.leaf_alloc SET step = %s WHERE biz_tag = %s", (step, tag))
            changes += 1
            time.sleep(0.002)
        self.assert_all_served(load.report())
        self.assertGreater(changes, 100)
        self.check("--high", f"{tag}={self.database.max_id(tag)}")

    def test_a_changed_step_acts_within_two_refresh_intervals(self):
        tag = self.tag(step=10)
        server = self.start_mysql_leafd({"segment.refresh": "1s", "segment.policy": "fixed"})
        server.id(tag)
        self.database.sql("UPDATE leaf.leaf_alloc SET step = 500 WHERE biz_tag = %s", (tag,))
        wait_until(lambda: server.tag(tag)["step"] == 500, 3, "the new step")
        top = self.database.max_id(tag)
        wait_until(lambda: server.id(tag) and self.database.max_id(tag) >= top + 500, what="a lease of the new size")


if __name__ == "__main__":
    unittest.main()
