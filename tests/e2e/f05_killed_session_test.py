"""F05: the database's administrator kills leafd's session between any two packets."""

import random
import time
import unittest

from leaftest import MariaDbCase, pick

import pymysql


class KilledSessionTest(MariaDbCase):
    def test_no_request_fails_and_no_id_comes_twice(self):
        seed = random.SystemRandom().randrange(2**32)
        print(f"seed {seed}")
        chance = random.Random(seed)
        tag = self.tag(step=10)
        server = self.start_mysql_leafd({"segment.policy": "fixed"})
        load = self.start_load(server, tag, connections=8, duration=pick(5, 120), rate=2000)
        killed = 0
        with self.database.connect() as side, side.cursor() as cursor:
            while load.running():
                for session in self.database.sessions():
                    try:
                        cursor.execute(f"KILL {session}")
                        killed += 1
                    except pymysql.err.OperationalError:
                        pass  # it has gone already
                time.sleep(chance.random() * 0.25)  # a new session needs some time of its own
        report = load.report()
        self.assertGreater(killed, 20)
        self.assert_all_served(report)
        self.check("--high", f"{tag}={self.database.max_id(tag)}")


if __name__ == "__main__":
    unittest.main()
