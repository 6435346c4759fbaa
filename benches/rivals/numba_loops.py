"""The papers' programs as hand-written loops for Numba, parallel where they can be."""

import math

import numpy as np
from numba import njit, prange

jit = njit(parallel=True, fastmath=True)


@jit
def heat_step(grid, work):
    rows, columns = grid.shape
    delta = 0.0
    for i in prange(1, rows - 1):
        for j in range(1, columns - 1):
            new = 0.2 * (grid[i, j] + grid[i - 1, j] + grid[i + 1, j] + grid[i, j - 1] + grid[i, j + 1])
            delta += abs(new - grid[i, j])
            work[i, j] = new
    return delta


def heat_equation(grid, iters):
    work = grid.copy()
    for _ in range(iters):
        delta = heat_step(grid, work)
        grid, work = work, grid
    return [grid, delta]


@njit(fastmath=True, inline="always")
def normal(x):
    size = abs(x)
    k = 1 / (1 + 0.2316419 * size)
    series = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = 0.3989422804014327 * math.exp(-0.5 * size * size) * series
    return tail if x < 0 else 1 - tail


@jit
def black_scholes_sum(spot, strike, years, rate, volatility):
    spread = volatility * math.sqrt(years)
    discount = strike * math.exp(-rate * years)
    total = 0.0
    for i in prange(spot.size):
        d1 = (math.log(spot[i] / strike) + (rate + volatility**2 / 2) * years) / spread
        total += spot[i] * normal(d1) - discount * normal(d1 - spread)
    return total


def black_scholes(spot, iters):
    total = 0.0
    for step in range(iters):
        total += black_scholes_sum(spot, 65.0, 0.25 - step * (0.25 / 365), 0.08, 0.3) / spot.size
    return [total]


DT, G = 0.02, 9.8


@njit(fastmath=True, inline="always")
def momentum(flow, height):
    return flow * flow / height + G / 2 * height * height


@jit
def shallow_water_step(h, u, v, hn, un, vn, hx, ux, vx, hy, uy, vy):
    n, m = h.shape
    for i in prange(n - 1):
        for j in range(1, m - 1):
            a, b = h[i + 1, j], h[i, j]
            hx[i, j] = (a + b) / 2 - DT / 2 * (u[i + 1, j] - u[i, j])
            ux[i, j] = (u[i + 1, j] + u[i, j]) / 2 - DT / 2 * (momentum(u[i + 1, j], a) - momentum(u[i, j], b))
            vx[i, j] = (v[i + 1, j] + v[i, j]) / 2 - DT / 2 * (u[i + 1, j] * v[i + 1, j] / a - u[i, j] * v[i, j] / b)
    for i in prange(1, n - 1):
        for j in range(m - 1):
            a, b = h[i, j + 1], h[i, j]
            hy[i, j] = (a + b) / 2 - DT / 2 * (v[i, j + 1] - v[i, j])
            uy[i, j] = (u[i, j + 1] + u[i, j]) / 2 - DT / 2 * (u[i, j + 1] * v[i, j + 1] / a - u[i, j] * v[i, j] / b)
            vy[i, j] = (v[i, j + 1] + v[i, j]) / 2 - DT / 2 * (momentum(v[i, j + 1], a) - momentum(v[i, j], b))
    for i in prange(1, n - 1):
        for j in range(1, m - 1):
            hn[i, j] = h[i, j] - DT * (ux[i, j] - ux[i - 1, j]) - DT * (vy[i, j] - vy[i, j - 1])
            rows = momentum(ux[i, j], hx[i, j]) - momentum(ux[i - 1, j], hx[i - 1, j])
            columns = uy[i, j] * vy[i, j] / hy[i, j] - uy[i, j - 1] * vy[i, j - 1] / hy[i, j - 1]
            un[i, j] = u[i, j] - DT * rows - DT * columns
            rows = ux[i, j] * vx[i, j] / hx[i, j] - ux[i - 1, j] * vx[i - 1, j] / hx[i - 1, j]
            columns = momentum(vy[i, j], hy[i, j]) - momentum(vy[i, j - 1], hy[i, j - 1])
            vn[i, j] = v[i, j] - DT * rows - DT * columns
    for j in prange(1, m - 1):
        hn[0, j], hn[n - 1, j] = hn[1, j], hn[n - 2, j]
        un[0, j], un[n - 1, j] = -un[1, j], -un[n - 2, j]
        vn[0, j], vn[n - 1, j] = vn[1, j], vn[n - 2, j]
    for i in prange(1, n - 1):
        hn[i, 0], hn[i, m - 1] = hn[i, 1], hn[i, m - 2]
        un[i, 0], un[i, m - 1] = un[i, 1], un[i, m - 2]
        vn[i, 0], vn[i, m - 1] = -vn[i, 1], -vn[i, m - 2]


