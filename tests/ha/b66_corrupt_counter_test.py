"""B66, and B14, B18, B22 on etcd: a counter that is no number, or not the one that was left there
(PerpetualSoftware/pad PR #1182). B62: a store that leafd does not offer is an error, not another store."""

import sqlite3
import unittest

from leaftest import Etcd, HaCase, run_leafd, wait_until

MAX = 2**63 - 1


class EtcdValueTest(HaCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.etcd = Etcd(1)
        cls.addClassCleanup(cls.etcd.remove)
        cls.etcd.start()

    def start_server(self, settings=None):
        return self.start_on(self.etcd.url(), {"segment.policy": "fixed", "segment.wait": "400ms", **(settings or {})})

    def test_b66_a_value_that_is_no_row_is_named_left_alone_and_heals(self):
        server = self.start_server()
        bad = {"abc": "abc", "empty": "", "digits": '{"max_id":"12345678901234567890","step":10}', "blank": ' {"max_id":"1","step":10}',
               "binary": b"\x00\xff\x80", "number": '{"max_id":1,"step":10}', "cut": '{"max_id":"1","st', "step": '{"max_id":"1","step":0}',
               "negative": '{"max_id":"-5","step":10}'}
        for tag, value in bad.items():
            with self.subTest(tag):
                key = self.etcd.tag_key(tag)
                self.etcd.set(key, value)
                answer = server.get(f"/api/v1/ids/{tag}")
                self.assert_refused(answer)
                self.assertIn(tag, answer.json()["detail"])
                self.assertEqual(self.etcd.get(key), value if isinstance(value, bytes) else value.encode(), "it is left as it is")
                self.etcd.put(tag, 1, 10)
                self.wait_served(server, tag)

    def test_b66_the_largest_number_is_the_end_of_the_ids(self):
        self.etcd.put("largest", MAX, 10)
        server = self.start_server()
        answer = server.get("/api/v1/ids/largest")
        self.assertEqual((answer.status, answer.code), (410, "exhausted"), answer)
        self.assertEqual(self.etcd.max_id("largest"), MAX)

    def test_b14_b22_a_key_that_went_back_stops_the_tag(self):
        for name, change in (("restored", lambda tag: self.etcd.put(tag, 1, 10)), ("again", self.delete_and_make)):
            with self.subTest(name):
                self.etcd.put(name, 1, 10)
                server = self.start_server()
                end = max(first + count for first, count in server.ranges(name, 500))
                change(name)
                answer = self.refusal(server, name, n=10)
                self.assertEqual((answer.status, answer.code), (500, "regressed"), answer)
                wait_until(lambda: self.etcd.max_id(name) >= end, what="the raised row")  # pylint: disable=cell-var-from-loop

    def delete_and_make(self, tag):
        self.etcd.delete(self.etcd.tag_key(tag))
        self.etcd.put(tag, 1, 10)

    def test_b18_after_drop_the_next_id_is_above_what_a_tool_has_set(self):
        self.etcd.put("moved")
        server = self.start_server()
        self.assertEqual(server.id("moved"), 1)
        self.etcd.put("moved", 10_000_001)
        self.assertLess(server.id("moved"), 10_000_001, "held ids are still its own")
        self.assertEqual(server.admin("POST", "/api/v1/tags/moved/drop").status, 200)
        wait_until(lambda: server.id("moved") >= 10_000_001, 1, "ids above the new mark")


class SqliteValueTest(HaCase):
    def test_b66_text_in_the_column_is_named_left_alone_and_heals(self):
        server = self.start_leafd({"segment.policy": "fixed", "segment.wait": "400ms"})
        with sqlite3.connect(server.folder + "/state/leafd.db", isolation_level=None) as file:
            for number, value in enumerate(("abc", "", b"\x00\xff", 1.5, "12345678901234567890")):
                with self.subTest(value):
                    tag = f"t{number}"
                    server.put_tag(tag, step=10)
                    file.execute("UPDATE leaf_alloc SET max_id = ? WHERE biz_tag = ?", (value, tag))
                    self.assert_refused(server.get(f"/api/v1/ids/{tag}"), tag, "max_id")
                    stored, = file.execute("SELECT max_id FROM leaf_alloc WHERE biz_tag = ?", (tag,)).fetchone()
                    self.assertEqual(stored, float(value) if number == 4 else value, "it is left as it is")
                    file.execute("UPDATE leaf_alloc SET max_id = 1000000 WHERE biz_tag = ?", (tag,))
                    self.wait_served(server, tag)
                    self.assertGreaterEqual(server.id(tag), 1000000)


class StoreThatIsNotOfferedTest(unittest.TestCase):
    def test_b62_redis_is_refused_by_name(self):
        for url in ("redis://127.0.0.1:6379/0", "rediss://h/", "valkey://h"):
            with self.subTest(url):
                done = run_leafd("--check", "--set", f"store.url={url}")
                self.assertEqual(done.returncode, 1, done)
                said = done.stdout + done.stderr
                self.assertIn("store.url", said)
                self.assertIn("scheme", said)
                for offered in ("mysql", "postgres", "etcd", "sqlite"):
                    self.assertIn(offered, said)


if __name__ == "__main__":
    unittest.main()
