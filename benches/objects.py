#!/usr/bin/env python3
"""Functions of scalars with objects and lists beside the same functions with numbers alone, on one thread.

    benches/objects.py [PROGRAM...] [--elements N] [--python N] [--runs N] [--json FILE]

The package `bh` must be importable. Milliseconds of processor time, medians of alternating runs after a warm-up; Python's time is that of few elements,
scaled. Results must be equal. `memory` is what the lists of Firepile's example (section 3.1, k = 10, 128 items) may need.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy

os.environ.setdefault("BH_VE_CPU_THREADS", "1")
import bh


class Vector(NamedTuple):
    x: float
    y: float
    z: float

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y, self.z + other.z)

    def times(self, factor):
        return Vector(self.x * factor, self.y * factor, self.z * factor)

    def dot(self, other):
        return self.x * other.x + self.y * other.y + self.z * other.z


class Ray:
    def __init__(self, origin, direction):
        self.origin, self.direction = origin, direction

    def at(self, time):
        return self.origin + self.direction.times(time)


class Sphere:
    def __init__(self, centre, radius, shine):
        self.centre, self.radius, self.shine = centre, radius, shine

    def meet(self, ray):
        """When a ray meets it; 0 if it does not."""
        apart = ray.origin + self.centre.times(-1.0)
        half = apart.dot(ray.direction)
        rest = half * half - apart.dot(apart) + self.radius * self.radius
        return max(-half - math.sqrt(rest), 0.0) if rest > 0 else 0.0

    def normal(self, point):
        return (point + self.centre.times(-1.0)).times(1 / self.radius)


SCENE = [Sphere(Vector(0.0, 0.0, 3.0), 1.0, 0.5), Sphere(Vector(1.0, 0.5, 2.0), 0.5, 0.8), Sphere(Vector(-1.0, -0.5, 2.5), 0.7, 0.3)]


def rays(x, y):
    """The light that a ray brings from spheres that reflect it, a new ray each time."""
    size = math.sqrt(x * x + y * y + 1.0)
    ray, light, strength = Ray(Vector(0.0, 0.0, 0.0), Vector(x / size, y / size, 1 / size)), 0.0, 1.0
    for _ in range(4):
        nearest, shine, normal = 1e9, 0.0, Vector(0.0, 0.0, 0.0)
        for sphere in SCENE:
            time = sphere.meet(ray)
            if 1e-6 < time < nearest:
                nearest, shine, normal = time, sphere.shine, sphere.normal(ray.at(time))
        if nearest > 1e8:
            break
        light += strength * max(normal.y, 0.1)
        strength *= shine
        ray = Ray(ray.at(nearest), ray.direction + normal.times(-2.0 * ray.direction.dot(normal)))
    return light


NUMBERS = [(0.0, 0.0, 3.0, 1.0, 0.5), (1.0, 0.5, 2.0, 0.5, 0.8), (-1.0, -0.5, 2.5, 0.7, 0.3)]
NUMBERS = tuple(NUMBERS)


def rays_plain(x, y):
    size = math.sqrt(x * x + y * y + 1.0)
    ox, oy, oz, dx, dy, dz, light, strength = 0.0, 0.0, 0.0, x / size, y / size, 1 / size, 0.0, 1.0
    for _ in range(4):
        nearest, shine, nx, ny, nz = 1e9, 0.0, 0.0, 0.0, 0.0
        for cx, cy, cz, radius, glance in NUMBERS:
            ax, ay, az = ox + cx * -1.0, oy + cy * -1.0, oz + cz * -1.0
            half = ax * dx + ay * dy + az * dz
            rest = half * half - (ax * ax + ay * ay + az * az) + radius * radius
            time = max(-half - math.sqrt(rest), 0.0) if rest > 0 else 0.0
            if 1e-6 < time < nearest:
                nearest, shine = time, glance
                nx, ny, nz = ((ox + dx * time) + cx * -1.0) * (1 / radius), ((oy + dy * time) + cy * -1.0) * (1 / radius), ((oz + dz * time) + cz * -1.0) * (1 / radius)
        if nearest > 1e8:
            break
        light += strength * max(ny, 0.1)
        strength *= shine
        turn = -2.0 * (dx * nx + dy * ny + dz * nz)
        ox, oy, oz = ox + dx * nearest, oy + dy * nearest, oz + dz * nearest
        dx, dy, dz = dx + nx * turn, dy + ny * turn, dz + nz * turn
    return light


class Linear:
    def __init__(self, slope):
        self.slope = slope

    def value(self, x):
        return self.slope * x


class Square:
    def __init__(self, scale, shift):
        self.scale, self.shift = scale, shift

    def value(self, x):
        return self.scale * x * x + self.shift


def classes(x, y):
    """A map of one of two kinds, which an element changes as it goes."""
    chosen = Linear(y) if x > 0 else Square(y * 0.25, x * 0.5)
    for _ in range(20):
        x = chosen.value(x) % 2.0 - 1.0
        if x > 0.9:
            chosen = Square(0.5, x) if y > 0.5 else Linear(1.5)
    return x


def classes_plain(x, y):
    square, slope, scale, shift = x <= 0, y, y * 0.25, x * 0.5
    for _ in range(20):
        x = (scale * x * x + shift if square else slope * x) % 2.0 - 1.0
        if x > 0.9:
            if y > 0.5:
                square, scale, shift = True, 0.5, x
            else:
                square, slope = False, 1.5
    return x


def window(x, y):
    """The largest of the last four numbers of a recurrence, by a list that is filled again and again."""
    last, best = [0.0] * 4, 0.0
    for k in range(40):
        x = (x * 1.75 + y) % 2.0 - 1.0
        last[k % 4] = x
        best = max(best, last[0] + last[1] * 0.5 + last[2] * 0.25 + last[3] * 0.125)
    return best


def window_plain(x, y):
    a, b, c, d, best = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(40):
        x = (x * 1.75 + y) % 2.0 - 1.0
        place = k % 4
        if place == 0:
            a = x
        elif place == 1:
            b = x
        elif place == 2:
            c = x
        else:
            d = x
        best = max(best, a + b * 0.5 + c * 0.25 + d * 0.125)
    return best


PROGRAMS = {"rays": (rays, rays_plain), "classes": (classes, classes_plain), "window": (window, window_plain)}


def memory(k=10, items=128):
    """The bytes of the lists of Firepile's example."""

    @bh.vectorize
    def example(x):
        n = k * k
        a, total = [x] * n, x
        for i in range(n):
            b = [x] * (n + i)
            total = total + b[i] + a[i]
        return total

    return example.memory(bh.ones(items, "f4"))


