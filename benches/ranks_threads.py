#!/usr/bin/env python3
"""The same problem on all ways to share cores out between ranks and their threads.

    benches/ranks_threads.py --prefix DIR [--cores 1,4,16] [--repeat N] [--quick] [--json FILE] [PROGRAM...]

Milliseconds, the fastest of some runs, each after one that warms up. Ranks are bound to as many cores as they have threads. Needs
what `cluster.py` needs. Says how many parts the host's memory has (NUMA domains).
"""

import argparse
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import cluster

PROGRAMS = ("heat_equation", "shallow_water", "black_scholes", "nbody")


def domains():
    """The parts of the host's memory."""
    return max(len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))), 1)


def ways(cores):
    """Ranks and threads of each that are these cores together, all powers of two."""
    ranks = 1
    while ranks <= cores:
        yield ranks, cores // ranks
        ranks *= 2


def measured(bench, name, cores):
    """The times of a program by ranks and threads, and whether all results are equal."""
    size = cluster.PROGRAMS[name][0]
    if bench.args.quick:
        size = (size[0] // (cluster.QUICK**2 if cluster.PROGRAMS[name][2] == 1 else cluster.QUICK), size[1])
    program = bench.compile(cluster.source(name), name)
    rows, first = [], None
    for ranks, threads in (way for count in cores for way in ways(count)):
        bench.args.threads = threads
        found = bench.seconds(program, size, ranks=ranks)
        first = first or found["checksum"]
        near = all(abs(a - b) <= 1e-9 * max(abs(a), abs(b)) for a, b in zip(found["checksum"], first))
        print(f"{name:16}{ranks:>7} ranks ×{threads:>3} threads{1e3 * found['seconds']:>12.2f} ms{'' if near else '  DIFFER'}", flush=True)
        rows.append({"ranks": ranks, "threads": threads, "seconds": found["seconds"]})
    return {"program": name, "n": size[0], "iters": size[1], "ways": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", choices=[[], *PROGRAMS])
    parser.add_argument("--prefix", type=Path, required=True, help="where bh is installed")
    parser.add_argument("--build", type=Path, default=Path("/tmp/bh-bench-cluster"))
    parser.add_argument("--cores", default="1,4,16")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small problems")
    parser.add_argument("--mpirun")
    parser.add_argument("--stack", default="cluster")
    parser.add_argument("--timeout", type=int, default=120)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    args.threads, args.compile_only = 1, False
    bench = cluster.Bench(args)
    print(f"{bench.cores} processors, {domains()} NUMA domains")
    rows = []
    for name in args.programs or PROGRAMS:
        rows.append(measured(bench, name, [int(count) for count in args.cores.split(",")]))
        if args.json:
            args.json.write_text(json.dumps({"processors": bench.cores, "domains": domains(), "programs": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
