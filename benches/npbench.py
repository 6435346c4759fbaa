#!/usr/bin/env python3
"""Times the kernels of NPBench, unmodified, on bh and on NumPy: each in a process of its own, medians, results compared.

    PYTHONPATH=PACKAGE benches/npbench.py SUITE [KERNEL...] [--size S] [--threads N] [--jobs N] [--seconds T] [--json FILE]

SUITE is a checkout of github.com/spcl/npbench, of which `bench_info` and `npbench/benchmarks` are read. PACKAGE has the Python
package `bh`. In the processes for bh, the kernel's and the initialiser's `numpy` is bh. A repetition gets its own copies of the
arrays, and ends when all that it returns or writes is there. The table begins with what NumPy is faster in.
"""

import argparse
import concurrent.futures
import copy
import importlib
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))

from substitute import load

# Names of the modules that stand for NumPy.
FORMS = ("numpy", "bh")
# How far sums of results may differ; some are of single precision.
TOLERANCE = 1e-5


class Kernel:
    """A kernel with its arguments."""

    def __init__(self, suite, name, size, form):
        self.module = importlib.import_module(form)
        self.info = json.loads((suite / "bench_info" / f"{name}.json").read_text())["benchmark"]
        folder = suite / "npbench" / "benchmarks" / self.info["relative_path"]
        self.arguments = dict(self.info["parameters"][size])
        sys.path.insert(0, str(folder))
        if "init" in self.info:
            init = self.info["init"]
            initialize = load(folder / f"{self.info['module_name']}.py", self.module)[init["func_name"]]
            made = initialize(*(self.arguments[argument] for argument in init["input_args"]))
            outputs = init["output_args"]
            self.arguments.update(zip(outputs, made if len(outputs) > 1 else [made], strict=True))
        self.function = load(folder / f"{self.info['module_name']}_numpy.py", self.module)[self.info["func_name"]]

    def finish(self, values):
        """Waits until arrays are there, and gives them as NumPy's."""
        import numpy

        values = values if isinstance(values, (tuple, list)) else [values]
        return [numpy.asarray(value) for value in values if value is not None and not isinstance(value, str)]

    def run(self):
        """One repetition: its seconds and its results."""
        given = {}
        for name in self.info["input_args"]:
            value = self.arguments[name]
            given[name] = copy.deepcopy(value) if name in self.info["array_args"] else value
        self.finish([given[name] for name in self.info["array_args"]])
        begin = time.perf_counter()
        returned = self.function(*given.values())
        results = self.finish(returned)
        written = self.finish([given[name] for name in self.info["output_args"] or self.info["array_args"] if name in given])
        return time.perf_counter() - begin, results + written


def work(suite, name, size, form, seconds):
    """Repeats a kernel for some seconds; prints its median and sums of its results."""
    import numpy

    kernel = Kernel(suite, name, size, form)
    first, results = kernel.run()
    taken, end = [], time.perf_counter() + seconds
    while len(taken) < 3 or (time.perf_counter() < end and len(taken) < 1000):
        taken.append(kernel.run()[0])
        if first > seconds * 4:
            break
    sums = [[float(numpy.abs(result).sum()), float(numpy.abs(result.sum()))] for result in map(numpy.nan_to_num, results)]
    print(json.dumps({"first": first, "seconds": statistics.median(taken), "sums": sums}))


def measure(args, name):
    """The lines of a kernel's two processes."""
    lines = {}
    for form in FORMS:
        environment = dict(os.environ, BH_VE_CPU_THREADS=str(args.threads))
        for library in ("OMP", "OPENBLAS", "MKL"):
            environment[f"{library}_NUM_THREADS"] = str(args.threads)
        command = [sys.executable, __file__, str(args.suite), name, "--size", args.size, "--work", form, "--seconds", str(args.seconds)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=args.limit)
        except subprocess.TimeoutExpired:
            lines[form] = {"error": "too long"}
            continue
        try:
            lines[form] = json.loads(done.stdout.splitlines()[-1])
        except (IndexError, ValueError):
            lines[form] = {"error": (done.stderr.strip().splitlines() or ["no result"])[-1]}
    return name, lines


def agree(one, other):
    """Are the sums of two processes' results alike?"""
    near = lambda a, b: abs(a - b) <= TOLERANCE * max(abs(a), abs(b), 1e-300)
    return len(one) == len(other) and all(near(a[0], b[0]) for a, b in zip(one, other))


def table(measured):
    """Prints the kernels, slowest beside NumPy first."""
    rows, failed = [], []
    for name, lines in measured:
        error = next((f"{form}: {lines[form]['error']}" for form in FORMS if "error" in lines[form]), None)
        if error:
            failed.append((name, error))
        else:
            rows.append((lines["numpy"]["seconds"] / lines["bh"]["seconds"], name, lines))
    rows.sort(key=lambda row: row[0])
    print(f"{'kernel':28} {'NumPy ms':>10} {'bh ms':>10} {'bh first':>10} {'NumPy/bh':>9}")
    for ratio, name, lines in rows:
        same = agree(lines["numpy"]["sums"], lines["bh"]["sums"])
        figures = (lines["numpy"]["seconds"], lines["bh"]["seconds"], lines["bh"]["first"])
        print(f"{name:28} {' '.join(f'{1e3 * figure:10.3f}' for figure in figures)} {ratio:9.2f}{'' if same else '   results differ'}")
    for name, error in failed:
        print(f"{name:28} {error}")
    if rows:
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio, *_ in rows))
        print(f"geometric mean {mean:.2f}; {sum(ratio < 1 for ratio, *_ in rows)} of {len(rows)} slower than NumPy")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path)
    parser.add_argument("kernels", nargs="*")
    parser.add_argument("--size", default="S")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="kernels that are measured side by side")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long a kernel is repeated")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds after which a process is given up")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--work", choices=FORMS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        return work(args.suite, args.kernels[0], args.size, args.work, args.seconds)
    names = args.kernels or sorted(path.stem for path in (args.suite / "bench_info").glob("*.json"))
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        measured = list(pool.map(lambda name: measure(args, name), names))
    table(measured)
    if args.json:
        setting = {"size": args.size, "threads": args.threads, "jobs": args.jobs}
        args.json.write_text(json.dumps({**setting, "kernels": dict(measured)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
