"""Gaussian elimination with row exchanges in place, and systems, a determinant and an inverse by its factors.

Source: G. Golub, C. Van Loan, "Matrix Computations", algorithms 3.1.1, 3.1.2 and 3.4.1.
"""

import numpy as np

sizes = {"small": {"n": 24}, "large": {"n": 250}}


def factor(a):
    lu, order, sign = a.copy(), np.arange(len(a)), 1
    for k in range(len(a) - 1):
        p = k + np.argmax(np.abs(lu[k:, k]))
        if p != k:
            lu[[k, p]] = lu[[p, k]]
            order[[k, p]] = order[[p, k]]
            sign = -sign
        lu[k + 1 :, k] /= lu[k, k]
        lu[k + 1 :, k + 1 :] -= lu[k + 1 :, k, None] * lu[k, k + 1 :]
    return lu, order, sign


def solve(lu, b):
    x = b.copy()
    for i in range(len(x)):
        x[i] -= lu[i, :i] @ x[:i]
    for i in range(len(x) - 1, -1, -1):
        x[i] = (x[i] - lu[i, i + 1 :] @ x[i + 1 :]) / lu[i, i]
    return x


def main(n):
    i = np.arange(n)
    a = np.sin(np.outer(i + 1, i + 2) * 0.37) + 2 * np.eye(n)
    b = np.column_stack([np.ones(n), np.cos(i)])
    lu, order, sign = factor(a)
    x = np.column_stack([solve(lu, column[order]) for column in b.T])
    many = solve(lu, np.eye(n)[order])
    logarithm = np.log(np.abs(np.diag(lu))).sum()
    return order, x, sign, logarithm, np.abs(a @ x - b).max() < 1e-8, np.abs(many @ a - np.eye(n)).max() < 1e-6
