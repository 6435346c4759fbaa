"""The papers' programs in PyTorch on the processor, each step through `torch.compile`."""

import math

import numpy as np
import torch

compiled = torch.compile(dynamic=False)


def tensors(state):
    return [torch.from_numpy(np.ascontiguousarray(array)) for array in state]


@compiled
def heat_step(g):
    center = g[1:-1, 1:-1]
    work = 0.2 * (center + g[:-2, 1:-1] + g[2:, 1:-1] + g[1:-1, :-2] + g[1:-1, 2:])
    delta = torch.sum(torch.abs(work - center))
    g[1:-1, 1:-1] = work
    return delta


def heat_equation(grid, iters):
    (grid,) = tensors([grid])
    for _ in range(iters):
        delta = heat_step(grid)
    return [grid.numpy(), float(delta)]


def normal(x):
    size = torch.abs(x)
    k = 1 / (1 + 0.2316419 * size)
    series = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = 0.3989422804014327 * torch.exp(-0.5 * size * size) * series
    return torch.where(x < 0, tail, 1 - tail)


@compiled
def price_sum(spot, years, discount):
    strike, rate, volatility = 65.0, 0.08, 0.3
    spread = volatility * torch.sqrt(years)
    d1 = (torch.log(spot / strike) + (rate + volatility**2 / 2) * years) / spread
    return torch.sum(spot * normal(d1) - discount * normal(d1 - spread))


def black_scholes(spot, iters):
    (spot,), total = tensors([spot]), 0.0
    for step in range(iters):
        years = 0.25 - step * (0.25 / 365)
        discount = torch.tensor(65.0 * math.exp(-0.08 * years), dtype=spot.dtype)
        total += float(price_sum(spot, torch.tensor(years, dtype=spot.dtype), discount)) / spot.numel()
    return [total]


DT, G = 0.02, 9.8


def momentum(flow, height):
    return flow**2 / height + G / 2 * height**2


@compiled
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
    h[inside] -= DT * (ux[1:] - ux[:-1]) + DT * (vy[:, 1:] - vy[:, :-1])
    fx, fy = momentum(ux, hx), uy * vy / hy
    u[inside] -= DT * (fx[1:] - fx[:-1]) + DT * (fy[:, 1:] - fy[:, :-1])
    fx, fy = ux * vx / hx, momentum(vy, hy)
    v[inside] -= DT * (fx[1:] - fx[:-1]) + DT * (fy[:, 1:] - fy[:, :-1])
    for grid, sign_rows, sign_columns in ((h, 1, 1), (u, -1, 1), (v, 1, -1)):
        grid[0, 1:-1] = sign_rows * grid[1, 1:-1]
        grid[-1, 1:-1] = sign_rows * grid[-2, 1:-1]
        grid[1:-1, 0] = sign_columns * grid[1:-1, 1]
        grid[1:-1, -1] = sign_columns * grid[1:-1, -2]


def shallow_water(state, iters):
    state = tensors(state)
    for _ in range(iters):
        shallow_water_step(*state)
    return [grid.numpy() for grid in state]


@compiled
def nbody_step(mass, x, y, z, u, v, w):
    differences = [p[None, :] - p[:, None] for p in (x, y, z)]
    square = sum(d * d for d in differences) + 0.01
    pull = mass[None, :] / (square * torch.sqrt(square))
    for velocity, d in zip((u, v, w), differences):
        velocity += 0.0001 * torch.sum(pull * d, dim=1)
    for position, velocity in zip((x, y, z), (u, v, w)):
        position += 0.0001 * velocity


def nbody(state, iters):
    mass, position, velocity = state
    (mass,), position, velocity = tensors([mass]), tensors(position), tensors(velocity)
    for _ in range(iters):
        nbody_step(mass, *position, *velocity)
    return [tuple(x.numpy() for x in position), tuple(v.numpy() for v in velocity)]


@compiled
def leibnitz_sum(n: int):
    k = 4 * torch.arange(n, dtype=torch.float64)
    return 4 * torch.sum(1 / (k + 1) - 1 / (k + 3))


def leibnitz_pi(state, iters):
    for _ in range(iters):
        pi = float(leibnitz_sum(state[0]))
    return [pi]


@compiled
def rosenbrock_sum(x):
    return torch.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def rosenbrock(x, iters):
    (x,) = tensors([x])
    for _ in range(iters):
        value = float(rosenbrock_sum(x))
    return [value]


@compiled
def stencil_step(grid):
    n = grid.shape[0]
    ends = [slice(d, n - 2 + d) for d in range(3)]
    work = sum(grid[a, b, c] for a in ends for b in ends for c in ends)
    grid[1:-1, 1:-1, 1:-1] = work * (1.0 / 27)


def stencil_27_point(grid, iters):
    (grid,) = tensors([grid])
    for _ in range(iters):
        stencil_step(grid)
    return [grid.numpy()]


@compiled
def life_step(board):
    ends = [slice(d, board.shape[0] - 2 + d) for d in range(3)]
    cells = board[1:-1, 1:-1]
    neighbours = sum(board[a, b] for a in ends for b in ends) - cells
    board[1:-1, 1:-1] = (((neighbours == 2) & (cells == 1)) | (neighbours == 3)).to(board.dtype)


def game_of_life(board, iters):
    (board,) = tensors([board])
    for _ in range(iters):
        life_step(board)
    return [board.numpy()]


def gauss(start, iters):
    # Every step has other shapes, for each of which `torch.compile` would compile anew.
    for _ in range(iters):
        (a,) = tensors([start.copy()])
        for c in range(1, a.shape[0]):
            a[c:, c - 1 :] -= (a[c:, c - 1] / a[c - 1, c - 1])[:, None] * a[c - 1, c - 1 :]
        a /= torch.diagonal(a)[:, None].clone()
    return [a.numpy()]
