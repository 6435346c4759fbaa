"""The Mandelbrot set: all points at once with a mask of those that stay, and the smooth count of iterations.

Source: N. P. Rougier, "From Python to NumPy", section 4.3; NPBench's mandelbrot1.
"""

import numpy as np

sizes = {"small": {"n": 60, "maxiter": 20}, "large": {"n": 400, "maxiter": 60}}


def main(n, maxiter, horizon=2.0**10):
    X = np.linspace(-2.25, 0.75, n, dtype=np.float64)
    Y = np.linspace(-1.25, 1.25, n, dtype=np.float64)
    C = X + Y[:, None] * 1j
    N = np.zeros(C.shape, dtype=np.int64)
    Z = np.zeros(C.shape, dtype=np.complex128)
    for k in range(maxiter):
        I = abs(Z) < horizon
        N[I] = k
        Z[I] = Z[I] ** 2 + C[I]
    N[N == maxiter - 1] = 0
    with np.errstate(invalid="ignore", divide="ignore"):
        M = np.nan_to_num(N + 1 - np.log2(np.log(abs(Z))) + np.log2(np.log(horizon)))
    return N, M
