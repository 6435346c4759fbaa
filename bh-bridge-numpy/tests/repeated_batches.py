"""Programs whose batches repeat on a device: prints a digest of each result, and how many batches ran prepared and as graphs.
`repeated_batches.py COMPONENT` runs on the stack of the environment, whose device is that of the component."""

import hashlib
import json
import sys

import numpy

import bh
from bh import _native


def folds(x):
    for _ in range(4):
        x = x * 0.5 + x.sum() / x.size
    return x


def extremes(x):
    for _ in range(5):
        x = x - x.max() * 0.1
    return x


def running(x):
    for _ in range(3):
        x = bh.cumsum(x) * (1.0 / x.size) + x
    return x


def stencil(x):
    for _ in range(3):
        y = x * 1.0
        y[1:-1] = (x[:-2] + x[2:]) * 0.5 + x.mean() * 0.001
        x = y
    return x


def products(x):
    m = x[:900].reshape(30, 30)
    for _ in range(2):
        m = (m @ m) / (1 + bh.abs(m).max()) + m.sum(0) * 0.01
    return bh.concatenate([m.reshape(-1), x[900:]])


def plain(f, x, turn):
    return f(x)


def constants(f, x, turn):
    return f(x * (1.0 + 1e-3 * turn))


def sizes(f, x, turn):
    most = x.size - 10 * (turn % 2)
    return bh.concatenate([f(x[:most]), x[most:]])


def elsewhere(f, x, turn):
    """Some turns run on another stack, so that arrays come and go."""
    if turn % 4 != 3:
        return f(x)
    with bh.using("cpu"):
        return f(x)


def written(f, x, turn):
    x[turn] = turn
    return f(x)


def result(f, how, jit, n):
    step = bh.jit(f) if jit else f
    x, held = bh.asarray(numpy.cos(numpy.arange(n)) + 1.5), []
    for turn in range(12):
        x = how(step, x, turn)
        # Some results stay for a while, so that the next ones are in other places.
        held = ([*held, x] if turn % 3 else held)[-3:]
        bh.flush()
        if turn == 4:
            _native.Stack().message("finish building")
        if turn % 5 == 4:
            float(x[3])
    digest = hashlib.sha256()
    for array in [x, *held]:
        digest.update(numpy.ascontiguousarray(numpy.asarray(array)).tobytes())
    return digest.hexdigest()[:16]


def main(component):
    found = {}
    for f in (folds, extremes, running, stencil, products):
        for jit in (False, True):
            for how in (plain, elsewhere, written) if jit else (constants, plain):
                found[f"{f.__name__} {how.__name__} {jit}"] = result(f, how, jit, 1000)
    for jit in (False, True):
        found[f"sizes {jit}"] = result(folds, sizes, jit, 1000)
    counters = dict(_native.Stack().counters())
    counts = [counters.get(f"{component}.{name}", 0) for name in ("batches prepared", "graphs")]
    print(json.dumps([found, *counts]))


if __name__ == "__main__":
    main(sys.argv[1])
