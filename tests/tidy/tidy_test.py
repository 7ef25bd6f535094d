"""Each rule of tidy.py finds what it is there for, and leaves the innocent alone."""

import json
import pathlib
import tempfile
import unittest

import tidy


class TidyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "tests").mkdir()

    def write(self, path, text):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def found(self, build=None):
        return list(tidy.findings(self.root, build))

    def assert_one(self, words):
        found = self.found()
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def test_an_upward_include_is_found(self):
        self.write("src/core/a.cc", '#include "store/driver.h"\n')
        self.assert_one("core may not include store")

    def test_a_downward_include_is_allowed(self):
        self.write("src/store/sqlite/a.cc", '#include "core/segment/range.h"\n#include "leaf/result.h"\n')
        self.assertEqual(self.found(), [])

    def test_a_store_may_not_include_another_store(self):
        self.write("src/store/sqlite/a.cc", '#include "store/mysql/mysql_driver.h"\n')
        self.assert_one("store/sqlite may not include store/mysql")

    def test_a_front_end_may_not_include_a_store(self):
        self.write("src/frontend/a.cc", '#include "store/driver.h"\n')
        self.assert_one("frontend may not include store")

    def test_a_driver_header_outside_its_room_is_found(self):
        self.write("src/core/a.cc", "#include <sqlite3.h>\n")
        self.assert_one("belongs to store/sqlite")

    def test_asio_is_found_everywhere(self):
        self.write("src/server/a.cc", "#include <boost/asio/io_context.hpp>\n")
        self.assert_one("belongs to no room")

    def test_clocks_sleeps_and_threads_are_found_in_core_and_allowed_in_base(self):
        bad = "auto a = std::chrono::steady_clock::now();\nstd::this_thread::sleep_for(x);\nstd::thread t;\n"
        self.write("src/base/a.cc", bad)
        self.assertEqual(self.found(), [])
        self.write("src/core/a.cc", bad)
        self.assertEqual(len(self.found()), 3)

    def test_comments_and_strings_are_no_code(self):
        self.write("src/core/a.cc", '// std::thread\nconst char* s = "sleep(1) std::thread";\n')
        self.assertEqual(self.found(), [])

    def test_a_source_without_a_target_is_found(self):
        known = self.write("src/core/a.cc", "")
        self.write("src/core/b.cc", "")
        build = self.root / "build"
        build.mkdir()
        (build / "compile_commands.json").write_text(json.dumps([{"file": str(known)}]))
        found = self.found(build)
        self.assertEqual(len(found), 1, found)
        self.assertIn("b.cc:1: belongs to no target", found[0])

    def test_a_header_without_pragma_once_is_found(self):
        self.write("src/core/a.h", "int x;\n")
        self.assert_one("#pragma once")

    def test_a_file_that_has_outgrown_its_idea_is_found(self):
        self.write("src/core/a.cc", "\n" * 601)
        self.assert_one("at most 600 lines")

    def test_a_test_that_skips_itself_is_found(self):
        self.write("src/core/a_test.cc", "GTEST_SKIP();\n")
        self.assert_one("may not skip itself")


if __name__ == "__main__":
    unittest.main()
