"""A hidden Markov model: scaled forward and backward passes, Viterbi's path, and a step of Baum and Welch.

Source: L. R. Rabiner, "A Tutorial on Hidden Markov Models" (1989).
"""

import numpy as np

sizes = {"small": {"states": 4, "symbols": 6, "T": 100}, "large": {"states": 24, "symbols": 40, "T": 5000}}


def inputs(states, symbols, T):
    rng = np.random.default_rng(14)
    A = rng.dirichlet(np.ones(states), states)
    B = rng.dirichlet(np.ones(symbols), states)
    return {"A": A, "B": B, "pi": np.ones(states) / states, "obs": rng.integers(symbols, size=T)}


def main(A, B, pi, obs):
    T, N = len(obs), len(pi)
    alpha, scale = np.zeros((T, N)), np.zeros(T)
    a = pi * B[:, obs[0]]
    for t in range(T):
        if t > 0:
            a = (alpha[t - 1] @ A) * B[:, obs[t]]
        scale[t] = a.sum()
        alpha[t] = a / scale[t]
    beta = np.ones((T, N))
    for t in range(T - 2, -1, -1):
        beta[t] = A @ (B[:, obs[t + 1]] * beta[t + 1]) / scale[t + 1]
    gamma = alpha * beta
    xi = np.zeros((N, N))
    for t in range(T - 1):
        xi += np.outer(alpha[t], B[:, obs[t + 1]] * beta[t + 1]) * A / scale[t + 1]
    newB = np.zeros_like(B)
    np.add.at(newB.T, obs, gamma)
    newB /= gamma.sum(axis=0)[:, None]
    logA = np.log(A)
    delta = np.log(pi) + np.log(B[:, obs[0]])
    back = np.zeros((T, N), dtype=int)
    for t in range(1, T):
        scores = delta[:, None] + logA
        back[t] = scores.argmax(axis=0)
        delta = scores.max(axis=0) + np.log(B[:, obs[t]])
    path = [int(delta.argmax())]
    for t in range(T - 1, 0, -1):
        path.append(int(back[t, path[-1]]))
    return np.log(scale).sum(), xi / gamma[:-1].sum(axis=0)[:, None], newB, np.array(path[::-1])
