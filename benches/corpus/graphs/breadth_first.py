"""Levels of a graph from several starts, reachability, triangles, and connected parts, all by matrices of truth values.

Source: J. Kepner, J. Gilbert, "Graph Algorithms in the Language of Linear Algebra".
"""

import numpy as np

sizes = {"small": {"n": 60, "p": 0.04}, "large": {"n": 500, "p": 0.006}}


def main(n, p):
    rng = np.random.default_rng(2)
    A = rng.random((n, n)) < p
    A = A | A.T
    np.fill_diagonal(A, False)
    level = np.full((5, n), -1)
    for row, start in enumerate(rng.choice(n, 5, replace=False).tolist()):
        frontier = np.zeros(n, dtype=bool)
        frontier[start] = True
        visited = frontier.copy()
        depth = 0
        while frontier.any():
            level[row, frontier] = depth
            frontier = A[frontier].any(axis=0) & ~visited
            visited |= frontier
            depth += 1
    counts = A.astype(np.int64)
    triangles = np.trace(counts @ counts @ counts) // 6
    labels = np.arange(n)
    changed = True
    while changed:
        new = np.minimum(labels, np.where(A, labels[None, :], n).min(axis=1))
        changed = (new != labels).any()
        labels = new
    degree = A.sum(axis=1)
    paths = counts @ counts
    pairs = degree * (degree - 1)
    clustering = np.where(pairs > 0, (counts * paths).sum(axis=1) / np.maximum(pairs, 1), 0.0)
    return level, triangles, np.unique(labels, return_counts=True), clustering
