#!/usr/bin/env python3
"""The programs of *Transparent GPU execution of NumPy applications*, unmodified, on NumPy and on a device with bh, in one run.

    benches/transparent.py [PROGRAM...] [--stack cuda] [--sizes tiny|all|papers] [--cores] [--runs N] [--json FILE]

The package `bh` must be importable. Every program runs in both types of the paper, over sizes up to the paper's, with its
50 or 100 iterations; with `--sizes papers`, programs of the other papers run at the sizes and iterations of these, in double precision.
`NumPy` is one iteration after a warm-up run, or the first one if that takes longer than some seconds; its time of all iterations is that many times one, as its
iterations cost the same (the largest would take half an hour). `first` is bh's first iteration in a new process with empty
caches of kernels, `step` one of all iterations after a warm-up run. Both contain transfers; starting Python and making the
inputs are in neither. `--cores` adds the same two of bh on all cores of the host. Checksums of one iteration must agree. Work that bh leaves to NumPy is an error.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import collection

# Sizes in single precision, and the paper's iterations; in double precision arrays have half as many bytes' worth of elements.
PAPER = {
    "monte_carlo_options": ([2_000_000, 8_000_000, 32_000_000], 50),
    "sor": ([2048, 8192, 16384], 100),
    "shallow_water": ([1024, 2048, 4096], 100),
    "nbody_collisions": ([800, 1600, 3200], 50),
}
# Program, n, iterations and paper of the others' figures on cards; the first paper's domain of 2,000 × 4,000 as a square.
PAPERS = [
    ("shallow_water", 2828, 100, "Unmodified NumPy code"), ("monte_carlo_options", 32_000_000, 50, "Unmodified NumPy code"),
    ("nbody_collisions", 1600, 50, "Unmodified NumPy code"), ("shallow_water", 4000, 100, "A virtual machine approach"),
    ("monte_carlo_options", 64_000_000, 50, "A virtual machine approach"), ("nbody_collisions", 3200, 50, "A virtual machine approach"),
    ("heat_equation", 3000, 100, "npbackend"), ("shallow_water", 2000, 100, "npbackend"), ("snakes_and_ladders", 1000, 10, "npbackend"),
]  # fmt: skip
TINY = {"monte_carlo_options": 1000, "sor": 16, "shallow_water": 16, "nbody_collisions": 16, "heat_equation": 16, "snakes_and_ladders": 10}
# Seconds of a run after which it needs no warm-up.
LONG = 4.0
# Folders of compiled kernels.
CACHES = ["XDG_CACHE_HOME", "CUDA_CACHE_PATH"]


def halved(name, n):
    """The size whose arrays have half of the elements; even."""
    return n // 2 if name == "monte_carlo_options" else 2 * round(n / 2**0.5 / 2)


def device(name, n, iterations, dtype, stack, warm, caches):
    """A run on bh in a process of its own that keeps kernels in `caches`."""
    folders = {key: f"{caches}/{key}" for key in CACHES}
    for folder in folders.values():
        os.makedirs(folder, mode=0o700, exist_ok=True)
    command = [sys.executable, "-m", "bh", *collection.numpy_command(name)[2:]]
    return collection.run_once(command, n, iterations, dtype, warm=warm, environment={**folders, "BH_STACK": stack, "BH_FALLBACK": "error"})


def plain(name, n, dtype):
    """One iteration on NumPy."""
    run = collection.run_once(collection.numpy_command(name), n, 1, dtype, warm=False)
    return run if run["seconds"] > LONG else collection.run_once(collection.numpy_command(name), n, 1, dtype)


def measured(name, n, iterations, dtype, stacks, runs):
    """A row: seconds of an iteration on NumPy, of bh's first and of its later ones on each stack, and whether the checksums agree."""
    numpy = [plain(name, n, dtype) for _ in range(runs)]
    row = {"program": name, "n": n, "iterations": iterations, "dtype": dtype, "numpy": statistics.median(run["seconds"] for run in numpy), "agree": True}
    for stack in stacks:
        prefix = "" if stack == stacks[0] else f"{stack}_"
        with tempfile.TemporaryDirectory(prefix="transparent-") as caches:
            first = device(name, n, 1, dtype, stack, False, caches)
            later = [device(name, n, iterations, dtype, stack, True, caches)["seconds"] / iterations for _ in range(runs)]
        row |= {f"{prefix}first": first["seconds"], f"{prefix}step": statistics.median(later)}
        row["agree"] &= collection.agree(numpy[0]["checksum"], first["checksum"], collection.PROGRAMS[name]["tolerance"][dtype])
    return row


def plans(names, sizes):
    """Programs with their sizes, iterations, types and paper."""
    if sizes == "papers":
        for name, n, iterations, paper in PAPERS:
            if not names or name in names:
                yield name, n, iterations, "f64", {"paper": paper}
        return
    for name in names or (PAPER if sizes == "all" else TINY):
        extents, iterations = PAPER[name] if sizes == "all" else ([TINY[name]], 2)
        for dtype in ("f32", "f64"):
            for n in extents if dtype == "f32" else [halved(name, size) for size in extents]:
                yield name, n, iterations, dtype, {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="PROGRAM")
    parser.add_argument("--stack", default="cuda")
    parser.add_argument("--sizes", choices=["tiny", "all", "papers"], default="all")
    parser.add_argument("--cores", action="store_true", help="also on the cores of the host")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    known = {"tiny": [*TINY], "all": [*PAPER], "papers": [name for name, *_ in PAPERS]}[args.sizes]
    if unknown := [name for name in args.names if name not in known]:
        parser.error(f"there is no program {unknown[0]}; there are {', '.join(dict.fromkeys(known))}")
    stacks, rows = [args.stack, *(["cpu"] if args.cores else [])], []
    for name, n, iterations, dtype, more in plans(args.names, args.sizes):
        rows.append(measured(name, n, iterations, dtype, stacks, args.runs) | more)
        row = rows[-1]
        times = "  ".join(f"{form} {1e3 * value:10.3f} ms" for form, value in row.items() if type(value) is float)
        remark = "" if row["agree"] else "  RESULTS DIFFER"
        print(f"{name} {n} {dtype} × {iterations}: {times}  {row['numpy'] / row['first']:7.2f} first {row['numpy'] / row['step']:8.1f} later{remark}", flush=True)
        if args.json:
            machine = {"stack": args.stack, "threads": os.cpu_count()}
            args.json.write_text(json.dumps({**machine, "rows": rows}, indent=1) + "\n")
    return 0 if all(row["agree"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
