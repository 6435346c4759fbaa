"""Folds with functions of the program: what they compute, in which order, and in how many kernels."""

import math

import numpy
import pytest

import bh
from conftest import same


def affine(one, other):
    """x → a x + b, first one and then the other: associative, and not commutative."""
    return one[0] * other[0], one[1] * other[0] + other[1]


def tree(function, initial, states):
    """The documented order, on single states."""
    done, result = 0, initial
    while done < len(states):
        size = 1 << (len(states) - done).bit_length() - 1
        block, done = states[done : done + size], done + size
        while len(block) > 1:
            block = [function(one, other) for one, other in zip(block[::2], block[1::2])]
        result = function(result, block[0])
    return result


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 100, 255, 256, 1000, 4099, 70_001])
def test_order(size):
    rng = numpy.random.default_rng(size)
    a, b = rng.uniform(0.9, 1.1, size), rng.uniform(-1, 1, size)
    expected = tree(affine, (1.0, 0.5), list(zip(a, b)))
    mine = bh.fold(affine, (1.0, 0.5), bh.asarray(a), b)
    assert [float(value) for value in mine] == [float(value) for value in expected]
    single = lambda x, y: x * y + x + y
    assert float(bh.fold(single, 0.25, bh.asarray(b) * 1e-3)) == float(tree(single, 0.25, b * 1e-3))


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, (0, 2), (2, 1), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes(axis, keepdims):
    a = numpy.random.default_rng(3).random((5, 18, 7))
    later = lambda one, other: (bh.maximum(one[0], other[0]), one[1] + other[1])
    greatest, count = bh.fold(later, (-math.inf, 0), bh.asarray(a), 1, axis=axis, keepdims=keepdims)
    same(greatest, numpy.max(a, axis=axis, keepdims=keepdims), check_type=False)
    same(count, numpy.sum(numpy.ones_like(a, dtype=int), axis=axis, keepdims=keepdims), check_type=False)


def test_statistics_in_one_pass():
    def joined(one, other):
        (n, mean, squares), (m, its, others) = one, other
        apart, total = its - mean, n + m
        return total, mean + apart * m / bh.maximum(total, 1), squares + others + apart**2 * n * m / bh.maximum(total, 1)

    a = numpy.random.default_rng(4).normal(100, 3, (300, 40))
    n, mean, squares = bh.fold(joined, (0.0, 0.0, 0.0), 1.0, bh.asarray(a), 0.0, axis=0)
    assert n.tolist() == [300] * 40
    numpy.testing.assert_allclose(numpy.asarray(mean), a.mean(axis=0))
    numpy.testing.assert_allclose(numpy.asarray(squares / n), a.var(axis=0))


def test_types():
    assert bh.fold(lambda a, b: a + b, 0, bh.arange(5, dtype="i2")).dtype == numpy.int16
    assert bh.fold(lambda a, b: a + b, 0.5, bh.arange(5)).dtype == numpy.float64
    assert float(bh.fold(lambda a, b: math.hypot(a, b), 0.0, [3.0, 4.0])) == 5
    assert int(bh.fold(lambda a, b: a ^ b, 0, bh.arange(100))) == numpy.bitwise_xor.reduce(numpy.arange(100))
    assert bool(bh.fold(lambda a, b: a & b, True, bh.ones(9, bool)))
    assert float(bh.fold(numpy.maximum, -math.inf, bh.arange(9.0))) == 8
    same(bh.fold(lambda a, b: b, 0, bh.arange(12).reshape(3, 4), axis=0), numpy.arange(8, 12))
    same(bh.fold(lambda a, b: 3, 0, bh.arange(12).reshape(3, 4), axis=0), numpy.full(4, 3))


def longer(one, other):
    """Of two runs of equal numbers side by side, the longest: its length, and the runs at both ends with all numbers between."""
    (first, ahead, longest, behind, last, count), (start, before, most, after, end, number) = one, other
    if last == start:
        longest = max(longest, behind + before)
        ahead = ahead + before if ahead == count else ahead
        after = after + behind if after == number else after
    return first, ahead, max(longest, most), after, end, count + number


def test_branches():
    rng = numpy.random.default_rng(7)
    a = rng.uniform(-1, 1, 5000)
    assert float(bh.fold(lambda a, b: a if a > b else b, -math.inf, bh.asarray(a))) == a.max()
    assert float(bh.fold(min, math.inf, bh.asarray(a))) == a.min()

    def last_of(one, other):
        value, place = one
        for k in range(2):
            if other[0] < value:
                value, place = other
        return value, place

    value, place = bh.fold(last_of, (math.inf, -1), bh.asarray(a.reshape(50, 100)), bh.arange(100), axis=1)
    same(place, a.reshape(50, 100).argmin(axis=1))
    same(value, a.reshape(50, 100).min(axis=1))
    runs = rng.integers(0, 2, 300)
    ones = numpy.ones(300, int)
    mine = bh.fold(longer, (-1, 0, 0, 0, -1, 0), bh.asarray(runs), ones, ones, ones, bh.asarray(runs), ones)
    expected = tree(longer, (-1, 0, 0, 0, -1, 0), [(value, 1, 1, 1, value, 1) for value in runs])
    assert [int(value) for value in mine] == [int(value) for value in expected]


def test_one_operation_is_its_fold():
    a = bh.asarray(numpy.random.default_rng(8).uniform(0.9, 1.1, 3000))
    for function, other in ((lambda one, two: one + two, bh.sum), (lambda one, two: one * two, bh.prod)):
        assert float(bh.fold(function, 0.0 if other is bh.sum else 1.0, a)) == float(other(a))
    assert float(bh.fold(lambda one, two: two + one, 0.0, a)) != 0.0


def test_few_kernels():
    x = bh.asarray(numpy.random.default_rng(5).random(1 << 20))
    for combine, values, most in ((lambda a, b: a * b + a + b, (x,), 5), (affine, (x, x), 8)):
        bh.flush()
        before = bh.profile()
        bh.fold(combine, 0.0 if len(values) == 1 else (1.0, 0.0), *values)
        after = bh.profile()
        assert 0 < after["fuser.kernels"] - before["fuser.kernels"] <= most


def test_in_recorded_functions():
    @bh.jit
    def both(x):
        return bh.fold(lambda a, b: a * b + a + b, 0.0, x * 1e-3), bh.fold(affine, (1.0, 0.0), 0.5, x)[1]

    for seed in range(3):
        x = numpy.random.default_rng(seed).random(5000)
        expected = tree(lambda a, b: a * b + a + b, 0.0, x * 1e-3), tree(affine, (1.0, 0.0), [(0.5, value) for value in x])[1]
        assert [float(value) for value in both(bh.asarray(x))] == list(map(float, expected))


def test_what_is_refused():
    for wrong, text in (
        (lambda: bh.fold(lambda a, b: str(a), 0, [1, 2]), "the call 'str\\(a\\)' is not understood"),
        (lambda: bh.fold(lambda a, b: a / b, 1, [1, 2]), "takes int64 and returns float64"),
        (lambda: bh.fold(lambda a, b: a[0], (0, 0), [1, 2], [3, 4]), "states of 2 values"),
        (lambda: bh.fold(lambda a, b: a, 0), "an array at least"),
    ):
        with pytest.raises(TypeError, match=text):
            wrong()
    with pytest.raises(ValueError, match="needs as many initial ones, not 1"):
        bh.fold(affine, (1,), [1, 2], [3, 4])
    with pytest.raises(ValueError):
        bh.fold(affine, (1, 0), [1, 2], [3, 4, 5])
