"""PageRank of a random web by power iteration on edge lists and on a dense matrix, until it settles.

Source: A. Langville, C. Meyer, "Google's PageRank and Beyond", chapter 4.
"""

import numpy as np

sizes = {"small": {"n": 200, "links": 1000}, "large": {"n": 20_000, "links": 200_000}}


def main(n, links, d=0.85, tol=1e-10):
    rng = np.random.default_rng(7)
    source = rng.integers(0, n, links)
    target = (n * rng.random(links) ** 3).astype(np.int64)
    degree = np.bincount(source, minlength=n)
    dangling = degree == 0
    rank = np.ones(n) / n
    error, turns = 1.0, 0
    while error > tol:
        share = rank / np.maximum(degree, 1)
        new = np.zeros(n)
        np.add.at(new, target, share[source])
        new = d * (new + rank[dangling].sum() / n) + (1 - d) / n
        error = np.abs(new - rank).sum()
        rank = new
        turns += 1
    best = np.argsort(-rank, kind="stable")[:20]
    small = min(n, 300)
    A = np.zeros((small, small))
    inside = (source < small) & (target < small)
    A[target[inside], source[inside]] = 1
    hubs = np.ones(small)
    for _ in range(30):
        authorities = A @ hubs
        authorities /= np.linalg.norm(authorities)
        hubs = A.T @ authorities
        hubs /= np.linalg.norm(hubs)
    return rank, best, turns, authorities, hubs
