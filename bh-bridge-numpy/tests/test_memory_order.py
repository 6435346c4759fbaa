"""Results of elementwise functions lie in memory as NumPy's do: in the order of their operands."""

import random

import numpy
import pytest

import bh as np

FUNCTIONS = {
    "add": lambda m, a, b: a + b,
    "number": lambda m, a, b: 2.5 * a,
    "mixed types": lambda m, a, b: a.astype(int) + b,
    "root": lambda m, a, b: m.sqrt(m.abs(a)),
    "compare": lambda m, a, b: a < b,
    "where": lambda m, a, b: m.where(a < b, a, 0.0),
    "clip": lambda m, a, b: m.clip(a, 1.0, 9.0),
    "float32": lambda m, a, b: a.astype("f4") * b.astype("f4"),
    "power": lambda m, a, b: a**2 - b,
    "divmod": lambda m, a, b: m.divmod(a, 3.0)[1],
    "maximum": lambda m, a, b: m.maximum(-a, b),
}


def laid_out(generator, shape):
    """Two equal arrays, of bh and of NumPy, with dimensions in a random order, some of them walked backwards or by twos."""
    axes = list(range(len(shape)))
    generator.shuffle(axes)
    steps = [generator.choice([1, 1, 1, -1, 2]) for _ in shape]
    whole = [shape[axis] * abs(steps[axis]) for axis in axes]
    numbers = numpy.arange(float(numpy.prod(whole))).reshape(whole)
    key = tuple(slice(None, None, step) for step in steps)
    return [m.array(numbers).transpose(numpy.argsort(axes))[key] for m in (np, numpy)]


def steps(array):
    """Its strides, where there is more than one element."""
    return [stride for stride, extent in zip(array.strides, array.shape) if extent > 1]


@pytest.mark.parametrize("seed", range(60))
def test_results_have_the_order_of_their_operands(seed):
    generator = random.Random(seed)
    rank = generator.randint(1, 4)
    shape = [generator.choice([1, 2, 3, 5]) for _ in range(rank)]
    (a, x), (b, y) = laid_out(generator, shape), laid_out(generator, generator.choice([shape, shape[1:], [1] * rank]))
    for name, function in FUNCTIONS.items():
        got, wanted = function(np, a, b), function(numpy, x, y)
        assert steps(got) == steps(wanted), (name, a.strides, b.strides, shape)
        assert numpy.array_equal(numpy.asarray(got), wanted), name
        assert got.base is None and got.flags.writeable, name


@pytest.mark.parametrize("size", [10, 700])
def test_results_are_assigned_to_as_others(size):
    a, x = np.ones((size, size)).T, numpy.ones((size, size)).T
    got, wanted = a + np.arange(float(size)), x + numpy.arange(float(size))
    for result in (got, wanted):
        result[1:, 0] *= 3
        result[0] = 7
        result += result
    assert got.strides == wanted.strides and got.flags.f_contiguous
    assert numpy.array_equal(numpy.asarray(got), wanted)
    assert numpy.array_equal(numpy.asarray(got.ravel(order="K")), wanted.ravel(order="K"))
