#!/usr/bin/env python3
"""Times the programs on bh against their hand-written twins and NumPy: runs in turns, medians, results compared.

    BH_PREFIX=DIR benches/run.py [NAME...] [--size small|full] [--threads N] [--json FILE] [--plot FILE.svg]

The stack is the one that BH_STACK names. bh and a twin run closely after each other; there are --runs such pairs, and more,
up to --most-runs, until the median of their ratios is known well. --control runs a second process of the twin in the same
turns: what it takes relative to the first is what the machine makes of equal programs. With --plot each program also runs
at sizes below the chosen one. NumPy's runs end when they have taken --numpy-seconds together, so a slow program is run
once. With --json the file is brought up to date after each program, with every single time beside it in FILE.runs.json;
--resume keeps the rows that are there.
"""

import argparse
import json
import math
import os
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import collection
import plot
import turns

CURVE_POINTS = 4
CURVE_RUNS = 3


def middle(values):
    """The median, None of nothing."""
    return statistics.median(values) if values else None


def agreed(sums, program, dtype):
    """Do the checksums of all forms that ran, bh among them, agree?"""
    reference = sums.get("numpy") or sums.get("twin")
    tolerance = program["tolerance"][dtype]
    return "bh" in sums and bool(reference) and all(collection.agree(s, reference, tolerance) for s in sums.values())


def replace(path, text):
    """Writes a file so that an interruption leaves the old one or the new one."""
    scratch = path.with_name(path.name + ".new")
    scratch.write_text(text)
    os.replace(scratch, path)


def runs_file(path):
    """Where the single times go."""
    return path.with_name(path.stem + ".runs.json")


def identity(row):
    """The key of a measurement: rows with the same key are the same measurement."""
    return tuple(row[key] for key in ("bench", "n", "iters", "dtype", "threads"))


def ratio(numerator, denominator):
    """A quotient as text, of times that may be missing."""
    return f"{numerator / denominator:6.2f}x" if numerator and denominator else "      -"


def spread(pairs):
    """The median, the least and the greatest of some ratios as text."""
    return f"{pairs['median']:.2f} ({pairs['least']:.2f} to {pairs['greatest']:.2f})" if pairs else "-"


