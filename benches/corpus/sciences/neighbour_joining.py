"""A tree of species from distances: the closest pair is joined again and again.

Source: N. Saitou, M. Nei (1987); R. Durbin et al., "Biological Sequence Analysis", section 7.3.
"""

import numpy as np

sizes = {"small": {"species": 12}, "large": {"species": 130}}


def main(species):
    rng = np.random.default_rng(77)
    sequences = rng.integers(0, 4, (species, 300))
    for i in range(1, species):
        parent = sequences[(i - 1) // 2]
        keep = rng.random(300) < 0.8
        sequences[i, keep] = parent[keep]
    p = (sequences[:, None] != sequences[None]).mean(axis=2)
    D = -0.75 * np.log(1 - 4 / 3 * np.minimum(p, 0.7))
    names = list(range(species))
    joins = []
    while len(D) > 2:
        n = len(D)
        r = D.sum(axis=1)
        Q = (n - 2) * D - r[:, None] - r[None, :]
        np.fill_diagonal(Q, np.inf)
        i, j = np.unravel_index(np.round(Q, 9).argmin(), Q.shape)
        i, j = int(min(i, j)), int(max(i, j))
        length = 0.5 * D[i, j] + (r[i] - r[j]) / (2 * (n - 2))
        joins.append([names[i], names[j], length, D[i, j] - length])
        new = 0.5 * (D[i] + D[j] - D[i, j])
        D = np.vstack([D, new])
        D = np.column_stack([D, np.append(new, 0.0)])
        D = np.delete(np.delete(D, [i, j], axis=0), [i, j], axis=1)
        names = [name for k, name in enumerate(names) if k not in (i, j)] + [species + len(joins)]
    return np.array(joins), D
