#!/usr/bin/env python3
"""Times single statements of Python on little data, on bh and on NumPy in turns in one process, on one thread.

    benches/statements/small.py [TEXT...] [--sizes 1,10,...] [--batch N] [--rounds N] [--cpu] [--json FILE] [--page FILE]

TEXT picks the statements that contain it, or the group of that name. A pass says a statement `--batch` times, keeps the
results, and waits for all of them; the least of several passes counts. The worst ratio of times comes first.
"""

import argparse
import importlib
import json
import math
import os
import time
from pathlib import Path

os.environ.update(BH_VE_CPU_THREADS="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", BH_FALLBACK=os.environ.get("BH_FALLBACK", "silent"))
from python_statements import STATEMENTS, names

SIZES = (1, 10, 100, 1000, 10000)
# The time that the passes of one round take at least, in seconds.
ROUND = 0.004


def compiled(text):
    """A function of the names, of how often, and of where results are kept, that says the statement."""
    try:
        compile(text, "statement", "eval")
        text = f"kept[turn] = {text}"
    except SyntaxError:
        pass
    source = f"def work({', '.join(NAMES)}, count, kept):\n    for turn in range(count):\n        {text}\n"
    found = {}
    exec(compile(source, f"<{text}>", "exec"), found)
    return found["work"]


NAMES = "np n a b x out f u m idx idx2 i s k A B v D".split()


def timer(text, values, finish, args):
    """A function that times passes of the statement: seconds a statement, by the number of passes."""
    batch, clock = args.batch, time.process_time if args.cpu else time.perf_counter
    work, arguments, kept = compiled(text), [values[name] for name in NAMES], [None] * batch

    def run(passes):
        begin = clock()
        for _ in range(passes):
            work(*arguments, batch, kept)
            finish()
        return (clock() - begin) / passes / batch

    return run


def measured(text, sides, args):
    """Seconds of the statement in each library."""
    runs = [timer(text, values, finish, args) for values, finish in sides]
    counts = []
    for run in runs:
        run(3)
        counts.append(max(1, int(ROUND / max(run(1) * args.batch, 1e-9))))
    taken = [[], []]
    for _ in range(args.rounds):
        for run, count, times in zip(runs, counts, taken):
            times.append(run(count))
    return [min(times) for times in taken]


def table(args):
    import numpy

    bh = importlib.import_module("bh")
    rows = {}
    for n in args.sizes:
        for group, text in STATEMENTS:
            if args.text and group not in args.text and not any(part in text for part in args.text):
                continue
            sides = [(names(numpy, n), lambda: None), (names(bh, n), bh.flush)]
            row = rows.setdefault(text, {"statement": text, "group": group, "times": {}})
            try:
                row["times"][n] = measured(text, sides, args)
            except IndexError:
                # There are too few elements for it.
                continue
    return [row for row in rows.values() if row["times"]]


def ratio(times):
    return times[0] / times[1]


def worst(row):
    return min(map(ratio, row["times"].values()))


def mean(rows, n=None):
    """The geometric mean of ratios, of one size or of all."""
    logs = [math.log(ratio(times)) for row in rows for size, times in row["times"].items() if n in (None, size)]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def show(rows, sizes):
    print(f"{'statement':44}" + "".join(f"{f'n = {n}':>22}" for n in sizes))
    for row in rows:
        cells = (row["times"].get(n) for n in sizes)
        shown = ("" if times is None else f"{times[0] * 1e6:7.2f} {times[1] * 1e6:7.2f} {ratio(times):5.2f}" for times in cells)
        print(f"{row['statement']:44}" + "".join(f"{cell:>22}" for cell in shown))
    print(f"{f'geometric mean {mean(rows):.2f} of {len(rows)} statements':44}" + "".join(f"{mean(rows, n):22.2f}" for n in sizes))
    below = sum(ratio(times) < 0.8 for row in rows for times in row["times"].values())
    print(f"below 0.8: {below} of {sum(len(row['times']) for row in rows)}")


def page(rows, args):
    """The table as a page: NumPy's time over bh's."""
    lines = [
        "# Statements on little data",
        "",
        "Written by `cargo xtask bench statements --small --page docs/statements.md`. Cells are NumPy's time over bh's on one",
        f"thread, in one process and in turns: above 1, bh is faster. Statements are said {args.batch} times, and then waited for.",
        *([args.note] if args.note else []),
        *(["Times are those of the process, not the clock's, as others shared the machine."] if args.cpu else []),
        "The worst come first. `benches/statements/python_statements.py` says what the names are.",
        "",
        f"Geometric mean over {len(rows)} statements and all sizes: {mean(rows):.2f}. By size: "
        + ", ".join(f"{mean(rows, n):.2f} (n = {n})" for n in args.sizes) + ".",
        "",
        "| statement | " + " | ".join(f"n = {n}" for n in args.sizes) + " |",
        "|---" * (len(args.sizes) + 1) + "|",
    ]  # fmt: skip
    for row in rows:
        cells = (f"{ratio(row['times'][n]):.2f}" if n in row["times"] else "" for n in args.sizes)
        lines.append(f"| `{row['statement']}` | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="*", metavar="TEXT")
    parser.add_argument("--sizes", type=lambda text: [int(part) for part in text.split(",")], default=list(SIZES))
    parser.add_argument("--batch", type=int, default=10, help="statements between two waits")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of passes of which the fastest counts")
    parser.add_argument("--cpu", action="store_true", help="time of the process instead of the clock's, where others share the machine")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--note", help="a line for the page, such as what was measured on")
    args = parser.parse_args()
    rows = sorted(table(args), key=worst)
    show(rows, args.sizes)
    if args.json:
        args.json.write_text(json.dumps({"batch": args.batch, "statements": rows}, indent=1) + "\n")
    if args.page:
        args.page.write_text(page(rows, args))


if __name__ == "__main__":
    main()