def spent(work):
    begin = time.process_time()
    work()
    return time.process_time() - begin


def measured(name, args):
    """Seconds of both forms, and of Python."""
    random = numpy.random.default_rng(5)
    x, y = random.uniform(-1, 1, args.elements), random.uniform(-1, 1, args.elements)
    mine, plain = map(bh.vectorize, PROGRAMS[name])
    arrays = [bh.asarray(x), bh.asarray(y)]
    few = slice(0, args.python)
    expected = numpy.vectorize(PROGRAMS[name][0], otypes=[float])(x[few], y[few])
    python = spent(lambda: numpy.vectorize(PROGRAMS[name][0], otypes=[float])(x[few], y[few])) * args.elements / len(expected)
    for form in (mine, plain):
        numpy.testing.assert_allclose(numpy.asarray(form(*arrays))[few], expected, rtol=1e-9)
    times = {"bh": [], "plain": []}
    run = lambda form: lambda: float(form(*arrays)[0])
    for turn in range(args.runs + 2):
        for key, form in (("bh", mine), ("plain", plain)):
            seconds = spent(run(form))
            if turn > 1:
                times[key].append(seconds)
    return {"program": name, "elements": args.elements, "numpy": python, **{key: statistics.median(values) for key, values in times.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="PROGRAM", help=f"some of: {', '.join(PROGRAMS)}")
    parser.add_argument("--elements", type=int, default=200_000)
    parser.add_argument("--python", type=int, default=300, help="elements for Python")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if unknown := [name for name in args.names if name not in PROGRAMS]:
        parser.error(f"there is no program {unknown[0]}; there are {', '.join(PROGRAMS)}")
    rows, lists = [], memory()
    print("memory", lists)
    for name in args.names or PROGRAMS:
        rows.append(measured(name, args))
        print("  ".join(f"{key} {1e3 * value:.2f} ms" if type(value) is float else str(value) for key, value in rows[-1].items()), flush=True)
    if args.json:
        commit = subprocess.run(["git", "-C", Path(__file__).parent, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True).stdout.strip()
        args.json.write_text(json.dumps({"commit": commit, "memory": lists, "programs": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
