#!/usr/bin/env python3
"""Writes each vector of corpus/http1/vectors.txt as a seed file for the fuzzer: split_vectors.py FILE FOLDER."""
import pathlib
import re
import sys

ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})|\\(.)|\{([^}]*)\*(\d+)\}")


def expand(match):
    hexadecimal, single, unit, times = match.groups()
    if hexadecimal:
        return chr(int(hexadecimal, 16))
    if single:
        return {"r": "\r", "n": "\n", "t": "\t", "0": "\0"}.get(single, single)
    return ESCAPE.sub(expand, unit) * min(int(times), 300)


def main():
    source, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for number, line in enumerate(source.read_text("utf-8").splitlines(), 1):
        if line.startswith("#") or "\t" not in line:
            continue
        seed = ESCAPE.sub(expand, line.split("\t", 1)[1]).encode("latin-1")
        (folder / f"vector{number}").write_bytes(bytes([number % 256]) + seed)


if __name__ == "__main__":
    main()
