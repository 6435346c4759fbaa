"""Prim's tree over points in the plane, a tour by nearest neighbours, and its improvement by exchanges of two edges.

Source: R. Sedgewick, K. Wayne, "Algorithms", section 4.3; travelling-salesman exercises.
"""

import numpy as np

sizes = {"small": {"n": 40, "rounds": 1}, "large": {"n": 400, "rounds": 2}}


def main(n, rounds):
    rng = np.random.default_rng(9)
    X = rng.random((n, 2))
    D = np.hypot(*(X[:, None] - X[None]).transpose(2, 0, 1))
    best = D[0].copy()
    parent = np.zeros(n, dtype=int)
    done = np.zeros(n, dtype=bool)
    done[0] = True
    total = 0.0
    for _ in range(n - 1):
        j = np.argmin(np.where(done, np.inf, best))
        total += best[j]
        done[j] = True
        closer = D[j] < best
        parent[closer & ~done] = j
        best = np.minimum(best, D[j])
    tour = [0]
    left = np.ones(n, dtype=bool)
    left[0] = False
    while len(tour) < n:
        candidates = np.flatnonzero(left)
        j = candidates[np.argmin(D[tour[-1], candidates])]
        tour.append(int(j))
        left[j] = False
    tour = np.array(tour)
    for _ in range(rounds):
        for i in range(1, n - 2):
            a, b = tour[i - 1], tour[i]
            ends = tour[i + 1 : -1]
            after = tour[i + 2 :]
            gain = D[a, b] + D[ends, after] - D[a, ends] - D[b, after]
            k = np.argmax(gain)
            if gain[k] > 1e-9:
                tour[i : i + k + 2] = tour[i : i + k + 2][::-1]
    return total, parent, tour, D[tour, np.roll(tour, -1)].sum()
