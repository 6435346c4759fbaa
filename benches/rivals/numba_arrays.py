"""The papers' programs as NumPy sources write them, compiled by Numba with parallel array expressions."""

import math

import numpy as np
from numba import njit

jit = njit(parallel=True, fastmath=True)


@jit
def heat_equation_steps(grid, iters):
    delta = 0.0
    for _ in range(iters):
        center = grid[1:-1, 1:-1]
        work = 0.2 * (center + grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:])
        delta = np.sum(np.abs(work - center))
        grid[1:-1, 1:-1] = work
    return delta


def heat_equation(grid, iters):
    delta = heat_equation_steps(grid, iters)
    return [grid, delta]


@jit
def price_sum(spot, strike, years, rate, volatility):
    spread = volatility * math.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + volatility**2 / 2) * years) / spread
    d2 = d1 - spread
    s1, s2 = np.abs(d1), np.abs(d2)
    k1, k2 = 1 / (1 + 0.2316419 * s1), 1 / (1 + 0.2316419 * s2)
    p1 = k1 * (0.31938153 + k1 * (-0.356563782 + k1 * (1.781477937 + k1 * (-1.821255978 + k1 * 1.330274429))))
    p2 = k2 * (0.31938153 + k2 * (-0.356563782 + k2 * (1.781477937 + k2 * (-1.821255978 + k2 * 1.330274429))))
    t1, t2 = 0.3989422804014327 * np.exp(-0.5 * s1 * s1) * p1, 0.3989422804014327 * np.exp(-0.5 * s2 * s2) * p2
    n1, n2 = np.where(d1 < 0, t1, 1 - t1), np.where(d2 < 0, t2, 1 - t2)
    return np.sum(spot * n1 - strike * math.exp(-rate * years) * n2)


def black_scholes(spot, iters):
    total = 0.0
    for step in range(iters):
        total += price_sum(spot, 65.0, 0.25 - step * (0.25 / 365), 0.08, 0.3) / spot.size
    return [total]


@jit
def nbody_steps(mass, x, y, z, u, v, w, iters):
    for _ in range(iters):
        dx = x.reshape(1, -1) - x.reshape(-1, 1)
        dy = y.reshape(1, -1) - y.reshape(-1, 1)
        dz = z.reshape(1, -1) - z.reshape(-1, 1)
        square = dx * dx + dy * dy + dz * dz + 0.01
        pull = mass.reshape(1, -1) / (square * np.sqrt(square))
        u += 0.0001 * np.sum(pull * dx, axis=1)
        v += 0.0001 * np.sum(pull * dy, axis=1)
        w += 0.0001 * np.sum(pull * dz, axis=1)
        x += 0.0001 * u
        y += 0.0001 * v
        z += 0.0001 * w


def nbody(state, iters):
    mass, position, velocity = state
    nbody_steps(mass, *position, *velocity, iters)
    return [tuple(position), tuple(velocity)]


@jit
def leibnitz_sum(n):
    k = 4 * np.arange(n).astype(np.float64)
    return 4 * np.sum(1 / (k + 1) - 1 / (k + 3))


def leibnitz_pi(state, iters):
    for _ in range(iters):
        pi = leibnitz_sum(state[0])
    return [pi]


@jit
def rosenbrock_sum(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def rosenbrock(x, iters):
    for _ in range(iters):
        value = rosenbrock_sum(x)
    return [value]


@jit
def stencil_steps(g, iters):
    for _ in range(iters):
        work = (
            g[:-2, :-2, :-2] + g[:-2, :-2, 1:-1] + g[:-2, :-2, 2:] + g[:-2, 1:-1, :-2] + g[:-2, 1:-1, 1:-1]
            + g[:-2, 1:-1, 2:] + g[:-2, 2:, :-2] + g[:-2, 2:, 1:-1] + g[:-2, 2:, 2:] + g[1:-1, :-2, :-2]
            + g[1:-1, :-2, 1:-1] + g[1:-1, :-2, 2:] + g[1:-1, 1:-1, :-2] + g[1:-1, 1:-1, 1:-1] + g[1:-1, 1:-1, 2:]
            + g[1:-1, 2:, :-2] + g[1:-1, 2:, 1:-1] + g[1:-1, 2:, 2:] + g[2:, :-2, :-2] + g[2:, :-2, 1:-1]
            + g[2:, :-2, 2:] + g[2:, 1:-1, :-2] + g[2:, 1:-1, 1:-1] + g[2:, 1:-1, 2:] + g[2:, 2:, :-2]
            + g[2:, 2:, 1:-1] + g[2:, 2:, 2:]
        )  # fmt: skip
        g[1:-1, 1:-1, 1:-1] = work * (1.0 / 27)


def stencil_27_point(grid, iters):
    stencil_steps(grid, iters)
    return [grid]


@jit
def life_steps(board, iters):
    for _ in range(iters):
        cells = board[1:-1, 1:-1]
        neighbours = (
            board[:-2, :-2] + board[:-2, 1:-1] + board[:-2, 2:] + board[1:-1, :-2] + board[1:-1, 2:]
            + board[2:, :-2] + board[2:, 1:-1] + board[2:, 2:]
        )  # fmt: skip
        stay = (neighbours == 2) & (cells == 1)
        board[1:-1, 1:-1] = (stay | (neighbours == 3)).astype(np.float64)


def game_of_life(board, iters):
    life_steps(board, iters)
    return [board]


# In parallel, Numba reads factors after the loop that it fuses them with has changed what they come from.
@njit(fastmath=True)
def eliminate(a):
    for c in range(1, a.shape[0]):
        factors = a[c:, c - 1] / a[c - 1, c - 1]
        a[c:, c - 1 :] -= factors.reshape(-1, 1) * a[c - 1, c - 1 :]
    pivots = np.diag(a).copy()
    a /= pivots.reshape(-1, 1)


def gauss(start, iters):
    for _ in range(iters):
        a = start.copy()
        eliminate(a)
    return [a]
