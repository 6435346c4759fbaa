"""Loops over rows, columns and elements, as scientists write them in NumPy; bh.cpp has the same by the same names.

`numpy_version.py N RUNS [NAME...]` prints a JSON line for each: seconds of the first run, and the median of the others.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness

LOOPS = {}


def loop(program):
    LOOPS[program.__name__] = program
    return program


def matrix(n, seed, columns=None):
    columns = columns or n
    return harness.pseudo(n * columns, seed, np.float64).reshape(n, columns)


def vector(n, seed):
    return harness.pseudo(n, seed, np.float64)


def dominant(n, seed):
    return matrix(n, seed) + np.eye(n) * n


@loop
def gram_schmidt(n):
    a = dominant(n, 1)
    for i in range(n):
        a[:, i] /= np.sqrt(np.dot(a[:, i], a[:, i]))
        q = a[:, i].copy()
        for j in range(i + 1, n):
            r = np.dot(q, a[:, j])
            a[:, j] -= q * r
    return a


@loop
def lu_rows(n):
    a = dominant(n, 2)
    for k in range(n - 1):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
    return a


@loop
def cholesky_rows(n):
    a = dominant(n, 3)
    for k in range(n):
        a[k, k] = np.sqrt(a[k, k])
        a[k + 1 :, k] /= a[k, k]
        for j in range(k + 1, n):
            a[j:, j] -= a[j:, k] * a[j, k]
    return a


@loop
def triangular_solve(n):
    l, b, x = dominant(n, 4), vector(n, 5), np.zeros(n)
    x[0] = b[0] / l[0, 0]
    for i in range(1, n):
        x[i] = (b[i] - np.dot(l[i, :i], x[:i])) / l[i, i]
    return x


@loop
def gauss_seidel(n):
    u = matrix(n, 6)
    for _ in range(3):
        for i in range(1, n - 1):
            u[i, 1:-1] = 0.25 * (u[i - 1, 1:-1] + u[i + 1, 1:-1] + u[i, :-2] + u[i, 2:])
    return u


@loop
def convolution_windows(n):
    side = max(2, n // 10)
    images = harness.pseudo(16 * (side + 1) * (side + 1) * 3, 7, np.float64).reshape(16, side + 1, side + 1, 3)
    kernel = harness.pseudo(2 * 2 * 3 * 8, 8, np.float64).reshape(2, 2, 3, 8)
    out = np.zeros((16, side, side, 8))
    for i in range(side):
        for j in range(side):
            out[:, i, j, :] = np.sum(images[:, i : i + 2, j : j + 2, :, None] * kernel[None], axis=(1, 2, 3))
    return out


@loop
def symmetric_updates(n):
    a, s = matrix(n, 9), np.zeros((n, n))
    for j in range(n):
        s[j:, j] += 1.5 * a[j, j] * a[j:, j]
        s[j, j:] = s[j:, j]
    return s


@loop
def gauss_jordan(n):
    a = dominant(n, 10)
    for k in range(n):
        a[k] /= a[k, k].copy()
        for rows in (slice(0, k), slice(k + 1, n)):
            a[rows] -= a[rows, k].copy()[:, None] * a[k]
    return a


@loop
def shortest_paths(n):
    d = matrix(n, 11)
    for k in range(n):
        d = np.minimum(d, d[:, k][:, None] + d[k])
    return d


@loop
def power_iteration(n):
    a, v = matrix(n, 12), vector(n, 13)
    for _ in range(n):
        v = np.sum(a * v, axis=1)
        v = v / np.sqrt(np.sum(v * v))
    return v


@loop
def row_recurrence(n):
    a = matrix(n, 14)
    for i in range(1, n):
        a[i] += 0.5 * a[i - 1]
    return a


@loop
def tridiagonal(n):
    d, c, e = matrix(n, 15), vector(n, 16), vector(n, 17)
    for i in range(1, n):
        c[i] = 1 / (4 - c[i - 1] * e[i])
        d[i] = (d[i] - e[i] * d[i - 1]) * c[i]
    for i in range(n - 2, -1, -1):
        d[i] -= c[i] * d[i + 1]
    return d


@loop
def rotations(n):
    a = matrix(n, 18)
    for p in range(n - 1):
        upper, lower = a[p].copy(), a[p + 1].copy()
        a[p] = 0.8 * upper - 0.6 * lower
        a[p + 1] = 0.6 * upper + 0.8 * lower
    return a


@loop
def moving_averages(n):
    x, out = vector(2 * n, 19), np.zeros(n)
    for i in range(n):
        out[i] = np.sum(x[i : i + n]) / n
    return out


@loop
def distances(n):
    x, d = matrix(n, 20, 3), np.zeros((n, n))
    for i in range(n):
        d[i] = np.sqrt(np.sum((x - x[i]) * (x - x[i]), axis=1))
    return d


@loop
def horner(n):
    x, c = vector(n, 21), vector(n, 22)
    y = np.zeros(n)
    for i in range(n):
        y = y * x + c[i]
    return y


@loop
def lagged_products(n):
    x, r = vector(n, 23), np.zeros(n)
    for k in range(n):
        r[k] = np.dot(x[: n - k], x[k:])
    return r


@loop
def haar(n):
    x = vector(1 << (n.bit_length() + 3), 24)
    length = x.size
    while length > 1:
        even, odd = x[0:length:2].copy(), x[1:length:2].copy()
        half = length // 2
        x[:half] = (even + odd) * 0.5
        x[half:length] = even - odd
        length = half
    return x


@loop
def householder(n):
    a = dominant(n, 25)
    for k in range(n - 1):
        v = a[k:, k].copy()
        v[0] += np.sqrt(np.sum(v * v))
        v /= np.sqrt(np.sum(v * v))
        a[k:, k:] -= 2 * v[:, None] * np.sum(v[:, None] * a[k:, k:], axis=0)
    return a


def main():
    n, runs, names = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    for name, program in LOOPS.items():
        if names and name not in names:
            continue
        seconds = []
        for _ in range(runs):
            start = time.perf_counter()
            result = program(n)
            seconds.append(time.perf_counter() - start)
        line = {"loop": name, "n": n, "first": seconds[0], "later": statistics.median(seconds[1:] or seconds)}
        print(json.dumps({**line, "checksum": harness.checksum(result)}), flush=True)


main()
