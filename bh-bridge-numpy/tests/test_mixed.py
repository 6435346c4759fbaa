"""Arrays of NumPy beside arrays of bh: small ones are copied when they are given, others go through Python, with one result."""

import numpy
import pytest

import bh
from conftest import same

LACKING = [pytest.param(code, marks=pytest.mark.falls_back) for code in ("f2", ">f8")]
TYPES = "? i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 c8 c16".split() + LACKING
SIZES = [1, 7, 3000]


def operands(code, size):
    theirs = (numpy.arange(size) % 5 + 1).astype(code)
    mine = bh.asarray((numpy.arange(size) % 3 + 1.0))
    return theirs, mine, numpy.array(mine)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("code", TYPES)
def test_operators_on_either_side(code, size):
    theirs, mine, plain = operands(code, size)
    same(mine + theirs, plain + theirs)
    same(theirs * mine, theirs * plain)
    same(bh.subtract(theirs, mine), numpy.subtract(theirs, plain), ulps=64)
    same(numpy.add(theirs, mine), numpy.add(theirs, plain))
    same(mine < theirs, plain < theirs)
    mine += theirs if theirs.dtype.kind != "c" else 1
    same(mine, plain + (theirs if theirs.dtype.kind != "c" else 1))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("size", SIZES)
def test_products(size):
    theirs, mine, plain = operands("f8", size)
    for product in (mine @ theirs, theirs @ mine, bh.dot(theirs, mine), numpy.dot(mine, theirs), numpy.matmul(theirs, mine)):
        same(product, plain @ theirs, ulps=64)


@pytest.mark.parametrize("code", ["i4", "i8", "u4", "u1", "i2"])
def test_index_arrays(code):
    mine, plain = bh.arange(100.0), numpy.arange(100.0)
    index = numpy.asarray([3, 99, 0, 3], code)
    same(mine[index], plain[index])
    mine[index], plain[index] = 7.0, 7.0
    mine[index[:2]], plain[index[:2]] = numpy.asarray([1.5, 2.5]), numpy.asarray([1.5, 2.5])
    same(mine, plain)
    mask = plain > 50
    same(mine[mask], plain[mask])
    mine[mask], plain[mask] = 0, 0
    same(mine, plain)
    with pytest.raises(IndexError, match="out of bounds for axis 0 with size 100"):
        mine[numpy.asarray([100], code)]


def test_what_is_given_is_read_then():
    theirs, mine = numpy.ones(5), bh.ones(5)
    total = mine + theirs
    mine[:3] = theirs[:3]
    theirs[:] = 9
    same(total, numpy.full(5, 2.0))
    same(mine, numpy.ones(5))
    column = numpy.arange(12.0).reshape(4, 3)[:, 1]
    same(bh.ones(4) + column, 1 + column)
    matrix = numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3))
    same(bh.ones((2, 3)) + matrix, 1 + matrix)


def test_other_classes_have_their_say():
    masked = numpy.ma.masked_array([1.0, 2.0], [False, True])
    assert isinstance(bh.ones(2) + masked, numpy.ma.MaskedArray)
