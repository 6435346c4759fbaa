"""Many little systems: strains of a mesh from deformation gradients, their principal stretches, and local solutions.

Source: K.-J. Bathe, "Finite Element Procedures", chapter 6; stacked matrices as NumPy's documentation of linalg has them.
"""

import numpy as np

sizes = {"small": {"n": 200}, "large": {"n": 30_000}}


def main(n):
    rng = np.random.default_rng(6)
    F = np.eye(3) + 0.1 * rng.standard_normal((n, 3, 3))
    J = np.linalg.det(F)
    C = np.transpose(F, (0, 2, 1)) @ F
    E = 0.5 * (C - np.eye(3))
    trace = np.trace(E, axis1=1, axis2=2)
    S = 2 * 80.0 * E + 120.0 * trace[:, None, None] * np.eye(3)
    sigma = F @ S @ F.swapaxes(1, 2) / J[:, None, None]
    stretches = np.sqrt(np.linalg.eigvalsh(C))
    deviator = sigma - np.trace(sigma, axis1=1, axis2=2)[:, None, None] / 3 * np.eye(3)
    mises = np.sqrt(1.5 * np.einsum("nij,nij->n", deviator, deviator))
    load = rng.standard_normal((n, 3, 1))
    x = np.linalg.solve(C + np.eye(3), load)[..., 0]
    inverse = np.linalg.inv(F)
    return stretches, mises, x, np.einsum("nij,njk->nik", inverse, F).mean(axis=0), sigma.sum(axis=0)
