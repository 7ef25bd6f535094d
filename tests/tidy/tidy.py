"""The rules of the tree that a compiler does not check.

Each rule is a function from the tree to findings "file:line: what is wrong"; the program ends 1 if
there are any. The rooms and their arrows are those of docs/architecture.md.
"""

import argparse
import json
import pathlib
import re
import sys

# room -> rooms that it may include, besides itself and include/leaf. A room is the longest matching prefix.
LAYERS = {
    "base": [],
    "core": ["base"],
    "codec": ["base"],
    "rpc": ["base"],  # a client of gRPC
    "store": ["base", "core"],  # the port's blocking side and what all stores share
    "store/memory": ["base", "core", "store"],
    "store/sqlite": ["base", "core", "store"],
    "store/mysql": ["base", "core", "store"],
    "store/postgres": ["base", "core", "store"],
    "store/etcd": ["base", "core", "rpc", "store"],
    "state": ["base", "core"],
    "frontend": ["base", "core", "codec"],
    "admin": ["base", "core", "codec"],
    "registry": ["base", "core"],  # the port's blocking side and the rule of claims
    "registry/memory": ["base", "core", "registry"],
    "registry/sqlite": ["base", "core", "registry", "store", "store/sqlite"],
    "registry/mysql": ["base", "core", "registry", "store", "store/mysql"],
    "registry/postgres": ["base", "core", "registry", "store", "store/postgres"],
    "registry/fixed": ["base", "core", "registry", "state"],
    "registry/zookeeper": ["base", "core", "registry"],
    "registry/etcd": ["base", "core", "registry", "rpc", "store", "store/etcd"],
    "config": ["base", "core", "codec", "store", "registry"],
    "server": ["base", "core", "codec", "config", "store", "store/memory", "store/sqlite", "store/mysql", "store/postgres",
               "store/etcd", "state", "registry", "registry/memory", "registry/sqlite", "registry/mysql", "registry/postgres", "registry/fixed",
               "registry/zookeeper", "registry/etcd", "frontend", "admin"],
    "cli": ["base", "core", "codec", "config", "state", "store", "store/sqlite", "store/mysql", "store/postgres", "store/etcd", "registry",
            "registry/sqlite", "registry/mysql", "registry/postgres", "server"],
}

# header -> rooms that may include it: drivers and heavy libraries stay where they belong.
ROOMS_OF_HEADERS = {
    r"sqlite3\.h": ["store/sqlite", "registry/sqlite"],
    r"zookeeper/.*": ["registry/zookeeper"],
    r"(mysql|mariadb)[./].*": ["store/mysql"],
    r"libpq-fe\.h": ["store/postgres"],
    r"nghttp2/.*": ["rpc"],
    r"etcd\.pb\.h": ["store/etcd", "registry/etcd"],
    r"boost/asio.*": [],
    r"boost/json.*": ["admin"],
    r"toml\+\+.*|toml\.hpp": ["config"],
    r"spdlog/.*": ["base"],
}

# what -> (pattern, rooms that may use it)
BANNED = {
    "a wall clock or monotonic clock (take `now` or a Clock)": (
        r"\b(system_clock|steady_clock|high_resolution_clock)::now\b|\b(clock_gettime|gettimeofday)\s*\(|\btime\s*\(\s*(nullptr|NULL|0)\s*\)",
        ["base", "store", "store/memory", "store/sqlite", "store/mysql", "registry", "server"],
    ),
    "a sleep (wait on a condition)": (
        r"\b(sleep_for|sleep_until)\b|\b(usleep|nanosleep|sleep)\s*\(",
        ["base", "store", "store/memory", "store/sqlite", "store/mysql", "registry", "server"],
    ),
    "a thread (threads are made by base, store and server)": (
        r"\bstd::j?thread\b|\bpthread_create\b|\bstd::async\b",
        ["base", "store", "store/memory", "store/sqlite", "store/mysql", "registry", "server"],
    ),
    "std::mutex (use base/mutex.h, which carries annotations)": (r"\bstd::(recursive_|shared_|timed_)?mutex\b", ["base"]),
    "rand (use a Random)": (r"\b(s?rand|random)\s*\(\s*\)|\bstd::random_device\b|\bmt19937", ["base"]),
}

MAX_LINES = 600


