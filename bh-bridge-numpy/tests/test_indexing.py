"""Indexing, views and assignment against NumPy."""

import os
import subprocess
import sys

import numpy
import pytest
from hypothesis import given, settings, strategies as st

import bh
from conftest import same

SHAPES = [(7,), (4, 5), (2, 3, 4), (1, 6), (0, 3), ()]


def pair(shape, dtype="float64"):
    a = numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    return bh.asarray(a.copy()), a


@st.composite
def basic_keys(draw, shape):
    parts = []
    for extent in shape[: draw(st.integers(0, len(shape)))]:
        if extent and draw(st.booleans()):
            parts.append(draw(st.integers(-extent, extent - 1)))
        else:
            bound = st.one_of(st.none(), st.integers(-extent - 2, extent + 2))
            step = st.one_of(st.none(), st.integers(-3, 3).filter(bool))
            parts.append(slice(draw(bound), draw(bound), draw(step)))
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), None)
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), Ellipsis)
    return tuple(parts)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_basic_keys(data):
    shape = data.draw(st.sampled_from(SHAPES))
    key = data.draw(basic_keys(shape))
    x, a = pair(shape)
    # An ellipsis that was put in the middle shifts the parts behind it, which may then not fit.
    try:
        expected = a[key]
    except IndexError:
        with pytest.raises(IndexError):
            x[key]
        return
    same(x[key], expected)
    if isinstance(expected, numpy.ndarray):
        a[key] += 100
        x[key] += 100
        same(x, a)
        a[key] = numpy.arange(expected.size, dtype=float).reshape(expected.shape)
        x[key] = bh.arange(expected.size, dtype=float).reshape(expected.shape)
        same(x, a)


@st.composite
def advanced_keys(draw, shape):
    parts, count = [], draw(st.integers(1, 3))
    for extent in shape:
        kind = draw(st.integers(0, 3))
        if kind == 0:
            parts.append(slice(None, None, draw(st.sampled_from([1, -1, 2]))))
        elif kind == 1:
            parts.append(draw(st.integers(-extent, extent - 1)))
        else:
            numbers = st.lists(st.integers(-extent, extent - 1), min_size=count, max_size=count)
            parts.append(numpy.array(draw(numbers)))
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), None)
    if not any(isinstance(part, numpy.ndarray) for part in parts):
        parts[0] = numpy.array([0] * count) if parts[0] is not None else None
    return tuple(parts)


def in_bh(key):
    return tuple(bh.asarray(part) if isinstance(part, numpy.ndarray) else part for part in key)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_advanced_keys(data):
    shape = data.draw(st.sampled_from([(7,), (4, 5), (2, 3, 4)]))
    key = data.draw(advanced_keys(shape))
    x, a = pair(shape)
    expected = a[key]
    same(x[key], expected)
    same(x[in_bh(key)], expected)
    if isinstance(expected, numpy.ndarray):
        value = numpy.arange(expected.size, dtype=float).reshape(expected.shape) + 50
        a[key] = value
        x[in_bh(key)] = bh.asarray(value)
        same(x, a)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_masks(data):
    shape = data.draw(st.sampled_from([(7,), (4, 5), (2, 3, 4)]))
    x, a = pair(shape)
    rank = data.draw(st.integers(1, len(shape)))
    size = int(numpy.prod(shape[:rank]))
    mask = numpy.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool).reshape(shape[:rank])
    same(x[bh.asarray(mask)], a[mask])
    a[mask] = -1
    x[bh.asarray(mask)] = -1
    same(x, a)
    value = numpy.arange(a[mask].size, dtype=float).reshape(a[mask].shape)
    a[mask] = value
    x[bh.asarray(mask)] = bh.asarray(value)
    same(x, a)
    a[mask] *= 2
    x[bh.asarray(mask)] *= 2
    same(x, a)


def test_errors():
    x, a = pair((4, 5))
    for key in (4, (0, 5), (0, 0, 0), [4], ([0], [7]), (Ellipsis, Ellipsis), 1.5, numpy.zeros(3, bool), ([0, 1], [0, 1, 2])):
        with pytest.raises(IndexError):
            a[key]
        with pytest.raises(IndexError):
            x[key]
    with pytest.raises(ValueError, match="could not broadcast"):
        x[0] = bh.zeros(3)
    with pytest.raises(ValueError, match="read-only"):
        bh.broadcast_to(x, (2, 4, 5))[0] = 1
    outside = bh.asarray([0, 9] * 30000)
    with pytest.raises(IndexError, match="test_indexing.py"):
        bh.asarray(numpy.asarray(x[outside]))


