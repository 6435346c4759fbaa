"""Sums over both axes of narrow arrays: of n elements in rows of 3, 8, 16, 31 and 64, the sum of each row of one array and
of each column of another.

NARROW_COLUMNS=K in the environment leaves the others out, and NARROW_AXIS=0 or 1 the other axis."""

import os
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness

WIDTHS = [3, 8, 16, 31, 64]


def wanted(name, value):
    """Is it to be summed, as the environment has it?"""
    return os.environ.get(name, "") in ("", str(value))


def setup(n, dtype):
    return [harness.pseudo(n, seed, dtype) for seed in (43, 44)]


def run(arrays, iters):
    a, b = arrays
    rows, columns = {}, {}
    for _ in range(iters):
        for width in WIDTHS:
            shape = (a.size // width, width)
            size = shape[0] * width
            if wanted("NARROW_COLUMNS", width):
                if wanted("NARROW_AXIS", 1):
                    rows[width] = np.sum(a[:size].reshape(shape), axis=1)
                if wanted("NARROW_AXIS", 0):
                    columns[width] = np.sum(b[:size].reshape(shape), axis=0)
    return lambda: [sum(harness.checksum(each) for each in sums.values()) for sums in (rows, columns)]


harness.main("narrow_folds", setup, run)
