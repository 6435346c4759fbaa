#!/usr/bin/env python3
"""Engines of one machine beside each other: does a further one pay, and does each do what suits it?

    siblings.py opencl all gpus             # programs on these stacks in turn, as pairs with the first
    siblings.py --uneven                    # an engine, a slower one, both together, and one with the threads of both
    siblings.py cpu cluster@16              # 16 ranks, which mpirun starts

Each stack runs in a process of its own. The processes take turns, so that what else the machine does meets all of them. Figures are
milliseconds of a step, whose value is read, the least of some rounds, and the median of the quotients with the first stack of the same round.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def heat(np, size):
    grid = np.zeros((size, size))
    grid[0] = 100.0

    def step():
        grid[1:-1, 1:-1] = (grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]) * 0.25
        return grid[1, 1]

    return step


def turns(np, size):
    """Heat, ten steps of it without a look at the values."""
    step = heat(np, size)

    def steps():
        for _ in range(9):
            step()
        return step()

    return steps


def functions(np, size):
    x = np.linspace(0.1, 1.0, size * size)

    def step():
        x[:] = np.exp(np.sin(np.log(np.cos(x) + 1.5))) * 0.3
        return x[0]

    return step


def black_scholes(np, size):
    s = np.linspace(50.0, 150.0, size * size)

    def cnd(x):
        k = 1.0 / (1.0 + 0.2316419 * np.abs(x))
        w = 1.0 - 0.39894228 * np.exp(-x * x / 2.0) * k * (0.31938153 + k * (-0.356563782 + k * 1.781477937))
        return np.where(x < 0, 1.0 - w, w)

    def step():
        d1 = (np.log(s / 100.0) + 0.05) / 0.3
        return np.sum(s * cnd(d1) - 100.0 * cnd(d1 - 0.3))

    return step


def nbody(np, size):
    x = np.linspace(-1.0, 1.0, 4 * size)

    def step():
        d = x[:, None] - x[None, :]
        x[:] += np.sum(d / (d * d + 1.0) ** 1.5, axis=1) * 1e-9
        return x[0]

    return step


def product(np, size):
    a = np.ones((size, size))

    def step():
        return (a @ a)[0, 0]

    return step


def eigen(np, size):
    x = np.linspace(0.0, 1.0, size)
    a = np.cos(100.0 * x[:, None] * x[None, :]) + np.eye(size)

    def step():
        return np.linalg.eigh(a)[0][0]

    return step


def host(np, size):
    """Data of the program's own in each step."""
    import numpy

    data = numpy.linspace(0.0, 1.0, size * size).reshape(size, size)

    def step():
        a = np.array(data)
        return np.sum(np.sqrt(a) * a)

    return step


PROGRAMS = {one.__name__: one for one in (heat, turns, functions, black_scholes, nbody, product, eigen, host)}
# Steps in a round, and the side of an array.
STEPS = 10


def work():
    """A process with a stack: does rounds as its input says."""
    import bh as np

    np._native.Stack()  # here ranks but the first begin to serve
    running = {}
    for line in sys.stdin:
        name, size, steps = line.split()
        if (name, size) not in running:
            running.clear()
            running[name, size] = step = PROGRAMS[name](np, int(size))
            for _ in range(3):
                for _ in range(4):
                    float(step())
                np._native.Stack().message("finish building")
        step = running[name, size]
        begin = time.perf_counter()
        for _ in range(int(steps)):
            float(step())
        print((time.perf_counter() - begin) / int(steps), flush=True)


