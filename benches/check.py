#!/usr/bin/env python3
"""Builds the twins and compares every stack's checksums with NumPy's; with --size full it also shows the times.

    benches/check.py [--size small|full] [--build DIR] [--dtype f64|f32] [--repeat N] [--wide] [NAME...]
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


def build_twin(program, settings, folder, wide):
    """Compiles a twin if its binary is missing or older than its sources; returns the binary."""
    source, binary = HERE / program / "twin.c", folder / program / ("twin-wide" if wide else "twin")
    inputs = [source, *(HERE / "common").glob("*.h")]
    if not binary.exists() or binary.stat().st_mtime < max(path.stat().st_mtime for path in inputs):
        binary.parent.mkdir(parents=True, exist_ok=True)
        flags = settings["flags"] + (settings["wide_flags"] if wide else [])
        command = [settings["compiler"], *flags, source, "-o", binary, *settings["libraries"]]
        subprocess.run(command, check=True)
    return binary


def stacks(program, settings, folder, wide):
    """The command of each stack that this program has."""
    commands = {
        "numpy": [sys.executable, "-B", HERE / program / "numpy_version.py"],
        "twin": [build_twin(program, settings, folder, wide)],
    }
    on_bh = folder / program / "bh"
    if on_bh.exists():
        commands["bh"] = [on_bh]
    return commands


def agree(left, right, tolerance):
    """Whether two lists of checksums are equal within the tolerance."""
    return len(left) == len(right) and all(
        abs(a - b) <= tolerance * max(abs(a), abs(b)) for a, b in zip(left, right)
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--size", choices=["small", "full"], default="small")
    parser.add_argument("--dtype", choices=["f64", "f32"], action="append")
    parser.add_argument("--build", type=Path, default=HERE.parent / "target" / "benches")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each, of which the median is shown")
    parser.add_argument("--wide", action="store_true", help="build the twins for the widest vectors")
    args = parser.parse_args()

    with open(HERE / "catalog.toml", "rb") as file:
        catalog = tomllib.load(file)
    known = [program["name"] for program in catalog["program"]]
    for name in args.names:
        if name not in known:
            parser.error(f"no program {name!r}; there are {', '.join(known)}")

    failed = 0
    for program in catalog["program"]:
        name = program["name"]
        if args.names and name not in args.names:
            continue
        commands = stacks(name, catalog["twin"], args.build, args.wide)
        for dtype in args.dtype or ["f64", "f32"]:
            n, iters = program[args.size]
            seconds, sums = {stack: [] for stack in commands}, {}
            for _ in range(args.repeat):
                for stack, command in commands.items():
                    run = subprocess.run(
                        [*command, str(n), str(iters), dtype, "--warm"],
                        check=True, capture_output=True, text=True, env=os.environ,
                    )  # fmt: skip
                    line = json.loads(run.stdout)
                    seconds[stack].append(line["seconds"])
                    sums[stack] = line["checksum"]
            wrong = [s for s in sums if not agree(sums[s], sums["numpy"], program["tolerance"][dtype])]
            failed += bool(wrong)
            times = "  ".join(f"{stack} {statistics.median(values):9.4f}" for stack, values in seconds.items())
            verdict = f"DISAGREE {wrong} {sums}" if wrong else "agree"
            print(f"{name:24} n={n:<10} iters={iters:<7} {dtype}  {times}  {verdict}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
