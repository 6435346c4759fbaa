"""
A drum, recorded once
=====================

A step of the wave equation is some operations on small arrays. ``np.jit`` records them at the first call; later calls run without Python's part. The time
step changes from call to call, so it is named in ``traced``.
"""

import sys
import time

import bh as np
import matplotlib.pyplot as plt

SIZE = int(sys.argv[1]) if len(sys.argv) > 1 else 120
STEPS = 400


def step(now, before, time_step):
    """The next state of the drum's skin, whose edge is fixed."""
    after = np.zeros_like(now)
    bend = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:] - 4 * now[1:-1, 1:-1]
    after[1:-1, 1:-1] = 2 * now[1:-1, 1:-1] - before[1:-1, 1:-1] + time_step**2 * bend
    return after


def played(step):
    """The skin some steps after a stroke, and the seconds that they took."""
    line = np.linspace(-1, 1, SIZE)
    now = np.exp(-40 * ((line[:, None] - 0.2) ** 2 + (line + 0.3) ** 2))
    now[0] = now[-1] = now[:, 0] = now[:, -1] = 0
    before = now.copy()
    begin = time.perf_counter()
    for _ in range(STEPS):
        now, before = step(now, before, 0.5), now
    np.wait(now)
    return now, time.perf_counter() - begin


recorded = np.jit(step, traced="time_step")
plain, seconds = played(step)
skin, less = played(recorded)
print(f"{STEPS} steps: {seconds:.3f} s, with np.jit {less:.3f} s; recorded {recorded.traces} times")
# The same bits.
assert np.array_equal(plain, skin)

figure, axes = plt.subplots()
picture = axes.imshow(np.asarray(skin), cmap="RdBu", extent=(-1, 1, -1, 1))
axes.set(xlabel="x", ylabel="y", title="The skin")
figure.colorbar(picture, label="height")