class Worker:
    """A process with a stack."""

    def __init__(self, stack, **variables):
        stack, _, ranks = stack.partition("@")
        environment = {**os.environ, "BH_STACK": stack, **variables}
        command = [sys.executable, __file__, "--work"]
        if ranks:
            command = ["mpirun", "-n", ranks, "--bind-to", "core", "--oversubscribe", *command]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def step(self, name, size, steps):
        self.process.stdin.write(f"{name} {size} {steps}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"a process has ended with {self.process.wait()}")
        return float(line)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def measure(workers, programs, sizes, rounds, steps):
    """Rows with the times of all workers."""
    rows = []
    for name in programs:
        for size in sizes:
            for worker in workers.values():
                worker.step(name, size, 1)
            times = [[worker.step(name, size, steps) for worker in workers.values()] for _ in range(rounds)]
            least = [min(column) for column in zip(*times)]
            quotients = [statistics.median(row[place] / row[0] for row in times) for place in range(len(workers))]
            rows.append({"program": name, "size": size, "stacks": list(workers), "least": least, "quotients": quotients})
            show = [f"{stack} {1000 * one:.3f} ({quotient:.3f})" for stack, one, quotient in zip(workers, least, quotients)]
            print(f"{name} {size}: " + ", ".join(show), flush=True)
    return rows


UNEVEN = """
[stacks]
default = "both"
fast = ["filter", "fuser", "node", "ve-cpu"]
slow = ["filter", "fuser", "node", "slow"]
one = ["filter", "fuser", "node", "one"]
both = ["filter", "cluster", [["fuser", "node", "ve-cpu"], ["fuser", "node", "slow"]]]
[components.ve-cpu]
threads = {fast}
affinity = "{first}"
[components.slow]
library = "bh_ve_cpu"
threads = {slow}
affinity = "{second}"
[components.one]
library = "bh_ve_cpu"
threads = {all}
affinity = "{whole}"
"""


def uneven(arguments, folder):
    """An engine, one with fewer threads, both, and an engine that has the threads of both."""
    fast, slow = arguments.threads
    keys = {"fast": fast, "slow": slow, "first": f"0-{fast - 1}", "second": f"{fast}-{fast + slow - 1}"}
    keys |= {"all": fast + slow, "whole": f"0-{fast + slow - 1}"}
    config, rates = Path(folder, "uneven.toml"), Path(folder, "rates")
    config.write_text(UNEVEN.format(**keys))
    variables = {"BH_CONFIG": str(config)}
    weights = arguments.weights
    if not weights:
        asked = "import bh; print(bh._native.Stack().message('cluster tune'))"
        measured = {**os.environ, **variables, "BH_STACK": "both"}
        tuned = subprocess.run([sys.executable, "-c", asked], env=measured, capture_output=True, text=True, check=True)
        print(tuned.stdout.strip())
        rates.write_text(tuned.stdout)
        weights = str(rates)
    workers = {
        "fast": Worker("fast", **variables),
        "slow": Worker("slow", **variables),
        "both": Worker("both", BH_CLUSTER_WEIGHTS=weights, **variables),
        "one": Worker("one", **variables),
    }
    rows = measure(workers, arguments.programs, arguments.sizes, arguments.rounds, arguments.steps)
    for row in rows:
        fast, slow, both, one = row["least"]
        row["ideal"] = 1 / (1 / fast + 1 / slow)
        compared = f"{both / row['ideal']:.3f} times that; {both / one:.3f} times an engine with the threads of both"
        print(f"{row['program']} {row['size']}: {1000 * both:.3f}, best possible {1000 * row['ideal']:.3f}, {compared}")
    return workers, rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stacks", nargs="*", help="stacks, the first of which the others are compared with")
    parser.add_argument("--uneven", action="store_true", help="an engine, a slower one and both")
    parser.add_argument("--threads", default="1,1", type=lambda text: [int(one) for one in text.split(",")], help="threads of both engines: %(default)s")
    parser.add_argument("--weights", help="shares of both as in 2,1, or a file of bh tune, instead of measuring them")
    parser.add_argument("--programs", default=",".join(PROGRAMS), type=lambda text: text.split(","), help="some of: %(default)s")
    parser.add_argument("--sizes", default="2000", type=lambda text: [int(one) for one in text.split(",")], help="sides of arrays")
    parser.add_argument("--rounds", type=int, default=7, help="how often each stack has its turn")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of a turn")
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        return work()
    unknown = set(arguments.programs) - set(PROGRAMS)
    if unknown or not (arguments.uneven or arguments.stacks):
        parser.error(f"unknown programs {', '.join(sorted(unknown))}" if unknown else "name stacks, or --uneven")
    with tempfile.TemporaryDirectory() as folder:
        if arguments.uneven:
            workers, rows = uneven(arguments, folder)
        else:
            workers = {stack: Worker(stack) for stack in arguments.stacks}
            rows = measure(workers, arguments.programs, arguments.sizes, arguments.rounds, arguments.steps)
        for worker in workers.values():
            worker.end()
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
