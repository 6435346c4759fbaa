"""Words of a genome: codes of sliding windows, their counts, palindromes, GC content, and distances between reads.

Source: P. Compeau, P. Pevzner, "Bioinformatics Algorithms", chapter 1; Rosalind's problems.
"""

import numpy as np

sizes = {"small": {"n": 2000, "k": 5}, "large": {"n": 400_000, "k": 8}}


def main(n, k):
    rng = np.random.default_rng(14)
    text = "".join(rng.choice(list("ACGT"), n, p=[0.3, 0.2, 0.2, 0.3]).tolist())
    raw = np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    table = np.zeros(256, dtype=np.int64)
    table[np.frombuffer(b"ACGT", dtype=np.uint8)] = np.arange(4)
    code = table[raw]
    powers = 4 ** np.arange(k)[::-1]
    words = np.lib.stride_tricks.sliding_window_view(code, k) @ powers
    complement = np.lib.stride_tricks.sliding_window_view(3 - code[::-1], k)[::-1] @ powers
    counts = np.bincount(words, minlength=4**k)
    canonical, first, number = np.unique(np.minimum(words, complement), return_index=True, return_counts=True)
    palindromes = np.flatnonzero(words == complement)
    gc = (code == 1) | (code == 2)
    c = np.concatenate([[0], np.cumsum(gc)])
    window = 200
    content = (c[window:] - c[:-window]) / window
    skew = np.cumsum(np.where(code == 2, 1, np.where(code == 1, -1, 0)))
    reads = np.stack([code[i : i + 100] for i in range(0, 1500, 50)])
    hamming = (reads[:, None, :] != reads[None, :, :]).sum(axis=2)
    return counts, canonical[:100], number.max(), palindromes[:50], content.min(), int(skew.argmin()), hamming