def test_views_share_memory():
    x, a = pair((4, 6))
    for change in (lambda v: v[1:3, ::2], lambda v: v.T, lambda v: v.reshape(2, 12), lambda v: v[:, None], lambda v: v[::-1]):
        change(a)[...] += 1
        change(x)[...] += 1
        same(x, a)
    assert x[1:].base is x and x.base is None
    element, expected = x[1, 1], a[1, 1]
    x[1, 1] = 0
    same(element, expected)


def test_overlapping_operands():
    x, a = pair((10,))
    x[1:] += x[:-1]
    a[1:] += a[:-1]
    same(x, a)
    x[:] = x[::-1]
    a[:] = a[::-1].copy()
    same(x, a)


def test_scalars_are_values():
    x = bh.ones(3)
    total = x.sum()
    before = total
    total += 1
    assert float(before) == 3 and float(total) == 4
    assert hash(total) == hash(4.0) and {total: 1}[4.0] == 1
    with pytest.raises(TypeError):
        hash(x)
    with pytest.raises(TypeError, match="item assignment"):
        total[()] = 1
    assert repr(total) == repr(numpy.float64(4)) and str(total) == "4.0" and f"{total:.2f}" == "4.00"
    array = bh.array(3.0)
    array += 1
    same(array, numpy.array(4.0))


def test_flat():
    x, a = pair((3, 4))
    same(bh.asarray(list(map(float, x.flat))), numpy.array(list(a.flat)))
    x.T.flat[1:4] = 0
    a.T.flat[1:4] = 0
    same(x, a)
    x.flat = 7
    assert bool((x == 7).all())


@pytest.mark.parametrize(
    "shape, mask",
    [((1,), (0,)), ((0, 1), (0, 0)), ((2, 1, 3), (2, 0)), ((3, 0), (2, 0)), ((0, 3), (0, 2)), ((0,), (1,)), ((2,), (0,)),
     ((0, 2), (0, 0)), ((3, 2), (3, 0)), ((2, 3, 4), (2, 0)), ((0, 2), (5, 0)), ((3, 2), (5, 7))],
)  # fmt: skip
def test_masks_without_elements_fit_as_in_numpy(shape, mask):
    theirs, mine = numpy.zeros(shape), bh.zeros(shape)
    try:
        expected = theirs[numpy.zeros(mask, bool)].shape
    except IndexError:
        with pytest.raises(IndexError, match="boolean index did not match"):
            mine[bh.zeros(mask, dtype=bool)]
    else:
        assert mine[bh.zeros(mask, dtype=bool)].shape == expected


OUT_OF_BOUNDS = """
a[np.ix_([1, 2], [11, 170])]
a[np.array([1, -1001]), 0]
a[:, np.array([3, 160])]
a[None, :, np.array([3, -161])]
a[np.array([5]), np.array([7]) + 160]
a.reshape(-1)[np.array([160000] * 3000)]
np.take(a, np.array([7, 160] * 3000), axis=1)
np.zeros((3, 0))[np.array([4])]
np.zeros((3, 0))[np.array([4]) + np.array([0])]
np.zeros((3, 0)).__setitem__(np.array([-4]), 1)
a.__setitem__((0, np.array([160])), 1)
a.__setitem__((slice(None), np.array([0, 161])), 1)
a[np.arange(10), np.arange(155, 165)]
""".strip().splitlines()

MODES = {"at once": {}, "recorded": {"BH_RECORDER_IMMEDIATE_BYTES": "0"}, "on ranks": {"BH_CONFIG": "ranks.toml"}}
RANKS = """
[stacks]
default = "simulated"
simulated = ["filter", "cluster", "fuser", "node", "ve-cpu"]
[components.cluster]
transport = "in-process"
ranks = 3
small_bytes = 17
"""


