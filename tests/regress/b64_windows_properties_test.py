"""B64: a properties file that went through Windows. A byte order mark hid the first setting, and the
server ran on a default database (lsfusion/platform #1710); blanks stuck to values (UnifiedViews/Core #309)."""

import re
import unittest

from leaftest import MariaDbCase, run_leafd


class WindowsPropertiesTest(MariaDbCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.database.sql("CREATE USER blank@'%' IDENTIFIED BY 'pass '")
        cls.database.sql("CREATE USER 'caf\u00e9'@'%' IDENTIFIED BY 'leaf'")
        for user in ("blank", "caf\u00e9"):
            cls.database.sql("GRANT SELECT, UPDATE ON leaf.* TO %s@'%%'", (user,))

    def lines(self, **changes):
        """The settings in order; the first one is the one that a byte order mark would hide."""
        settings = {"leaf.jdbc.url": self.database.jdbc_url(), "leaf.jdbc.username": "leaf", "leaf.jdbc.password": "leaf",
                    "leaf.snowflake.enable": "false", "server.port": "8085", **changes}
        return [f"{key}={value}" for key, value in settings.items()]

    def effective(self, content):
        """The values that --print-config shows, by key."""
        path = self.write("leaf.properties", content)
        done = run_leafd("--config", path, "--print-config")
        self.assertEqual(done.returncode, 0, done.stderr)
        return {key: value for key, value in re.findall(r"^(\S+) = (.*?)  # ", done.stdout, re.M)}

    def refused(self, content, line):
        path = self.write("leaf.properties", content)
        done = run_leafd("--config", path, "--check")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(f"{path}:{line}", done.stderr)

    def test_the_same_settings_in_every_dress(self):
        plain = "\n".join(self.lines()) + "\n"
        expected = self.effective(plain)
        self.assertIn("0.0.0.0:8085", expected["server.listen"])
        self.assertIn(str(self.database.port), expected["store.url"])
        dresses = {
            "byte order mark": b"\xef\xbb\xbf" + plain.encode(),
            "CRLF": plain.replace("\n", "\r\n").encode(),
            "byte order mark and CRLF": b"\xef\xbb\xbf" + plain.replace("\n", "\r\n").encode(),
            "CR only": plain.replace("\n", "\r").encode(),
            "no final newline": plain.rstrip("\n").encode(),
            "key : value": re.sub(r"(?m)^([^=]+)=", r"\1 : ", plain).encode(),
            "key value": re.sub(r"(?m)^([^=]+)=", r"\1 ", plain).encode(),
            "leading blanks": re.sub(r"(?m)^", " \t", plain).encode(),
            "escaped letters": plain.replace("leaf.jdbc.url", "leaf\\u002ejdbc.url").encode(),
            "line continuation": plain.replace("jdbc:mysql:", "jdbc:\\\n   mysql:").encode(),
            "line continuation with CRLF": plain.replace("jdbc:mysql:", "jdbc:\\\n   mysql:").replace("\n", "\r\n").encode(),
            "trailing blanks after a number": plain.replace("8085", "8085  \t").encode(),
            "comments and empty lines": ("# one\n\n! two\n" + plain).encode(),
            "the last of two counts": ("server.port=1\n" + plain).encode(),
        }
        for name, content in dresses.items():
            with self.subTest(name):
                self.assertEqual(self.effective(content), expected)

    def test_an_escape_names_the_letter(self):
        tag = self.tag()
        content = "\n".join(self.lines(**{"leaf.jdbc.username": "caf\\u00e9"})) + "\n"
        server = self.leafd(config=self.write("leaf.properties", content)).start()
        self.assertEqual(server.id(tag), 1)

    def test_what_cannot_be_read_is_refused_with_its_line(self):
        plain = "\n".join(self.lines()) + "\n"
        for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
            with self.subTest(encoding):
                self.refused(plain.encode(encoding), 1)
        self.refused(plain.replace("server.port", "server\0port").encode(), 5)

    def test_it_serves_from_the_database_it_names(self):
        tag = self.tag()
        content = b"\xef\xbb\xbf" + "\r\n".join(self.lines()).encode()
        server = self.leafd(config=self.write("leaf.properties", content)).start()
        self.assertEqual(server.id(tag), 1)

    def test_blanks_behind_a_password_belong_to_it_as_in_java(self):
        tag = self.tag()
        changes = {"leaf.jdbc.username": "blank", "leaf.jdbc.password": "pass "}
        content = "\r\n".join(self.lines(**changes)) + "\r\n"
        server = self.leafd(config=self.write("leaf.properties", content)).start()
        self.assertEqual(server.id(tag), 1)


if __name__ == "__main__":
    unittest.main()
