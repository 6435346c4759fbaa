#!/usr/bin/env python3
"""Programs of Bohrium's papers at the papers' sizes and iterations, on one thread: NumPy beside bh, and bh's ways to fuse.

    benches/paper_sizes.py [PROGRAM...] [--tiny] [--runs N] [--limit SECONDS] [--json FILE]

The package `bh` must be importable; programs are the NumPy sources. Seconds of processor time, for machines that others use as well,
as medians of runs in turn; single runs of programs that take less than a second differ by several times on such machines.
`numpy` and `bh` are compared for the programs of the papers of 2012 to 2014, bh after a warm-up run. For the programs of Table I of
*Fusion of array operations at runtime* each way to fuse runs in a new process, without the kernel compiler, so that planning
is part of it. A form that passes the limit is left out. Checksums must agree.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import collection

# Program, n, iterations, paper.
BESIDE_NUMPY = [
    ("heat_equation", 7168, 4, "cphVB"), ("knn", 10_000, 1, "cphVB"), ("shallow_water", 100, 120, "cphVB"), ("synthetic_stencil", 10_240, 10, "cphVB"),
    ("heat_equation", 3000, 100, "npbackend"), ("shallow_water", 2000, 100, "npbackend"), ("snakes_and_ladders", 1000, 10, "npbackend"),
    ("monte_carlo_options", 10_000_000, 10, "Bohrium"),
]  # fmt: skip
# One iteration where the others' results are not read, so that bh drops them.
FUSED = [
    ("black_scholes", 1_500_000, 20), ("game_of_life", 10_000, 20), ("heat_equation", 12_000, 20), ("leibnitz_pi", 100_000_000, 1),
    ("gauss", 2800, 1), ("lu", 2800, 1), ("montecarlo_pi", 100_000_000, 20), ("stencil_27_point", 350, 20), ("shallow_water", 3200, 20),
    ("rosenbrock", 200_000_000, 1), ("sor", 12_000, 20), ("nbody", 6000, 20), ("nbody_nice", 2_000_000, 20),
    ("lattice_boltzmann_d3q19", 150, 20), ("water_ice", 800, 20),
]  # fmt: skip
TINY = 10
ALGORITHMS = ["singleton", "naive", "greedy"]


def plans():
    """Of each program: n, iterations, the paper, and the forms that run, as commands with their environment and whether they warm up."""
    for name, n, iterations, paper in BESIDE_NUMPY:
        script = collection.numpy_command(name)
        yield name, n, iterations, paper, {"numpy": (script, {}, False), "bh": (on_bh(script), {"BH_FALLBACK": "error"}, True)}
    for name, n, iterations in FUSED:
        script = on_bh(collection.numpy_command(name))
        forms = {way: (script, {"BH_FALLBACK": "error", "BH_VE_CPU_JIT": "off", "BH_FUSER_ALGORITHM": way}, False) for way in ALGORITHMS}
        yield name, n, iterations, "fusion", forms


def on_bh(script):
    """The command that runs a NumPy program on bh."""
    return [sys.executable, "-m", "bh", *script[2:]]


def measured(name, n, iterations, forms, args):
    """Seconds of each run by form, without forms that pass the limit, and whether the checksums of all that ended agree."""
    each, sums, slow = {}, [], set()
    for _ in range(args.runs):
        for form, (command, environment, warm) in forms.items():
            if form in slow:
                continue
            try:
                run = collection.run_once(command, n, iterations, "f64", warm=warm, threads=1, environment={**environment, "OPENBLAS_NUM_THREADS": "1"}, limit=args.limit)
            except subprocess.TimeoutExpired:
                slow.add(form)
                continue
            each.setdefault(form, []).append(run["processor"])
            sums.append(run["checksum"])
    tolerance = collection.PROGRAMS[name]["tolerance"]["f64"]
    return each, all(collection.agree(sums[0], other, tolerance) for other in sums[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="PROGRAM")
    parser.add_argument("--tiny", action="store_true", help="one iteration of tiny problems instead")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--limit", type=float, default=300, help="seconds after which a form is given up")
    parser.add_argument("--machine", default="", help="what the machine is, for the JSON file")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    collection.chosen(parser, args.names)
    commit = subprocess.run(["git", "-C", collection.HERE, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True).stdout.strip()
    rows = []
    for name, n, iterations, paper, forms in plans():
        if args.names and name not in args.names:
            continue
        n, iterations = (TINY, 1) if args.tiny else (n, iterations)
        each, good = measured(name, n, iterations, forms, args)
        seconds = {form: statistics.median(values) for form, values in each.items()}
        rows.append({"paper": paper, "program": name, "n": n, "iterations": iterations, "seconds": seconds, "each": each, "agree": good})
        shown = "  ".join(f"{form} {value:9.3f} s" for form, value in seconds.items())
        print(f"{paper:10} {name:24} {n:>11} × {iterations:<4} {shown}{'' if good else '  RESULTS DIFFER'}", flush=True)
        if args.json:
            args.json.write_text(json.dumps({"commit": commit, "machine": args.machine, "rows": rows}, indent=1) + "\n")
    return 0 if all(row["agree"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