@pytest.mark.parametrize("mode", MODES)
def test_index_errors_are_numpys(mode, tmp_path):
    program = f"""
import sys
import numpy, bh
assert issubclass(bh.BoundsError, bh.Error) and issubclass(bh.BoundsError, IndexError)
for call in {OUT_OF_BOUNDS!r}:
    words = []
    for m in (numpy, bh):
        a = m.arange(160000.0).reshape(1000, 160)
        try:
            numpy.asarray(eval(call, {{"np": m, "a": a}}))
            numpy.asarray(a)
            words.append("nothing")
        except IndexError as error:
            words.append(str(error).split(" (recorded at ")[0])
    assert words[0] == words[1] and "out of bounds" in words[0], (call, words)
print("all")
"""
    (tmp_path / "ranks.toml").write_text(RANKS)
    environment = {**os.environ, "BH_FALLBACK": "silent", **MODES[mode]}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["all"], done.stderr


@pytest.mark.parametrize("key", ["bh.broadcast_to(1, (1 << 40,))", "bh.broadcast_to([0, 1], (1 << 39, 2))", "bh.broadcast_to(numpy.int8(1), (1 << 20, 1 << 20))"])
def test_keys_of_more_elements_than_memory_are_not_walked_through(key):
    row = bh.arange(5.0)
    with pytest.raises(MemoryError):
        row[eval(key)].reshape(-1)[5].item()
    assert row.tolist() == [0, 1, 2, 3, 4]


def test_keys_that_repeat_many_elements_choose():
    chosen = bh.arange(5.0)[bh.broadcast_to([3, -1], (1 << 20, 2))]
    assert chosen.shape == (1 << 20, 2) and chosen[:, 0].min() == 3 == chosen[:, 0].max() and chosen.sum() == 7 << 20


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("key", ["[True, False] * 3", "[False] * 6", "(slice(None), [True, False, True, True])", "([True] * 3 + [False] * 3, 1)", "[True, 0, 1]", "[True, False]", "[True] * 7", "([True] * 6, [True, False, False, False])", "[[True, False, True, False]] * 6", "[True]"])
def test_lists_of_truth_values_are_masks(key, pending):
    found = []
    for module in (numpy, bh):
        a = module.arange(24.0).reshape(6, 4)
        a = a + module.zeros((6, 4)) if pending else a
        try:
            chosen = numpy.asarray(a[eval(key)])
            a[eval(key)] = -1
            found.append([chosen, numpy.asarray(a)])
        except IndexError as error:
            found.append(str(error))
    if isinstance(found[0], str):
        assert found[0] == found[1]
    else:
        for made, expected in zip(found[1], found[0]):
            numpy.testing.assert_array_equal(made, expected)


INDICES = [
    [True, False], [0.0, 1.7], [1, True], [[True], [False]], (True,), True, 1.0, numpy.True_, numpy.float64(1.5), [numpy.uint64(1)], [], range(2),
    [1 + 0j], ["a"], "x", None, [None], {1: 2}, [2**70], [[1], [1, 2]], numpy.array([True, False]), numpy.array([1, 2], "u8"),
    numpy.array([1.0]), numpy.array([]), numpy.array([1j]), numpy.array(1), numpy.array(True), numpy.matrix([[1, 2]]), numpy.ma.array([1, 2]),
]  # fmt: skip

# NumPy wraps them by subtracting the length again and again, which takes minutes.
FAR = [[2**40], [-(2**40)]]


@pytest.mark.falls_back
@pytest.mark.parametrize("shape", [(7,), (1 << 16,), (300, 200), (1, 5)])
@pytest.mark.parametrize("options", [{}, {"mode": "clip"}, {"mode": "wrap"}, {"axis": 0}, {"axis": -1}])
@pytest.mark.parametrize("pending", [False, True])
def test_indices_of_take_are_converted_as_numpys(shape, options, pending):
    host = numpy.arange(float(numpy.prod(shape))).reshape(shape)
    for indices in INDICES if options == {"mode": "wrap"} else INDICES + FAR:
        found = []
        for np, source in ((numpy, host), (bh, bh.array(host))):
            source = source + 0 if pending else source
            own = bh.array(indices) if np is bh and type(indices) is numpy.ndarray else indices
            for given in (indices, own):
                try:
                    result = np.take(source, given, **options)
                    assert np is numpy or isinstance(indices, (numpy.ma.MaskedArray, numpy.matrix)) or type(result) in (bh.ndarray, numpy.float64)
                    found.append((numpy.shape(result), numpy.asarray(result).tolist()))
                except Exception as error:
                    found.append((type(error), str(error)))
        assert all(one == found[0] for one in found), (indices, found)
