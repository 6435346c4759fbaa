"""Conway's game of life on an n x n board with a dead border, cells held as 0 and 1 of the floating type."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness


def setup(n, dtype):
    board = (harness.pseudo(n * n, 3, np.float64) < 0.3).astype(dtype).reshape(n, n)
    board[0, :] = board[-1, :] = board[:, 0] = board[:, -1] = 0
    return board


def run(board, iters):
    cells = board[1:-1, 1:-1]
    for _ in range(iters):
        neighbours = (
            board[:-2, :-2] + board[:-2, 1:-1] + board[:-2, 2:]
            + board[1:-1, :-2] + board[1:-1, 2:]
            + board[2:, :-2] + board[2:, 1:-1] + board[2:, 2:]
        )  # fmt: skip
        stay = (neighbours == 2) & (cells == 1)
        cells[:] = stay | (neighbours == 3)
    return lambda: [harness.checksum(board)]


harness.main("game_of_life", setup, run)
