#!/usr/bin/env python3
"""Times the programs on bh against their hand-written twins and NumPy: interleaved runs, medians, results compared.

    BH_PREFIX=DIR benches/run.py [NAME...] [--size small|full] [--threads N] [--json FILE] [--plot FILE.svg]

The stack is the one that BH_STACK names. With --plot each program also runs at sizes below the chosen one.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import collection
import plot

CURVE_POINTS = 4
CURVE_RUNS = 3


def measure(commands, program, n, iters, dtype, args, runs):
    """Medians by form over interleaved runs, the checksums, bh's own line, and what failed."""
    seconds, sums, own, failures = {form: [] for form in commands}, {}, {}, []
    for turn in range(runs):
        for form, command in commands.items():
            if form == "numpy" and turn >= args.numpy_runs or any(f.startswith(form) for f in failures):
                continue
            try:
                line = collection.run_once(command, n, iters, dtype, threads=args.threads, limit=args.limit)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failures.append(f"{form}: {error}")
                continue
            seconds[form].append(line["seconds"])
            sums[form] = line["checksum"]
            own = line if form == "bh" else own
    medians = {form: statistics.median(values) if values else None for form, values in seconds.items()}
    reference = sums.get("numpy") or sums.get("twin")
    tolerance = program["tolerance"][dtype]
    agrees = "bh" in sums and bool(reference) and all(collection.agree(s, reference, tolerance) for s in sums.values())
    return medians, agrees, own, failures


def ratio(numerator, denominator):
    """A quotient as text, of times that may be missing."""
    return f"{numerator / denominator:6.2f}x" if numerator and denominator else "      -"


def curve(commands, program, dtype, args):
    """Seconds by form at sizes up to the chosen one, for the plot."""
    n, iters = program[args.size]
    smallest = program["small"][0] if args.size == "full" else max(n // 8, 10)
    points = {"twin": [], "bh": []}
    for step in range(CURVE_POINTS):
        size = round(smallest * (n / smallest) ** (step / (CURVE_POINTS - 1)))
        size = max(size // 2 * 2, 10)
        chosen = {form: command for form, command in commands.items() if form in points}
        medians, _, _, _ = measure(chosen, program, size, iters, dtype, args, CURVE_RUNS)
        for form, value in medians.items():
            if value:
                points[form].append((size, value / iters))
    return points


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--size", choices=["small", "full"], default="small")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--dtype", choices=["f64", "f32"], action="append")
    parser.add_argument("--runs", type=int, default=5, help="runs of bh and of the twin (at least 5 for figures to quote)")
    parser.add_argument("--numpy-runs", type=int, default=1, help="runs of NumPy, which is slower; 0 for none")
    parser.add_argument("--limit", type=float, default=600, help="seconds after which a run is given up")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    args = parser.parse_args()
    prefix = os.environ.get("BH_PREFIX")
    if not prefix:
        parser.error("BH_PREFIX must name the directory that bh is installed in")

    rows, curves, failed = [], {}, False
    programs = collection.chosen(parser, args.names)
    collection.build_all(programs, prefix)
    print(f"{'program':24} {'n':>10} iters type  {'bh s':>10} {'twin s':>10} {'NumPy s':>10}  {'twin/bh':>7} {'NumPy/bh':>8}  kernels/iter")
    for program in programs:
        name = program["name"]
        commands = {
            "twin": [collection.build_twin(name)],
            "bh": [collection.build_bh(name, prefix)],
            "numpy": collection.numpy_command(name),
        }
        n, iters = program[args.size]
        for dtype in args.dtype or ["f64"]:
            medians, agrees, own, failures = measure(commands, program, n, iters, dtype, args, args.runs)
            bh, twin, numpy = (medians[form] for form in ("bh", "twin", "numpy"))
            failed |= not agrees or bool(failures)
            stack = own.get("stack", os.environ.get("BH_STACK") or "bh")
            rows.append({
                "bench": name, "n": n, "iters": iters, "dtype": dtype, "threads": args.threads, "stack": stack,
                "seconds": bh, "twin_seconds": twin, "numpy_seconds": numpy, "agree": agrees,
            })  # fmt: skip
            times = " ".join(f"{value:10.4f}" if value else f"{'-':>10}" for value in (bh, twin, numpy))
            kernels = f"{own['kernels'] / iters:.2f}" if own else "-"
            verdict = "" if agrees else "  RESULTS DIFFER" if own else ""
            print(f"{name:24} {n:10} {iters:5} {dtype}   {times}  {ratio(twin, bh)} {ratio(numpy, bh):>8}  {kernels}{verdict}", flush=True)
            for failure in failures:
                print(f"    {failure}", flush=True)
        if args.plot:
            curves[name] = curve(commands, program, (args.dtype or ["f64"])[0], args)
    whole = [row for row in rows if row["seconds"] and row["twin_seconds"]]
    if whole:
        mean = math.exp(statistics.mean(math.log(row["twin_seconds"] / row["seconds"]) for row in whole))
        print(f"speed relative to the twins, geometric mean of {len(whole)}: {mean:.2f}")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    if args.plot:
        args.plot.write_text(plot.page(rows, curves))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
