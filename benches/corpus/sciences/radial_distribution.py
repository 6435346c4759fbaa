"""How often pairs of particles in a periodic box are at each distance, beside an ideal gas: the radial distribution function.

Source: M. P. Allen, D. J. Tildesley, "Computer Simulation of Liquids", section 2.6; notes of courses on molecular dynamics.
"""

import numpy as np

sizes = {"small": {"n": 60}, "large": {"n": 1500}}
box = 10.0


def inputs(n):
    rng = np.random.default_rng(2)
    side = int(np.ceil(n ** (1 / 3)))
    lattice = np.stack(np.meshgrid(*[np.arange(side)] * 3), axis=-1).reshape(-1, 3)[:n] * (box / side)
    return {"places": (lattice + rng.normal(0, 0.1, lattice.shape)) % box}


def main(places, bins=100):
    n = len(places)
    counts = np.zeros(bins)
    for i in range(n - 1):
        apart = places[i + 1 :] - places[i]
        apart -= box * np.round(apart / box)
        distance = np.sqrt((apart**2).sum(axis=1))
        found, edges = np.histogram(distance, bins=bins, range=(0, box / 2))
        counts += 2 * found
    middle = 0.5 * (edges[1:] + edges[:-1])
    shell = 4 * np.pi * middle**2 * (edges[1] - edges[0])
    g = counts / (shell * n * n / box**3)
    return g, middle[g.argmax()], (4 * np.pi * n / box**3) * np.cumsum(g * middle**2) * (edges[1] - edges[0])
