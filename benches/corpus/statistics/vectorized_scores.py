"""Grades of many pupils by a function with branches under np.vectorize, curves by percentiles, and letters.

Source: NumPy's documentation of vectorize, piecewise, select and digitize; teaching scripts.
"""

import math

import numpy as np

sizes = {"small": {"pupils": 300}, "large": {"pupils": 60_000}}


def tax(income):
    if income < 10_000:
        return 0.0
    if income < 50_000:
        return 0.2 * (income - 10_000)
    return 8_000 + 0.4 * (income - 50_000) + math.log1p(income - 50_000)


def main(pupils):
    rng = np.random.default_rng(66)
    scores = np.clip(rng.normal([60, 70, 65], 15, (pupils, 3)), 0, 100)
    total = scores @ np.array([0.3, 0.3, 0.4])
    rank = total.argsort().argsort()
    percentile = 100.0 * rank / pupils
    letter = np.array(["F", "D", "C", "B", "A"])[np.digitize(percentile, [10, 30, 60, 85])]
    points = np.select([letter == "A", letter == "B", letter == "C", letter == "D"], [4, 3, 2, 1], 0)
    curve = np.piecewise(total, [total < 50, (total >= 50) & (total < 80), total >= 80], [lambda t: 0.8 * t, lambda t: t, lambda t: 80 + 0.5 * (t - 80)])
    income = rng.lognormal(10, 1, pupils // 10)
    taxes = np.vectorize(tax)(income)
    gini = np.abs(income[:500, None] - income[None, :500]).mean() / (2 * income[:500].mean())
    lorenz = np.cumsum(np.sort(income)) / income.sum()
    return points.mean(), letter, curve, taxes, gini, lorenz[:: max(len(lorenz) // 50, 1)]
