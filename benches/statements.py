#!/usr/bin/env python3
"""Times single statements on bh against NumPy: whole passes in turns, medians, results compared.

    BH_PREFIX=DIR benches/statements.py [NAME...] [--elements N] [--threads N] [--rounds N] [--json FILE] [--prebuilt]

The names are those of `statements/numpy_version.py`. NumPy's own statements have one thread; its matrix products get as many
as bh. The table begins with what NumPy is faster in.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import collection

NAME = "statements"
# Some are of single precision, rounded differently.
TOLERANCE = 1e-7


def one_pass(command, args):
    """The lines of a program by statement."""
    command = [*map(str, command), str(args.elements), *args.names]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=collection.environment_of(args.threads), check=True)
    lines = map(json.loads, done.stdout.splitlines())
    return {line["statement"]: line for line in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--elements", type=int, default=4_000_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3, help="passes of which the median counts")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--prebuilt", action="store_true", help="take the program that is there")
    args = parser.parse_args()
    if "BH_PREFIX" not in os.environ:
        parser.error("BH_PREFIX is not set")
    binary = collection.build_bh(NAME, os.environ["BH_PREFIX"], prebuilt=args.prebuilt)
    commands = {"bh": [binary], "numpy": [sys.executable, collection.HERE / NAME / "numpy_version.py"]}
    taken = {form: {} for form in commands}
    sums = {}
    for turn in range(args.rounds):
        for form in list(commands)[:: -1 if turn % 2 else 1]:
            for name, line in one_pass(commands[form], args).items():
                taken[form].setdefault(name, []).append(line["seconds"])
                sums[form, name] = line["checksum"]
    if set(taken["bh"]) != set(taken["numpy"]):
        print(f"only in one of the programs: {', '.join(set(taken['bh']) ^ set(taken['numpy']))}", file=sys.stderr)
        return 1
    if not taken["bh"]:
        parser.error("there are no such statements")
    table = []
    for name in taken["bh"]:
        seconds, numpy_seconds = (statistics.median(taken[form][name]) for form in ("bh", "numpy"))
        agree = abs(sums["bh", name] - sums["numpy", name]) <= TOLERANCE * abs(sums["numpy", name])
        table.append({"statement": name, "seconds": seconds, "numpy_seconds": numpy_seconds, "agree": agree})
    table.sort(key=lambda row: row["numpy_seconds"] / row["seconds"])
    print(f"{'statement':28} {'bh ms':>9} {'NumPy ms':>9} {'NumPy/bh':>9}   {args.elements} elements, {args.threads} threads")
    for row in table:
        times = f"{row['seconds'] * 1e3:9.3f} {row['numpy_seconds'] * 1e3:9.3f} {row['numpy_seconds'] / row['seconds']:9.2f}"
        print(f"{row['statement']:28} {times}{'' if row['agree'] else '   results differ'}")
    if args.json:
        setting = {"elements": args.elements, "threads": args.threads}
        args.json.write_text(json.dumps({**setting, "statements": table}, indent=1) + "\n")
    return 0 if all(row["agree"] for row in table) else 1


if __name__ == "__main__":
    sys.exit(main())
