"""The table of smith_waterman by Numba."""

import numpy as np
from numba import njit


@njit
def table(a, b, match, mismatch, gap):
    n, m = a.size, b.size
    H = np.zeros((n + 1, m + 1), dtype=np.int64)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            s = match if a[i - 1] == b[j - 1] else mismatch
            H[i, j] = max(0, H[i - 1, j - 1] + s, H[i - 1, j] + gap, H[i, j - 1] + gap)
    return H


def main(n, m, match=2, mismatch=-1, gap=-2):
    rng = np.random.default_rng(21)
    a = rng.integers(0, 4, n)
    b = np.concatenate([rng.integers(0, 4, m - n // 2), a[: n // 2]])
    b[rng.integers(0, m, m // 20)] = 0
    H = table(a, b, match, mismatch, gap)
    i, j = np.unravel_index(np.argmax(H), H.shape)
    best = H[i, j]
    pairs = []
    while H[i, j] > 0:
        if H[i, j] == H[i - 1, j - 1] + (match if a[i - 1] == b[j - 1] else mismatch):
            i, j = i - 1, j - 1
            pairs.append((int(i), int(j)))
        elif H[i, j] == H[i - 1, j] + gap:
            i -= 1
        else:
            j -= 1
    return H, best, np.array(pairs[::-1])
