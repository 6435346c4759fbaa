"""Immediate operations have the bits of recorded ones: folds of one element, and loops over small parts of large arrays."""

import os
import subprocess
import sys

import pytest
from conftest import LIMIT

FOLDS = """
import itertools, numpy, bh as np
for dtype, value, function in itertools.product("?bBiqfdFD", (0.0, -0.0, 1.5, -3.0, numpy.nan, numpy.inf), ("sum", "prod", "min", "max", "any", "all")):
    if dtype in "?bBiq" and not numpy.isfinite(value) or dtype == "B" and value < 0 or dtype in "FD" and function in ("min", "max"):
        continue
    large = np.array(numpy.full((60, 60), value).astype(dtype))
    for one in (large[3:4, 5], large[3:4, 5:6], np.copy(large[7, 7:8])):
        print(dtype, value, function, numpy.asarray(getattr(np, function)(one)).tobytes().hex(), numpy.asarray(np.dot(one.ravel(), one.ravel())).tobytes().hex())
"""
SHAPES = """
import numpy, bh as np
rng = numpy.random.default_rng(3)
SHAPES = [(n,) for n in (0, 31, 4097, 8193, 20000, 32768)]
SHAPES += [(180, 32), (300, 100), (32, 180), (7, 600), (1500, 3), (130, 31), (2, 5000), (5000, 2), (257, 33), (70, 300), (0, 5), (5, 0)]
SHAPES += [(3, 4, 500), (20, 30, 40), (40, 3, 64), (64, 64, 7), (3, 0, 4)]
for shape in SHAPES:
    for dtype in ("f8", "f4", "i4"):
        x = numpy.asarray(rng.random(shape) * 10 - 5, dtype=dtype)
        for layout in (np.array(x), np.array(x, order="F"), np.array(x)[..., ::-1]):
            for axis in [None, *range(len(shape))]:
                for function in (np.sum, np.prod, np.max):
                    if x.size or function is not np.max:
                        print(shape, dtype, axis, function.__name__, numpy.asarray(function(layout, axis=axis)).tobytes().hex())
for a, b, subscripts in (
    ((150, 2), (150, 2), "nj,nj->n"), ((150, 16), (150, 16), "nj,nj->n"), ((150, 17), (150, 17), "nj,nj->n"), ((32, 6, 16), (32, 16), "bkd,bd->bk"),
    ((32, 6), (32, 6, 16), "bk,bkd->bd"), ((9, 500), (9, 500), "ij,ij->j"), ((30, 30), (30, 30), "ij,jk->ik"), ((40, 5, 5), (40, 5, 5), "sij,sjk->sik"),
    ((100, 60), (60,), "ij,j->i"), ((100, 60), (100,), "ij,i->j"), ((5000, 3), (5000, 3), "ij,ij->j"), ((12, 20), (20, 12), "ij,ji->"),
):
    for dtype in ("f8", "f4", "c16", "i8"):
        one, two = (np.array(numpy.asarray(rng.random(shape) * 9 - 4, dtype=dtype)) for shape in (a, b))
        for first in (one, one[::-1]):
            print(subscripts, dtype, numpy.asarray(np.einsum(subscripts, first, two)).tobytes().hex())
"""
PARTS = """
import numpy, bh as np
source = numpy.random.default_rng(3)
A, B = (np.array(source.random((60, 60))) for _ in range(2))
for i in range(60):
    for j in range(0, 60, 7):
        B[i, j] += np.dot(A[i + 1:, i], B[i + 1:, j])
    B[i] -= A[:, i] * 0.25
    if i % 20 == 0:
        A = A * 1.5 + B
    if i % 30 == 7:
        B = B[::-1, ::-1]
print(numpy.asarray(A).tobytes().hex(), numpy.asarray(B).tobytes().hex())
"""

