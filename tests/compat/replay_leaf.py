"""Replays leaf-recorded-http.json, what a running Leaf answered, against a leafd, byte for byte.

A difference is either one of DEVIATIONS, by name, or a finding. By hand, against servers that run
on the table of leaf-recorded/README.md, in UTC, id 1 of leaf-segment-test being taken:

    replay_leaf.py --both-on HOST:PORT --both-off HOST:PORT
"""

import argparse
import html
import json
import pathlib
import re
import socket
import sys
import time

RECORDING = pathlib.Path(__file__).with_name("leaf-recorded-http.json")
MEDIA_FOR_DIGITS = ("text/plain", "application/json", "text/html", "application/xml")

LEAF_EPOCH_MS = 1288834974657
SNOWFLAKE_NEAR_MS = 60_000

# Every way in which leafd may answer otherwise than Leaf did. Each must occur, or it is to be deleted.
DEVIATIONS = {
    "reason": "the status line has a reason phrase",
    "length": "Content-Length in place of chunks",
    "disposition": "Content-Disposition is left out",
    "language": "Content-Language is left out",
    "added": "Cache-Control and X-Leafd-Code are added",
    "timestamp": "the timestamp of an error",
    "error-for-text": "an error under Accept: text/plain is 500 with the JSON body and not 406",
    "senseless-type": "a content type that makes no sense for digits is text/plain",
    "unknown-method": "an unknown method is 501 and takes no id",
    "matrix": "a matrix parameter is 404",
    "doubled-slash": "a doubled slash is 404",
    "disabled": "a disabled mode is an error and not the id 0",
    "snowflake": "a snowflake id tells leafd's own time and worker, and is above the one before",
    "error-page": "an HTML error page has the same status and message, not the same bytes",
    "page": "the pages /cache and /db have the same cells, in another row order, with other white space and escaping",
    "sheet": "the style sheet is leafd's own",
}


class Answer:
    """A response as it came."""

    def __init__(self, raw):
        head, _, self.body = raw.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        parts = lines[0].split(" ", 2)
        self.version, self.status = parts[0], int(parts[1])
        self.reason = parts[2] if len(parts) > 2 else ""
        self.headers = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:]]

    def header(self, name):
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


def request_bytes(request):
    headers = dict(request["headers"])
    if not request.get("no_host"):
        headers.setdefault("Host", "localhost:8080")
    headers.setdefault("Connection", "close")
    lines = [f"{request['method']} {request['target']} HTTP/{request['version']}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n" + request.get("body", "")).encode()


def exchange(address, request, timeout=20):
    """Sends one request on its own connection and reads its answer."""
    with socket.create_connection(address, timeout=timeout) as connection:
        connection.sendall(request_bytes(request))
        raw = b""
        while not is_whole(raw, request["method"]):
            more = connection.recv(65536)
            if not more:
                break
            raw += more
    if not raw:
        raise AssertionError("closed without an answer")
    return Answer(raw)


def is_whole(raw, method):
    head, end, body = raw.partition(b"\r\n\r\n")
    if not end:
        return False
    length = re.search(rb"(?mi)^content-length:\s*(\d+)", head)
    return method == "HEAD" or (length is not None and len(body) >= int(length[1]))


def segment_tag(target):
    """The tag as a client would name it, of a request for a segment id."""
    match = re.fullmatch(r"(?:http://[^/]+)?/api//?segment/get/([^/?;]+)/?.*", target)
    return match[1] if match else None


