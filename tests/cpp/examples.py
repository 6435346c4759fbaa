"""Checks what the example programs print and write against NumPy.

    examples.py EXAMPLE DIRECTORY ARGUMENT...

reads the output of `EXAMPLE ARGUMENT...` from standard input; files that it wrote lie in DIRECTORY.
"""

import math
import os
import sys

import numpy as np


def philox(key, count):
    """`count` doubles in [0, 1) as bh makes them: Philox2x32-10 of the positions."""
    mask = np.uint64(0xFFFFFFFF)
    position = np.arange(count, dtype=np.uint64)
    low, high = position & mask, position >> np.uint64(32)
    k = key & 0xFFFFFFFF
    for _ in range(10):
        product = low * np.uint64(0xD256D193)
        low, high = (product >> np.uint64(32)) ^ np.uint64(k) ^ high, product & mask
        k = (k + 0x9E3779B9) & 0xFFFFFFFF
    return ((high << np.uint64(32) | low) >> np.uint64(11)).astype(float) * 2.0**-53


def uniform(shape, key):
    return philox(key, math.prod(shape)).reshape(shape)


def heat_grid(size, iterations, limit=1e-3):
    grid = np.zeros((size, size))
    grid[:, 0] = grid[:, -1] = grid[-1] = -273.15
    grid[0] = 40.0
    delta = limit + 1
    done = 0
    while done < iterations and delta > limit:
        center = grid[1:-1, 1:-1]
        work = 0.2 * (center + grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, 2:] + grid[1:-1, :-2])
        delta = np.abs(work - center).sum()
        grid[1:-1, 1:-1] = work
        done += 1
    return grid, delta, done


def heat(size, iterations):
    grid, delta, _ = heat_grid(size, iterations)
    return {"delta": delta, "checksum": grid.sum()}


def heat_c(size, iterations, file):
    grid, delta, done = heat_grid(size, iterations)
    field = np.fromfile(os.path.join(DIRECTORY, file)).reshape(size, size)
    # The C program's corners are set in another order.
    assert np.allclose(field[:, 1:-1], grid[:, 1:-1], rtol=1e-12), "the field differs"
    assert np.allclose(field[1:-1], grid[1:-1], rtol=1e-12), "the field differs"
    return {"iterations": done, "delta": round(delta, 6), "size": f"{size} x {size}"}


def black_scholes(count, days):
    price = uniform((count,), 42) * 4.0 + 58.0
    erfc = np.vectorize(math.erfc)
    total = 0.0
    for day in range(1, days + 1):
        years = day / 365.0
        spread = 0.3 * math.sqrt(years)
        d1 = (np.log(price / 65.0) + (0.08 + 0.5 * 0.3 * 0.3) * years) / spread
        d2 = d1 - spread
        normal = lambda x: 0.5 * erfc(-x * math.sqrt(0.5))
        total += np.mean(price * normal(d1) - 65.0 * math.exp(-0.08 * years) * normal(d2))
    return {"checksum": total}


def shallow_water(size, steps):
    gravity, dt, dx = 9.8, 0.02, 1.0
    x = np.linspace(-3, 3, size)
    h = np.ones((size + 2, size + 2))
    h[1:-1, 1:-1] += 0.5 * np.exp(-(x * x + x[:, None] * x[:, None]))
    u, v = np.zeros_like(h), np.zeros_like(h)
    flux = lambda q, a, b: (a, a * a / q + 0.5 * gravity * q * q, a * b / q)
    for _ in range(steps):
        for f in (h, u, v):
            f[0], f[-1] = (-f[1], -f[-2]) if f is u else (f[1], f[-2])
            f[:, 0], f[:, -1] = (-f[:, 1], -f[:, -2]) if f is v else (f[:, 1], f[:, -2])
        fx, fy = flux(h, u, v), flux(h, v, u)
        mid_x = lambda q, f: 0.5 * (q[1:, 1:-1] + q[:-1, 1:-1]) - dt / (2 * dx) * (f[1:, 1:-1] - f[:-1, 1:-1])
        mid_y = lambda q, f: 0.5 * (q[1:-1, 1:] + q[1:-1, :-1]) - dt / (2 * dx) * (f[1:-1, 1:] - f[1:-1, :-1])
        gx = flux(mid_x(h, fx[0]), mid_x(u, fx[1]), mid_x(v, fx[2]))
        gy = flux(mid_y(h, fy[0]), mid_y(v, fy[1]), mid_y(u, fy[2]))
        for q, a, b in ((h, gx[0], gy[0]), (u, gx[1], gy[2]), (v, gx[2], gy[1])):
            q[1:-1, 1:-1] -= dt / dx * (a[1:] - a[:-1] + b[:, 1:] - b[:, :-1])
    water = h[1:-1, 1:-1]
    return {"volume": water.sum(), "checksum": (water * water).sum()}


