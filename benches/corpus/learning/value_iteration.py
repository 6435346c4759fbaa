"""A maze of cells with wind: policies by value iteration, until the values change by less than a limit.

Source: R. Sutton, A. Barto, "Reinforcement Learning", section 4.4.
"""

import numpy as np

sizes = {"small": {"n": 15}, "large": {"n": 120}}


def main(n, gamma=0.97, slip=0.1):
    rng = np.random.default_rng(9)
    walls = rng.random((n, n)) < 0.2
    walls[0, 0] = walls[-1, -1] = False
    reward = np.full((n, n), -0.04)
    reward[-1, -1] = 1.0
    reward[n // 2, n // 2] = -1.0
    V = np.zeros((n, n))
    moves = [(-1, 0), (1, 0), (0, -1), (0, 1)]

    def moved(V, d):
        P = np.pad(V, 1, mode="edge")
        M = P[1 + d[0] : n + 1 + d[0], 1 + d[1] : n + 1 + d[1]]
        blocked = np.pad(walls, 1, constant_values=True)[1 + d[0] : n + 1 + d[0], 1 + d[1] : n + 1 + d[1]]
        return np.where(blocked, V, M)

    theta, delta, sweeps = 1e-6, np.inf, 0
    while delta > theta:
        to = np.array([moved(V, d) for d in moves])
        Q = reward + gamma * ((1 - 2 * slip) * to + slip * to[[2, 3, 0, 1]] + slip * to[[3, 2, 1, 0]])
        new = Q.max(axis=0)
        new[walls] = 0
        new[-1, -1] = 1.0
        delta = np.abs(new - V).max()
        V = new
        sweeps += 1
    policy = np.where(walls, -1, np.argmax(np.round(Q, 9), axis=0))
    return V, np.bincount(policy.ravel() + 1, minlength=5), sweeps
