#!/usr/bin/env python3
"""Value and gradient of NPBench's kernels: unmodified on bh, and as the suite's authors have rewritten them for JAX.

    PYTHONPATH=PACKAGE benches/gradients_jax.py SUITE [KERNEL...] [--size S] [--seconds T] [--markdown]

SUITE is a checkout of github.com/spcl/npbench. PACKAGE has the Python package `bh`; JAX comes from the interpreter. Each gradient is that
of the sum of a kernel's results, by all of its floating-point and complex arrays. Each form runs in a process of its own. Times are
processor time of all threads, the least of some runs; gradients are compared. Kernels without such arguments are left out, and
so are those that JAX cannot differentiate backward (loops whose length depends on values). Sizes of loops are constants for JAX, which
differentiates no other loops. The column `own` is the time of bh's gradient over that of the kernel alone.
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
# The kinds of a kernel's results; JAX's version returns one of them.
RESULTS = ("changed", "named", "all")


class Kernel:
    """A kernel's arguments, and the places of those to differentiate by."""

    def __init__(self, suite, name, size, results="changed"):
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
        is_inexact = lambda value: isinstance(value, numpy.ndarray) and value.dtype.kind in "fc"
        self.places = tuple(at for at, value in enumerate(self.given) if is_inexact(value))
        named = {"named": self.info["output_args"] or self.info["array_args"]}.get(results, self.info["array_args"])
        self.outputs = [at for at, name in enumerate(self.names) if name in named]
        if results == "changed":
            self.outputs = self.changed(numpy) if size == "S" else Kernel(suite, name, "S").outputs

    def changed(self, numpy):
        """The places of the arrays that the kernel changes."""
        given = copy.deepcopy(self.given)
        load(self.folder / f"{self.info['module_name']}_numpy.py", numpy)[self.info["func_name"]](*given)
        return [at for at in self.places if not numpy.array_equal(given[at], self.given[at], equal_nan=True)]

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
        given = lambda: [bh.array(value) if isinstance(value, numpy.ndarray) else value for value in self.given]

        def run():
            value, gradients = both(*given())
            return [numpy.asarray(part) for part in (value, *gradients)]

        return run, lambda: numpy.asarray(total(*given()))

    def of_jax(self):
        """As `of_bh`, by JAX's version."""
        import numpy

        import jax

        jax.config.update("jax_enable_x64", True)
        kernel = getattr(importlib.import_module(f"{self.info['module_name']}_jax"), self.info["func_name"])
        # Compiled as a whole below, with sizes that are known.
        kernel = getattr(kernel, "__wrapped__", kernel)

        def total(*args):
            returned = kernel(*args)
            results = returned if isinstance(returned, (tuple, list)) else [returned]
            return sum(jax.numpy.sum(part).real for part in results if hasattr(part, "dtype") and part.dtype.kind in "fc")

        fixed = tuple(at for at, value in enumerate(self.given) if not isinstance(value, numpy.ndarray))
        both = jax.jit(jax.value_and_grad(total, self.places), static_argnums=fixed)

        def run():
            value, gradients = both(*self.given)
            return [numpy.asarray(part) for part in (value, *gradients)]

        return run, None


def work(suite, name, size, results, form, seconds):
    """Runs one form for some seconds; prints the times and sums of the gradients."""
    import numpy

    kernel = Kernel(suite, name, size, results)
    if not kernel.places:
        raise SystemExit("no floating-point arrays")
    run, own = getattr(kernel, f"of_{form}")()
    begin = time.process_time()
    found = run()
    first = time.process_time() - begin
    sums = [[float(numpy.abs(part).sum()), float(part.sum().real)] for part in found]
    eps = max(float(numpy.finfo(part.dtype).eps) for part in found)
    line = {"first": first, "seconds": least(run, seconds), "sums": sums, "eps": eps}
    print(json.dumps(line if own is None else {**line, "own": least(own, seconds / 2)}))


def least(run, seconds):
    """The least processor time of some runs."""
    taken, end = [], time.perf_counter() + seconds
    while len(taken) < 3 or (time.perf_counter() < end and len(taken) < 200):
        begin = time.process_time()
        run()
        taken.append(time.process_time() - begin)
    return min(taken)


def measure(args, name, results):
    """The lines of a kernel's two processes. `results`: those of a kernel that returns nothing are the arrays that it has
    changed, those that the suite names as results, or all."""
    lines = {}
    for form in ("bh", "jax"):
        command = [sys.executable, __file__, str(args.suite), name, "--size", args.size, "--work", form, "--seconds", str(args.seconds)]
        command += ["--results", results]
        with tempfile.TemporaryFile("w+") as errors:
            try:
                done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=args.limit, check=False)
                errors.seek(0)
                lines[form] = json.loads(done.stdout.splitlines()[-1])
            except subprocess.TimeoutExpired:
                lines[form] = {"error": "too long"}
            except (IndexError, ValueError):
                said = errors.read().strip().splitlines() or ["no result"]
                lines[form] = {"error": next((line for line in reversed(said) if "Error" in line), said[-1])[:160]}
        if "error" in lines[form]:
            break
    return lines


def agree(one, other, eps):
    """Are values and gradients alike, or gradients as good as zero beside the value?"""
    nothing = 100 * eps * abs(other[0][0])
    near = lambda a, b, size: math.isfinite(a) and (abs(a - b) <= TOLERANCE * size or max(abs(a), abs(b)) <= nothing)
    return len(one) == len(other) and all(near(a[0], b[0], abs(b[0])) and near(a[1], b[1], abs(b[0])) for a, b in zip(one, other))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path)
    parser.add_argument("kernels", nargs="*")
    parser.add_argument("--size", default="S")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--work", choices=("bh", "jax"), help=argparse.SUPPRESS)
    parser.add_argument("--results", choices=RESULTS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        work(args.suite, args.kernels[0], args.size, args.results, args.work, args.seconds)
        return
    names = args.kernels or sorted(path.stem for path in (args.suite / "bench_info").glob("*.json"))
    ratios = []
    row = "| {} | {} | {} | {} | {} | {} | {} |" if args.markdown else "{:24} {:>9} {:>9} {:>6} {:>6} {:>9} {:>9}"
    print(row.format("kernel", "bh, ms", "JAX, ms", "JAX/bh", "own", "first: bh", "JAX"), flush=True)
    if args.markdown:
        print("|---|---|---|---|---|---|---|")
    for name in names:
        for results in RESULTS:
            lines = measure(args, name, results)
            error = next((f"{form}: {line['error']}" for form, line in lines.items() if "error" in line), None)
            if error is None and not agree(lines["bh"]["sums"], lines["jax"]["sums"], lines["jax"]["eps"]):
                error = f"gradients differ: {lines['bh']['sums']} {lines['jax']['sums']}"[:300]
            if error is None:
                break
        if error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            continue
        bh, jax = lines["bh"], lines["jax"]
        ratios.append(jax["seconds"] / bh["seconds"])
        times = [f"{1e3 * line[key]:.2f}" for key in ("seconds", "first") for line in (bh, jax)]
        own = bh["seconds"] / bh["own"]
        print(row.format(name, times[0], times[1], f"{ratios[-1]:.2f}", f"{own:.1f}", times[2], times[3]), flush=True)
    if ratios:
        mean = statistics.geometric_mean(ratios)
        faster = sum(ratio >= 1 for ratio in ratios)
        print(f"{len(ratios)} kernels, bh at least as fast in {faster}, geometric mean of JAX/bh {mean:.2f}")


if __name__ == "__main__":
    main()
