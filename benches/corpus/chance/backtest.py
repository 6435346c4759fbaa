"""A strategy of crossing moving averages over many parameters, with an exponential average by a loop.

Source: Y. Hilpisch, "Python for Algorithmic Trading", chapter 4 (vectorized backtesting).
"""

import numpy as np

sizes = {"small": {"days": 500, "shorts": 5, "longs": 5}, "large": {"days": 20_000, "shorts": 14, "longs": 14}}


def sma(x, w):
    c = np.cumsum(np.insert(x, 0, 0))
    return (c[w:] - c[:-w]) / w


def ema(x, span):
    a = 2 / (span + 1)
    out = np.empty_like(x)
    out[0] = x[0]
    for i in range(1, min(len(x), 1500)):
        out[i] = a * x[i] + (1 - a) * out[i - 1]
    return out[: min(len(x), 1500)]


def main(days, shorts, longs):
    rng = np.random.default_rng(20)
    price = 100 * np.exp(np.cumsum(rng.normal(2e-4, 0.01, days)))
    returns = np.diff(np.log(price))
    results = np.zeros((shorts, longs))
    trades = np.zeros((shorts, longs), dtype=int)
    for i in range(shorts):
        for j in range(longs):
            s, lo = 5 + 3 * i, 50 + 10 * j
            fast, slow = sma(price, s)[lo - s :], sma(price, lo)
            position = np.where(fast > slow, 1, -1)
            r = position[:-1] * returns[lo - 1 :]
            turn = np.diff(position) != 0
            trades[i, j] = np.count_nonzero(turn)
            results[i, j] = np.exp(r.sum() - 1e-3 * turn.sum())
    best = np.unravel_index(np.argmax(results), results.shape)
    gain = np.where(returns > 0, returns, 0)
    loss = np.where(returns < 0, -returns, 0)
    rsi = 100 - 100 / (1 + sma(gain, 14) / np.maximum(sma(loss, 14), 1e-12))
    return results, trades, np.array(best), rsi[-50:], ema(price, 20)


tolerance = 1e-8
