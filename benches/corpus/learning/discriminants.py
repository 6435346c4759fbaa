"""Fisher's linear discriminants: scatter within and between classes, two directions, and the class of the nearest mean.

Source: R. A. Fisher (1936); S. Raschka's notes on linear discriminant analysis in NumPy.
"""

import numpy as np

sizes = {"small": {"n": 60}, "large": {"n": 60000}}


def inputs(n):
    rng = np.random.default_rng(9)
    x = np.concatenate([rng.normal(2 * mean, 1, (n, 6)) for mean in range(3)])
    x[n : 2 * n, 0] += 3
    return {"x": x, "y": np.repeat(np.arange(3), n)}


def main(x, y):
    mean = x.mean(axis=0)
    within, between = np.zeros((6, 6)), np.zeros((6, 6))
    for label in np.unique(y):
        rows = x[y == label]
        own = rows.mean(axis=0)
        within += (rows - own).T.dot(rows - own)
        away = (own - mean).reshape(6, 1)
        between += len(rows) * away.dot(away.T)
    values, vectors = np.linalg.eig(np.linalg.inv(within).dot(between))
    order = np.argsort(np.abs(values))[::-1][:2]
    z = x @ vectors[:, order].real
    centres = np.array([z[y == label].mean(axis=0) for label in range(3)])
    found = np.linalg.norm(z[:, None, :] - centres, axis=2).argmin(axis=1)
    table = np.zeros((3, 3), dtype=int)
    np.add.at(table, (y, found), 1)
    return values[order].real, np.abs(centres), table
