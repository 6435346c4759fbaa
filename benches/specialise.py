#!/usr/bin/env python3
"""Kernels with sizes as arguments (dynamic), with sizes in their text (fixed), and those that bh chooses (selected).

    BH_PREFIX=DIR benches/specialise.py [--device gpu|cpu] [--size small|full] [--dtype f64 f32] [--json FILE] [NAME...]

The six programs of the paper on code specialization, its Tables 3 to 7 and Figs. 7 to 10: one run of each in a new process, without
anything kept on disk by bh or by the driver. *application* are the seconds of all steps, *kernels* those in which the device
computed, *compile* those in which its compiler did (all threads together), *built* is how many kernels it made. Sizes `small`
suit a processor (PoCL), `full` a GPU; elimination with fixed kernels builds one for each of its steps, which is the point, so its
matrices are small. `--prebuilt` takes the programs from BH_BENCH_BUILD as they are.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import collection
import fresh
import opencl

VARIANTS = {"dynamic": "off", "fixed": "on", "selected": "auto"}
COUNTERS = {"compile": "opencl.build_ns", "kernels": "opencl.kernel_ns", "built": "opencl.kernels built"}
# n and steps by size.
SIZES = {
    "tiny": {"stencil_1d": (1000, 5), "gauss": (6, 1)},
    "small": {
        "stencil_1d": (4_000_000, 20), "stencil_2d": (2000, 20), "stencil_3d": (150, 20), "stencil_4d": (32, 20),
        "gauss": (32, 4), "lu": (32, 4),
    },
    "full": {
        "stencil_1d": (60_000_000, 200), "stencil_2d": (8000, 200), "stencil_3d": (400, 200), "stencil_4d": (80, 100),
        "gauss": (100, 20), "lu": (100, 20),
    },
}  # fmt: skip


def measure(name, n, steps, dtype, variant, args):
    """The times of one run, by column; None if it failed."""
    found = []
    for _ in range(args.runs):
        with tempfile.TemporaryDirectory() as empty:
            environment = fresh.environment(args.device, empty, COUNTERS.values()) | {"BH_OPENCL_SPECIALISE": VARIANTS[variant]}
            binary = collection.DEFAULT_BUILD / name / "bh"
            line = collection.run_once([binary], n, steps, dtype, warm=False, environment=environment, limit=args.limit)
        counted = {column: line["counters"][counter] for column, counter in COUNTERS.items()}
        times = {column: counted[column] / 1e9 for column in ("kernels", "compile")}
        found.append({"application": line["seconds"], **times, "built": counted["built"], "checksum": line["checksum"]})
    return {**{column: statistics.median(one[column] for one in found) for column in list(found[0])[:-1]}, "checksum": found[0]["checksum"]}


def compare(name, n, steps, dtype, args):
    """The three ways of one program, whose results must agree."""
    ways, good = {}, True
    for variant in VARIANTS:
        try:
            ways[variant] = measure(name, n, steps, dtype, variant, args)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"{name} {dtype} {variant}: FAILED {error}", flush=True)
            return {}, False
    sums = {variant: way.pop("checksum") for variant, way in ways.items()}
    tolerance = collection.PROGRAMS[name]["tolerance"][dtype]
    for variant, way in ways.items():
        same = collection.agree(sums[variant], sums["dynamic"], tolerance)
        good &= same
        shown = "  ".join(f"{way[column]:9.4f}" for column in ("application", "kernels", "compile"))
        print(f"{name:12} n={n:<9} steps={steps:<4} {dtype} {variant:9} {shown} {way['built']:6}{'' if same else '  DIFFER'}", flush=True)
    return ways, good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--size", choices=list(SIZES), default="full")
    parser.add_argument("--dtype", nargs="+", choices=["f64", "f32"], default=["f64", "f32"])
    parser.add_argument("--runs", type=int, default=1, help="runs of which the median counts")
    parser.add_argument("--limit", type=float, default=300, help="seconds after which a run is given up")
    parser.add_argument("--prebuilt", action="store_true")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if "BH_PREFIX" not in os.environ:
        parser.error("BH_PREFIX is not set")
    sizes = SIZES[args.size]
    if unknown := set(args.names) - set(sizes):
        parser.error(f"no program {unknown.pop()!r} of this size; there are {', '.join(sizes)}")
    fresh.enable_driver()
    name_of_device = opencl.Device("", opencl.GPU if args.device == "gpu" else opencl.PROCESSOR).name()
    rows, good = [], True
    print(f"{'program':43} {'variant':9} {'application':>9} {'kernels':>9} {'compile':>9}  built; seconds", flush=True)
    for name in args.names or sizes:
        collection.build_bh(name, os.environ["BH_PREFIX"], prebuilt=args.prebuilt)
        for dtype in args.dtype:
            ways, same = compare(name, *sizes[name], dtype, args)
            good &= same
            rows.append({"program": name, "n": sizes[name][0], "steps": sizes[name][1], "dtype": dtype, "ways": ways})
        if args.json:
            args.json.write_text(json.dumps({"device": name_of_device, "programs": rows}, indent=1) + "\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
