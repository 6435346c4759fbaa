"""mandelbrot_masks by Numba, a loop for each point."""

import numpy as np
from numba import njit


@njit
def run(C, maxiter, horizon):
    N = np.zeros(C.shape, dtype=np.int64)
    Z = np.zeros(C.shape, dtype=np.complex128)
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            z = 0j
            for k in range(maxiter):
                if abs(z) >= horizon:
                    break
                N[i, j] = k
                z = z * z + C[i, j]
            Z[i, j] = z
    return N, Z


def main(n, maxiter, horizon=2.0**10):
    X = np.linspace(-2.25, 0.75, n)
    Y = np.linspace(-1.25, 1.25, n)
    N, Z = run(X + Y[:, None] * 1j, maxiter, horizon)
    N[N == maxiter - 1] = 0
    with np.errstate(invalid="ignore", divide="ignore"):
        M = np.nan_to_num(N + 1 - np.log2(np.log(abs(Z))) + np.log2(np.log(horizon)))
    return N, M
