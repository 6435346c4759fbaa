"""Optical flow between two images by Horn's and Schunck's iteration.

Source: B. Horn, B. Schunck (1981); computer-vision course codes.
"""

import numpy as np

sizes = {"small": {"n": 48, "turns": 20}, "large": {"n": 300, "turns": 40}}


def average(u):
    return (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)) / 6 + (
        np.roll(u, (1, 1), (0, 1)) + np.roll(u, (1, -1), (0, 1)) + np.roll(u, (-1, 1), (0, 1)) + np.roll(u, (-1, -1), (0, 1))
    ) / 12


def main(n, turns, alpha=0.5):
    y, x = np.mgrid[0:n, 0:n] * (2 * np.pi / n)
    one = (np.sin(3 * x) + np.cos(2 * y) + np.sin(x + y)).astype(np.float32)
    shift = 2 * np.pi / n
    two = (np.sin(3 * (x - shift)) + np.cos(2 * (y - 0.5 * shift)) + np.sin(x + y - 1.5 * shift)).astype(np.float32)
    fx = (np.gradient(one, axis=1) + np.gradient(two, axis=1)) / 2
    fy = (np.gradient(one, axis=0) + np.gradient(two, axis=0)) / 2
    ft = two - one
    u = np.zeros_like(one)
    v = np.zeros_like(one)
    for _ in range(turns):
        ub, vb = average(u), average(v)
        t = (fx * ub + fy * vb + ft) / (alpha**2 + fx**2 + fy**2)
        u = ub - fx * t
        v = vb - fy * t
    return u, v, np.median(u), np.median(v)
