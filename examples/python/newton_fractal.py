"""
Newton's fractal, by a function of one number
=============================================

``np.vectorize`` reads a function with a loop and a branch, and runs it for every element at once. The loop of each point ends when the point has found
its root.
"""

import sys

import bh as np
import matplotlib.pyplot as plt

SIZE = int(sys.argv[1]) if len(sys.argv) > 1 else 400


@np.vectorize
def steps_to_a_root(x, y):
    """How many steps Newton's method for z³ = 1 takes from x + iy."""
    count = 0
    while count < 40:
        square, mixed = x * x - y * y, 2 * x * y
        size = (square * square + mixed * mixed) * 3
        if size < 1e-12:
            return 40
        real, imaginary = x * square - y * mixed - 1, x * mixed + y * square
        if real * real + imaginary * imaginary < 1e-12:
            return count
        x, y = x - (real * square + imaginary * mixed) / size, y - (imaginary * square - real * mixed) / size
        count += 1
    return count


line = np.linspace(-1.5, 1.5, SIZE)
steps = steps_to_a_root(line[None, :], line[:, None])
# The plane is symmetric about the real axis.
assert (steps == steps[::-1]).mean() > 0.99
print(f"{steps.size} points; they take {steps.mean():.2f} steps in the mean, and {int(steps.max())} at most")

figure, axes = plt.subplots()
picture = axes.imshow(np.asarray(steps), extent=(-1.5, 1.5, -1.5, 1.5), cmap="magma")
axes.set(xlabel="real part", ylabel="imaginary part")
figure.colorbar(picture, label="steps")
