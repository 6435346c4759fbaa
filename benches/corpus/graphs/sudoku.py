"""Sudokus solved by candidates in a cube of truth values and a search where they do not decide.

Source: P. Norvig, "Solving Every Sudoku Puzzle", as array exercises have it.
"""

import numpy as np

sizes = {"small": {"copies": 1}, "large": {"copies": 10}}

PUZZLES = [
    "530070000600195000098000060800060003400803001700020006060000280000419005000080079",
    "000000907000420180000705026100904000050000040000507009920108000034059000507000000",
]


def candidates(board):
    c = np.ones((9, 9, 9), dtype=bool)
    for d in range(9):
        here = board == d + 1
        rows, cols = here.any(axis=1), here.any(axis=0)
        blocks = here.reshape(3, 3, 3, 3).any(axis=(1, 3))
        c[:, :, d] = ~(rows[:, None] | cols[None, :] | np.kron(blocks, np.ones((3, 3), dtype=bool)))
    c[board > 0] = False
    return c


def solve(board):
    while True:
        c = candidates(board)
        counts = c.sum(axis=2)
        empty = board == 0
        if not empty.any():
            return board
        if (counts[empty] == 0).any():
            return None
        single = empty & (counts == 1)
        if not single.any():
            break
        i, j = np.argwhere(single)[0]
        board[i, j] = np.argmax(c[i, j]) + 1
    i, j = np.unravel_index(np.argmin(np.where(empty, counts, 10)), (9, 9))
    for d in np.flatnonzero(c[i, j]):
        trial = board.copy()
        trial[i, j] = d + 1
        found = solve(trial)
        if found is not None:
            return found
    return None


def main(copies):
    out = []
    for _ in range(copies):
        for puzzle in PUZZLES:
            out.append(solve(np.array([int(ch) for ch in puzzle]).reshape(9, 9)))
    return np.array(out)
