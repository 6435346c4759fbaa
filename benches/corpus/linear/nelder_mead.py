"""A simplex of little arrays that creeps to a minimum, started from several points.

Source: J. Nelder, R. Mead (1965); fchollet's and others' plain NumPy versions.
"""

import numpy as np

sizes = {"small": {"starts": 2, "limit": 60}, "large": {"starts": 40, "limit": 300}}


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def minimise(f, x0, limit, step=0.5):
    n = len(x0)
    points = [[x0, f(x0)]]
    for i in range(n):
        x = x0.copy()
        x[i] += step
        points.append([x, f(x)])
    for _ in range(limit):
        points.sort(key=lambda p: p[1])
        if points[-1][1] - points[0][1] < 1e-12:
            break
        center = np.mean([p[0] for p in points[:-1]], axis=0)
        reflected = center + (center - points[-1][0])
        fr = f(reflected)
        if fr < points[0][1]:
            expanded = center + 2 * (center - points[-1][0])
            fe = f(expanded)
            points[-1] = [expanded, fe] if fe < fr else [reflected, fr]
        elif fr < points[-2][1]:
            points[-1] = [reflected, fr]
        else:
            contracted = center + 0.5 * (points[-1][0] - center)
            fc = f(contracted)
            if fc < points[-1][1]:
                points[-1] = [contracted, fc]
            else:
                best = points[0][0]
                points = [points[0]] + [[x, f(x)] for x in (best + 0.5 * (p[0] - best) for p in points[1:])]
    points.sort(key=lambda p: p[1])
    return points[0]


def main(starts, limit):
    rng = np.random.default_rng(30)
    found = [minimise(rosenbrock, rng.uniform(-1, 2, 3), limit) for _ in range(starts)]
    return np.array([x for x, _ in found]), np.array([f for _, f in found])


tolerance = 1e-6
