"""Advanced keys that choose few elements of large arrays: no operation is recorded for them, and programs get the bits of recorded ones."""

import os
import subprocess
import sys

import pytest
from conftest import LIMIT

COUNTS = """
import numpy, bh as np
source = numpy.random.default_rng(5)
A, V = np.array(source.random((300, 50))), np.array(source.random(9000))
cube, table = np.array(source.random((40, 9, 50))), np.array(source.integers(0, 9, 20000).astype("u1"))
i, j, few = np.array([3, -1, 7, 3]), np.array([0, 4, -2, 4]), [5, -3]
rows = np.arange(300) % 50 == 3
mask = A > 0.999
values = np.array(source.random((4, 50)))
# All of it is computed once the program has read what came last.
float((A.sum() + V.sum() + cube.sum() + table.sum() + mask.sum()))

def recorded():
    return np._native.Stack().work()[0]

def steps():
    yield A[i]
    yield A[i, j]
    yield A[i[:, None], j]
    yield A[np.ix_(i, j)]
    yield A[:, [3, 7]]
    yield A[few]
    yield A[2, few]
    yield A[few, 1:20:3]
    yield A[rows]
    yield A[::-1][i]
    yield A.T[[1, 2], 5]
    yield A[mask]
    yield V[i]
    yield V[few]
    yield np.take(V, i)
    yield cube[..., i, j]
    yield cube[i, :, j]
    yield cube[:2, [1, 2]]
    yield table[i]
    A[few] = 1.0
    yield A[5]
    A[i, j] = np.array([1.0, 2.0, 3.0, 4.0])
    A[i] = values
    A[:, [3, 7]] = np.array([0.25, 0.5])
    A[np.ix_(i, j)] += 1.0
    A[mask] = 2.0
    A[rows] = 0.5
    V[i] = 3.0
    cube[i, :, 2:4] = 7.0
    np.add.at(V, i, np.array([0.1, 0.2, 0.3, 0.4]))
    np.subtract.at(A, (i, j), values[0, :4])
    np.add.at(A, few, values[:2])

before, made = numpy.array(recorded()), list(steps())
after = numpy.array(recorded())
print("instructions", after - before)
for result in (*made, A, V, cube):
    result = numpy.asarray(result)
    print(result.shape, result.strides, result.tobytes().hex())
"""


def test_nothing_is_recorded_for_few_elements_of_large_arrays():
    def lines(limit):
        environment = dict(os.environ, BH_RECORDER_IMMEDIATE_BYTES=str(limit))
        done = subprocess.run([sys.executable, "-c", COUNTS], env=environment, capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    recorded, at_once = lines(0), lines(8192)
    assert at_once[0] == "instructions 0" and recorded[0] != at_once[0]
    for number, (one, other) in enumerate(zip(recorded[1:], at_once[1:], strict=True)):
        assert one == other, number


RANDOM = """
import sys, numpy
if "numpy" in sys.argv:
    np = numpy
else:
    import bh as np
source = numpy.random.default_rng(int(sys.argv[1]))
pick = lambda count: int(source.integers(count))
shapes = ((1500,), (60, 30), (12, 11, 10), (5, 6, 7, 8))

def part(extent, shape):
    kind = pick(6)
    if kind == 0:
        return slice(None, None, (1, 2, -1)[pick(3)])
    if kind == 1:
        return slice(pick(extent), None)
    if kind == 2:
        return pick(2 * extent) - extent
    if kind == 3:
        return [pick(2 * extent) - extent for _ in range(shape[-1])]
    wide = shape if kind == 4 else shape[-1:]
    kind = "bhilBHI"[pick(7)] if extent < 128 else "q"
    return np.array(source.integers(0 if kind.isupper() else -extent, extent, wide).astype(kind))

def steps(array):
    "What of the strides shows where elements lie."
    return [step for step, extent in zip(array.strides, array.shape) if extent > 1 and array.size]

for turn in range(60):
    shape = shapes[pick(4)]
    x = np.array((source.random(shape) * 100).astype("dfqiBD"[pick(6)]))
    if pick(3) == 0:
        x = x.T
    float(x.sum().real)
    for _ in range(6):
        wide = ((3,), (2, 3), (1, 2), (0,))[pick(8) % 4]
        key = [part(extent, wide) for extent in x.shape[: 1 + pick(x.ndim)]]
        if pick(4) == 0 and len(key) < x.ndim:
            key += [Ellipsis, *(part(extent, wide) for extent in x.shape[len(key) + pick(x.ndim - len(key) + 1) :])]
        elif pick(4) == 0:
            key = [np.array(source.random(x.shape[: 1 + pick(x.ndim)]) > 0.9)]
        key = tuple(key) if len(key) > 1 or pick(2) else key[0]
        taken = x[key]
        print(turn, numpy.shape(taken), steps(numpy.asarray(taken)), numpy.asarray(taken).tobytes().hex())
        kind = pick(5)
        if kind == 0:
            x[key] = 3
        elif kind == 1 and numpy.size(taken):
            x[key] = np.array((source.random(numpy.shape(taken)[pick(2):]) * 9).astype(x.dtype))
        elif kind == 2:
            x[key] += np.array(1).astype(x.dtype)
        elif kind == 3 and numpy.size(taken):
            np.add.at(x, key, np.array((source.random(numpy.shape(taken)) * 9).astype(x.dtype)))
        print(numpy.asarray(x).tobytes().hex() if pick(3) == 0 else float(x.sum().real) if x.dtype.kind in "iuB" else "")
"""


@pytest.mark.parametrize("seed", range(4))
def test_random_keys_choose_what_numpys_do(seed):
    def printed(limit, *arguments):
        environment = dict(os.environ, BH_RECORDER_IMMEDIATE_BYTES=str(limit), BH_FALLBACK="silent")
        command = [sys.executable, "-W", "ignore", "-c", RANDOM, str(seed), *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    expected = printed(0, "numpy")
    for limit in (0, 8192, 1 << 30):
        for number, (one, other) in enumerate(zip(expected, printed(limit), strict=True)):
            assert one == other, (limit, number)
