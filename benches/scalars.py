#!/usr/bin/env python3
"""Functions of scalars with branches and loops, for all elements of arrays: bh.vectorize, Numba, and NumPy element by element.

    benches/scalars.py [--elements 1000000] [--threads 2] [--runs 5] [--numpy 1000] [--json FILE] [NAME...]

Prints milliseconds a call (the median of runs of each system in turn, of results that are waited for) and how many times as fast as
Numba bh is. Numba's is `@vectorize(target="parallel")`. `--numpy`: of how many elements NumPy's time is taken and results are compared.
"""

import argparse
import json
import math
import os
import statistics
import time
from pathlib import Path

import numpy


def mandelbrot(x, y):
    """Turns until a point leaves, at most 256."""
    zx, zy, turns = 0.0, 0.0, 0
    while zx * zx + zy * zy <= 4.0 and turns < 256:
        zx, zy = zx * zx - zy * zy + x, 2 * zx * zy + y
        turns += 1
    return turns


def julia(z):
    """The same with complex numbers and a `for` that is left."""
    for turn in range(100):
        if z.real * z.real + z.imag * z.imag > 4:
            return turn
        z = z * z + (-0.4 + 0.6j)
    return 100


def burning_ship(x, y):
    """Another fractal, whose turns are smoothed."""
    zx, zy = x, y
    for turn in range(64):
        size = zx * zx + zy * zy
        if size > 100:
            return turn + 1 - math.log(math.log(size)) / math.log(2)
        zx, zy = zx * zx - zy * zy + x, abs(2 * zx * zy) + y
    return 64.0


def newton(x):
    """A square root by Newton's iteration."""
    if x <= 0:
        return 0.0
    guess = x if x > 1 else 1.0
    for _ in range(100):
        better = 0.5 * (guess + x / guess)
        if abs(better - guess) < 1e-12 * guess:
            break
        guess = better
    return guess


def basin(z):
    """Which root of z³ = 1 Newton's iteration finds."""
    for _ in range(40):
        if abs(z) < 1e-9:
            return 0
        step = (z * z * z - 1) / (3 * z * z)
        z = z - step
        if abs(step) < 1e-9:
            break
    return 1 if z.real > 0 else 2 if z.imag > 0 else 3


def kepler(anomaly, eccentricity):
    """Kepler's equation."""
    angle = anomaly
    error = 1.0
    while abs(error) > 1e-13:
        error = (angle - eccentricity * math.sin(angle) - anomaly) / (1 - eccentricity * math.cos(angle))
        angle -= error
    return angle


def bisection(target):
    """The root of x³ + x = target."""
    low, high = 0.0, 100.0
    while high - low > 1e-10:
        middle = (low + high) / 2
        if middle * middle * middle + middle < target:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def collatz(n):
    """Steps of the Collatz sequence down to 1."""
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def sequences(n):
    """The steps of several Collatz sequences: a loop in a loop."""
    steps = 0
    for k in range(1, n % 8 + 1):
        m = n + k
        while m != 1:
            m = m // 2 if m % 2 == 0 else 3 * m + 1
            steps += 1
    return steps


def digit_sum(n):
    """The largest sum of digits among multiples: a short loop in a loop, and divisions of whole numbers."""
    largest = 0
    for k in range(1, 21):
        m, digits = n * k, 0
        while m:
            digits += m % 10
            m //= 10
        largest = max(largest, digits)
    return largest


def divisor(a, b):
    """The greatest common divisor."""
    while b:
        a, b = b, a % b
    return a


def piecewise(x):
    """A function of four pieces."""
    if x < -1:
        return -x
    if x < 0:
        return x * x
    return 2 * x if x < 1 else math.sqrt(x) + 1


def legendre(x, degree):
    """Legendre's polynomial, whose degree differs from element to element."""
    before, value = 1.0, x
    if degree == 0:
        return before
    for n in range(2, degree + 1):
        before, value = value, ((2 * n - 1) * x * value - (n - 1) * before) / n
    return value


SPHERES = ((0.0, 0.0, 3.0, 1.0), (1.0, 0.5, 4.0, 0.7), (-1.5, -0.4, 5.0, 1.5))


def hit(x, y, dx, dy, dz):
    """The distance at which a ray meets the nearest sphere, and how much light falls there."""
    nearest, light = math.inf, 0.0
    for cx, cy, cz, radius in SPHERES:
        ox, oy, oz = x - cx, y - cy, -cz
        along = ox * dx + oy * dy + oz * dz
        inside = along * along - (ox * ox + oy * oy + oz * oz) + radius * radius
        if inside < 0:
            continue
        distance = -along - math.sqrt(inside)
        if 0 < distance < nearest:
            nearest = distance
            light = max(0.0, (oy + distance * dy) / radius)
    return nearest, light


def ray(x, y):
    """The light seen in a direction: a ray through three spheres."""
    length = math.sqrt(x * x + y * y + 1)
    nearest, light = hit(0.0, 0.0, x / length, y / length, 1 / length)
    return light / nearest if nearest < 100 else 0.0


