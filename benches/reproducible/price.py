#!/usr/bin/env python3
"""The cost of the key `reproducible`: processor time of the catalog's NumPy versions on bh, with the key and without.

    benches/reproducible/price.py [--scale N] [--rounds N] [NAME...]

A program runs with its small size times `scale` (along each axis of its data its own way), in a process for each round, which runs it
once before it measures. Ratios come from the least of the times.
"""

import argparse
import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path

BENCHES = Path(__file__).resolve().parents[1]


def measure(name, n, iters):
    """Seconds of the processor for a run in this process."""
    sys.path[:0] = [str(BENCHES), str(BENCHES / "common")]
    import numpy
    from rivals import program_of

    setup, run = program_of(name)
    times = []
    for _ in range(3):
        state = setup(n, numpy.float64)
        begin = time.process_time()
        run(state, iters)()
        times.append(time.process_time() - begin)
    print(min(times[1:]))


def seconds(name, n, iters, reproducible):
    """The same in a process of its own; `None` if the program fails there."""
    environment = {**os.environ, "BH_RECORDER_REPRODUCIBLE": str(reproducible).lower()}
    words = [sys.executable, "-m", "bh", __file__, "--measure", name, str(n), str(iters)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    if done.returncode:
        print(f"{name}, reproducible = {reproducible}: {done.stderr.strip().splitlines()[-1]}")
        return None
    return float(done.stdout.split()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        name, n, iters = arguments.names
        return measure(name, int(n), int(iters))
    catalog = tomllib.loads((BENCHES / "catalog.toml").read_text())["program"]
    print(f"{'program':28} {'off, ms':>9} {'on, ms':>9} {'ratio':>6}")
    for program in catalog:
        name, (n, iters) = program["name"], program["small"]
        if arguments.names and name not in arguments.names:
            continue
        least = {}
        for turn in range(2 * arguments.rounds):
            found = seconds(name, n * arguments.scale, iters, bool(turn % 2))
            if found is None:
                break
            least[turn % 2] = min(found, least.get(turn % 2, found))
        else:
            off, on = least[0] * 1e3, least[1] * 1e3
            print(f"{name:28} {off:9.1f} {on:9.1f} {on / off:6.2f}", flush=True)


if __name__ == "__main__":
    main()