def curve(commands, program, dtype, args, row):
    """Seconds by form at sizes up to the chosen one, which `row` has, for the plot."""
    n, iters = program[args.size]
    smallest = program["small"][0] if args.size == "full" else max(n // 8, 10)
    chosen = {form: commands[form] for form in ("twin", "bh")}
    points = {form: [] for form in chosen}
    for step in range(CURVE_POINTS - 1):
        size = round(smallest * (n / smallest) ** (step / (CURVE_POINTS - 1)))
        size = max(size // 2 * 2, 10)
        taken = turns.measure(chosen, size, iters, dtype, args, runs=CURVE_RUNS, most=CURVE_RUNS)
        for form, values in taken.seconds.items():
            if values:
                points[form].append((size, middle(values) / iters))
    for form, key in (("twin", "twin_seconds"), ("bh", "seconds")):
        if row[key]:
            points[form].append((n, row[key] / iters))
    return points


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--size", choices=["small", "full"], default="small")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--dtype", choices=["f64", "f32"], action="append")
    parser.add_argument("--runs", type=int, default=5, help="runs of bh and of the twin (at least 5 for figures to quote)")
    parser.add_argument("--most-runs", type=int, default=25, help="runs at most, where more are needed to know the ratio to 2%%")
    parser.add_argument("--control", action="store_true", help="time the twin against itself as well")
    parser.add_argument("--numpy-runs", type=int, default=5, help="runs of NumPy at most; 0 for none")
    parser.add_argument("--numpy-seconds", type=float, default=10, help="no further run of NumPy after this number of seconds")
    parser.add_argument("--limit", type=float, default=600, help="seconds after which a run is given up")
    parser.add_argument("--prebuilt", action="store_true", help="take the programs on bh as they are, compile twins only")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--resume", action="store_true", help="keep what the JSON file has of the same runs")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--stack", metavar="NAME", help="the stack to run on, instead of BH_STACK's")
    args = parser.parse_args()
    if args.stack:
        os.environ["BH_STACK"] = args.stack
    prefix = os.environ.get("BH_PREFIX")
    if not prefix:
        parser.error("BH_PREFIX must name the directory that bh is installed in")

    rows, details, curves, failed = [], [], {}, False
    programs = collection.chosen(parser, args.names)
    if args.resume and args.json and args.json.exists():
        rows = json.loads(args.json.read_text())
        details = json.loads(runs_file(args.json).read_text())
    known = {identity(row) for row in rows}
    collection.build_all(programs, prefix, prebuilt=args.prebuilt)
    print(f"{'program':24} {'n':>10} iters type  {'bh s':>10} {'twin s':>10} {'NumPy s':>10}  {'twin/bh, in pairs':26} {'NumPy/bh':>8}  kernels/iter")
    for program in programs:
        name = program["name"]
        commands = {
            "twin": [collection.build_twin(name)],
            "bh": [collection.build_bh(name, prefix, prebuilt=args.prebuilt)],
            "numpy": collection.numpy_command(name),
        }
        if args.control:
            commands["control"] = commands["twin"]
        n, iters = program[args.size]
        for dtype in args.dtype or ["f64"]:
            want = identity({"bench": name, "n": n, "iters": iters, "dtype": dtype, "threads": args.threads})
            if want in known:
                continue
            taken = turns.measure(commands, n, iters, dtype, args, runs=args.runs, most=args.most_runs)
            own, agrees = taken.own, agreed(taken.sums, program, dtype)
            bh, twin, numpy = (middle(taken.seconds[form]) for form in ("bh", "twin", "numpy"))
            failed |= not agrees or bool(taken.failures)
            stack = own.get("stack", os.environ.get("BH_STACK") or "bh")
            rows.append({
                "bench": name, "n": n, "iters": iters, "dtype": dtype, "threads": args.threads, "stack": stack,
                "seconds": bh, "twin_seconds": twin, "numpy_seconds": numpy, "agree": agrees,
            })  # fmt: skip
            pairs, control = taken.summary(), taken.summary("control")
            details.append({
                "bench": name, "n": n, "dtype": dtype, "threads": args.threads, **taken.seconds, "pairs": pairs,
                "control_pairs": control, "own": own, "failures": taken.failures,
            })  # fmt: skip
            if args.json:
                replace(args.json, json.dumps(rows, indent=1) + "\n")
                replace(runs_file(args.json), json.dumps(details, indent=1) + "\n")
            times = " ".join(f"{value:10.4f}" if value else f"{'-':>10}" for value in (bh, twin, numpy))
            kernels = f"{own['kernels'] / iters:.2f}" if own else "-"
            verdict = "" if agrees else "  RESULTS DIFFER" if own else ""
            paired = f"{pairs['median']:6.2f}x [{pairs['low']:.2f} {pairs['high']:.2f}] of {len(taken.pairs()):<2}" if pairs else "-"
            print(f"{name:24} {n:10} {iters:5} {dtype}   {times}  {paired:26} {ratio(numpy, bh):>8}  {kernels}{verdict}", flush=True)
            if control:
                print(f"{'':24} pairs of single runs: twin/bh {spread(pairs)}; twin/twin {spread(control)}", flush=True)
            for failure in taken.failures:
                print(f"    {failure}", flush=True)
        if args.plot:
            dtype = (args.dtype or ["f64"])[0]
            row = next(row for row in reversed(rows) if (row["bench"], row["dtype"]) == (name, dtype))
            curves[name] = curve(commands, program, dtype, args, row)
    whole = [row for row in rows if row["seconds"] and row["twin_seconds"]]
    if whole:
        mean = math.exp(statistics.mean(math.log(row["twin_seconds"] / row["seconds"]) for row in whole))
        print(f"speed relative to the twins, geometric mean of {len(whole)}: {mean:.2f}")
    if args.json:
        replace(args.json, json.dumps(rows, indent=1) + "\n")
    if args.plot:
        args.plot.write_text(plot.page(rows, curves))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
