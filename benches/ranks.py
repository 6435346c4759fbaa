#!/usr/bin/env python3
"""Programs on one core, on all cores as threads, and on a rank for each core; with the parts of the ranks' time.

    ranks.py heat=6000 product=2000             # these programs with these sizes; all with sizes of their own by default
    ranks.py --weak heat=2000                   # a problem that grows with the ranks, beside plain copies of memory
    ranks.py --balanced nbody black_scholes     # equal shares, and shares by how fast each core is while the others work, too

Each way runs in processes of its own, one after the other, ranks bound to cores. Figures are milliseconds of a step whose value is
read, the least of some rounds; times as fast as one core; and of the ranks, in percent of their time: computing (least, median and
most of all ranks), waiting for messages, and packing and unpacking them.
"""

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import siblings

KEYS = ("compute_ns", "wait_ns", "pack_ns")
# Bytes of an array that is copied, and seconds.
COPIED, COPYING = 1 << 27, 1.0


def water(np, size):
    """Shallow water in two fields and a height, whose borders stay."""
    h, u, v = np.ones((size, size)), np.zeros((size, size)), np.zeros((size, size))
    h[size // 4 : size // 2] = 1.5

    def step():
        c, n, s, w, e = np.s_[1:-1, 1:-1], np.s_[:-2, 1:-1], np.s_[2:, 1:-1], np.s_[1:-1, :-2], np.s_[1:-1, 2:]
        u[c] -= 0.1 * (h[e] - h[w]) / (h[c] + 1.0)
        v[c] -= 0.1 * (h[s] - h[n]) / (h[c] + 1.0)
        h[c] -= 0.1 * (u[e] - u[w] + v[s] - v[n])
        return h[1, 1]

    return step


def renewed(np, size):
    """A product whose right factor changes each time."""
    a, b = np.ones((size, size)), np.ones((size, size))

    def step():
        b[:] = b * 0.9999
        return (a @ b)[0, 0]

    return step


def fft2(np, size):
    x = np.linspace(0.0, 1.0, size * size).reshape(size, size)
    return lambda: np.fft.fft2(x)[1, 1].real


def sort(np, size):
    x = np.random.default_rng(1).random(size * size)
    return lambda: np.sort(x)[5]


# The measured programs, with the side of an array each.
PROGRAMS = {
    **{name: siblings.PROGRAMS[name] for name in ("black_scholes", "functions", "nbody", "product", "heat", "turns")},
    **{one.__name__: one for one in (renewed, water, fft2, sort)},
}
SIZES = {"black_scholes": 6000, "functions": 6000, "nbody": 2000, "product": 2000, "renewed": 2000, "heat": 6000, "turns": 6000, "water": 4000, "fft2": 4096, "sort": 4000}


def work(name, size, rounds, seconds, warm):
    """One way: prints what a step takes in each round, and how many there are in one."""
    import bh as np

    np._native.Stack()  # here ranks but the first begin to serve
    step = PROGRAMS[name](np, size)
    begin = time.perf_counter()
    turns = 0
    while turns < 8 or time.perf_counter() < begin + warm:
        float(step())
        turns += 1
    begin = time.perf_counter()
    float(step())
    steps = max(2, min(20, int(seconds / rounds / (time.perf_counter() - begin))))
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(steps):
            float(step())
        times.append((time.perf_counter() - begin) / steps)
    print(json.dumps(times), flush=True)


def alone(name, size, warm):
    """A process without a cluster, beside others: the median of a step's seconds."""
    import bh as np

    step, times = PROGRAMS[name](np, size), []
    begin = time.perf_counter()
    while len(times) < 20 or time.perf_counter() < begin + warm + 1.0:
        last = time.perf_counter()
        float(step())
        times.append(time.perf_counter() - last if last > begin + warm else math.inf)
    return statistics.median(one for one in times if one < math.inf)


def copies():
    """Copies memory for a while: the bytes that are read and written in a second."""
    import numpy

    one, other = numpy.ones(COPIED // 8), numpy.zeros(COPIED // 8)
    begin, turns = time.perf_counter(), 0
    while time.perf_counter() - begin < COPYING:
        other[:] = one
        turns += 1
    return 2 * COPIED * turns / (time.perf_counter() - begin)


def tell(folder, figure):
    """Writes a process's figure into a file of its own: mpirun may mix what processes print."""
    Path(folder, os.environ.get("OMPI_COMM_WORLD_RANK", "0")).write_text(str(figure))


def launcher(ranks, cores):
    """The command that starts ranks, each bound to a core of its own; unbound if there are too few cores."""
    more = ["--bind-to", "core", "--use-hwthread-cpus"] if ranks <= cores else ["--bind-to", "none", "--oversubscribe"]
    return ["mpirun", "-n", str(ranks), *more]


def run(prefix, arguments, script=__file__, **variables):
    """The output of a command of a script, by default this one."""
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OPENBLAS_NUM_THREADS": "1", **variables}
    done = subprocess.run([*prefix, sys.executable, script, *map(str, arguments)], env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def parts(folder):
    """Milliseconds of each rank by kind, from what ranks wrote when they ended."""
    found = []
    for path in sorted(Path(folder).glob("stats*"), key=lambda path: int(path.name.partition(".rank")[2] or 0)):
        text = path.read_text()
        found.append([float(re.search(rf"^cluster\.{key} +([\d.]+)", text, re.M)[1]) if f"cluster.{key} " in text else 0.0 for key in KEYS])
    return found


def shares(found):
    """How the time of ranks is shared out, in percent of the longest of all."""
    compute, wait, pack = zip(*found)
    longest = max(max(sum(one) for one in found), 1e-9) / 100
    return [round(one / longest) for one in (min(compute), statistics.median(compute), max(compute), statistics.median(wait), statistics.median(pack))]


class Ways:
    """The ways to run a program on this host."""

    def __init__(self, arguments):
        self.arguments, self.cores = arguments, len(os.sched_getaffinity(0))
        self.ranks = arguments.ranks or self.cores

    def least(self, prefix, name, size, **variables):
        rounds = self.arguments.rounds
        return min(json.loads(run(prefix, ["--work", name, size, rounds, self.arguments.seconds, self.arguments.warm], **variables).splitlines()[-1]))

    def on_ranks(self, name, size, ranks, **variables):
        """A step's seconds, and the parts of each rank's time."""
        with tempfile.TemporaryDirectory() as folder:
            least = self.least(launcher(ranks, self.cores), name, size, BH_STACK="cluster", BH_VE_CPU_THREADS="1", BH_STATS=f"{folder}/stats", **variables)
            return least, parts(folder)

    def told(self, ranks, *arguments):
        """The figures of processes beside each other, without a cluster, by rank."""
        with tempfile.TemporaryDirectory() as folder:
            run(launcher(ranks, self.cores), [arguments[0], folder, *arguments[1:]], BH_STACK="cpu", BH_VE_CPU_THREADS="1")
            return [float(path.read_text()) for path in sorted(Path(folder).iterdir(), key=lambda path: int(path.name))]

    def strong(self, name, size):
        one = None
        if not self.arguments.no_core:
            one = self.least(["taskset", "-c", "0"], name, size, BH_STACK="cpu", BH_VE_CPU_THREADS="1")
        threads = self.least([], name, size, BH_STACK="cpu", BH_VE_CPU_THREADS=str(self.ranks))
        ranks, found = self.on_ranks(name, size, self.ranks)
        spent = shares(found)
        faster = [one / seconds if one else math.nan for seconds in (threads, ranks)]
        print(
            f"{name:>14} {size:>6} {1e3 * (one or math.nan):>10.2f} {1e3 * threads:>9.2f} {1e3 * ranks:>9.2f} {faster[0]:>7.1f} {faster[1]:>7.1f} "
            f"{ranks / threads:>7.2f}   {spent[0]}/{spent[1]}/{spent[2]}  {spent[3]}  {spent[4]}",
            flush=True,
        )
        return {"program": name, "size": size, "core": one, "threads": threads, "ranks": ranks, "spent": spent, "parts": found}

    def balanced(self, name, size):
        """Seconds of cores with equal shares without a cluster, all at once, and of ranks with equal shares and with shares
        by these times."""
        cores = self.told(self.ranks, "--alone", name, round(size / math.sqrt(self.ranks)), self.arguments.warm)
        weights = ",".join(f"{min(cores) / seconds:.3f}" for seconds in cores)
        threads = self.least([], name, size, BH_STACK="cpu", BH_VE_CPU_THREADS=str(self.ranks))
        even = self.on_ranks(name, size, self.ranks)[0]
        shared = self.on_ranks(name, size, self.ranks, BH_CLUSTER_WEIGHTS=weights)[0]
        shown = [1e3 * one for one in (min(cores), statistics.median(cores), max(cores), threads, even, shared)]
        print(f"{name:>14} {size:>6}  {'/'.join(f'{one:.2f}' for one in shown[:3]):>20}" + "".join(f"{one:>11.2f}" for one in shown[3:]), flush=True)
        return {"program": name, "size": size, "cores": cores, "threads": threads, "even": even, "balanced": shared}

    def weak(self, name, size):
        """A step of one rank, and of all with as much work for each."""
        large = round(size * math.sqrt(self.ranks))
        one, many = self.on_ranks(name, size, 1)[0], self.on_ranks(name, large, self.ranks)
        efficiency = one / many[0] * (large / size) ** 2 / self.ranks
        print(f"{name:>14} {size:>6} {1e3 * one:>10.2f} {1e3 * many[0]:>9.2f}   {efficiency:.2f}   {'/'.join(map(str, shares(many[1])))}", flush=True)
        return {"program": name, "size": size, "one": one, "ranks": many[0], "efficiency": efficiency}

    def copies(self):
        """How fast ranks copy memory all at once, as a part of as many times one."""
        one, many = (self.told(ranks, "--copy") for ranks in (1, self.ranks))
        efficiency = sum(many) / self.ranks / one[0]
        print(f"{'copies':>14}        {1e-9 * one[0]:>8.1f} GB/s {1e-9 * sum(many):.1f} GB/s   {efficiency:.2f}", flush=True)
        return {"program": "copies", "one": one[0], "ranks": sum(many), "efficiency": efficiency}


def sized(text):
    """A program's name and the side of its arrays."""
    name, _, size = text.partition("=")
    if name not in PROGRAMS:
        raise argparse.ArgumentTypeError(f"unknown program {name}; there are {', '.join(PROGRAMS)}")
    return name, int(size or SIZES[name])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", type=sized, metavar="PROGRAM[=SIZE]", help=f"some of: {', '.join(PROGRAMS)}")
    parser.add_argument("--ranks", type=int, help="ranks, and threads; by default one for each core")
    parser.add_argument("--weak", action="store_true", help="problems that grow with the ranks")
    parser.add_argument("--balanced", action="store_true", help="shares by how fast cores are, beside equal ones")
    parser.add_argument("--no-core", action="store_true", help="not on one core")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="about what all rounds take: %(default)s")
    parser.add_argument("--warm", type=float, default=3.0, help="seconds before the first figure, as each rank compiles kernels on its own core: %(default)s")
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    arguments = parser.parse_args()
    ways = Ways(arguments)
    programs = arguments.programs or list(SIZES.items())
    if arguments.weak:
        print(f"{'program':>14} {'size':>6} {'1 rank':>10} {f'{ways.ranks} ranks':>9}   efficiency", flush=True)
        rows = [ways.copies(), *(ways.weak(*program) for program in programs)]
    elif arguments.balanced:
        print(f"{'program':>14} {'size':>6}  {'cores least/med/most':>20} {f'{ways.ranks} threads':>10} {'equal':>10} {'balanced':>10}", flush=True)
        rows = [ways.balanced(*program) for program in programs]
    else:
        heads = ["1 core", f"{ways.ranks} thr.", f"{ways.ranks} ranks"]
        print(f"{'program':>14} {'size':>6} {heads[0]:>10} {heads[1]:>9} {heads[2]:>9} {'times':>7} {'times':>7} {'r / t':>7}   % compute, wait, pack", flush=True)
        rows = [ways.strong(*program) for program in programs]
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), *map(float, sys.argv[5:7]))
    elif sys.argv[1:2] == ["--alone"]:
        tell(sys.argv[2], alone(sys.argv[3], int(sys.argv[4]), float(sys.argv[5])))
    elif sys.argv[1:2] == ["--copy"]:
        tell(sys.argv[2], copies())
    else:
        main()
