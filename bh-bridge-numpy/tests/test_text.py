"""Text of arrays is NumPy's, also of arrays of more elements than memory has."""

import numpy
import pytest

import bh as np

SHAPES = [(1001,), (1 << 20,), (3, 400), (400, 3), (7, 200), (8, 6, 40), (50, 50, 50), (6, 2, 3, 5, 7), (2,) * 11, (1, 1, 1, 2000), (0, 5000)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "?", "c16"])
def test_texts_of_large_arrays(shape, dtype):
    count = int(numpy.prod(shape))
    values = ((numpy.arange(count) * 37 % 1009 - 5) / (4 if dtype[0] in "fc" else 1)).astype(dtype).reshape(shape)
    mine = np.asarray(values) + 0 if dtype != "?" else np.asarray(values) & True
    same(mine, values)


def same(mine, values):
    for options in ({}, {"precision": 3}, {"threshold": 10}, {"edgeitems": 2}, {"threshold": 20, "edgeitems": 1, "linewidth": 30}, {"threshold": 10**9 if values.size < 5000 else 1000}):
        with np.printoptions(**options):
            assert repr(mine) == repr(values)
            assert str(mine) == str(values) == f"{mine}"
            assert np.array_repr(mine) == numpy.array_repr(values)
            assert np.array_str(mine, precision=2) == numpy.array_str(values, precision=2)
            assert np.array2string(mine, separator=", ") == numpy.array2string(values, separator=", ")
    for options in ({"threshold": 5}, {"threshold": 5, "edgeitems": 1}, {"edgeitems": 5, "max_line_width": 40, "suffix": ")"}):
        assert np.array2string(mine, **options) == numpy.array2string(values, **options)


@pytest.mark.parametrize("shape", [(1 << 40, 3), (1 << 20, 1 << 20, 3), (5, 1 << 40, 3), (1 << 30, 2, 2, 2, 1 << 10, 3)])
def test_texts_of_arrays_that_no_memory_has(shape):
    same(np.broadcast_to(np.arange(3.0), shape), numpy.broadcast_to(numpy.arange(3.0), shape))
