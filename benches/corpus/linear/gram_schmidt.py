"""Orthogonal bases by the classical and the modified Gram-Schmidt process, and by Householder's reflections.

Source: L. N. Trefethen, D. Bau, "Numerical Linear Algebra", lectures 7 to 10.
"""

import numpy as np

sizes = {"small": {"m": 50, "n": 20}, "large": {"m": 400, "n": 120}}


def classical(A):
    m, n = A.shape
    Q, R = np.zeros((m, n)), np.zeros((n, n))
    for j in range(n):
        v = A[:, j].copy()
        R[:j, j] = Q[:, :j].T @ A[:, j]
        v -= Q[:, :j] @ R[:j, j]
        R[j, j] = np.linalg.norm(v)
        Q[:, j] = v / R[j, j]
    return Q, R


def modified(A):
    V = A.copy()
    n = A.shape[1]
    R = np.zeros((n, n))
    for i in range(n):
        R[i, i] = np.linalg.norm(V[:, i])
        V[:, i] /= R[i, i]
        for j in range(i + 1, n):
            R[i, j] = V[:, i] @ V[:, j]
            V[:, j] -= R[i, j] * V[:, i]
    return V, R


def householder(A):
    R = A.copy()
    for k in range(A.shape[1]):
        x = R[k:, k]
        v = x.copy()
        v[0] += np.copysign(np.linalg.norm(x), x[0])
        v /= np.linalg.norm(v)
        R[k:, k:] -= 2 * np.outer(v, v @ R[k:, k:])
    return np.triu(R[: A.shape[1]])


def main(m, n):
    A = np.random.default_rng(0).standard_normal((m, n))
    Q1, R1 = classical(A)
    Q2, R2 = modified(A)
    R3 = householder(A)
    return Q1, R1, Q2, np.abs(R3) - np.abs(R2) < 1e-8, np.linalg.norm(Q2.T @ Q2 - np.eye(n)) < 1e-8
