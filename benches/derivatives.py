#!/usr/bin/env python3
"""Time of a value with its gradient, beside that of the value alone.

    benches/derivatives.py [SIZE [STEPS]]

Both are processor time of all threads, the least of some runs, so that other programs of the machine matter little.
"""

import argparse
import time

import bh
import numpy

import bh as np


def heat(u, k, steps):
    """Constant coefficients: nothing has to be kept."""
    for _ in range(steps):
        u[1:-1, 1:-1] += k * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return (u * u).sum()


def conduction(u, k, steps):
    """A coefficient for each place, by which the gradient is taken too."""
    for _ in range(steps):
        u[1:-1, 1:-1] += k[1:-1, 1:-1] * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return (u * u).sum()


def shallow_water(h, u, v, steps):
    for _ in range(steps):
        u[1:-1, 1:-1] -= 0.1 * (h[1:-1, 2:] - h[1:-1, :-2])
        v[1:-1, 1:-1] -= 0.1 * (h[2:, 1:-1] - h[:-2, 1:-1])
        h[1:-1, 1:-1] -= 0.1 * (u[1:-1, 2:] - u[1:-1, :-2] + v[2:, 1:-1] - v[:-2, 1:-1]) * h[1:-1, 1:-1]
    return (h * h).sum() + (u * u).sum()


def bodies(position, velocity, steps):
    for _ in range(steps):
        apart = position[None] - position[:, None]
        distance = ((apart**2).sum(axis=2) + 0.01) ** 1.5
        velocity += 0.01 * (apart / distance[:, :, None]).sum(axis=1)
        position += 0.01 * velocity
    return (position * position).sum()


def network(first, second, x, steps):
    for _ in range(steps):
        scores = np.maximum(x @ first, 0.0) @ second
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        x = x + scores @ second.T @ first.T
    return -np.log(scores[:, 0]).sum()


def programs(size, steps):
    """For each program: the function, its arguments, and the numbers of those to differentiate by."""
    rng = numpy.random.default_rng(0)
    array = lambda *shape: np.array(rng.uniform(0.1, 0.2, shape))
    grid = lambda: array(size, size)
    return {
        "heat": (heat, (grid(), 0.1, steps), 0),
        "conduction": (conduction, (grid(), grid(), steps), (0, 1)),
        "shallow water": (shallow_water, (grid(), grid(), grid(), steps), (0, 1, 2)),
        "bodies": (bodies, (array(size, 3), array(size, 3), steps), (0, 1)),
        "network": (network, (array(size, size), array(size, size), array(size, size), 4), (0, 1)),
    }


def least(function, runs=7):
    best = float("inf")
    for _ in range(runs):
        begin = time.process_time()
        for part in function():
            numpy.asarray(part)
        best = min(best, time.process_time() - begin)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", type=int, nargs="?", default=250)
    parser.add_argument("steps", type=int, nargs="?", default=20)
    args = parser.parse_args()
    size, steps = args.size, args.steps
    print(f"{'program':14} {'value':>10} {'with gradient':>14} {'ratio':>6}")
    for name, (function, inputs, numbers) in programs(size, steps).items():
        fresh = lambda inputs=inputs: [value.copy() if isinstance(value, np.ndarray) else value for value in inputs]
        both = bh.value_and_grad(function, numbers if isinstance(numbers, tuple) else (numbers,))

        def with_gradient(both=both, fresh=fresh):
            value, gradients = both(*fresh())
            return (value, *gradients)

        plain, full = least(lambda function=function, fresh=fresh: [function(*fresh())]), least(with_gradient)
        print(f"{name:14} {plain * 1e3:7.2f} ms {full * 1e3:11.2f} ms {full / plain:6.2f}")


if __name__ == "__main__":
    main()
