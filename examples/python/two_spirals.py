"""
A network that tells two spirals apart
======================================

A network of two hidden layers in plain NumPy: its parameters are arrays in a dictionary, and so is the gradient by ``np.value_and_grad``.
"""

import sys

import bh as np
import matplotlib.pyplot as plt

POINTS = int(sys.argv[1]) if len(sys.argv) > 1 else 400
ROUNDS = 600

rng = np.random.default_rng(7)
turn = np.sqrt(rng.random(POINTS)) * 2 * np.pi
side = np.arange(POINTS) % 2
radius = turn / (2 * np.pi) * np.where(side == 0, 1.0, -1.0)
points = np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=1) + 0.01 * rng.normal(size=(POINTS, 2))

weights = {
    "first": rng.normal(size=(2, 64)) * 2, "bias": rng.normal(size=64),
    "second": rng.normal(size=(64, 64)) / 8, "shift": np.zeros(64),
    "last": rng.normal(size=64) / 8,
}  # fmt: skip


def score(weights, points):
    hidden = np.tanh(points @ weights["first"] + weights["bias"])
    return np.tanh(hidden @ weights["second"] + weights["shift"]) @ weights["last"]


def loss(weights):
    return np.log1p(np.exp(-score(weights, points) * np.where(side == 0, 1.0, -1.0))).mean()


slope_of = np.value_and_grad(loss)
mean = {name: np.zeros_like(value) for name, value in weights.items()}
square = {name: np.zeros_like(value) for name, value in weights.items()}
for number in range(1, ROUNDS + 1):
    value, slope = slope_of(weights)
    for name in weights:
        mean[name] = 0.9 * mean[name] + 0.1 * slope[name]
        square[name] = 0.99 * square[name] + 0.01 * slope[name] ** 2
        scaled = mean[name] / (1 - 0.9**number) / (np.sqrt(square[name] / (1 - 0.99**number)) + 1e-8)
        weights[name] = weights[name] - 0.01 * scaled
right = float(((score(weights, points) > 0) == (side == 0)).mean())
print(f"the loss is {float(value):.3f}; {100 * right:.1f}% of the points are told apart")
assert right > 0.9

# %%
# Where the network draws the border:

line = np.linspace(-1.1, 1.1, 120)
plane = np.stack([part.ravel() for part in np.meshgrid(line, line)], axis=1)
figure, axes = plt.subplots()
picture = axes.imshow(np.asarray(score(weights, plane).reshape(120, 120)), extent=(-1.1, 1.1, -1.1, 1.1), origin="lower", cmap="RdBu")
axes.scatter(points[:, 0], points[:, 1], c=np.where(side == 0, 1, 0), s=6, cmap="RdBu", edgecolors="black", linewidths=0.3)
axes.set(xlabel="x", ylabel="y")
figure.colorbar(picture, label="score")
