#!/usr/bin/env python3
"""Gradients of a stencil and a network on a device: equal to those of the processor within rounding, with and without a bound
of memory, and their times.

    PYTHONPATH=PACKAGE benches/gradients_device.py [--stack cuda] [--size 2048] [--steps 200] [--out FILE]

PACKAGE has the Python package `bh`. Each stack runs in a process of its own. The least time of some runs counts, of the value alone and
with its gradient. The script fails if gradients differ or a bound changes a bit on a stack.
"""

import argparse
import json
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stack", default="cuda")
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    args = parser.parse_args()
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
