#!/usr/bin/env python3
"""The cost of recording from Python, and the papers' programs from their NumPy sources: on NumPy, and on bh unchanged.

    benches/python.py [NAME...] [--size small|full] [--runs N] [--json FILE]

The package `bh` must be importable (`cargo xtask bench python` sees to it). Work that bh leaves to NumPy is an error.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = """heat_equation black_scholes shallow_water nbody leibnitz_pi rosenbrock stencil_27_point game_of_life
gauss""".split()

# Prints figures of recording, in seconds: the least of several loops, as others share the machine.
RECORDING = """
import json, time, numpy, bh
def least(work, count, after=bh.flush):
    taken = []
    for _ in range(7):
        begin = time.perf_counter()
        work(count)
        taken.append((time.perf_counter() - begin) / count)
        after()
    return min(taken)
def repeat(operation):
    def work(count):
        for _ in range(count):
            operation()
    return work
def chain(module):
    def work(count):
        for _ in range(count):
            x = module.zeros(10)
            for _ in range(1000):
                x = x + 1.0
            float(x.sum())
    return work
a, b = bh.arange(10.0), bh.arange(10.0)
bh.flush()
print(json.dumps({
    "a + b": least(repeat(lambda: a + b), 500), "a + 1.0": least(repeat(lambda: a + 1.0), 500),
    "a[1:-1]": least(repeat(lambda: a[1:-1]), 500), "a.item(5)": least(repeat(lambda: a.item(5)), 500),
    "float(a[5])": least(repeat(lambda: float(a[5])), 200), "float(a.sum())": least(repeat(lambda: float(a.sum())), 200),
    "1000 operations": least(chain(bh), 3), "1000 operations, NumPy": least(chain(numpy), 3),
}))
"""

IMPORT = "import time, numpy; begin = time.perf_counter(); import bh; print(time.perf_counter() - begin)"


def output(*arguments, **environment):
    """The output of a Python process."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment}).stdout


def recording(runs):
    """Figures of recording in nanoseconds."""
    figures = json.loads(output("-c", RECORDING))
    figures["import bh, beyond NumPy"] = min(float(output("-c", IMPORT)) for _ in range(runs))
    return {name: seconds * 1e9 for name, seconds in figures.items()}


def program(name, size, runs):
    """Median seconds of a program on NumPy and on bh, and whether the results agree."""
    catalog = tomllib.loads((HERE / "catalog.toml").read_text())["program"]
    entry = next(row for row in catalog if row["name"] == name)
    n, iterations = entry[size]
    arguments = [HERE / name / "numpy_version.py", n, iterations, "f64", "--warm"]
    # In turns, so that both meet the same machine.
    pairs = [(json.loads(output(*arguments)), json.loads(output("-m", "bh", *arguments, BH_FALLBACK="error"))) for _ in range(runs)]
    plain, mine = ([run["seconds"] for run in form] for form in zip(*pairs))
    tolerance = entry["tolerance"]["f64"]
    sums = zip(pairs[0][0]["checksum"], pairs[0][1]["checksum"])
    agree = all(abs(one - other) <= tolerance * max(abs(one), abs(other)) for one, other in sums)
    return {"bench": name, "n": n, "iters": iterations, "numpy": statistics.median(plain), "bh": statistics.median(mine), "agree": agree}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--size", choices=["small", "full"], default="small")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in PROGRAMS]
    if unknown:
        parser.error(f"there is no program {unknown[0]}; there are {', '.join(PROGRAMS)}")
    figures = recording(args.runs)
    for name, value in figures.items():
        print(f"{name:28} {value:14,.0f} ns")
    rows = []
    for name in args.names or PROGRAMS:
        rows.append(program(name, args.size, args.runs))
        row = rows[-1]
        remark = "" if row["agree"] else "  RESULTS DIFFER"
        print(f"{name:20} n={row['n']:<9} NumPy {row['numpy']:9.4f} s  bh {row['bh']:9.4f} s  {row['numpy'] / row['bh']:7.2f}x{remark}", flush=True)
    if args.json:
        args.json.write_text(json.dumps({"recording_ns": figures, "programs": rows}, indent=1) + "\n")
    return 0 if all(row["agree"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