def plane(random, count):
    return random.uniform(-2.2, 1.0, count), random.uniform(-1.3, 1.3, count)


# Programs with what makes their arguments, and Numba's signature.
PROGRAMS = {
    mandelbrot: (plane, "i8(f8,f8)"),
    julia: (lambda random, count: (random.uniform(-1.5, 1.5, count) + 1j * random.uniform(-1.5, 1.5, count),), "i8(c16)"),
    burning_ship: (plane, "f8(f8,f8)"),
    newton: (lambda random, count: (random.uniform(-10, 1e6, count),), "f8(f8)"),
    basin: (lambda random, count: (random.uniform(-2, 2, count) + 1j * random.uniform(-2, 2, count),), "i8(c16)"),
    kepler: (lambda random, count: (random.uniform(0, 6, count), random.uniform(0, 0.9, count)), "f8(f8,f8)"),
    bisection: (lambda random, count: (random.uniform(0, 1e5, count),), "f8(f8)"),
    collatz: (lambda random, count: (random.integers(1, 10**6, count),), "i8(i8)"),
    sequences: (lambda random, count: (random.integers(1, 20000, count),), "i8(i8)"),
    digit_sum: (lambda random, count: (random.integers(1, 20000, count),), "i8(i8)"),
    divisor: (lambda random, count: (random.integers(1, 10**9, count), random.integers(1, 10**9, count)), "i8(i8,i8)"),
    piecewise: (lambda random, count: (random.uniform(-3, 5, count),), "f8(f8)"),
    legendre: (lambda random, count: (random.uniform(-1, 1, count), random.integers(0, 30, count)), "f8(f8,i8)"),
    ray: (lambda random, count: (random.uniform(-1, 1, count), random.uniform(-1, 1, count)), "f8(f8,f8)"),
}


def of_numba(function, signature, threads):
    """The function by Numba, and those that it calls; None where Numba is not installed."""
    try:
        import numba
    except ImportError:
        return None
    numba.set_num_threads(threads)
    scope = {**globals(), "hit": numba.njit(hit)}
    function = type(function)(function.__code__, scope, function.__name__)
    return numba.vectorize([signature], target="parallel")(function)


def of_bh(function):
    import bh

    made = bh.vectorize(function)

    def call(*arrays):
        result = made(*arrays)
        bh.wait(result)
        return result

    return call, lambda arrays: [bh.asarray(array) for array in arrays]


def timed(call, arrays):
    begin = time.perf_counter()
    call(*arrays)
    return 1e3 * (time.perf_counter() - begin)


def measured(function, given):
    """The measurements of a program: milliseconds a call, and how many times as fast as Numba bh is."""
    make, signature = PROGRAMS[function]
    arrays = make(numpy.random.default_rng(1), given.elements)
    call, taken = of_bh(function)
    systems, inputs = {"bh": call}, {"bh": taken(arrays)}
    if (other := of_numba(function, signature, given.threads)) is not None:
        systems["numba"], inputs["numba"] = other, arrays
    few = [array[: given.numpy] for array in arrays]
    slow = numpy.vectorize(function)
    results = {name: numpy.asarray(call(*inputs[name])) for name, call in systems.items()}
    expected = slow(*few)
    for name, result in results.items():
        if not numpy.allclose(result[: given.numpy], expected, equal_nan=True):
            raise SystemExit(f"{function.__name__}: {name} and NumPy DISAGREE")
    runs = [{name: timed(call, inputs[name]) for name, call in systems.items()} for _ in range(given.runs)]
    times = {name: statistics.median(run[name] for run in runs) for name in systems}
    times["numpy"] = timed(slow, few) * given.elements / max(len(few[0]), 1)
    ratio = statistics.median(run["numba"] / run["bh"] for run in runs) if "numba" in times else None
    return {"program": function.__name__, "ms": times, "ratio": ratio}


def line(found):
    """A line of the table."""
    times = "".join(f"{found['ms'][name]:12.2f}" if name in found["ms"] else f"{'-':>12}" for name in ("numpy", "numba", "bh"))
    return f"{found['program']:14}{times}" + (f"{found['ratio']:8.2f}" if found["ratio"] else f"{'-':>8}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--elements", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--numpy", type=int, default=1000)
    parser.add_argument("--json", metavar="FILE")
    given = parser.parse_args()
    for name in ("BH_VE_CPU_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = str(given.threads)
    print(f"{'ms a call':14}{'numpy':>12}{'numba':>12}{'bh':>12}{'ratio':>8}")
    programs = []
    for function in PROGRAMS:
        if not given.names or function.__name__ in given.names:
            programs.append(measured(function, given))
            print(line(programs[-1]), flush=True)
    if given.json:
        Path(given.json).write_text(json.dumps({"elements": given.elements, "threads": given.threads, "programs": programs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
