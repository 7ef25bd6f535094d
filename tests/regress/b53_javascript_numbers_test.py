"""B53 and F46: a JSON number above 2^53 loses its last digits in JavaScript (vipermind/flake-idgen #8
and others). What each JSON endpoint says goes through JSON.parse and back unchanged, and ids of the
js53 layout are exact even as numbers."""

import json
import subprocess
import unittest

from leaftest import SnowflakeCase, pick

# Judges each line of its input, the text of an answer: the first that comes back otherwise is told.
SCRIPT = """
const texts = JSON.parse(require('fs').readFileSync(0, 'utf8'));
for (const [path, text] of texts) {
  const again = JSON.stringify(JSON.parse(text));
  if (again !== text) { console.log(path + ': ' + text + ' became ' + again); process.exit(1); }
}
console.log(texts.length + ' round trips');
"""
NUMBERS = """
const ids = JSON.parse(require('fs').readFileSync(0, 'utf8'));
for (const id of ids) {
  if (!Number.isSafeInteger(Number(id)) || String(Number(id)) !== id) { console.log(id); process.exit(1); }
}
console.log(ids.length + ' safe numbers');
"""


class JavascriptNumbersTest(SnowflakeCase):
    def node(self, script, value):
        return subprocess.run(["node", "-e", script], input=json.dumps(value), capture_output=True, text=True, timeout=60,
                              check=False)

    def test_the_judge_sees_a_lost_digit(self):
        done = self.node(SCRIPT, [["planted", '{"id":9007199254740993}']])
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        done = self.node(NUMBERS, ["9007199254740993"])
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)

    def test_every_endpoint_survives_the_round_trip(self):
        server = self.start_leafd()
        server.put_tag("t", max_id=2**62)
        number = self.wait_for_ids(server)
        main = ["/api/v1/snowflake", "/api/v1/snowflake?n=100", "/api/v1/ids/t", "/api/v1/ids/t?n=3", "/api/v1/ranges/t?n=10",
                f"/api/v1/decode/{number}", f"/api/v1/decode/{2**63 - 1}", f"/decodeSnowflakeId?snowflakeId={number}",
                "/api/v1/ids/no%20such%20tag", "/api/v1/snowflake?n=0"]
        admin = ["/api/v1/status", "/api/v1/workers", "/api/v1/tags", "/api/v1/tags/t", "/readyz", "/healthz"]
        texts = []
        for _ in range(pick(20, 10_000)):
            texts += [(path, server.get(path).text) for path in main]
        texts += [(path, server.admin_get(path).text) for path in admin]
        for path, text in texts:
            self.assertNotIn("\\n", text, path)
        done = self.node(SCRIPT, texts)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"{len(texts)} round trips", done.stdout)

    def test_numbers_of_the_js53_layout(self):
        server = self.start_leafd({"snowflake.layout": "js53"})
        self.wait_for_ids(server)
        ids = [str(one) for _ in range(pick(20, 1000)) for one in self.snowflakes(server, 100)]
        done = self.node(NUMBERS, ids)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"{len(ids)} safe numbers", done.stdout)
        leafs = [str(self.snowflakes(self.start_leafd())[0])]
        self.assertEqual(self.node(NUMBERS, leafs).returncode, 1, "Leaf's own layout is not safe, which is why JSON has strings")


if __name__ == "__main__":
    unittest.main()
