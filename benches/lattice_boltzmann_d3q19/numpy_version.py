"""Lattice Boltzmann, D3Q19, on n x n x n cells with a single relaxation time. The outermost cells keep their starting
values; those of the first plane slide sideways and drag the fluid."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness

OMEGA = 1.2
VELOCITIES = [
    (0, 0, 0),
    (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1),
    (1, 1, 0), (-1, -1, 0), (1, -1, 0), (-1, 1, 0),
    (1, 0, 1), (-1, 0, -1), (1, 0, -1), (-1, 0, 1),
    (0, 1, 1), (0, -1, -1), (0, 1, -1), (0, -1, 1),
]  # fmt: skip
WEIGHTS = [1 / 3] + [1 / 18] * 6 + [1 / 36] * 12


def setup(n, dtype):
    density = 1 + 0.1 * harness.pseudo(n**3, 35, np.float64).reshape(n, n, n)
    slide = np.zeros((n, 1, 1))
    slide[0] = 0.1
    return [
        (w * density * (1 + 3 * ey * slide + 4.5 * ey * ey * slide**2 - 1.5 * slide**2)).astype(dtype)
        for w, (_, ey, _) in zip(WEIGHTS, VELOCITIES)
    ]


def combine(signs, arrays):
    """Sum of sign * array over the nonzero signs."""
    total = None
    for sign, array in zip(signs, arrays):
        if sign:
            term = array if sign > 0 else -array
            total = term if total is None else total + term
    return total


def run(populations, iters):
    n = populations[0].shape[0]
    for _ in range(iters):
        pulled = [
            f[tuple(slice(1 - e, n - 1 - e) for e in velocity)] for f, velocity in zip(populations, VELOCITIES)
        ]
        density = sum(pulled[1:], pulled[0])
        flow = [combine([v[axis] for v in VELOCITIES], pulled) / density for axis in range(3)]
        still = 1 - 1.5 * (flow[0] ** 2 + flow[1] ** 2 + flow[2] ** 2)
        collided = []
        for f, w, velocity in zip(pulled, WEIGHTS, VELOCITIES):
            along = combine(velocity, flow)
            shape = still if along is None else still + 3 * along + 4.5 * along**2
            collided.append(f + OMEGA * (w * density * shape - f))
        for f, new in zip(populations, collided):
            f[1:-1, 1:-1, 1:-1] = new
    return lambda: [sum(map(harness.checksum, populations[half::2])) for half in range(2)]


harness.main("lattice_boltzmann_d3q19", setup, run)
