"""The largest eigenvalues one after the other by power iteration with deflation, until each settles.

Source: G. Golub, C. Van Loan, "Matrix Computations", section 7.3.
"""

import numpy as np

sizes = {"small": {"n": 40, "count": 2}, "large": {"n": 500, "count": 4}}


def main(n, count, tol=1e-9):
    rng = np.random.default_rng(3)
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    spectrum = np.concatenate([[100, 60, 35, 20, 12], np.linspace(5, 1, n - 5)])
    A = (Q * spectrum) @ Q.T
    values, turns = [], []
    for _ in range(count):
        v = np.ones(n) / np.sqrt(n)
        value, delta, it = 0.0, 1.0, 0
        while delta > tol:
            w = A @ v
            v = w / np.linalg.norm(w)
            new = v @ A @ v
            delta = abs(new - value)
            value = new
            it += 1
        A = A - value * np.outer(v, v)
        values.append(value)
        turns.append(it)
    return np.array(values), np.abs(v), turns


tolerance = 1e-5
