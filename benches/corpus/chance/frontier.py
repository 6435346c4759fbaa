"""The efficient frontier of a portfolio, a minimum-variance portfolio without short sales, and its historical losses.

Source: H. Markowitz (1952); D. Luenberger, "Investment Science", chapter 6; Y. Hilpisch, "Python for Finance".
"""

import numpy as np

sizes = {"small": {"assets": 8, "days": 250}, "large": {"assets": 60, "days": 4000}}


def inputs(assets, days):
    rng = np.random.default_rng(15)
    mix = rng.normal(0, 0.01, (assets, assets)) / np.sqrt(assets)
    prices = 100 * np.exp(np.cumsum(rng.standard_normal((days, assets)) @ mix + 2e-4, axis=0))
    return {"prices": prices}


def main(prices):
    returns = np.diff(np.log(prices), axis=0)
    n = returns.shape[1]
    mu = returns.mean(axis=0) * 252
    sigma = np.cov(returns, rowvar=False) * 252
    ones = np.ones(n)
    frontier = []
    for target in np.linspace(mu.min(), mu.max(), 30):
        kkt = np.block([[2 * sigma, mu[:, None], ones[:, None]], [mu[None, :], np.zeros((1, 2))], [ones[None, :], np.zeros((1, 2))]])
        w = np.linalg.solve(kkt, np.concatenate([np.zeros(n), [target, 1]]))[:n]
        frontier.append((np.sqrt(w @ sigma @ w), target))
    w = ones / n
    rate = 1 / np.linalg.norm(sigma, 2)
    for _ in range(200):
        v = w - rate * sigma @ w
        u = np.sort(v)[::-1]
        css = np.cumsum(u) - 1
        rho = np.nonzero(u - css / np.arange(1, n + 1) > 0)[0][-1]
        w = np.maximum(v - css[rho] / (rho + 1), 0)
    pnl = np.sort(returns @ w)
    var = pnl[int(0.05 * len(pnl))]
    value = np.cumprod(1 + returns @ w)
    drawdown = (1 - value / np.maximum.accumulate(value)).max()
    return np.array(frontier), w, var, pnl[pnl <= var].mean(), drawdown


tolerance = 1e-6
