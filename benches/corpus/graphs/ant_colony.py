"""Ants that find a short tour: probabilities from pheromone and distance, one city after the other for all ants.

Source: M. Dorigo, L. Gambardella, "Ant Colony System" (1997).
"""

import numpy as np

sizes = {"small": {"cities": 15, "ants": 10, "turns": 4}, "large": {"cities": 70, "ants": 100, "turns": 10}}


def main(cities, ants, turns, alpha=1.0, beta=3.0, decay=0.4):
    rng = np.random.default_rng(12)
    X = rng.random((cities, 2))
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    eta = 1 / (D + np.eye(cities)) ** beta
    tau = np.ones((cities, cities))
    best, best_length = None, np.inf
    who = np.arange(ants)
    for _ in range(turns):
        tours = np.zeros((ants, cities), dtype=int)
        tours[:, 0] = rng.integers(0, cities, ants)
        free = np.ones((ants, cities), dtype=bool)
        free[who, tours[:, 0]] = False
        for step in range(1, cities):
            here = tours[:, step - 1]
            weight = tau[here] ** alpha * eta[here] * free
            cdf = np.cumsum(weight, axis=1)
            draw = rng.random((ants, 1)) * cdf[:, -1:]
            tours[:, step] = (cdf > draw).argmax(axis=1)
            free[who, tours[:, step]] = False
        lengths = D[tours, np.roll(tours, -1, axis=1)].sum(axis=1)
        k = np.argmin(lengths)
        if lengths[k] < best_length:
            best, best_length = tours[k].copy(), lengths[k]
        tau *= 1 - decay
        np.add.at(tau, (tours, np.roll(tours, -1, axis=1)), (1 / lengths)[:, None])
        tau = np.clip(tau, 1e-3, 10)
    return best, best_length, tau