def rooms_of(path):
    """The room of a path below src/, e.g. store/sqlite."""
    parts = path.parts[:-1]
    for length in range(len(parts), 0, -1):
        room = "/".join(parts[:length])
        if room in LAYERS:
            return room
    return None


def sources(root, *folders):
    for folder in folders:
        base = root / folder
        if base.is_dir():
            yield from sorted(p for p in base.rglob("*") if p.suffix in (".h", ".cc"))


def is_test(path):
    return re.search(r"_test(ing|_support|_util)?$", path.stem) is not None


def code_of(line):
    """The line without its // comment and string literals."""
    return re.sub(r'"(\\.|[^"\\])*"', '""', line).split("//")[0]


def check_layers(root):
    for path in sources(root, "src"):
        rel = path.relative_to(root / "src")
        room = rooms_of(rel)
        if room is None:
            yield f"src/{rel}:1: its folder is no room of docs/architecture.md (LAYERS in tests/tidy/tidy.py)"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not match or match[1].startswith("leaf/") or match[1].startswith("tests/"):
                continue
            other = rooms_of(pathlib.PurePosixPath(match[1]))
            if other is None:
                yield f'src/{rel}:{number}: includes "{match[1]}", which is in no room; include by the path below src/'
            elif other != room and other not in LAYERS[room] and not is_test(path):
                yield f"src/{rel}:{number}: {room} may not include {other}"
    for path in sources(root, "include"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if match and not match[1].startswith("leaf/"):
                yield f"{path.relative_to(root)}:{number}: installed headers include only std and leaf/"


def check_headers(root):
    for path in sources(root, "src", "include"):
        rel = path.relative_to(root)
        room = rooms_of(rel.relative_to("src")) if rel.parts[0] == "src" else None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r"\s*#\s*include\s*[<\"]([^>\"]+)[>\"]", line)
            if not match:
                continue
            for pattern, rooms in ROOMS_OF_HEADERS.items():
                if re.fullmatch(pattern, match[1]) and room not in rooms and not is_test(path):
                    yield f"{rel}:{number}: <{match[1]}> belongs to {', '.join(rooms) or 'no room'}"


def check_banned(root):
    for path in sources(root, "src"):
        if is_test(path):
            continue
        rel = path.relative_to(root / "src")
        room = rooms_of(rel)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            code = code_of(line)
            for what, (pattern, rooms) in BANNED.items():
                if room not in rooms and re.search(pattern, code):
                    yield f"src/{rel}:{number}: {room} may not use {what}"


def check_sizes(root):
    for path in sources(root, "src", "include"):
        count = len(path.read_text().splitlines())
        if count > MAX_LINES:
            yield f"{path.relative_to(root)}:{count}: {count} lines; a file holds one idea, at most {MAX_LINES} lines"


def check_pragma(root):
    for path in sources(root, "src", "include", "tests"):
        if path.suffix == ".h" and "#pragma once" not in path.read_text().splitlines()[:3]:
            yield f"{path.relative_to(root)}:1: a header begins with #pragma once"


def check_skips(root):
    for path in sources(root, "src", "tests"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(r"GTEST_SKIP|\bDISABLED_", line):
                yield f"{path.relative_to(root)}:{number}: a test may not skip itself"
    for path in sorted((root / "tests").rglob("*.py")):
        if path.parent.name == "tidy":
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(r"skipTest|@unittest\.skip|@skip", line):
                yield f"{path.relative_to(root)}:{number}: a test may not skip itself"


def check_targets(root, build):
    """Each .cc below src/, tests/ and bench/ is compiled by some target of this build."""
    database = build / "compile_commands.json"
    if not database.is_file():
        yield f"{database}:1: no compile database; configure with CMAKE_EXPORT_COMPILE_COMMANDS"
        return
    compiled = {pathlib.Path(entry["file"]).resolve() for entry in json.loads(database.read_text())}
    for path in sources(root, "src", "tests", "bench"):
        if path.suffix == ".cc" and path.resolve() not in compiled and "fuzz" not in path.parts:
            yield f"{path.relative_to(root)}:1: belongs to no target"


def findings(root, build):
    for check in (check_layers, check_headers, check_banned, check_sizes, check_pragma, check_skips):
        yield from check(root)
    if build is not None:
        yield from check_targets(root, build)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path)
    options = parser.parse_args()
    found = list(findings(options.root.resolve(), options.build))
    for finding in found:
        print(finding)
    print(f"{len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
