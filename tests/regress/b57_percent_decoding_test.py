"""B57: a path is split first and then decoded, once (scylladb/seastar #725, mattn/http-server PR #3)."""

import unittest

from leaftest import MariaDbCase, raw_request

V1 = "/api/v1/ids/"
LEAF = "/api/segment/get/"


class PercentDecodingTest(MariaDbCase):
    def setUp(self):
        super().setUp()
        for tag in ("a#b", "a/b", "a b", "a+b", "a%b", "plain"):
            self.database.put(tag, 1, 1000)
        self.server = self.start_mysql_leafd({"segment.wait": "500ms"})

    def get(self, target, **options):
        return raw_request(self.server.port, target, **options)

    def test_a_tag_is_found_by_its_encoded_name(self):
        for tag, encoded in (("a#b", "a%23b"), ("a/b", "a%2Fb"), ("a/b", "a%2fb"), ("a b", "a%20b"), ("a+b", "a+b"),
                             ("a+b", "a%2Bb"), ("a%b", "a%25b"), ("plain", "%70lain")):
            with self.subTest(encoded):
                answer = self.get(V1 + encoded)
                self.assertEqual(answer.status, 200, answer)
                self.assertEqual(answer.json()["tag"], tag)

    def test_it_is_decoded_once(self):
        for encoded in ("a%2523b", "a%252Fb", "a%2520b"):
            with self.subTest(encoded):
                self.assertEqual(self.get(V1 + encoded).code, "not_found")

    def test_plus_is_no_blank(self):
        self.assertEqual(self.get(V1 + "plai+n").code, "not_found")

    def test_a_malformed_escape_is_a_bad_request_on_every_path(self):
        for bad in ("%", "%2", "%zz", "a%", "a%2", "%00", "a%00b"):
            for prefix in (V1, LEAF):
                with self.subTest(prefix + bad):
                    self.assertEqual(self.get(prefix + bad).status, 400)

    def test_dots_are_a_name_and_never_a_way_out(self):
        for dots in ("%2e%2e%2fadmin", "%2e%2e", "..%2f..%2fapi"):
            with self.subTest(dots):
                answer = self.get(V1 + dots)
                self.assertIn(answer.code, ("not_found", "invalid_argument"), answer)
        self.assertNotEqual(self.get("/api/v1/../../metrics").status, 200)

    def test_doubled_slashes_are_not_found(self):
        for target in ("//", "//api/segment/get/plain", "/api//segment/get/plain", "/api/v1//ids/plain"):
            with self.subTest(target):
                self.assertEqual(self.get(target).status, 404)

    def test_what_leaf_accepts(self):
        for target in (LEAF + "plain/", LEAF + "plain?x=1", "http://x" + LEAF + "plain"):
            with self.subTest(target):
                self.assertEqual(self.get(target).status, 200)

    def test_a_fragment_never_belongs_to_a_request(self):
        self.assertEqual(self.get(LEAF + "plain#f").status, 400)

    def test_methods_as_documented(self):
        """On Leaf's path every method takes an id, HEAD too; below /api/v1/ HEAD does not."""
        first = int(self.get(LEAF + "plain").text)
        head = self.get(LEAF + "plain", method="HEAD")
        self.assertEqual((head.status, head.body), (200, b""))
        self.assertEqual(int(head.headers["content-length"]), len(str(first + 1)))
        self.assertEqual(int(self.get(LEAF + "plain", method="POST").text), first + 2)
        options = self.get(LEAF + "plain", method="OPTIONS")
        self.assertEqual(options.status, 200)
        self.assertIn("HEAD", options.headers["allow"])
        self.assertEqual(self.get(V1 + "plain", method="HEAD").status, 405)
        self.assertEqual(int(self.get(LEAF + "plain").text), first + 3, "OPTIONS and the refused HEAD took none")

    def test_encoded_slashes_are_refused_like_leaf_does_under_its_configuration(self):
        path = self.write("leaf.properties", "leaf.snowflake.enable=false\nleaf.segment.enable=true\n"
                          f"leaf.jdbc.url={self.database.jdbc_url()}\nleaf.jdbc.username=leaf\nleaf.jdbc.password=leaf\n")
        server = self.leafd(config=path).start()
        for target in (LEAF + "a%2Fb", LEAF + "a%5Cb"):
            self.assertEqual(raw_request(server.port, target).status, 400)
        self.assertEqual(raw_request(server.port, LEAF + "plain").status, 200)


if __name__ == "__main__":
    unittest.main()
