"""Advection of a profile by a finite-volume method with slope limiters, periodic, to see which limiter keeps it best.

Source: R. J. LeVeque, "Finite Volume Methods for Hyperbolic Problems", chapter 6.
"""

import numpy as np

sizes = {"small": {"n": 400, "steps": 50}, "large": {"n": 100_000, "steps": 40}}


def minmod(a, b):
    return np.where(a * b > 0, np.where(np.abs(a) < np.abs(b), a, b), 0.0)


def superbee(a, b):
    s1 = minmod(b, 2 * a)
    s2 = minmod(2 * b, a)
    return np.where(np.abs(s1) > np.abs(s2), s1, s2)


def mc(a, b):
    return minmod((a + b) / 2, minmod(2 * a, 2 * b))


def main(n, steps, cfl=0.8):
    x = (np.arange(n) + 0.5) / n
    start = np.exp(-200 * (x - 0.3) ** 2)
    start[(x > 0.6) & (x < 0.8)] = 1.0
    errors = {}
    for limiter in (minmod, superbee, mc):
        q = start.copy()
        for _ in range(steps):
            left = q - np.roll(q, 1)
            right = np.roll(q, -1) - q
            slope = limiter(left, right)
            edge = q + 0.5 * (1 - cfl) * slope
            q = q - cfl * (edge - np.roll(edge, 1))
        exact = np.interp((x - cfl * steps / n) % 1.0, x, start)
        errors[limiter.__name__] = np.abs(q - exact).sum() / n
    return errors, q
