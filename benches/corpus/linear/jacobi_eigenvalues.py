"""Eigenvalues of a symmetric matrix by Jacobi's rotations, the largest element first.

Source: W. Press et al., "Numerical Recipes", section 11.1; J. Kiusalaas, "Numerical Methods in Engineering with Python".
"""

import numpy as np

sizes = {"small": {"n": 10}, "large": {"n": 40}}


def main(n, tol=1e-9):
    rng = np.random.default_rng(2)
    A = rng.standard_normal((n, n))
    A = (A + A.T) / 2
    start = A.copy()
    V = np.identity(n)
    rotations = 0
    while rotations < 5 * n**2:
        off = np.abs(np.triu(A, 1))
        k, l = np.unravel_index(np.argmax(off), off.shape)
        if off[k, l] < tol:
            break
        difference = A[l, l] - A[k, k]
        phi = difference / (2 * A[k, l])
        t = 1 / (np.abs(phi) + np.sqrt(phi**2 + 1))
        if phi < 0:
            t = -t
        c = 1 / np.sqrt(t**2 + 1)
        s = t * c
        G = np.array([[c, s], [-s, c]])
        A[:, [k, l]] = A[:, [k, l]] @ G
        A[[k, l], :] = G.T @ A[[k, l], :]
        V[:, [k, l]] = V[:, [k, l]] @ G
        rotations += 1
    values = np.sort(np.diag(A))
    return values, np.abs(V @ np.diag(np.diag(A)) @ V.T - start).max() < 1e-6, np.abs(values - np.linalg.eigvalsh(start)).max() < 1e-6
