"""Contours of a field by marching squares: the case of each cell at several levels, and where its edges are crossed.

Source: W. E. Lorensen, H. E. Cline, "Marching Cubes" (1987), in the plane; exercises on contour lines.
"""

import numpy as np

sizes = {"small": {"n": 50}, "large": {"n": 800}}


def main(n, levels=9):
    y, x = np.mgrid[-2 : 2 : n * 1j, -2 : 2 : n * 1j]
    field = np.sin(3 * x) * np.cos(2 * y) + 0.3 * x * y
    counts, cells, lengths = [], [], []
    for level in np.linspace(-1, 1, levels):
        above = field > level
        case = above[:-1, :-1] * 8 + above[:-1, 1:] * 4 + above[1:, 1:] * 2 + above[1:, :-1]
        rows, columns = np.nonzero((case > 0) & (case < 15))
        counts.append(np.bincount(case.ravel(), minlength=16))
        cells.append([rows.sum(), columns.sum()])
        crossed = above[:-1, :-1] != above[:-1, 1:]
        rise = np.where(crossed, field[:-1, 1:] - field[:-1, :-1], 1)
        lengths.append(np.where(crossed, (level - field[:-1, :-1]) / rise, 0).sum())
    return np.array(counts), np.array(cells), np.array(lengths)
