"""The basins of Newton's method in the complex plane, points taken out as they settle.

Source: J. Hubbard et al.; SciPython's "The Newton fractal"; J. VanderPlas's NumPy exercises.
"""

import numpy as np

sizes = {"small": {"n": 64}, "large": {"n": 400}}


def main(n, tol=1e-8, limit=60):
    coefficients = np.array([1, 0, 0, -1, 0.5])
    derivative = np.polyder(coefficients)
    roots = np.roots(coefficients)
    roots = roots[np.lexsort((roots.imag, roots.real))]
    y, x = np.ogrid[-1.5 : 1.5 : n * 1j, -1.5 : 1.5 : n * 1j]
    z = (x + 1j * y).ravel() + 1e-3
    left = np.arange(z.size)
    turns = np.zeros(z.size, dtype=int)
    it = 0
    while left.size and it < limit:
        w = z[left]
        step = np.polyval(coefficients, w) / np.polyval(derivative, w)
        z[left] = w - step
        turns[left] = it
        left = left[np.abs(step) > tol]
        it += 1
    basin = np.argmin(np.abs(z[:, None] - roots[None, :]), axis=1).reshape(n, n)
    return np.bincount(basin.ravel(), minlength=4) / n**2, np.sort(np.abs(roots)), np.median(turns)
