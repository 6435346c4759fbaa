"""A recurrent network that learns characters: forward and backward through 25 steps, clipped gradients, Adagrad.

Source: A. Karpathy, "Minimal character-level Vanilla RNN model" (min-char-rnn.py, 2015).
"""

import numpy as np

sizes = {"small": {"hidden": 32, "updates": 4}, "large": {"hidden": 100, "updates": 60}}

TEXT = "the quick brown fox jumps over the lazy dog while seven wizards mix a potion in the dark. " * 40


def main(hidden, updates, seq_length=25, learning_rate=1e-2):
    chars = sorted(set(TEXT))
    vocab_size = len(chars)
    char_to_ix = {ch: i for i, ch in enumerate(chars)}
    rng = np.random.RandomState(0)
    Wxh = rng.randn(hidden, vocab_size) * 0.01
    Whh = rng.randn(hidden, hidden) * 0.01
    Why = rng.randn(vocab_size, hidden) * 0.01
    bh = np.zeros((hidden, 1))
    by = np.zeros((vocab_size, 1))
    memory = [np.zeros_like(p) for p in (Wxh, Whh, Why, bh, by)]
    hprev, p, losses = np.zeros((hidden, 1)), 0, []
    for _ in range(updates):
        inputs = [char_to_ix[ch] for ch in TEXT[p : p + seq_length]]
        targets = [char_to_ix[ch] for ch in TEXT[p + 1 : p + seq_length + 1]]
        xs, hs, ys, ps = {}, {-1: np.copy(hprev)}, {}, {}
        loss = 0
        for t in range(len(inputs)):
            xs[t] = np.zeros((vocab_size, 1))
            xs[t][inputs[t]] = 1
            hs[t] = np.tanh(np.dot(Wxh, xs[t]) + np.dot(Whh, hs[t - 1]) + bh)
            ys[t] = np.dot(Why, hs[t]) + by
            ps[t] = np.exp(ys[t]) / np.sum(np.exp(ys[t]))
            loss += -np.log(ps[t][targets[t], 0])
        dWxh, dWhh, dWhy = np.zeros_like(Wxh), np.zeros_like(Whh), np.zeros_like(Why)
        dbh, dby = np.zeros_like(bh), np.zeros_like(by)
        dhnext = np.zeros_like(hs[0])
        for t in reversed(range(len(inputs))):
            dy = np.copy(ps[t])
            dy[targets[t]] -= 1
            dWhy += np.dot(dy, hs[t].T)
            dby += dy
            dh = np.dot(Why.T, dy) + dhnext
            dhraw = (1 - hs[t] * hs[t]) * dh
            dbh += dhraw
            dWxh += np.dot(dhraw, xs[t].T)
            dWhh += np.dot(dhraw, hs[t - 1].T)
            dhnext = np.dot(Whh.T, dhraw)
        for param, dparam, mem in zip([Wxh, Whh, Why, bh, by], [dWxh, dWhh, dWhy, dbh, dby], memory):
            np.clip(dparam, -5, 5, out=dparam)
            mem += dparam * dparam
            param += -learning_rate * dparam / np.sqrt(mem + 1e-2)
        hprev = hs[len(inputs) - 1]
        losses.append(loss)
        p += seq_length
    return losses, Wxh, Why


# Adagrad divides by roots of tiny sums, which enlarges rounding.
tolerance = 1e-5