FACTORS = """
import numpy, bh as np
rng = numpy.random.default_rng(7)
CUTS = (slice(None, None, 2), slice(None, None, -2), slice(0, None, 2))

def factor(shape, dtype):
    # A part of an array that is known to NumPy, of one that was computed here, of one that waits, or of one that was written.
    wide = tuple(2 * extent for extent in shape)
    a = np.asarray((rng.standard_normal(wide) * 3 + (1j if dtype in "FD" else 0)).astype(dtype))
    kind = rng.integers(5)
    if kind in (1, 2, 3):
        a = a + np.zeros((), dtype)
    if kind == 1:
        numpy.asarray(a)
    if kind == 2:
        a.max()
    if kind == 4:
        a, b = np.zeros(wide, dtype), a
        a[...] = b
    a = a[tuple(slice(extent) if cut == 3 else CUTS[cut] for extent, cut in zip(shape, rng.integers(0, 4, len(shape))))]
    return a.T if len(set(shape)) == 1 and rng.random() < 0.4 else a

for _ in range(300):
    dtype = "dfDFqB"[rng.integers(6)]
    m, k, n = (int(rng.choice((1, 2, 3, 7, 16, 33, 60))) for _ in range(3))
    left, right = (((k,), (k,)), ((m, k), (k,)), ((k,), (k, n)), ((m, k), (k, n)))[rng.integers(4)]
    a, b = factor(left, dtype), factor(right, dtype)
    for product in (np.dot(a, b), a @ b):
        print(dtype, left, right, numpy.asarray(product).tobytes().hex())
"""

VIEWS = """
import sys, numpy
if "numpy" in sys.argv:
    np = numpy
else:
    import bh as np
source = numpy.random.default_rng(11)
pick = lambda count: int(source.integers(count))
for n in (1, 2, 5, 23) * 6:
    kept = [np.array(source.random((n, n))), np.array(source.random(n)), np.array(source.random((3, n)))]
    for turn in range(60):
        x, y = kept[pick(len(kept))], kept[pick(len(kept))]
        if x.size == 0 or x.ndim == 0 or x.size > 4000:
            x = kept[1]
        made = [
            lambda: x[1:], lambda: x[::-1], lambda: x[:, None] if x.ndim > 1 else x[None], lambda: x.T, lambda: x.reshape(-1),
            lambda: x[pick(len(x))], lambda: x[..., -1], lambda: x[::2] + 1.0, lambda: x + y if x.shape == y.shape else x * 0.5,
            lambda: np.where(x > 0.5, x, 0.25), lambda: x ** 2, lambda: x.copy(), lambda: np.sqrt(np.abs(x)), lambda: -x,
            lambda: x[np.array(numpy.arange(len(x))[::-1].copy())], lambda: np.ravel(x)[np.ravel(x) > 0.4],
            lambda: np.outer(x.reshape(-1)[:9], x.reshape(-1)[:4]), lambda: np.roll(x.reshape(-1), pick(9) - 4),
            lambda: np.concatenate((x, x)), lambda: np.stack((x, x[::-1])), lambda: np.squeeze(x), lambda: np.maximum(x, 0.3),
        ][pick(22)]()
        if 0 < made.ndim < 5:
            kept.append(made)
        change = pick(14)
        if change == 0:
            x += 0.125
        elif change == 1:
            np.multiply(x, 0.5, out=x)
        elif change == 2:
            x[1:] = x[:-1]
        elif change == 3:
            x[0] = 0.75
        elif change == 4:
            x[...] = x[::-1]
        elif change == 5:
            x[x > 0.9] = 0.1
        elif change == 6 and len(x) > 1:
            x[1:] -= x[:-1]
        elif change == 7:
            i, j = pick(len(x)), pick(len(x))
            x[[i, j]] = x[[j, i]]
        elif change == 8:
            i, j = pick(len(x)), pick(len(x))
            x[i], x[j] = x[j], x[i]
        elif change == 9:
            kept_row = np.empty_like(x[0])
            kept_row[...] = x[-1]
            x[-1], x[0] = x[0], kept_row
        elif change == 10:
            x[::2], x[::-2] = x[::-2], x[::2]
        elif change == 11 and x.size > 1:
            flat = x.reshape(-1)
            np.add(flat[1:], flat[:-1], out=flat[:-1])
        elif change == 12:
            np.maximum(x[::-1], x, out=x)
    print(n, [numpy.asarray(value).tobytes().hex() for value in kept])
"""


