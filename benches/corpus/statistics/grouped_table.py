"""A table of sales as arrays: groups by keys, joins, running totals, a pivot, and the best of each group.

Source: NumPy answers to the questions of "100 NumPy exercises" (N. P. Rougier) and pandas' groupby tutorials.
"""

import numpy as np

sizes = {"small": {"rows": 1000, "shops": 12}, "large": {"rows": 400_000, "shops": 300}}


def main(rows, shops):
    rng = np.random.default_rng(55)
    shop = rng.integers(0, shops, rows)
    month = rng.integers(0, 12, rows)
    price = np.round(rng.gamma(2.0, 10.0, rows), 2)
    region_of = rng.integers(0, 5, shops)
    total = np.bincount(shop, weights=price, minlength=shops)
    count = np.bincount(shop, minlength=shops)
    average = total / np.maximum(count, 1)
    pivot = np.zeros((shops, 12))
    np.add.at(pivot, (shop, month), price)
    region = region_of[shop]
    keys, inverse, sizes_ = np.unique(region * 12 + month, return_inverse=True, return_counts=True)
    sums = np.zeros(len(keys))
    np.add.at(sums, inverse, price)
    order = np.lexsort((-price, shop))
    first = np.flatnonzero(np.r_[True, np.diff(shop[order]) != 0])
    best = price[order][first]
    medians = np.array([np.median(part) for part in np.split(price[order], first[1:])])
    running = np.cumsum(price)
    reset = running - np.repeat(running[first] - price[first], np.diff(np.r_[first, rows]))
    highest = np.full(shops, -np.inf)
    np.maximum.at(highest, shop, price)
    outliers = np.abs(price - average[shop]) > 3 * price.std()
    return total, pivot, keys, sums, best, medians, reset[-5:], highest, outliers.sum(), np.isin(shop, np.argsort(-total)[:3]).mean()
