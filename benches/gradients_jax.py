#!/usr/bin/env python3
"""Value and gradient of NPBench's kernels: unmodified on bh, and as the suite's authors have rewritten them for JAX.

    PYTHONPATH=PACKAGE benches/gradients_jax.py SUITE [KERNEL...] [--size S] [--seconds T] [--markdown]

SUITE is a checkout of github.com/spcl/npbench. PACKAGE has the Python package `bh`; JAX comes from the interpreter. Each gradient is that
of the sum of a kernel's results, by all of its floating-point arrays. Each form runs in a process of its own. Times are processor
time of all threads, the least of some runs; gradients are compared. Kernels without floating-point arguments are left out, and
so are those that JAX cannot differentiate backward (loops whose length depends on values).
"""

import argparse
import copy
import importlib
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))

from substitute import load

# How far sums of gradients may differ.
TOLERANCE = 1e-4


class Kernel:
    """A kernel's arguments, and the places of those to differentiate by."""

    def __init__(self, suite, name, size):
        import numpy

        self.info = json.loads((suite / "bench_info" / f"{name}.json").read_text())["benchmark"]
        self.folder = suite / "npbench" / "benchmarks" / self.info["relative_path"]
        arguments = dict(self.info["parameters"][size])
        sys.path.insert(0, str(self.folder))
        if "init" in self.info:
            init = self.info["init"]
            initialize = load(self.folder / f"{self.info['module_name']}.py", numpy)[init["func_name"]]
            made = initialize(*(arguments[argument] for argument in init["input_args"]))
            outputs = init["output_args"]
            arguments.update(zip(outputs, made if len(outputs) > 1 else [made], strict=True))
        self.names = self.info["input_args"]
        self.given = [arguments[name] for name in self.names]
        is_float = lambda value: isinstance(value, numpy.ndarray) and value.dtype.kind == "f"
        self.places = tuple(at for at, value in enumerate(self.given) if is_float(value))
        written = self.info["output_args"] or self.info["array_args"]
        self.outputs = [at for at, name in enumerate(self.names) if name in written]

    def of_bh(self):
        """Value and gradients by the unmodified kernel, as a function without arguments."""
        import numpy

        import bh

        kernel = load(self.folder / f"{self.info['module_name']}_numpy.py", bh)[self.info["func_name"]]

        def total(*args):
            returned = kernel(*args)
            results = returned if isinstance(returned, (tuple, list)) else [returned]
            results = [args[at] for at in self.outputs] if returned is None else results
            return sum(bh.sum(part).real for part in results if hasattr(part, "dtype") and part.dtype.kind in "fc")

        both = bh.value_and_grad(total, self.places)

        def run():
            given = [bh.array(value) if isinstance(value, numpy.ndarray) else value for value in copy.deepcopy(self.given)]
            value, gradients = both(*given)
            return [numpy.asarray(part) for part in (value, *gradients)]

        return run

    def of_jax(self):
        """As `of_bh`, by JAX's version."""
        import numpy

        import jax

        jax.config.update("jax_enable_x64", True)
        kernel = getattr(importlib.import_module(f"{self.info['module_name']}_jax"), self.info["func_name"])

        def total(*args):
            returned = kernel(*args)
            results = returned if isinstance(returned, (tuple, list)) else [returned]
            return sum(jax.numpy.sum(part).real for part in results if hasattr(part, "dtype") and part.dtype.kind in "fc")

        fixed = tuple(at for at, value in enumerate(self.given) if not isinstance(value, numpy.ndarray))
        both = jax.jit(jax.value_and_grad(total, self.places), static_argnums=fixed)

        def run():
            value, gradients = both(*self.given)
            return [numpy.asarray(part) for part in (value, *gradients)]

        return run


def work(suite, name, size, form, seconds):
    """Runs one form for some seconds; prints the times and sums of the gradients."""
    import numpy

    kernel = Kernel(suite, name, size)
    if not kernel.places:
        raise SystemExit("no floating-point arrays")
    run = getattr(kernel, f"of_{form}")()
    begin = time.process_time()
    found = run()
    first = time.process_time() - begin
    taken, end = [], time.perf_counter() + seconds
    while len(taken) < 3 or (time.perf_counter() < end and len(taken) < 200):
        begin = time.process_time()
        run()
        taken.append(time.process_time() - begin)
    sums = [[float(numpy.abs(part).sum()), float(part.sum())] for part in found]
    print(json.dumps({"first": first, "seconds": min(taken), "sums": sums}))


def measure(args, name):
    """The lines of a kernel's two processes."""
    lines = {}
    for form in ("bh", "jax"):
        command = [sys.executable, __file__, str(args.suite), name, "--size", args.size, "--work", form, "--seconds", str(args.seconds)]
        with tempfile.TemporaryFile("w+") as errors:
            try:
                done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=args.limit, check=False)
                errors.seek(0)
                lines[form] = json.loads(done.stdout.splitlines()[-1])
            except subprocess.TimeoutExpired:
                lines[form] = {"error": "too long"}
            except (IndexError, ValueError):
                lines[form] = {"error": (errors.read().strip().splitlines() or ["no result"])[-1][:100]}
        if "error" in lines[form]:
            break
    return lines


def agree(one, other):
    near = lambda a, b, size: math.isfinite(a) and abs(a - b) <= TOLERANCE * max(size, 1e-300)
    return len(one) == len(other) and all(near(a[0], b[0], abs(b[0])) and near(a[1], b[1], abs(b[0])) for a, b in zip(one, other))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path)
    parser.add_argument("kernels", nargs="*")
    parser.add_argument("--size", default="S")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--work", choices=("bh", "jax"))
    args = parser.parse_args()
    if args.work:
        work(args.suite, args.kernels[0], args.size, args.work, args.seconds)
        return
    names = args.kernels or sorted(path.stem for path in (args.suite / "bench_info").glob("*.json"))
    ratios = []
    row = "| {} | {} | {} | {} | {} | {} |" if args.markdown else "{:24} {:>9} {:>9} {:>6} {:>9} {:>9}"
    print(row.format("kernel", "bh, ms", "JAX, ms", "JAX/bh", "first: bh", "JAX"), flush=True)
    if args.markdown:
        print("|---|---|---|---|---|---|")
    for name in names:
        lines = measure(args, name)
        error = next((f"{form}: {line['error']}" for form, line in lines.items() if "error" in line), None)
        if error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            continue
        bh, jax = lines["bh"], lines["jax"]
        if not agree(bh["sums"], jax["sums"]):
            print(f"{name}: gradients differ: {bh['sums']} {jax['sums']}"[:300], file=sys.stderr, flush=True)
            continue
        ratios.append(jax["seconds"] / bh["seconds"])
        times = [f"{1e3 * line[key]:.2f}" for key in ("seconds", "first") for line in (bh, jax)]
        print(row.format(name, times[0], times[1], f"{ratios[-1]:.2f}", times[2], times[3]), flush=True)
    if ratios:
        mean = statistics.geometric_mean(ratios)
        faster = sum(ratio >= 1 for ratio in ratios)
        print(f"{len(ratios)} kernels, bh at least as fast in {faster}, geometric mean of JAX/bh {mean:.2f}")


if __name__ == "__main__":
    main()
