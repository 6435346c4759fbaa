"""
Statistics of a file that is larger than memory
===============================================

A graph of tasks goes through a file piece by piece: while bh computes one piece, it reads the next one. The summaries of the
pieces are joined at the end.
"""

import os
import sys
import tempfile

import bh as np
import matplotlib.pyplot as plt

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000

folder = tempfile.mkdtemp()
path = os.path.join(folder, "measured.npy")
rng = np.random.default_rng(5)
measured = rng.normal(size=(ROWS, 4)) * np.array([1.0, 2.0, 3.0, 4.0]) + np.arange(4)
np.save(path, measured)


def summary(piece):
    """The number of rows, their mean, and the squares of what differs from it."""
    mean = piece.mean(axis=0)
    return {"rows": len(piece), "mean": mean, "squares": ((piece - mean) ** 2).sum(axis=0)}


def joined(one, other):
    """The summary of two pieces together."""
    rows = one["rows"] + other["rows"]
    apart = other["mean"] - one["mean"]
    return {
        "rows": rows,
        "mean": one["mean"] + apart * (other["rows"] / rows),
        "squares": one["squares"] + other["squares"] + apart**2 * (one["rows"] * other["rows"] / rows),
    }


pieces = []
graph = np.source(path, rows=max(ROWS // 16, 1)) >> np.task(summary) >> np.sink(pieces.append)
graph.run()
total = pieces[0]
for piece in pieces[1:]:
    total = joined(total, piece)
deviation = np.sqrt(total["squares"] / total["rows"])
assert total["rows"] == ROWS and np.allclose(total["mean"], measured.mean(axis=0)) and np.allclose(deviation, measured.std(axis=0))
print(f"{len(pieces)} pieces; means {np.round(total['mean'], 2)}, deviations {np.round(deviation, 2)}")

figure, axes = plt.subplots()
axes.bar(np.arange(4), total["mean"], yerr=deviation)
axes.set(xlabel="column", ylabel="mean and deviation")
