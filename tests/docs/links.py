"""Finds links of the documents that lead nowhere: a file that is not there, a heading that does not exist.

Prints each as "file:line: target" and ends 1 if there are any. Addresses of the web are not followed.
"""

import argparse
import pathlib
import re
import sys


def anchors(text):
    """The anchors of a document's headings, made as GitHub makes them."""
    found = set()
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        heading = None if fenced else re.match(r"#+ +(.*)", line)
        if heading:
            words = re.sub(r"[^\w\- ]", "", heading[1].strip().lower())
            found.add(words.replace(" ", "-"))
    return found


def links(text):
    """(line number, target) of each link outside of code."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        if fenced:
            continue
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
            yield number, target


def broken(document):
    for number, target in links(document.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = document.parent / path if path else document
        if not file.exists():
            yield f"{number}: {target}"
        elif anchor and anchor not in anchors(file.read_text()):
            yield f"{number}: {target} (no such heading)"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("documents", type=pathlib.Path, nargs="+")
    findings = [f"{document}:{finding}" for document in parser.parse_args().documents for finding in broken(document)]
    print("\n".join(findings) or "every link leads somewhere")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
