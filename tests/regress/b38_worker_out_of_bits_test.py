"""B38 and F41: a worker id that does not fit its bits corrupts the time, so that two different times
give one id (baidu/uid-generator PR #52, sony/sonyflake PR #72). Given by hand it is read strictly."""

import unittest

from leaftest import SnowflakeCase, run_leafd

BAD = ("1024", "4096", "-1", "+7", "1e3", "2147483648", "9223372036854775808", "18446744073709551617", "0x10",
       "\N{FULLWIDTH DIGIT ONE}\N{FULLWIDTH DIGIT TWO}", "${WORKER}", "", "7 ", " 7", "7.0", "seven")
GOOD = ("0", "7", "1023")


class WorkerOutOfBitsTest(SnowflakeCase):
    def ways(self, worker, settings=""):
        """(where it was given, the outcome of --check) by flag, environment and file."""
        url = f"fixed:{worker}"
        text = f'[snowflake]\nregistry = "{url}"\n{settings}'
        path = self.write("leafd.toml", text)
        flags = []
        for line in settings.splitlines():
            flags += ["--set", "snowflake." + line.replace('"', "").replace(" = ", "=")]
        yield "flag", run_leafd("--check", *flags, "--set", f"snowflake.registry={url}")
        yield "LEAFD_SNOWFLAKE_REGISTRY", run_leafd("--check", *flags, env={"LEAFD_SNOWFLAKE_REGISTRY": url})
        yield path + ":2", run_leafd("--check", "--config", path)

    def test_only_what_fits_is_accepted(self):
        for worker in BAD:
            for where, done in self.ways(worker):
                with self.subTest(worker=worker, where=where):
                    self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                    text = done.stdout + done.stderr
                    self.assertIn(where.split(":")[0] if where == "flag" else where, text)
                    self.assertIn("snowflake.registry", text)
        for worker in GOOD:
            for where, done in self.ways(worker):
                with self.subTest(worker=worker, where=where):
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_bits_are_those_of_the_layout(self):
        for layout, most in (('layout = "js53"\n', 31), ('layout = "custom"\nbits = "41/3/12"\n', 7)):
            for where, done in self.ways(most, layout):
                self.assertEqual(done.returncode, 0, f"{where} {most}: {done.stdout}{done.stderr}")
            for where, done in self.ways(most + 1, layout):
                self.assertEqual(done.returncode, 1, f"{where} {most + 1}: {done.stdout}{done.stderr}")
                self.assertIn(str(most), done.stdout + done.stderr, "what would fit")

    def test_an_environment_that_is_not_expanded(self):
        path = self.write("leafd.toml", '[snowflake]\nregistry = "fixed:${WORKER}"\n')
        done = run_leafd("--check", "--config", path)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("WORKER", done.stdout + done.stderr)
        done = run_leafd("--check", "--config", path, env={"WORKER": "12"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_largest_worker_leaves_the_time_alone(self):
        server = self.start_leafd({"snowflake.registry": "fixed:1023"})
        first = self.wait_for_ids(server)
        before = self.clock.now_ms()
        parts = self.decoded(server, self.snowflakes(server)[0])
        self.assertEqual(parts["worker"], 1023)
        self.assertLess(abs(parts["time_ms"] - before), 2000)
        self.assertGreater(int(parts["id"]), first)

    def test_a_worker_given_twice_on_one_host(self):
        one = self.start_leafd({"snowflake.registry": "fixed:5"})
        self.wait_for_ids(one)
        two = self.start_leafd({"snowflake.registry": "fixed:5"})
        self.wait_for_mode(two, "unavailable", "worker 5 is in use by another process of this host")
        self.assertEqual(two.get("/api/v1/snowflake").code, "unavailable")
        self.snowflakes(one)
        self.assertEqual(one.stop(), 0)
        self.wait_for_ids(two)


if __name__ == "__main__":
    unittest.main()
