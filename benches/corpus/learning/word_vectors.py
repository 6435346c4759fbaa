"""Word vectors by skip-grams with negative samples, gradients scattered with np.add.at.

Source: T. Mikolov et al. (2013); Stanford CS224n, assignment 2.
"""

import numpy as np

sizes = {"small": {"vocab": 200, "dim": 16, "batches": 6, "batch": 64}, "large": {"vocab": 5000, "dim": 64, "batches": 30, "batch": 512}}


def main(vocab, dim, batches, batch, negatives=5, rate=0.5):
    rng = np.random.default_rng(77)
    text = np.minimum(rng.zipf(1.4, size=200_000 if vocab > 1000 else 5000) - 1, vocab - 1)
    counts = np.bincount(text, minlength=vocab) + 1
    p = counts**0.75
    cdf = np.cumsum(p / p.sum())
    V = (rng.random((vocab, dim)) - 0.5) / dim
    U = np.zeros((vocab, dim))
    losses = []
    for _ in range(batches):
        place = rng.integers(2, len(text) - 2, size=batch)
        offset = rng.choice([-2, -1, 1, 2], size=batch)
        center, context = text[place], text[place + offset]
        noise = np.searchsorted(cdf, rng.random((batch, negatives))).clip(max=vocab - 1)
        words = np.concatenate([context[:, None], noise], axis=1)
        target = np.zeros(words.shape)
        target[:, 0] = 1
        v = V[center]
        u = U[words]
        score = 1 / (1 + np.exp(-np.einsum("bkd,bd->bk", u, v)))
        losses.append(-np.mean(np.log(np.where(target == 1, score, 1 - score) + 1e-12)))
        grad = (score - target) / batch
        np.add.at(V, center, -rate * np.einsum("bk,bkd->bd", grad, u))
        np.add.at(U, words, -rate * grad[:, :, None] * v[:, None, :])
    norms = np.linalg.norm(V, axis=1, keepdims=True)
    similar = (V / norms) @ (V[:5] / norms[:5]).T
    return losses, V, similar


tolerance = 1e-7
