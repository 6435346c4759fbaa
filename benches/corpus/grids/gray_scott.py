"""Reaction and diffusion of two substances on a torus, whose patterns grow from a square in the middle.

Source: J. E. Pearson, "Complex patterns in a simple system", Science 261 (1993), in the form of blog posts that use np.roll.
"""

import numpy as np

sizes = {"small": {"n": 64, "steps": 20}, "large": {"n": 512, "steps": 40}}


def laplacian(a):
    return np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a


def main(n, steps, du=0.16, dv=0.08, feed=0.035, kill=0.065):
    rng = np.random.default_rng(7)
    u = np.ones((n, n))
    v = np.zeros((n, n))
    r = n // 8
    middle = slice(n // 2 - r, n // 2 + r)
    u[middle, middle] = 0.50
    v[middle, middle] = 0.25
    u += 0.02 * rng.random((n, n))
    v += 0.02 * rng.random((n, n))
    for _ in range(steps):
        uvv = u * v * v
        u += du * laplacian(u) - uvv + feed * (1 - u)
        v += dv * laplacian(v) + uvv - (feed + kill) * v
    return u, v, v.mean(), (v > 0.1).sum()
