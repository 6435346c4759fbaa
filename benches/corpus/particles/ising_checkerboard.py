"""The Ising model: Metropolis's rule on the black and on the white cells of a checkerboard in turns.

Source: M. Newman, "Computational Physics", chapter 10; checkerboard form of GPU tutorials.
"""

import numpy as np

sizes = {"small": {"n": 64, "sweeps": 20}, "large": {"n": 512, "sweeps": 20}}


def main(n, sweeps, beta=0.44):
    rng = np.random.default_rng(2024)
    spins = np.where(rng.random((n, n)) < 0.5, 1, -1)
    i, j = np.ogrid[:n, :n]
    black = (i + j) % 2 == 0
    magnetisation = np.zeros(sweeps)
    energy = np.zeros(sweeps)
    for sweep in range(sweeps):
        for mask in (black, ~black):
            neighbours = np.roll(spins, 1, 0) + np.roll(spins, -1, 0) + np.roll(spins, 1, 1) + np.roll(spins, -1, 1)
            cost = 2 * spins * neighbours
            flip = mask & ((cost <= 0) | (rng.random((n, n)) < np.exp(-beta * cost)))
            spins[flip] *= -1
        magnetisation[sweep] = np.abs(spins.mean())
        energy[sweep] = -np.sum(spins * (np.roll(spins, 1, 0) + np.roll(spins, 1, 1))) / n**2
    return spins, magnetisation, energy
