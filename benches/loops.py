#!/usr/bin/env python3
"""Times loops over rows, columns and elements on bh against NumPy: the first run, and later ones; results compared.

    BH_PREFIX=DIR benches/loops.py [NAME...] [--sizes 100,300] [--threads N] [--runs N] [--json FILE] [--table FILE]
                                [--prebuilt]

The names are those of `loops/numpy_version.py`. NumPy has one thread. The table begins with what NumPy is faster in;
`--table` writes it as docs/PERFORMANCE.md has it.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import collection

NAME = "loops"
TOLERANCE = 1e-9


def lines_of(command, size, args):
    """The lines of a program by loop."""
    command = [*map(str, command), str(size), str(args.runs), *args.names]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=collection.environment_of(args.threads), check=True)
    lines = map(json.loads, done.stdout.splitlines())
    return {line["loop"]: line for line in lines}


def markdown(table):
    """A row for each loop with the times of bh (first run, later ones) and of NumPy for each size, and how bh compares."""
    sizes = sorted({row["n"] for row in table})
    titles = [f"n = {size}: first / later / NumPy ms, ratios" for size in sizes]
    lines = [f"| loop | {' | '.join(titles)} |", "|---" * (len(sizes) + 1) + "|"]
    for name in dict.fromkeys(row["loop"] for row in sorted(table, key=lambda row: row["loop"])):
        cells = []
        for size in sizes:
            row = next(row for row in table if (row["loop"], row["n"]) == (name, size))
            first, later, numpy = (row[key] * 1e3 for key in ("first", "later", "numpy"))
            cells.append(f"{first:.2f} / {later:.2f} / {numpy:.2f}, {numpy / first:.2f} and {numpy / later:.2f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--sizes", default="100,300")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=4, help="runs of each loop: the first, and those of which the median counts")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--prebuilt", action="store_true", help="take the program that is there")
    args = parser.parse_args()
    if "BH_PREFIX" not in os.environ:
        parser.error("BH_PREFIX is not set")
    binary = collection.build_bh(NAME, os.environ["BH_PREFIX"], prebuilt=args.prebuilt)
    table = []
    for size in map(int, args.sizes.split(",")):
        own, numpy = (lines_of(command, size, args) for command in ([binary], collection.numpy_command(NAME)))
        if set(own) != set(numpy) or not own:
            print(f"the programs have {sorted(own)} and {sorted(numpy)}", file=sys.stderr)
            return 1
        for name, line in own.items():
            sums = line["checksum"], numpy[name]["checksum"]
            agree = abs(sums[0] - sums[1]) <= TOLERANCE * abs(sums[1])
            times = {"first": line["first"], "later": line["later"], "numpy_first": numpy[name]["first"], "numpy": numpy[name]["later"]}
            table.append({"loop": name, "n": size, **times, "agree": agree})
    table.sort(key=lambda row: row["numpy"] / row["first"])
    print(f"{'loop':20} {'n':>5} {'first ms':>9} {'later ms':>9} {'NumPy ms':>9} {'NumPy/first':>11} {'NumPy/later':>11}")
    for row in table:
        times = f"{row['first'] * 1e3:9.2f} {row['later'] * 1e3:9.2f} {row['numpy'] * 1e3:9.2f}"
        ratios = f"{row['numpy'] / row['first']:11.2f} {row['numpy'] / row['later']:11.2f}"
        print(f"{row['loop']:20} {row['n']:5} {times} {ratios}{'' if row['agree'] else '   results differ'}")
    if args.json:
        args.json.write_text(json.dumps({"threads": args.threads, "loops": table}, indent=1) + "\n")
    if args.table:
        args.table.write_text(markdown(table))
    return 0 if all(row["agree"] for row in table) else 1


if __name__ == "__main__":
    sys.exit(main())
