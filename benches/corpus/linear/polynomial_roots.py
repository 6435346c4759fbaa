"""All roots of many polynomials at once by Durand's and Kerner's iteration, beside companion matrices.

Source: W. Press et al., "Numerical Recipes", section 9.5; exercises on the Weierstrass iteration.
"""

import numpy as np

sizes = {"small": {"count": 20, "degree": 6}, "large": {"count": 2000, "degree": 8}}


def main(count, degree, limit=60):
    rng = np.random.default_rng(5)
    coefficients = np.concatenate([np.ones((count, 1)), rng.uniform(-2, 2, (count, degree))], axis=1).astype(complex)
    z = np.tile((0.4 + 0.9j) ** np.arange(degree), (count, 1))
    delta, turns = 1.0, 0
    eye = np.eye(degree, dtype=bool)
    while delta > 1e-10 and turns < limit:
        p = np.zeros_like(z)
        for k in range(degree + 1):
            p = p * z + coefficients[:, k : k + 1]
        differences = z[:, :, None] - z[:, None, :]
        differences[:, eye] = 1
        w = p / np.prod(differences, axis=2)
        z = z - w
        delta = np.max(np.abs(w))
        turns += 1
    companion = np.zeros((count, degree, degree), dtype=complex)
    companion[:, 0, :] = -coefficients[:, 1:]
    companion[:, np.arange(1, degree), np.arange(degree - 1)] = 1
    other = np.linalg.eigvals(companion)
    return np.sort(np.abs(z), axis=1), np.sort(np.abs(other), axis=1), z.sum(axis=1)


tolerance = 1e-5