def nbody(count, steps):
    position = uniform((3, count), 1) * 2.0 - 1.0
    velocity = np.zeros((3, count))
    mass = uniform((count,), 2) + 0.5
    for _ in range(steps):
        distance = position[:, None, :] - position[:, :, None]
        square = (distance * distance).sum(0) + 1e-3
        velocity += 0.01 * (distance * (1e-3 * mass / (square * np.sqrt(square)))).sum(2)
        position += 0.01 * velocity
    return {"checksum": np.abs(position).sum()}


def game_of_life(size, steps, file):
    cells = np.zeros((size + 2, size + 2), np.uint8)
    cells[1:-1, 1:-1] = uniform((size, size), 7) < 1.0 / 3
    for _ in range(steps):
        near = sum(np.roll(cells, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) - cells
        new = (near == 3) | ((near == 2) & (cells == 1))
        cells[1:-1, 1:-1] = new[1:-1, 1:-1]
    with open(os.path.join(DIRECTORY, file), "rb") as picture:
        head = f"P5\n{size} {size}\n255\n".encode()
        assert picture.read(len(head)) == head, "the picture has another head"
        assert picture.read() == (cells[1:-1, 1:-1] * 255).tobytes(), "the picture differs"
    return {"alive": int(cells.sum())}


def lu(order):
    a = uniform((order, order), 3) + np.eye(order) * order
    solution = np.linalg.solve(a, np.arange(1.0, order + 1)).sum()
    for k in range(order - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return {"checksum": np.abs(a).sum(), "solution": solution, "products agree": "yes", "solution fits": "yes"}


def descent(cells, steps):
    x = np.linspace(0, 1, cells)
    start, truth = np.sin(9 * x), 0.2 + 0.1 * np.sin(3 * x[1:])

    def conducted(k):
        states = [start]
        for _ in range(steps):
            flux, u = k * np.diff(states[-1]), states[-1].copy()
            u[1:-1] += np.diff(flux)
            states.append(u)
        return states

    wanted, k = conducted(truth)[-1], np.full(cells - 1, 0.2)
    misfit = lambda states: ((states[-1] - wanted) ** 2).sum()
    first = misfit(conducted(k))
    for _ in range(20):
        states, slope = conducted(k), np.zeros(cells - 1)
        adjoint = 2 * (states[-1] - wanted)
        for u in states[-2::-1]:
            of_flux = np.zeros(cells - 1)
            of_flux[1:] += adjoint[1:-1]
            of_flux[:-1] -= adjoint[1:-1]
            slope += of_flux * np.diff(u)
            adjoint[1:] += k * of_flux
            adjoint[:-1] -= k * of_flux
        k -= 0.5 * misfit(states) / (slope @ slope) * slope
    return {"misfit": first, "misfit at the end": misfit(conducted(k))}


EXAMPLES = {
    "heat.c": heat_c,
    "black_scholes.c": black_scholes,
    "heat.cpp": heat,
    "black_scholes.cpp": black_scholes,
    "shallow_water.cpp": shallow_water,
    "nbody.cpp": nbody,
    "game_of_life.cpp": game_of_life,
    "lu.cpp": lu,
    "descent.cpp": descent,
}

if __name__ == "__main__":
    example, DIRECTORY = sys.argv[1:3]
    arguments = [int(word) if word.isdigit() else word for word in sys.argv[3:]]
    printed = dict(line.split(": ", 1) for line in sys.stdin.read().splitlines() if ": " in line)
    for name, expected in EXAMPLES[example](*arguments).items():
        found = printed.get(name)
        if isinstance(expected, float):
            good = found is not None and math.isclose(float(found), expected, rel_tol=1e-9, abs_tol=1e-12)
        else:
            good = found == str(expected)
        if not good:
            sys.exit(f"{example}: {name} is {found}, but NumPy says {expected!r}")
