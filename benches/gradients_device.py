#!/usr/bin/env python3
"""Gradients of a stencil and a network on a device: equal to those of the processor within rounding, with and without a bound
of memory, and their times.

    PYTHONPATH=PACKAGE benches/gradients_device.py [--stack cuda] [--size 2048] [--steps 200] [--out FILE]
    PYTHONPATH=PACKAGE benches/gradients_device.py [--stack cuda] [--size 2048] --steps 10000 --memory "2 GiB"

PACKAGE has the Python package `bh`. Each stack runs in a process of its own. The least time of some runs counts, of the value alone and
with its gradient. The script fails if gradients differ or a bound changes a bit on a stack. With `--memory`, only the gradient of the
stencil under this bound runs, once: the script prints how often a step runs, also by binomial checkpoints with the same number of
states, which are the optimum, and the peaks. It fails if the planned peak exceeds the bound.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy

import bh as np

TOLERANCE = 1e-9


def reaction(size, steps):
    """Steps of a stencil that is not linear, so that its gradient reads values of each step."""

    def program(u, k):
        for _ in range(steps):
            u[1:-1, 1:-1] += k[1:-1, 1:-1] * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
            u *= 1 - 0.001 * u
        return (u * u).sum()

    rng = numpy.random.default_rng(0)
    return program, [rng.uniform(0.1, 0.2, (size, size)) for _ in range(2)]


def network(size, steps):
    def program(x, weights):
        for _ in range(min(steps, 20)):
            x = np.maximum(x @ weights, 0.0)
            x = x / (1e-3 + x.mean(axis=1, keepdims=True))
        return (x * x).sum()

    rng = numpy.random.default_rng(1)
    return program, [rng.uniform(-0.5, 1.0, (size // 2, size // 2)) for _ in range(2)]


def least(run, runs=3):
    """The least time of some runs in seconds, and the last results."""
    best = float("inf")
    for _ in range(runs):
        np.flush()
        begin = time.perf_counter()
        found = [numpy.asarray(part) for part in run()]
        best = min(best, time.perf_counter() - begin)
    return best, found


def work(size, steps, folder):
    """Measures this process's stack, and saves the gradients."""
    for make in (reaction, network):
        program, arrays = make(size, steps)
        fresh = lambda: [np.array(array) for array in arrays]
        line = {"program": make.__name__}
        line["value"], _ = least(lambda: [program(*fresh())])
        line["gradient"], expected = least(lambda: np.grad(program, (0, 1))(*fresh()))
        numpy.savez(Path(folder) / make.__name__, *expected)
        bounded = np.grad(program, (0, 1), memory=24 * 8 * size * size)
        plan = bounded.plan(*fresh())
        line["bounded"], found = least(lambda: bounded(*fresh()), 1)
        line |= {"runs of a step": plan.runs / plan.steps, "states": plan.states}
        line["same bits"] = all(a.tobytes() == b.tobytes() for a, b in zip(found, expected))
        print(json.dumps(line), flush=True)


def fewest(steps, states):
    """The fewest runs of steps on the way back, by Griewank and Walther's formula, with room for some states, the first included."""
    repetitions = 0
    while math.comb(states + repetitions, states) < steps:
        repetitions += 1
    return repetitions * steps - math.comb(states + repetitions, states + 1)


def under_bound(size, steps, memory):
    """Takes the gradient of the stencil under a bound, and prints the runs of its steps."""
    program, arrays = reaction(size, steps)
    fresh = lambda: [np.array(array) for array in arrays]
    gradient = np.grad(program, (0, 1), memory=memory)
    plan = gradient.plan(*fresh())
    seconds, found = least(lambda: gradient(*fresh()), 1)
    line = {"program": "reaction", "steps": plan.steps, "states": plan.states, "runs of a step": plan.runs / plan.steps}
    line |= {"of the optimum": plan.runs / fewest(plan.steps, plan.states), "seconds": seconds, "planned peak": plan.peak}
    line |= {"least bound": plan.least, "finite": all(bool(numpy.isfinite(part).all()) for part in found)}
    print(json.dumps(line), flush=True)
    return line


def one_gradient(args):
    """Runs a gradient under a bound on the stack in a process of its own, and prints the peaks that its components count."""
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts.txt"
        command = [sys.executable, __file__, "--size", str(args.size), "--steps", str(args.steps), "--memory", args.memory, "--work", "one"]
        env = {**os.environ, "BH_STACK": args.stack, "BH_STATS": str(counts)}
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=env, check=True)
        line = json.loads(done.stdout.splitlines()[-1])
        line["peaks"] = dict(row.split(None, 1) for row in counts.read_text().splitlines() if "peak_bytes" in row)
    text = json.dumps({"stack": args.stack, **line}, indent=1)
    print(text)
    if args.out:
        args.out.write_text(text)
    bound = bytes_of(args.memory)
    if not line["finite"] or line["planned peak"] > bound:
        raise SystemExit(f"the peak is {line['planned peak']} bytes, the bound {bound}; finite: {line['finite']}")


def bytes_of(memory):
    """The bytes of a bound."""
    from bh import _native

    return _native.memory_bound(memory, "memory")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stack", default="cuda")
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--memory", help="a bound as memory= takes it")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work and args.memory:
        under_bound(args.size, args.steps, args.memory)
        return
    if args.memory:
        one_gradient(args)
        return
    if args.work:
        work(args.size, args.steps, args.work)
        return
    lines, failed = [], []
    with tempfile.TemporaryDirectory() as folder:
        for stack in ("cpu", args.stack):
            own = Path(folder) / stack
            own.mkdir()
            command = [sys.executable, __file__, "--size", str(args.size), "--steps", str(args.steps), "--work", str(own)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "BH_STACK": stack}, check=True)
            lines += [{"stack": stack, **json.loads(line)} for line in done.stdout.splitlines()]
        for program in (reaction, network):
            cpu, device = (numpy.load(Path(folder) / stack / f"{program.__name__}.npz") for stack in ("cpu", args.stack))
            for name in cpu.files:
                apart = float(numpy.abs(cpu[name] - device[name]).max() / numpy.abs(cpu[name]).max())
                print(f"{program.__name__}, argument {name[-1]}: apart by {apart:.1e} of the largest")
                failed += [program.__name__] if not apart <= TOLERANCE else []
    text = json.dumps(lines, indent=1)
    print(text)
    if args.out:
        args.out.write_text(text)
    failed += [f"{line['program']} on {line['stack']} under a bound" for line in lines if not line["same bits"]]
    if failed:
        raise SystemExit(f"gradients differ: {', '.join(failed)}")


if __name__ == "__main__":
    main()
