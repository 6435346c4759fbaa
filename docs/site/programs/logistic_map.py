"""
The way into chaos
==================

The logistic map for a hundred thousand parameters at once: its values after many steps, from one point to chaos.
"""

import bh as np
import matplotlib.pyplot as plt


def logistic(parameters=100_000, before=300, kept=60):
    rate = np.linspace(2.8, 3.56, parameters)
    x = np.full(parameters, 0.4)
    for _ in range(before):
        x = rate * x * (1 - x)
    rows = []
    for _ in range(kept):
        x = rate * x * (1 - x)
        rows.append(x)
    return np.stack(rows)


# %%
values = logistic()[:, ::50]
rates = np.linspace(2.8, 3.56, values.shape[1])
plt.plot(rates, values.T, ",", color="tab:orange")
plt.xlabel("parameter")
plt.ylabel("values of the map")