class Replay:
    """Compares in the order of the recording, because the ids follow from each other."""

    def __init__(self):
        self.used = set()
        self.findings = []
        self.last_snowflake = 0
        self.untaken = {}  # tag -> ids that Leaf took and leafd did not, which shift all later ones

    def run(self, entry, answer):
        self.entry, self.want, self.got = entry, entry["response"], answer
        self.headers = {name.lower(): value for name, value in self.want["headers"]}
        self.got_headers = {name.lower(): value for name, value in answer.headers}
        if answer.version != "HTTP/1.1":
            self.find("version", "HTTP/1.1", answer.version)
        if len(self.got_headers) != len(answer.headers):
            self.find("headers", "each once", answer.headers)
        if answer.reason != self.want["reason"]:
            self.used.add("reason")
        refused = self.refused_otherwise()
        if refused:
            self.check_refusal(refused)
        else:
            self.check_same()

    def find(self, what, want, got):
        self.findings.append(f"{self.entry['name']}: {what}: Leaf {want!r}, leafd {got!r}")

    # Where leafd refuses what Leaf answered.
    def refused_otherwise(self):
        """(deviation, status, code) if leafd is to refuse this request."""
        target = self.entry["request"]["target"]
        if self.entry["request"]["method"] == "BREW":
            return "unknown-method", 501, "invalid_argument"
        if ";" in target:
            return "matrix", 404, "not_found"
        if "//" in target.removeprefix("http://"):
            return "doubled-slash", 404, "not_found"
        if target.startswith("/api/snowflake/get/") and self.want["status"] == 200:
            return ("disabled", 500, "disabled") if self.entry["server"] == "both modes off" else None
        if self.entry["server"] == "both modes off" and target.startswith("/api/segment/get/"):
            return "disabled", 500, "disabled"
        if self.want["status"] == 406 and self.entry["request"]["headers"].get("Accept") == "text/plain":
            return "error-for-text", 500, "not_found"
        return None

    def check_refusal(self, refused):
        name, status, code = refused
        self.used.update((name, "added", "timestamp"))
        target = self.entry["request"]["target"]
        if name in ("unknown-method", "matrix", "doubled-slash"):
            tag = segment_tag(target)
            self.untaken[tag] = self.untaken.get(tag, 0) + 1
        if (self.got.status, self.got_headers.get("x-leafd-code")) != (status, code):
            self.find("refusal", (status, code), (self.got.status, self.got_headers.get("x-leafd-code")))
            return
        error = json.loads(self.got.body)
        keys = ["timestamp", "status", "error"] + (["exception"] if status == 500 else []) + ["message", "path"]
        if list(error) != keys or error["status"] != status or error["path"] != target:
            self.find("error body", keys, error)
        words = {"disabled": f"You should config leaf.{'snowflake' if 'snowflake' in target else 'segment'}.enable=true first",
                 "not_found": "Result{id=-2, status=EXCEPTION}" if status == 500 else "No message available"}
        if error["message"] != words.get(code, error["message"]):
            self.find("message", words[code], error["message"])

    # Where leafd answers as Leaf did.
    def check_same(self):
        if self.got.status != self.want["status"]:
            self.find("status", self.want["status"], self.got.status)
        self.check_headers()
        if self.entry["request"]["method"] == "HEAD":
            self.compare("body", b"", self.got.body)
        elif "cells" in self.want:
            self.check_cells()
        elif "body_contains" in self.want:
            self.check_error_page()
        else:
            self.check_body()

    def compare(self, what, want, got):
        if want != got:
            self.find(what, want, got)

    def check_headers(self):
        for name in set(self.headers) | set(self.got_headers):
            want, got = self.headers.get(name), self.got_headers.get(name)
            if want == got or name == "date":
                continue
            deviation = self.header_deviation(name, want, got)
            if deviation:
                self.used.add(deviation)
            else:
                self.find(f"header {name}", want, got)

    def header_deviation(self, name, want, got):
        if self.entry["request"]["target"].startswith("/css/") and name in ("last-modified", "accept-ranges", "content-length"):
            return "sheet" if name != "content-length" or got else None
        if name in ("cache-control", "x-leafd-code") and want is None:
            return "added"
        if name == "transfer-encoding" and got is None and "content-length" in self.got_headers:
            return "length"
        if name == "content-length" and got and "transfer-encoding" in self.headers:
            return "length"
        if name == "content-length" and got and "body_contains" in self.want:
            return "error-page"
        if name == "content-disposition" and got is None:
            return "disposition"
        if name == "content-language" and got is None:
            return "language"
        if name == "content-type" and got == "text/plain;charset=UTF-8" and want.split(";")[0] not in MEDIA_FOR_DIGITS:
            return "senseless-type"
        return None

    def check_body(self):
        want, got = self.want["body"], self.got.body.decode()
        if self.entry["request"]["target"].startswith("/api/snowflake/get/") and re.fullmatch(r"\d+", want):
            self.check_snowflake(got)
            return
        if re.fullmatch(r"\d+", want):
            want = str(int(want) - self.untaken.get(segment_tag(self.entry["request"]["target"]), 0))
        stamp = re.compile(r'"timestamp":\d{13},')
        if stamp.search(want) and want != got:
            self.used.add("timestamp")
            want, got = stamp.sub("", want), stamp.sub("", got, count=1)
        self.compare("body", want, got)

    def check_snowflake(self, got):
        self.used.add("snowflake")
        if not re.fullmatch(r"[1-9]\d{18}", got):
            self.find("body", "19 digits", got)
            return
        number, self.last_snowflake = int(got), max(int(got), self.last_snowflake + 1)
        if number != self.last_snowflake:
            self.find("body", f"an id of {self.last_snowflake} or more", number)
        behind = time.time() * 1000 - ((number >> 22) + LEAF_EPOCH_MS)
        if abs(behind) > SNOWFLAKE_NEAR_MS:
            self.find("body", "an id of this minute", f"{behind} ms ago")

    def check_error_page(self):
        self.used.add("error-page")
        for text in self.want["body_contains"]:
            if text not in self.got.body.decode():
                self.find("page", text, self.got.body.decode())

    def check_cells(self):
        self.used.add("page")
        want = [cell.rsplit("<th>", 1)[-1] for cell in self.want["cells"]]
        got = [html.unescape(cell) for cell in re.findall(r"<t[hd]>(.*?)</t[hd]>", self.got.body.decode(), re.S)]
        columns = 4 if want[0] == "tag" else 10
        self.compare("title", True, b"<title>Leaf</title>" in self.got.body)
        self.compare("table", True, b'class="table table-hover"' in self.got.body)
        self.compare("columns", want[:columns], got[:columns])
        self.compare("rows", self.rows(want[columns:], columns, shifted=True), self.rows(got[columns:], columns, shifted=False))

    def rows(self, cells, columns, shifted):
        rows = sorted(cells[i:i + columns] for i in range(0, len(cells), columns))
        for row in rows:
            row[:] = [re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.0$", "TIME", cell) for cell in row]
            if shifted and columns == 10 and row[0] in self.untaken:
                row[4] = f"{int(row[4].replace(',', '')) - self.untaken[row[0]]:,}"
        return rows


def replay(addresses):
    """Runs the whole recording; addresses: server of the recording -> (host, port). The Replay."""
    run = Replay()
    for entry in json.loads(RECORDING.read_text(encoding="utf-8")):
        run.run(entry, exchange(addresses[entry["server"]], entry["request"]))
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--both-on", required=True)
    parser.add_argument("--both-off", required=True)
    args = parser.parse_args()
    pairs = {"both modes on": args.both_on, "both modes off": args.both_off}
    run = replay({name: (address.rpartition(":")[0], int(address.rpartition(":")[2])) for name, address in pairs.items()})
    for finding in run.findings:
        print(finding)
    for name in sorted(run.used):
        print(f"deviation {name}: {DEVIATIONS[name]}")
    sys.exit(1 if run.findings else 0)


if __name__ == "__main__":
    main()
