"""Lines in a picture by Hough's transform, peaks with their surroundings blanked.

Source: R. Duda, P. Hart (1972); A. Rosebrock-like tutorials and computer-vision courses.
"""

import numpy as np

sizes = {"small": {"n": 60, "lines": 3}, "large": {"n": 500, "lines": 8}}


def main(n, lines):
    rng = np.random.default_rng(18)
    image = rng.random((n, n)) < 0.005
    for _ in range(lines):
        angle, offset = rng.uniform(0, np.pi), rng.uniform(0.3, 0.7) * n
        t = np.arange(-n, n)
        r = np.round(offset + t * np.sin(angle)).astype(int)
        c = np.round(n / 2 + t * np.cos(angle)).astype(int)
        inside = (r >= 0) & (r < n) & (c >= 0) & (c < n)
        image[r[inside], c[inside]] = True
    thetas = np.deg2rad(np.arange(-90, 90))
    diagonal = int(np.ceil(np.hypot(n, n)))
    ys, xs = np.nonzero(image)
    rho = np.round(np.outer(xs, np.cos(thetas)) + np.outer(ys, np.sin(thetas))).astype(int) + diagonal
    accumulator = np.zeros((2 * diagonal + 1, len(thetas)), dtype=np.int64)
    np.add.at(accumulator, (rho, np.arange(len(thetas))[None, :]), 1)
    work = accumulator.copy()
    peaks = []
    for _ in range(lines):
        k = np.argmax(work)
        i, j = np.unravel_index(k, work.shape)
        peaks.append((int(i) - diagonal, int(j) - 90, int(work[i, j])))
        work[max(i - 10, 0) : i + 11, max(j - 5, 0) : j + 6] = 0
    return accumulator, np.array(peaks)
