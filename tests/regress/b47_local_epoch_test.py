"""B47 and F45: an epoch read in the local time zone shifts ids between hosts (yitter/IdGenerator #60,
uid-generator). Three servers in three zones mint the same time and read each other's ids alike."""

import time
import unittest

from leaftest import SnowflakeCase

ZONES = ("UTC", "Asia/Shanghai", "America/New_York")


class LocalEpochTest(SnowflakeCase):
    def test_zones_agree(self):
        servers = [self.start_leafd(env={"TZ": zone}) for zone in ZONES]
        for server in servers:
            self.wait_for_ids(server)
        before = time.time() * 1000
        ids = [self.snowflakes(server)[0] for server in servers]
        after = time.time() * 1000
        for number in ids:
            said = [self.decoded(server, number) for server in servers]
            self.assertEqual(said[0], said[1])
            self.assertEqual(said[0], said[2])
            # A clock's reading is cut to the millisecond, and what was minted before may be ahead.
            self.assertTrue(before - 1100 <= said[0]["time_ms"] <= after + 100, (before, said[0], after))
            self.assertEqual(said[0]["time_ms"], (number >> 22) + 1288834974657)
            whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(said[0]["time_ms"] // 1000))
            self.assertEqual(said[0]["time"], f"{whole}.{said[0]['time_ms'] % 1000:03d}Z")
        # Leaf's own page adds the local time in brackets, as Leaf does.
        for server in servers:
            stamp = server.get(f"/decodeSnowflakeId?snowflakeId={ids[0]}").json()["timestamp"]
            self.assertEqual(stamp.partition("(")[0], str(self.decoded(server, ids[0])["time_ms"]))


if __name__ == "__main__":
    unittest.main()
