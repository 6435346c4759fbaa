"""The papers' programs in JAX: a jitted function for each step, in 64 bits; on the processor, or where RIVALS_PLATFORM says."""

import functools
import math
import os

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_platforms", os.environ.get("RIVALS_PLATFORM", "cpu"))
jax.config.update("jax_enable_x64", True)


@functools.partial(jax.jit, donate_argnums=0)
def heat_step(g):
    center = g[1:-1, 1:-1]
    work = 0.2 * (center + g[:-2, 1:-1] + g[2:, 1:-1] + g[1:-1, :-2] + g[1:-1, 2:])
    return g.at[1:-1, 1:-1].set(work), jnp.sum(jnp.abs(work - center))


def heat_equation(grid, iters):
    grid = jnp.asarray(grid)
    for _ in range(iters):
        grid, delta = heat_step(grid)
    return [grid, float(delta)]


def normal(x):
    size = jnp.abs(x)
    k = 1 / (1 + 0.2316419 * size)
    series = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = 0.3989422804014327 * jnp.exp(-0.5 * size * size) * series
    return jnp.where(x < 0, tail, 1 - tail)


@jax.jit
def price_sum(spot, years):
    strike, rate, volatility = 65.0, 0.08, 0.3
    spread = volatility * jnp.sqrt(years)
    d1 = (jnp.log(spot / strike) + (rate + volatility**2 / 2) * years) / spread
    return jnp.sum(spot * normal(d1) - strike * jnp.exp(-rate * years) * normal(d1 - spread))


def black_scholes(spot, iters):
    spot, total = jnp.asarray(spot), 0.0
    for step in range(iters):
        total += float(price_sum(spot, 0.25 - step * (0.25 / 365))) / spot.size
    return [total]


DT, G = 0.02, 9.8


def momentum(flow, height):
    return flow**2 / height + G / 2 * height**2


@functools.partial(jax.jit, donate_argnums=(0, 1, 2))
def shallow_water_step(h, u, v):
    rows, r = np.s_[1:, 1:-1], np.s_[:-1, 1:-1]
    hx = (h[rows] + h[r]) / 2 - DT / 2 * (u[rows] - u[r])
    ux = (u[rows] + u[r]) / 2 - DT / 2 * (momentum(u[rows], h[rows]) - momentum(u[r], h[r]))
    vx = (v[rows] + v[r]) / 2 - DT / 2 * (u[rows] * v[rows] / h[rows] - u[r] * v[r] / h[r])
    columns, c = np.s_[1:-1, 1:], np.s_[1:-1, :-1]
    hy = (h[columns] + h[c]) / 2 - DT / 2 * (v[columns] - v[c])
    uy = (u[columns] + u[c]) / 2 - DT / 2 * (u[columns] * v[columns] / h[columns] - u[c] * v[c] / h[c])
    vy = (v[columns] + v[c]) / 2 - DT / 2 * (momentum(v[columns], h[columns]) - momentum(v[c], h[c]))
    inside = np.s_[1:-1, 1:-1]
    h = h.at[inside].add(-DT * (ux[1:] - ux[:-1]) - DT * (vy[:, 1:] - vy[:, :-1]))
    fx, fy = momentum(ux, hx), uy * vy / hy
    u = u.at[inside].add(-DT * (fx[1:] - fx[:-1]) - DT * (fy[:, 1:] - fy[:, :-1]))
    fx, fy = ux * vx / hx, momentum(vy, hy)
    v = v.at[inside].add(-DT * (fx[1:] - fx[:-1]) - DT * (fy[:, 1:] - fy[:, :-1]))
    walled = []
    for grid, sign_rows, sign_columns in ((h, 1, 1), (u, -1, 1), (v, 1, -1)):
        grid = grid.at[0, 1:-1].set(sign_rows * grid[1, 1:-1]).at[-1, 1:-1].set(sign_rows * grid[-2, 1:-1])
        grid = grid.at[1:-1, 0].set(sign_columns * grid[1:-1, 1]).at[1:-1, -1].set(sign_columns * grid[1:-1, -2])
        walled.append(grid)
    return walled


def shallow_water(state, iters):
    state = [jnp.asarray(grid) for grid in state]
    for _ in range(iters):
        state = shallow_water_step(*state)
    return list(state)


@jax.jit
def nbody_step(mass, position, velocity):
    differences = [x[None, :] - x[:, None] for x in position]
    square = sum(d * d for d in differences) + 0.01
    pull = mass[None, :] / (square * jnp.sqrt(square))
    velocity = [v + 0.0001 * jnp.sum(pull * d, axis=1) for v, d in zip(velocity, differences)]
    return [x + 0.0001 * v for x, v in zip(position, velocity)], velocity


def nbody(state, iters):
    mass, position, velocity = state
    for _ in range(iters):
        position, velocity = nbody_step(mass, position, velocity)
    return [tuple(position), tuple(velocity)]


@functools.partial(jax.jit, static_argnums=0)
def leibnitz_sum(n):
    k = 4.0 * jnp.arange(n, dtype=jnp.float64)
    return 4 * jnp.sum(1 / (k + 1) - 1 / (k + 3))


def leibnitz_pi(state, iters):
    for _ in range(iters):
        pi = float(leibnitz_sum(state[0]))
    return [pi]


@jax.jit
def rosenbrock_sum(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def rosenbrock(x, iters):
    x = jnp.asarray(x)
    for _ in range(iters):
        value = float(rosenbrock_sum(x))
    return [value]


@functools.partial(jax.jit, donate_argnums=0)
def stencil_step(grid):
    n = grid.shape[0]
    ends = [slice(d, n - 2 + d) for d in range(3)]
    work = sum(grid[a, b, c] for a in ends for b in ends for c in ends)
    return grid.at[1:-1, 1:-1, 1:-1].set(work * (1.0 / 27))


def stencil_27_point(grid, iters):
    grid = jnp.asarray(grid)
    for _ in range(iters):
        grid = stencil_step(grid)
    return [grid]


@functools.partial(jax.jit, donate_argnums=0)
def life_step(board):
    ends = [slice(d, board.shape[0] - 2 + d) for d in range(3)]
    cells = board[1:-1, 1:-1]
    neighbours = sum(board[a, b] for a in ends for b in ends) - cells
    alive = ((neighbours == 2) & (cells == 1)) | (neighbours == 3)
    return board.at[1:-1, 1:-1].set(alive.astype(board.dtype))


def game_of_life(board, iters):
    board = jnp.asarray(board)
    for _ in range(iters):
        board = life_step(board)
    return [board]


@jax.jit
def eliminate(a):
    n = a.shape[0]
    index = jnp.arange(n)

    def column(c, a):
        factors = jnp.where(index >= c, a[:, c - 1] / a[c - 1, c - 1], 0.0)
        return a - factors[:, None] * jnp.where(index >= c - 1, a[c - 1], 0.0)

    a = jax.lax.fori_loop(1, n, column, a)
    return a / jnp.diagonal(a)[:, None]


def gauss(start, iters):
    for _ in range(iters):
        a = eliminate(jnp.asarray(start))
    return [a]


def finish(results):
    """Waits for what is computed behind the program."""
    jax.block_until_ready(results)
