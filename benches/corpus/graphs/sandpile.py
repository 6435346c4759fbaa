"""The abelian sandpile: grains dropped one after the other topple until all is stable.

Source: P. Bak, C. Tang, K. Wiesenfeld (1987); Rosetta Code and course exercises.
"""

import numpy as np

sizes = {"small": {"n": 15, "grains": 60}, "large": {"n": 61, "grains": 400}}


def main(n, grains):
    rng = np.random.default_rng(4)
    pile = rng.integers(2, 4, (n, n))
    sizes_, durations = [], []
    for _ in range(grains):
        i, j = rng.integers(0, n, 2)
        pile[i, j] += 1
        toppled, steps = 0, 0
        while pile.max() >= 4:
            over = pile >= 4
            pile[over] -= 4
            pile[1:, :][over[:-1, :]] += 1
            pile[:-1, :][over[1:, :]] += 1
            pile[:, 1:][over[:, :-1]] += 1
            pile[:, :-1][over[:, 1:]] += 1
            toppled += np.count_nonzero(over)
            steps += 1
        sizes_.append(toppled)
        durations.append(steps)
    return pile, np.array(sizes_), np.array(durations)
