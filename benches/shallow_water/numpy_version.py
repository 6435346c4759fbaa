"""Shallow water equations on an n x n grid with reflecting walls, by the two-step Lax-Wendroff scheme: a drop falls into a
basin. H is the height, U and V the flow along the first and second axis; the grid spacing is 1."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness

DT = 0.02
G = 9.8


def setup(n, dtype):
    y = (np.arange(n) - n // 3)[:, None].astype(np.float64)
    x = (np.arange(n) - n // 2)[None, :].astype(np.float64)
    height = (1 + 0.5 / (1 + 100 * (y * y + x * x) / (n * n))).astype(dtype)
    return height, np.zeros_like(height), np.zeros_like(height)


def momentum(flow, height):
    """Flux of momentum along its own axis."""
    return flow**2 / height + G / 2 * height**2


def run(state, iters):
    h, u, v = state
    for _ in range(iters):
        # Half step at the faces between rows, then between columns.
        rows, r = np.s_[1:, 1:-1], np.s_[:-1, 1:-1]
        hx = (h[rows] + h[r]) / 2 - DT / 2 * (u[rows] - u[r])
        ux = (u[rows] + u[r]) / 2 - DT / 2 * (momentum(u[rows], h[rows]) - momentum(u[r], h[r]))
        vx = (v[rows] + v[r]) / 2 - DT / 2 * (u[rows] * v[rows] / h[rows] - u[r] * v[r] / h[r])
        columns, c = np.s_[1:-1, 1:], np.s_[1:-1, :-1]
        hy = (h[columns] + h[c]) / 2 - DT / 2 * (v[columns] - v[c])
        uy = (u[columns] + u[c]) / 2 - DT / 2 * (u[columns] * v[columns] / h[columns] - u[c] * v[c] / h[c])
        vy = (v[columns] + v[c]) / 2 - DT / 2 * (momentum(v[columns], h[columns]) - momentum(v[c], h[c]))

        # Full step inside.
        inside = np.s_[1:-1, 1:-1]
        h[inside] -= DT * (ux[1:] - ux[:-1]) + DT * (vy[:, 1:] - vy[:, :-1])
        fx, fy = momentum(ux, hx), uy * vy / hy
        u[inside] -= DT * (fx[1:] - fx[:-1]) + DT * (fy[:, 1:] - fy[:, :-1])
        fx, fy = ux * vx / hx, momentum(vy, hy)
        v[inside] -= DT * (fx[1:] - fx[:-1]) + DT * (fy[:, 1:] - fy[:, :-1])

        # Walls.
        for grid, sign_rows, sign_columns in ((h, 1, 1), (u, -1, 1), (v, 1, -1)):
            grid[0, 1:-1] = sign_rows * grid[1, 1:-1]
            grid[-1, 1:-1] = sign_rows * grid[-2, 1:-1]
            grid[1:-1, 0] = sign_columns * grid[1:-1, 1]
            grid[1:-1, -1] = sign_columns * grid[1:-1, -2]
    return lambda: [harness.checksum(grid) for grid in (h, u, v)]


harness.main("shallow_water", setup, run)
