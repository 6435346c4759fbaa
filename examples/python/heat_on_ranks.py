"""
Heat on several ranks
=====================

``BH_STACK=cluster mpirun -n 4 python heat_on_ranks.py`` splits the plate over four processes, without a change to the program. Each rank keeps its own
rows in checkpoints, and a job that was killed goes on from the last one.
"""

import sys
import tempfile

import bh as np
import matplotlib.pyplot as plt

SIZE = int(sys.argv[1]) if len(sys.argv) > 1 else 500
# A job that goes on later names a folder here that lasts.
FOLDER = tempfile.mkdtemp()


def begin():
    """The state of a new job: a plate with one hot edge."""
    plate = np.zeros((SIZE, SIZE))
    plate[0] = 100.0
    return {"plate": plate, "step": 0}


def run(steps):
    """Goes on from the last checkpoint."""
    try:
        state = np.restore(FOLDER)
    except FileNotFoundError:
        state = begin()
    plate, step = state["plate"], state["step"]
    while step < steps:
        plate[1:-1, 1:-1] += 0.2 * (plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:] - 4 * plate[1:-1, 1:-1])
        step += 1
        if step % 50 == 0:
            np.checkpoint(FOLDER, plate=plate, step=step)
    return plate


run(120)
plate = run(200)
assert np.restore(FOLDER)["step"] == 200
print(f"{np.ranks()} ranks; the mean temperature is {plate.mean():.4f}")

# %%
# A function of one's own on each rank's rows, in the rank's process, where arrays are NumPy's:

apart = np.map_blocks(lambda rows: rows - rows.mean(axis=1, keepdims=True), plate)
assert np.allclose(apart, plate - plate.mean(axis=1)[:, None])

figure, axes = plt.subplots()
picture = axes.imshow(np.asarray(plate[: SIZE // 8]), aspect="auto")
axes.set(xlabel="column", ylabel="row", title="The plate near its hot edge")
figure.colorbar(picture, label="temperature")
