"""Runs the Spin model of the right (right.pml): exhausts it, prints the states, and has each mutant caught.

    right_model_test.py [--servers N --times N --generations N]   one exhaustion of that size
    right_model_test.py                                           what CI runs
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

MODEL = pathlib.Path(__file__).with_name("right.pml")
MUTANTS = ["M1", "M2", "M3", "M4", "M5", "M6"]
# (servers, times, generations): the small ones of CI; LEAF_LONG adds a larger one.
SIZES = [(2, 3, 3), (3, 2, 3)]
LONG_SIZES = [(2, 4, 4)]


def verify(folder, options):
    """(errors, states, whether everything was looked at) of one exhaustive search."""
    run = lambda *command: subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    run("spin", "-a", *options, str(MODEL))
    run("gcc", "-O2", "-w", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c")
    text = subprocess.run(["./pan", "-m1000000", "-w24"], cwd=folder, capture_output=True, text=True).stdout
    found = re.search(r"errors: (\d+)", text)
    states = re.search(r"([\d.e+]+) states, stored", text)
    if not found or not states:
        sys.exit(f"pan said nothing of use with {options}:\n{text}")
    whole = not re.search(r"search depth too small|out of memory|Search not completed|interrupted", text)
    return int(found[1]), int(float(states[1])), whole


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--generations", type=int, default=3)
    arguments = parser.parse_args()
    sizes = SIZES + (LONG_SIZES if os.environ.get("LEAF_LONG") else [])
    if arguments.servers:
        sizes = [(arguments.servers, arguments.times, arguments.generations)]
    failed = False
    with tempfile.TemporaryDirectory(prefix="leafd-spin-") as folder:
        for servers, times, generations in sizes:
            options = [f"-DSERVERS={servers}", f"-DTIMES={times}", f"-DGENERATIONS={generations}"]
            errors, states, whole = verify(folder, options)
            good = errors == 0 and whole
            failed |= not good
            print(f"{servers} servers, {times} times, {generations} claims: {states} states, "
                  f"{'exhausted' if whole else 'NOT exhausted'}, {errors} errors", flush=True)
        for mutant in MUTANTS if not arguments.servers else []:
            errors, states, _ = verify(folder, ["-DSERVERS=2", "-DTIMES=3", f"-D{mutant}"])
            failed |= errors == 0
            print(f"mutant {mutant}: {'caught' if errors else 'NOT CAUGHT'} after {states} states", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
