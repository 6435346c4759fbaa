"""AdaBoost over decision stumps: the best threshold of every feature by sorted cumulative weights.

Source: Y. Freund, R. Schapire (1997); T. Hastie et al., "The Elements of Statistical Learning", section 10.1.
"""

import numpy as np

sizes = {"small": {"n": 200, "d": 6, "rounds": 8}, "large": {"n": 5000, "d": 12, "rounds": 25}}


def inputs(n, d, rounds):
    rng = np.random.default_rng(6)
    X = rng.standard_normal((n, d))
    y = np.where((X**2).sum(axis=1) > d - 0.7, 1, -1)
    return {"X": X, "y": y, "rounds": rounds}


def best_stump(X, y, w):
    best = (np.inf, 0, 0.0, 1)
    for j in range(X.shape[1]):
        order = np.argsort(X[:, j])
        values = X[order, j]
        wrong = np.sum(w[y == 1]) - np.cumsum((w * y)[order])
        for sign, errors in ((1, 1 - wrong), (-1, wrong)):
            i = np.argmin(errors)
            if errors[i] < best[0] - 1e-12:
                best = (errors[i], j, values[i], sign)
    return best


def main(X, y, rounds):
    n = len(y)
    w = np.full(n, 1 / n)
    score = np.zeros(n)
    curve = []
    chosen = []
    for _ in range(rounds):
        error, j, threshold, sign = best_stump(X, y, w)
        alpha = 0.5 * np.log((1 - error) / max(error, 1e-10))
        prediction = np.where(X[:, j] <= threshold, -sign, sign)
        w *= np.exp(-alpha * y * prediction)
        w /= w.sum()
        score += alpha * prediction
        chosen.append(j)
        curve.append(np.mean(np.sign(score) != y))
    return curve, chosen, score
