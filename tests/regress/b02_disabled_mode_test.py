"""B02: a disabled mode is an error. Leaf answered 200 with 0 for ever, also when the key was misspelt."""

import unittest

from leaftest import LeafdCase, run_leafd


class DisabledModeTest(LeafdCase):
    def properties(self, *lines):
        return self.write("leaf.properties", "\n".join(["leaf.snowflake.enable=false", *lines]) + "\n")

    def test_the_disabled_mode_is_named_and_never_yields_zero(self):
        server = self.leafd(config=self.properties("leaf.segment.enable=false")).start()
        for _ in range(3):
            answer = server.leaf("t")
            self.assertEqual((answer.status, answer.code), (500, "disabled"), answer)
            self.assertEqual(answer.json()["message"], "You should config leaf.segment.enable=true first")
        answer = server.get("/api/v1/ids/t")
        self.assertEqual((answer.status, answer.code), (409, "disabled"), answer)
        answer = server.get("/api/snowflake/get/t")
        self.assertEqual((answer.status, answer.code), (500, "disabled"), answer)
        self.assertEqual(answer.json()["message"], "You should config leaf.snowflake.enable=true first")

    def test_a_misspelt_key_is_a_start_error_with_a_suggestion(self):
        path = self.properties("leaf.segment.enabel=true")
        done = run_leafd("--config", path, "--check")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(f"{path}:2", done.stdout + done.stderr)
        self.assertIn("leaf.segment.enable", (done.stdout + done.stderr).replace("leaf.segment.enabel", ""))
        self.assertEqual(run_leafd("--config", path).returncode, 1, "it does not start with it either")

    def test_zero_can_be_asked_for_and_warns(self):
        server = self.leafd(config=self.properties("leaf.segment.enable=false"),
                            settings={"compat.disabled_returns_zero": "true"}).start()
        answer = server.leaf("t")
        self.assertEqual((answer.status, answer.text), (200, "0"))
        server.wait_log("disabled_returns_zero")


if __name__ == "__main__":
    unittest.main()
