"""The programs that Jit4OpenCL measures over sizes, in NumPy: functions of a side that return the results."""

import numpy as np

SHARE_OF_MEMORY = 0.5


def coulomb(numbers, n):
    atoms = numbers(4, 4000, seed=3)
    y = 0.5 * np.arange(n, dtype=np.float32)
    dx, dy = y[None, :, None] - 256 * atoms[0], y[:, None, None] - 256 * atoms[1]
    return ((atoms[3] / np.sqrt(dx * dx + dy * dy + np.square(1 + atoms[2]))).sum(2),)


def nbody(numbers, n):
    mass, place = numbers(n * n, seed=4), numbers(3, n * n, seed=5)
    dx, dy, dz = place[:, None, :] - place[:, :, None]
    apart = dx * dx + dy * dy + dz * dz + np.float32(0.01)
    pull = mass / (apart * np.sqrt(apart))
    return tuple((pull * side).sum(1) for side in (dx, dy, dz))


def normal(x):
    k = 1 / (1 + np.float32(0.2316419) * np.abs(x))
    series = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = 0.3989422804 * np.exp(-0.5 * x * x) * series
    return np.where(x < 0, tail, 1 - tail)


def black_scholes(numbers, n):
    spot = 50 + 20 * numbers(n * n, seed=6)
    d1 = (np.log(spot / 60) + (0.02 + 0.3 * 0.3 / 2) * 2) / (0.3 * float(np.sqrt(2.0)))
    discount = 60 * float(np.exp(-0.02 * 2))
    call = spot * normal(d1) - discount * normal(d1 - 0.3 * float(np.sqrt(2.0)))
    return call, call - spot + discount


def mandelbrot(numbers, n):
    axis = np.arange(n, dtype=np.float32) / np.float32(n)
    re, im = (np.broadcast_to(one, (n, n)) for one in ((3 * axis - 2)[None, :], (2 * axis - 1)[:, None]))
    x, y, steps = re.copy(), im.copy(), np.zeros((n, n), np.float32)
    for _ in range(64):
        xx, yy = x * x, y * y
        inside = xx + yy < 4
        x, y = np.where(inside, xx - yy + re, x), np.where(inside, 2 * x * y + im, y)
        steps += inside
    return (steps,)


# Bytes of the intermediate arrays that live together, by side.
PROGRAMS = {
    "coulomb": (coulomb, lambda n: 4 * 4 * n * n * 4000),
    "nbody": (nbody, lambda n: 4 * 9 * n**4),
    "black_scholes": (black_scholes, lambda n: 4 * 10 * n * n),
    "mandelbrot": (mandelbrot, lambda n: 4 * 10 * n * n),
}
