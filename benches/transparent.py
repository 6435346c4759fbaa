#!/usr/bin/env python3
"""The programs of *Transparent GPU execution of NumPy applications*, unmodified, on NumPy and on a device with bh, in one run.

    benches/transparent.py [PROGRAM...] [--stack cuda] [--sizes tiny|all] [--runs N] [--json FILE]

The package `bh` must be importable. Every program runs in both types of the paper, over sizes up to the paper's, with its
50 or 100 iterations. `NumPy` is one iteration after a warm-up run; its time of all iterations is that many times one, as its
iterations cost the same (the largest would take half an hour). `first` is bh's first iteration in a new process with empty
caches of kernels, `step` one of all iterations after a warm-up run. Both contain transfers; starting Python and making the
inputs are in neither. Checksums of one iteration must agree. Work that bh leaves to NumPy is an error.
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
TINY = {"monte_carlo_options": 1000, "sor": 16, "shallow_water": 16, "nbody_collisions": 16}
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


def measured(name, n, iterations, dtype, stack, runs):
    """A row: seconds of an iteration on NumPy, of bh's first and of its later ones, and whether the checksums agree."""
    plain = [collection.run_once(collection.numpy_command(name), n, 1, dtype) for _ in range(runs)]
    with tempfile.TemporaryDirectory(prefix="transparent-") as caches:
        first = device(name, n, 1, dtype, stack, False, caches)
        later = [device(name, n, iterations, dtype, stack, True, caches)["seconds"] / iterations for _ in range(runs)]
    tolerance = collection.PROGRAMS[name]["tolerance"][dtype]
    return {
        "program": name, "n": n, "iterations": iterations, "dtype": dtype,
        "numpy": statistics.median(run["seconds"] for run in plain), "first": first["seconds"], "step": statistics.median(later),
        "agree": collection.agree(plain[0]["checksum"], first["checksum"], tolerance),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="PROGRAM")
    parser.add_argument("--stack", default="cuda")
    parser.add_argument("--sizes", choices=["tiny", "all"], default="all")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if unknown := [name for name in args.names if name not in PAPER]:
        parser.error(f"there is no program {unknown[0]}; there are {', '.join(PAPER)}")
    rows = []
    for name in args.names or PAPER:
        sizes, iterations = PAPER[name] if args.sizes == "all" else ([TINY[name]], 2)
        for dtype in ("f32", "f64"):
            for n in sizes if dtype == "f32" else [halved(name, size) for size in sizes]:
                rows.append(measured(name, n, iterations, dtype, args.stack, args.runs))
                row = rows[-1]
                times = "  ".join(f"{form} {1e3 * row[form]:10.3f} ms" for form in ("numpy", "first", "step"))
                remark = "" if row["agree"] else "  RESULTS DIFFER"
                print(f"{name} {n} {dtype} × {iterations}: {times}  {row['numpy'] / row['first']:7.2f} first {row['numpy'] / row['step']:8.1f} later{remark}", flush=True)
                if args.json:
                    args.json.write_text(json.dumps({"stack": args.stack, "rows": rows}, indent=1) + "\n")
    return 0 if all(row["agree"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