def shallow_water(state, iters):
    now, then = list(state), [grid.copy() for grid in state]
    faces = [np.empty_like(state[0]) for _ in range(6)]
    for _ in range(iters):
        shallow_water_step(*now, *then, *faces)
        now, then = then, now
    return now


@jit
def nbody_step(mass, x, y, z, u, v, w, dt, softening):
    n = mass.size
    for i in prange(n):
        fx = fy = fz = 0.0
        for j in range(n):
            dx, dy, dz = x[j] - x[i], y[j] - y[i], z[j] - z[i]
            square = dx * dx + dy * dy + dz * dz + softening
            pull = mass[j] / (square * math.sqrt(square))
            fx += pull * dx
            fy += pull * dy
            fz += pull * dz
        u[i] += dt * fx
        v[i] += dt * fy
        w[i] += dt * fz
    for i in prange(n):
        x[i] += dt * u[i]
        y[i] += dt * v[i]
        z[i] += dt * w[i]


def nbody(state, iters):
    mass, position, velocity = state
    for _ in range(iters):
        nbody_step(mass, *position, *velocity, 0.0001, 0.01)
    return [tuple(position), tuple(velocity)]


@jit
def leibnitz_sum(n):
    total = 0.0
    for i in prange(n):
        total += 1 / (4.0 * i + 1) - 1 / (4.0 * i + 3)
    return 4 * total


def leibnitz_pi(state, iters):
    for _ in range(iters):
        pi = leibnitz_sum(state[0])
    return [pi]


@jit
def rosenbrock_sum(x):
    total = 0.0
    for i in prange(x.size - 1):
        total += 100 * (x[i + 1] - x[i] * x[i]) ** 2 + (1 - x[i]) ** 2
    return total


def rosenbrock(x, iters):
    for _ in range(iters):
        value = rosenbrock_sum(x)
    return [value]


@jit
def stencil_step(grid, work):
    n = grid.shape[0]
    for i in prange(1, n - 1):
        for j in range(1, n - 1):
            for k in range(1, n - 1):
                total = 0.0
                for a in range(-1, 2):
                    for b in range(-1, 2):
                        total += grid[i + a, j + b, k - 1] + grid[i + a, j + b, k] + grid[i + a, j + b, k + 1]
                work[i, j, k] = total * (1.0 / 27)


def stencil_27_point(grid, iters):
    work = grid.copy()
    for _ in range(iters):
        stencil_step(grid, work)
        grid, work = work, grid
    return [grid]


@jit
def life_step(board, work):
    rows, columns = board.shape
    for i in prange(1, rows - 1):
        for j in range(1, columns - 1):
            neighbours = (
                board[i - 1, j - 1] + board[i - 1, j] + board[i - 1, j + 1] + board[i, j - 1] + board[i, j + 1]
                + board[i + 1, j - 1] + board[i + 1, j] + board[i + 1, j + 1]
            )  # fmt: skip
            work[i, j] = 1.0 if neighbours == 3 or (neighbours == 2 and board[i, j] == 1) else 0.0


def game_of_life(board, iters):
    work = board.copy()
    for _ in range(iters):
        life_step(board, work)
        board, work = work, board
    return [board]


@jit
def eliminate(a):
    n = a.shape[0]
    for c in range(1, n):
        for i in prange(c, n):
            factor = a[i, c - 1] / a[c - 1, c - 1]
            for j in range(c - 1, n):
                a[i, j] -= factor * a[c - 1, j]
    for i in prange(n):
        pivot = a[i, i]
        for j in range(n):
            a[i, j] /= pivot


def gauss(start, iters):
    for _ in range(iters):
        a = start.copy()
        eliminate(a)
    return [a]
