"""Small rules of NumPy, one line for each: the same value, or the same kind of error, with either library."""

import io
import warnings

import numpy
import pytest
from conftest import same

import bh


def assigned(target, key, value):
    target[key] = value
    return target


def called(array, name, *args, **kwargs):
    """The array after one of its methods was called."""
    getattr(array, name)(*args, **kwargs)
    return array


def iadd(one, other):
    one += other
    return one


def caught(function):
    """The texts of warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return [str(warning.message) for warning in caught]


class Wrapped:
    """An object that shows itself as an array, and decides what results are."""

    elements = numpy.arange(4.0)
    __array_interface__ = elements.__array_interface__

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return "wrapped", array.tolist()


class Output:
    """An output with universal functions of its own."""

    def __array_ufunc__(self, function, method, *inputs, **kwargs):
        return function.__name__


VALUES = {
    "einsum with lists": lambda np: np.einsum(np.arange(6.0).reshape(2, 3), [0, 1], np.arange(3.0), [1], [0]),
    "einsum with an ellipsis": lambda np: np.einsum("...ij,...jk->...ik", np.ones((4, 2, 3)), np.arange(6.0).reshape(3, 2)),
    "einsum of dimensions of extent 1": lambda np: np.einsum("i...,i...", np.ones((2, 1, 3)), np.arange(8.0).reshape(2, 4, 1)),
    "einsum with lists and an ellipsis": lambda np: np.einsum(np.arange(6.0).reshape(2, 3), [..., 0], [0, ...]),
    "einsum into integers": lambda np: np.einsum("i,i->", np.arange(3.0), np.arange(3.0), out=np.array(0), casting="unsafe"),
    "einsum in Fortran's order": lambda np: np.einsum("ij,jk", np.ones((2, 3)), np.ones((3, 4)), order="F").flags.f_contiguous,
    "einsum with a path": lambda np: np.einsum("i,i,i->i", *[np.arange(3)] * 3, optimize=["einsum_path", (0, 1), (0, 1)]),
    "einsum is a view": lambda np: np.einsum("...", np.arange(3.0)).base is not None,
    "conditions of one array": lambda np: np.piecewise([0, 0], np.array([1, 0]), [1]),
    "a choice with a list as default": lambda np: np.select([np.array(True)], [np.arange(2)], default=[7]),
    "bounds of another precision": lambda np: np.histogram(np.array([1.0], "f4"), 1, np.array([1 + 1e-15, 2.0]))[0],
    "bins by rule": lambda np: np.histogram_bin_edges(np.array([1, 2, 3, 200], "u1"), "auto"),
    "results of wrapping objects": lambda np: np.abs(Wrapped()),
    "outputs that decide": lambda np: np.sin(np.arange(2.0), out=Output()),
    "one output of two": lambda np: np.frexp(np.arange(3.0), out=(np.zeros(3), None)),
    "operands that decide in place": lambda np: iadd(np.arange(2), Output()),
    "complex variances of real numbers": lambda np: np.var(np.eye(3), 1, "F"),
    "the least of NaN in other types": lambda np: caught(lambda: np.nanmin(numpy.array([numpy.nan], "f2"))),
    "medians of NaN": lambda np: caught(lambda: np.nanmedian(np.full((3, 3), np.nan), 0)),
    "sums of numbers": lambda np: type(np.sum(np.float32(2.5), axis=0)).__name__,
    "a mean of nothing": lambda np: caught(lambda: np.mean(np.ones(0)))[:1],
    "a variance of nothing": lambda np: caught(lambda: np.var(np.ones((0, 3)), 0))[:1],
    "a mask without an output": lambda np: caught(lambda: np.add(np.ones(2), 1, where=np.array([True, False]))),
    "joined numbers": lambda np: np.concatenate([np.float32(1), 1.0], axis=None),
    "tolerances of numbers": lambda np: np.isclose(np.array(1, "f4"), 2, atol=0, rtol=(1 - 2**-52) / 2),
    "tolerances of numbers with a type": lambda np: np.isclose(np.array(1, "f4"), 2, atol=0, rtol=np.float64((1 - 2**-52) / 2)),
    "scalar products spread over an output": lambda np: np.vecdot(np.arange(3.0), np.arange(3.0), out=np.empty((2, 4))),
    "an output alone of two": lambda np: np.frexp(np.arange(2.0), np.zeros(2)),
    "close numbers": lambda np: type(np.isclose(numpy.inf, -numpy.inf)).__name__,
    "like Fortran's, of another shape": lambda np: np.empty_like(np.ones((2, 3), order="F"), shape=(2, 3, 4), order="A").flags.fnc,
    "information": lambda np: np.info(np.int64, output=io.StringIO()) is None,
    "another type of a number": lambda np: np.astype(np.int64(10), np.float64),
    "assigned along all dimensions": lambda np: called(np.arange(4).reshape(2, 2), "put", [1], 7),
    "extents without axes": lambda np: len(caught(lambda: np.fft.fftn(np.ones((2, 2)), s=(2, 2)))),
    "a number without NaN": lambda np: type(np.nan_to_num(1)).__name__,
    "polynomials of several coefficients": lambda np: np.polynomial.polynomial.polyval(np.arange(3.0), np.ones((2, 2))),
    "polynomials of roots": lambda np: np.polynomial.polynomial.polyvalfromroots(np.arange(4.0), np.ones((2, 3))),
    "polynomials on grids": lambda np: np.polynomial.chebyshev.chebgrid2d(np.arange(2.0), np.arange(3.0), np.ones((2, 2))),
    "zeros like strings": lambda np: np.zeros_like(np.zeros(2, "S1")) == np.zeros(2, "S1"),
    "dates in steps": lambda np: np.arange(numpy.datetime64("2001-01-01"), 3),
    "arrays as objects": lambda np: [type(x) is np.ndarray for x in np.array([np.ones((1, 2)), np.ones((3, 2))], object)],
    "the array's structure": lambda np: type(np.ones(2).__array_struct__).__name__,
    "wrapping a number": lambda np: np.ones(2).__array_wrap__(np.array(3, "i1"), None, True),
    "flat by nothing": lambda np: np.arange(4).reshape(2, 2).flat[()],
    "take in a numbered mode": lambda np: np.take(np.arange(3), [5], mode=1),
}

ERRORS = {
    "subscripts that are no numbers": lambda np: np.einsum(np.ones(2), [52], [52]),
    "a path with operands left": lambda np: np.einsum("a,a,a->a", *[np.ones(2)] * 3, optimize=["einsum_path", (1,), (0, 1)]),
    "extents that differ": lambda np: np.einsum("ii->i", np.arange(6.0).reshape(2, 3)),
    "more bins than numbers": lambda np: np.histogram(np.array([1, 1 + 2e-16] * 10), 10),
    "complex bins": lambda np: np.digitize([1, 2], np.array([1, 2, 3j])),
    "no indices": lambda np: np.unravel_index([], (10, 3)),
    "indices of a number": lambda np: np.unravel_index([0], ()),
    "indices with fractions": lambda np: np.ravel_multi_index((0.1, 0.0), (2, 2)),
    "indices of nothing": lambda np: np.ravel_multi_index(np.zeros((2, 1), int), (2, 0), mode="clip"),
    "too large shapes": lambda np: np.ravel_multi_index(([0], [0]), (2**62, 2)),
    "an unknown mode": lambda np: np.arange(3).take(1, mode="no"),
    "nothing to put into": lambda np: np.put(np.ones(0), 1, 1),
    "choices by fractions": lambda np: np.ones(1).choose([np.ones(1)]),
    "a list as element": lambda np: assigned(np.zeros(1), 0, [1]),
    "text as number": lambda np: assigned(np.zeros(()), (), ""),
    "flat with a new axis": lambda np: np.arange(3).flat[None],
    "flat with two indices": lambda np: np.arange(3).flat[1, 2],
    "flat with a long mask": lambda np: np.arange(3).flat[np.ones(4, bool)],
    "flat with a list of truth values": lambda np: np.arange(3).flat[[True, True, False]],
    "flat assigned to nothing": lambda np: assigned(np.arange(3).flat, (), 1),
    "very many new axes": lambda np: np.zeros(())[(None,) * 70],
    "a copy by name": lambda np: np.array([1], copy="always"),
    "partition of all dimensions": lambda np: np.ones((2, 2)).partition(1, axis=None),
    "a transposed vector": lambda np: np.arange(3).mT,
    "fewer dimensions": lambda np: np.broadcast_to(np.ones((2, 2)), (2,)),
    "types of an array without any": lambda np: np.ndarray[()],
    "streams": lambda np: np.ones(2).__dlpack__(stream=1),
    "read-only arrays in the first DLPack": lambda np: called(np.ones(2), "setflags", write=False).__dlpack__(),
    "at without a second operand": lambda np: np.add.at(np.arange(3), [0]),
    "at with a second operand": lambda np: np.negative.at(np.arange(3), [0], 1),
    "an ellipsis by place": lambda np: np.add(1, 2, ...),
    "scalar products along a list": lambda np: np.vecdot(np.ones((2, 3)), np.ones((2, 3)), axis=[0]),
    "choices into what is read-only": lambda np: np.choose([0, 1], [np.arange(2)] * 2, out=np.broadcast_to(np.zeros(1), (2,))),
    "windows by number": lambda np: np.convolve(np.ones(3), np.ones(2), mode=-1),
    "an iterator of columns": lambda np: np.column_stack(np.arange(3) for _ in range(2)),
    "a plane of indices": lambda np: np.take_along_axis(np.ones((2, 2)), np.ones((2, 2), int), None),
    "a plane of indices to assign to": lambda np: np.put_along_axis(np.ones((2, 2)), np.ones((2, 2), int), 1, None),
    "very large results of indices": lambda np: np.ones((3,) * 5)[np.ix_(*[np.zeros(8000, int)] * 5)],
    "a power with a fraction": lambda np: np.linalg.matrix_power(np.eye(2), 1.5),
    "a product of one matrix": lambda np: np.linalg.multi_dot([np.eye(2)]),
    "one axis twice": lambda np: np.linalg.norm(np.ones((2, 2)), axis=(0, 0)),
    "means into integers": lambda np: np.nanstd(np.ones(2), out=np.array(0)),
    "a product into another type": lambda np: np.dot(np.ones((2, 2)), np.ones((2, 2)), out=np.ones((2, 2), "f4")),
}


@pytest.mark.falls_back
@pytest.mark.parametrize("rule", VALUES)
def test_values(rule):
    mine, theirs = VALUES[rule](bh), VALUES[rule](numpy)
    if rule == "a mask without an output":
        theirs = [text.replace("unitialized", "uninitialized") for text in theirs]
    if isinstance(theirs, (str, list)) or isinstance(theirs, tuple) and isinstance(theirs[0], str):
        assert mine == theirs
    else:
        same(mine, theirs)


@pytest.mark.falls_back
@pytest.mark.parametrize("rule", ERRORS)
def test_errors(rule):
    with pytest.raises(Exception) as theirs:
        ERRORS[rule](numpy)
    with pytest.raises(theirs.type):
        ERRORS[rule](bh)


@pytest.mark.parametrize("make", [lambda np: np.histogram([True, False]), lambda np: np.arange(3).flat[True]])
def test_warnings(make):
    assert len(caught(lambda: make(bh))) == len(caught(lambda: make(numpy))) == 1


def test_scalars_pass_for_numbers():
    total, whole = bh.arange(4.0).sum(), bh.array(3)
    assert isinstance(total, float) and isinstance(total, numpy.float64) and not isinstance(total, numpy.integer)
    assert isinstance(whole[()], numpy.int64) and not isinstance(whole[...], numpy.generic)
    assert not isinstance(bh.arange(3), numpy.generic) and bh.isscalar(total)
    same(numpy.asarray(bh.add(total, total)), numpy.asarray(12.0))


def test_arrays_over_the_memory_of_arrays():
    whole = bh.arange(10)
    part = bh.ndarray((4,), int, whole, 32, (-8,))
    part[0] = -1
    same(part, numpy.array([-1, 3, 2, 1]))
    assert whole[4] == -1
    with pytest.raises(TypeError):
        bh.ndarray((40,), int, whole)


def test_lists_that_hold_themselves():
    ring = []
    ring.append(ring)
    assert bh.array([ring], object).ndim == numpy.array([ring], object).ndim


def test_sums_of_products_know_their_castings():
    a = bh.arange(3)
    for casting in ("same_value", "blah"):
        with pytest.raises(ValueError):
            bh.einsum("i,i", a, a, casting=casting)
        with pytest.raises(ValueError):
            bh.einsum("ij->j", [a, a], casting=casting)
