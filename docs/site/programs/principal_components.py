"""
Principal components in pieces
==============================

Data that would be large as a whole comes in pieces: only the sums and products of its columns stay, so any amount of rows
fits.
"""

import bh as np
import matplotlib.pyplot as plt


def spectrum(pieces=12, rows=20_000, columns=12):
    mix = np.cos(np.outer(np.arange(columns), np.arange(columns))) / (1 + np.arange(columns))
    total, products = np.zeros(columns), np.zeros((columns, columns))
    for piece in range(pieces):
        place = np.arange(rows * columns).reshape(rows, columns) + piece * rows * columns
        data = ((place * 0.754877666) % 1 + (place * place % 8191) / 8191) @ np.asarray(mix)
        total += data.sum(axis=0)
        products += data.T @ data
    mean = total / (pieces * rows)
    covariance = products / (pieces * rows) - mean[:, None] * mean[None, :]
    return np.linalg.eigvalsh(covariance)[::-1]


# %%
values = spectrum()
plt.bar(range(1, len(values) + 1), values / values.sum())
plt.xlabel("component")
plt.ylabel("part of the variance")
