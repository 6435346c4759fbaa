"""The papers' programs with their array expressions in numexpr."""

import itertools
import math

import numexpr as ne
import numpy as np


def heat_equation(grid, iters):
    c, n, s = grid[1:-1, 1:-1], grid[:-2, 1:-1], grid[2:, 1:-1]
    w, e = grid[1:-1, :-2], grid[1:-1, 2:]
    for _ in range(iters):
        work = ne.evaluate("0.2 * (c + n + s + w + e)")
        delta = ne.evaluate("sum(abs(work - c))")
        c[:] = work
    return [grid, float(delta)]


def black_scholes(spot, iters):
    total = 0.0
    for step in range(iters):
        years, rate, volatility, strike = 0.25 - step * (0.25 / 365), 0.08, 0.3, 65.0
        spread = volatility * math.sqrt(years)
        drift, discount = (rate + volatility**2 / 2) * years, strike * math.exp(-rate * years)
        d1 = ne.evaluate("(log(spot / strike) + drift) / spread")
        d2 = ne.evaluate("d1 - spread")
        both = []
        for d in (d1, d2):
            k = ne.evaluate("1 / (1 + 0.2316419 * abs(d))")
            tail = ne.evaluate(
                "0.3989422804014327 * exp(-0.5 * d * d) * k * (0.31938153 + k * (-0.356563782 + k * (1.781477937"
                " + k * (-1.821255978 + k * 1.330274429))))"
            )
            both.append(ne.evaluate("where(d < 0, tail, 1 - tail)"))
        n1, n2 = both
        total += float(ne.evaluate("sum(spot * n1 - discount * n2)")) / spot.size
    return [total]


def nbody(state, iters):
    mass, position, velocity = state
    m = mass[None, :]
    for _ in range(iters):
        (x0, x1), (y0, y1), (z0, z1) = ((x[None, :], x[:, None]) for x in position)
        pull = ne.evaluate(
            "m / (((x0 - x1)**2 + (y0 - y1)**2 + (z0 - z1)**2 + 0.01)"
            " * sqrt((x0 - x1)**2 + (y0 - y1)**2 + (z0 - z1)**2 + 0.01))"
        )
        for v, (a, b) in zip(velocity, ((x0, x1), (y0, y1), (z0, z1))):
            v += 0.0001 * ne.evaluate("sum(pull * (a - b), axis=1)")
        for x, v in zip(position, velocity):
            x += 0.0001 * v
    return [tuple(position), tuple(velocity)]


def leibnitz_pi(state, iters):
    for _ in range(iters):
        k = 4 * np.arange(state[0], dtype=state[1])
        pi = 4 * float(ne.evaluate("sum(1 / (k + 1) - 1 / (k + 3))"))
    return [pi]


def rosenbrock(x, iters):
    a, b = x[1:], x[:-1]
    for _ in range(iters):
        value = ne.evaluate("sum(100 * (a - b**2)**2 + (1 - b)**2)")
    return [float(value)]


def stencil_27_point(grid, iters):
    n = grid.shape[0]
    shifts = [tuple(slice(d, n - 2 + d) for d in offsets) for offsets in itertools.product(range(3), repeat=3)]
    parts = {f"g{number}": grid[shift] for number, shift in enumerate(shifts)}
    text = f"({' + '.join(parts)}) / 27.0"
    for _ in range(iters):
        grid[1:-1, 1:-1, 1:-1] = ne.evaluate(text, local_dict=parts)
    return [grid]


def game_of_life(board, iters):
    names = "nw n ne_ w e sw s se".split()
    places = [(i, j) for i in range(3) for j in range(3) if (i, j) != (1, 1)]
    rows, columns = board.shape
    parts = {name: board[i : rows - 2 + i, j : columns - 2 + j] for name, (i, j) in zip(names, places)}
    cells = board[1:-1, 1:-1]
    total = " + ".join(names)
    for _ in range(iters):
        neighbours = ne.evaluate(total, local_dict=parts)
        cells[:] = ne.evaluate("where((neighbours == 3) | ((neighbours == 2) & (cells == 1)), 1.0, 0.0)")
    return [board]


def gauss(start, iters):
    for _ in range(iters):
        a = start.copy()
        for c in range(1, a.shape[0]):
            rest, factors, row = a[c:, c - 1 :], a[c:, c - 1 : c] / a[c - 1, c - 1], a[c - 1 : c, c - 1 :]
            ne.evaluate("rest - factors * row", out=rest)
        a /= np.diagonal(a)[:, None].copy()
    return [a]
