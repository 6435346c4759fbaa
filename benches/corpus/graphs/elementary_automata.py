"""Wolfram's rules by a table and shifted rows, their complexity by counted blocks.

Source: S. Wolfram, "A New Kind of Science"; SciPython's "One-dimensional cellular automata".
"""

import numpy as np

sizes = {"small": {"cells": 200, "steps": 60}, "large": {"cells": 4000, "steps": 400}}


def main(cells, steps):
    powers = np.array([4, 2, 1])
    out = {}
    for rule in (30, 90, 110, 184):
        table = np.array([(rule >> i) & 1 for i in range(8)], dtype=np.uint8)
        rows = np.zeros((steps, cells), dtype=np.uint8)
        rows[0, cells // 2] = 1
        for t in range(1, steps):
            before = rows[t - 1]
            code = np.vstack([np.roll(before, 1), before, np.roll(before, -1)])
            rows[t] = table[(powers[:, None] * code).sum(axis=0)]
        words = np.zeros((steps, cells - 7), dtype=np.int64)
        for k in range(8):
            words = 2 * words + rows[:, k : cells - 7 + k]
        p = np.bincount(words.ravel(), minlength=256) / words.size
        p = p[p > 0]
        out[rule] = (rows.sum(axis=1), -(p * np.log2(p)).sum(), rows[-1])
    return out
