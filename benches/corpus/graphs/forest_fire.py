"""Trees that grow, and burn when a neighbour burns or lightning strikes.

Source: B. Drossel, F. Schwabl (1992); SciPython's "The forest-fire model".
"""

import numpy as np

sizes = {"small": {"n": 50, "steps": 25}, "large": {"n": 500, "steps": 30}}


def main(n, steps, p=0.05, f=0.0005):
    EMPTY, TREE, FIRE = 0, 1, 2
    rng = np.random.default_rng(11)
    forest = (rng.random((n, n)) < 0.5).astype(np.int32)
    counts = []
    for _ in range(steps):
        burning = np.pad(forest == FIRE, 1)
        near = burning[:-2, 1:-1] | burning[2:, 1:-1] | burning[1:-1, :-2] | burning[1:-1, 2:] | burning[:-2, :-2] | burning[2:, 2:]
        strike = rng.random((n, n)) < f
        grow = rng.random((n, n)) < p
        forest = np.select(
            [forest == FIRE, (forest == TREE) & (near | strike), (forest == EMPTY) & grow],
            [EMPTY, FIRE, TREE],
            default=forest,
        )
        counts.append([np.count_nonzero(forest == k) for k in range(3)])
    return forest, np.array(counts)