def test_views_share_memory_as_in_numpy():
    def printed(limit, *arguments):
        environment = dict(os.environ, BH_RECORDER_IMMEDIATE_BYTES=str(limit))
        command = [sys.executable, "-W", "ignore", "-c", VIEWS, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=LIMIT).stdout

    recorded = printed(0)
    assert recorded and printed(8192) == recorded and printed(64) == recorded and printed(1 << 30) == recorded
    assert printed(0, "numpy") == recorded


@pytest.mark.parametrize("limit", (0, 8192))
def test_views_outlive_changes_of_their_arrays_form(limit):
    program = """
import bh as np
a = np.arange(6.0)
part = a[1:5]
rest = part[1:]
a.shape = (2, 3)
rest += 10.0
assert a.tolist() == [[0.0, 1.0, 12.0], [13.0, 14.0, 5.0]], a
a.resize(2, 2, refcheck=False)
part[0] = 7.0
a[0, 0] = 3.0
assert part.tolist() == [7.0, 12.0, 13.0, 14.0] and rest.tolist() == [12.0, 13.0, 14.0], (part, rest)
assert a.tolist() == [[3.0, 1.0], [12.0, 13.0]] and a[1].tolist() == [12.0, 13.0], a
del a
assert (part[::-1] * 2).tolist() == [28.0, 26.0, 24.0, 14.0]
both = np.lib.stride_tricks.as_strided(part, (3, 2), (8, 8))
assert (both[1:] + 0).tolist() == [[12.0, 13.0], [13.0, 14.0]] and both.T[1].tolist() == [12.0, 13.0, 14.0]
z = np.array([1 + 2j, 3 + 4j])
z.imag[1:] = 9.0
assert z.tolist() == [1 + 2j, 3 + 9j] and z.real[::-1].tolist() == [3.0, 1.0]
"""
    environment = dict(os.environ, BH_RECORDER_IMMEDIATE_BYTES=str(limit))
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text", (FOLDS, SHAPES, PARTS, FACTORS))
def test_bits_do_not_depend_on_what_is_carried_out_at_once(text):
    def printed(limit):
        environment = dict(os.environ, BH_RECORDER_IMMEDIATE_BYTES=str(limit))
        return subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True, timeout=LIMIT).stdout

    recorded = printed(0)
    assert recorded and printed(8192) == recorded and printed(1 << 30) == recorded


PRODUCTS = """
import numpy, bh as np
def at_once():
    return dict(line.split()[:2] for line in str(np.profile()).splitlines()).get("immediate", "0")
matrix, vector = np.ones((3, 3)) + 1, np.ones(3)
matrix @ vector
large = np.ones((300, 300))
for turn in range(3):
    # The filter looks for products in what is recorded, and calls the method by a number of its own.
    print(float((large[:, :, None] * large[:4, None].T.reshape(1, 300, 4)).sum(axis=1).sum()) > 0)
    before = int(at_once())
    matrix @ vector
    print(int(at_once()) - before)
"""


def test_products_stay_at_once_when_batches_have_some():
    environment = {**os.environ, "BH_VE_CPU_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", PRODUCTS], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "1"] * 3


def test_single_elements_stay_while_more_and_more_arrays_are_made():
    import numpy

    import bh as np

    kept = []
    x, m = np.array([[2.5]]), np.array([0.75])
    for count in range(3000):
        kept.append((x + x + x * 0.5, np.hypot(m, m), np.roll(x, 1), np.where(x > 1, x, x * 2), x[[0]]))
    for a, b, c, d, e in kept:
        assert (float(a[0, 0]), float(c[0, 0]), float(d[0, 0]), float(e[0, 0])) == (6.25, 2.5, 2.5, 2.5)
        assert abs(float(b[0]) - numpy.hypot(0.75, 0.75)) < 1e-15
