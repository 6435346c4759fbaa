"""Local alignment of two sequences, by antidiagonals of the score table, and the way back.

Source: R. Durbin et al., "Biological Sequence Analysis", chapter 2.
"""

import numpy as np

sizes = {"small": {"n": 40, "m": 50}, "large": {"n": 700, "m": 800}}


def main(n, m, match=2, mismatch=-1, gap=-2):
    rng = np.random.default_rng(21)
    a = rng.integers(0, 4, n)
    b = np.concatenate([rng.integers(0, 4, m - n // 2), a[: n // 2]])
    b[rng.integers(0, m, m // 20)] = 0
    H = np.zeros((n + 1, m + 1), dtype=int)
    score = np.where(a[:, None] == b[None, :], match, mismatch)
    for d in range(2, n + m + 1):
        i = np.arange(max(1, d - m), min(n, d - 1) + 1)
        j = d - i
        H[i, j] = np.maximum.reduce([np.zeros_like(i), H[i - 1, j - 1] + score[i - 1, j - 1], H[i - 1, j] + gap, H[i, j - 1] + gap])
    i, j = np.unravel_index(np.argmax(H), H.shape)
    best = H[i, j]
    pairs = []
    while H[i, j] > 0:
        if H[i, j] == H[i - 1, j - 1] + score[i - 1, j - 1]:
            i, j = i - 1, j - 1
            pairs.append((int(i), int(j)))
        elif H[i, j] == H[i - 1, j] + gap:
            i -= 1
        else:
            j -= 1
    return H, best, np.array(pairs[::-1])
