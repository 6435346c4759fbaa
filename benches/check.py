#!/usr/bin/env python3
"""Builds the twins, and the programs on bh if BH_PREFIX names an installation, and compares all with NumPy.

    benches/check.py [--size small|full] [--build DIR] [--dtype f64|f32] [--repeat N] [--wide] [NAME...]
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import collection


def stacks(name, args):
    """The command of each form of a program."""
    commands = {
        "numpy": collection.numpy_command(name),
        "twin": [collection.build_twin(name, args.build, args.wide)],
    }
    prefix = os.environ.get("BH_PREFIX")
    if prefix:
        commands["bh"] = [collection.build_bh(name, prefix, args.build)]
    return commands


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--size", choices=["small", "full"], default="small")
    parser.add_argument("--dtype", choices=["f64", "f32"], action="append")
    parser.add_argument("--build", type=Path, default=collection.DEFAULT_BUILD)
    parser.add_argument("--repeat", type=int, default=1, help="runs of each, of which the median is shown")
    parser.add_argument("--wide", action="store_true", help="build the twins for the widest vectors")
    args = parser.parse_args()

    failed = 0
    programs = collection.chosen(parser, args.names)
    collection.build_all(programs, os.environ.get("BH_PREFIX"), args.build, args.wide)
    for program in programs:
        name = program["name"]
        commands = stacks(name, args)
        for dtype in args.dtype or ["f64", "f32"]:
            n, iters = program[args.size]
            seconds, sums, broken = {stack: [] for stack in commands}, {}, []
            for _ in range(args.repeat):
                for stack, command in commands.items():
                    try:
                        line = collection.run_once(command, n, iters, dtype, limit=600)
                    except (RuntimeError, subprocess.TimeoutExpired) as error:
                        broken.append(f"{stack}: {error}")
                        continue
                    seconds[stack].append(line["seconds"])
                    sums[stack] = line["checksum"]
            wrong = [s for s in sums if not collection.agree(sums[s], sums["numpy"], program["tolerance"][dtype])]
            failed += bool(wrong or broken)
            times = "  ".join(f"{stack} {statistics.median(values):9.4f}" for stack, values in seconds.items() if values)
            verdict = f"DISAGREE {wrong} {sums}" if wrong else "agree"
            verdict = f"FAILED {broken}" if broken else verdict
            print(f"{name:24} n={n:<10} iters={iters:<7} {dtype}  {times}  {verdict}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
