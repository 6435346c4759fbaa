"""Genetic drift with selection and mutation in many populations, by binomial draws, and times to fixation.

Source: J. Gillespie, "Population Genetics: A Concise Guide"; course simulations.
"""

import numpy as np

sizes = {"small": {"populations": 300, "generations": 40}, "large": {"populations": 20_000, "generations": 60}}


def main(populations, generations, N=100, s=0.02, u=1e-4):
    rng = np.random.default_rng(50)
    p = np.full(populations, 0.3)
    fixed_at = np.full(populations, -1)
    heterozygosity = np.zeros(generations)
    spectrum = np.zeros((generations, 20), dtype=int)
    for g in range(generations):
        w = p * (1 + s) / (p * (1 + s) + (1 - p))
        w = w * (1 - u) + (1 - w) * u
        p = rng.binomial(2 * N, w) / (2 * N)
        gone = ((p == 0) | (p == 1)) & (fixed_at < 0)
        fixed_at[gone] = g
        heterozygosity[g] = np.mean(2 * p * (1 - p))
        spectrum[g] = np.histogram(p, bins=20, range=(0, 1))[0]
    settled = fixed_at >= 0
    return heterozygosity, spectrum, settled.mean(), fixed_at[settled].mean() if settled.any() else 0.0, p.mean()
