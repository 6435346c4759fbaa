"""Operators with operands of other classes, which decide as NumPy lets them."""

import operator
import warnings

import numpy
import pytest

import bh

OPERATORS = [operator.add, operator.mul, operator.sub, operator.matmul, operator.pow, divmod, operator.eq, operator.lt]
_NAMES = "add mul sub matmul pow divmod".split()


class Answers:
    """Says which of its methods is called, and with what."""


for _name in _NAMES:
    for _form in ("", "r"):
        def _method(self, other, text=f"{_form}{_name}"):
            return text, type(other).__name__, numpy.shape(other)
        setattr(Answers, f"__{_form}{_name}__", _method)
for _name in ("eq", "lt", "gt"):
    setattr(Answers, f"__{_name}__", lambda self, other, text=_name: (text, type(other).__name__, numpy.shape(other)))


class Alone(Answers):
    __array_ufunc__ = None


class Prior(Answers):
    __array_priority__ = 10


class KnowsNumPyOnly:
    """As sparse matrices do: other classes are refused."""

    __array_priority__ = 10

    def _with(self, other):
        return numpy.full(2, 7.0) + other if type(other) is numpy.ndarray else NotImplemented

    __add__ = __radd__ = __mul__ = __rmul__ = __matmul__ = __rmatmul__ = __eq__ = __lt__ = __gt__ = _with


class Counts:
    """Has universal functions of its own."""

    def __array_ufunc__(self, function, method, *inputs, **keywords):
        return function.__name__, method, len(inputs)


@pytest.mark.parametrize("kind", [Alone, Prior])
@pytest.mark.parametrize("operation", OPERATORS, ids=lambda operation: operation.__name__)
def test_others_decide(kind, operation):
    a, expected = bh.ones((2, 2)), numpy.ones((2, 2))
    assert operation(a, kind()) == operation(expected, kind())
    assert operation(kind(), a) == operation(kind(), expected)


@pytest.mark.parametrize("operation", [operator.add, operator.mul, operator.matmul, operator.eq, operator.lt], ids=lambda o: o.__name__)
def test_others_that_know_numpy_only(operation):
    a, other = bh.ones(2), KnowsNumPyOnly()
    for result in (operation(a, other), operation(other, a)):
        assert isinstance(result, bh.ndarray) and result.tolist() == [8, 8]


@pytest.mark.falls_back
def test_universal_functions_of_others():
    a = bh.ones(2)
    assert a + Counts() == ("add", "__call__", 2)
    assert bh.multiply(a, Counts()) == ("multiply", "__call__", 2)
    with pytest.raises(TypeError, match="does not support ufuncs"):
        bh.add(a, Alone())


@pytest.mark.falls_back
@pytest.mark.parametrize("operation", [operator.add, operator.mul, operator.sub, operator.eq, operator.lt], ids=lambda o: o.__name__)
def test_masked_arrays_keep_their_masks(operation):
    masked = numpy.ma.masked_array([1.0, 2.0], [True, False])
    for one, other in ((bh.ones(2), masked), (masked, bh.ones(2))):
        result = operation(one, other)
        expected = operation(numpy.asarray(one) if one is not masked else one, numpy.asarray(other) if other is not masked else other)
        assert type(result) is numpy.ma.MaskedArray and result.tolist() == expected.tolist()


@pytest.mark.falls_back
@pytest.mark.filterwarnings("ignore")
def test_matrices_multiply_as_matrices():
    matrix = numpy.matrix([[1.0, 2.0], [3.0, 4.0]])
    a = bh.asarray([[0.0, 1.0], [1.0, 0.0]])
    for result, expected in ((a * matrix, numpy.asarray(a) * matrix), (matrix * a, matrix * numpy.asarray(a)), (a @ matrix, numpy.asarray(a) @ matrix)):
        assert type(result) is numpy.matrix and result.tolist() == expected.tolist()


def test_in_place_stays_the_array():
    a = bh.ones(2)
    before = a
    a += numpy.float32(1)
    assert a is before and a.tolist() == [2, 2]
    a = a.copy()
    a += Alone()
    assert a[0] == "radd"
    assert bh.ndarray.__array_priority__ == 0.0


class _Table:
    """A class with universal functions of its own, as tables have them."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return numpy.asarray(self.values, dtype)

    def __array_ufunc__(self, function, method, *inputs, **keywords):
        plain = [numpy.asarray(value.values if type(value) is _Table else value) for value in inputs]
        return _Table(getattr(function, method)(*plain, **keywords))


def test_products_with_classes_that_have_universal_functions():
    table = _Table(numpy.arange(4.0).reshape(2, 2))
    for made in (bh.eye(2) @ table, bh.matmul(table, bh.eye(2)), bh.vecdot(bh.eye(2), table)):
        assert type(made) is _Table
    assert (bh.eye(2) @ table).values.tolist() == [[0, 1], [2, 3]]


LISTS = [[1.0, 0.0, 3.0], [1, 0, 3], (2, 5, 7), [True, False, True], [[1.0], [2.0]], [numpy.float64(2), 1, 0.5], [1j, 2, 3], [1e308, 2.0, numpy.inf]]


def told(module, operation, left, right):
    """The result of an operation, or its error, and what it warns of and where."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            result = operation(module, left, right)
            result = result.dtype, result.shape, numpy.asarray(result).tobytes()
        except Exception as error:
            result = type(error), str(error).strip()
    return result, [(str(one.message), one.filename, one.lineno) for one in found]


@pytest.mark.parametrize("values", LISTS, ids=str)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "?"])
@pytest.mark.parametrize("size", [1, 4000])
def test_lists_of_numbers_are_operands_as_in_numpy(values, dtype, size):
    operations = [
        lambda np, a, x: a + x, lambda np, a, x: x - a, lambda np, a, x: a * x, lambda np, a, x: a / x, lambda np, a, x: a < x, lambda np, a, x: x == a,
        lambda np, a, x: np.maximum(a, x), lambda np, a, x: np.minimum(x, a), lambda np, a, x: np.add(a, x, out=np.zeros(a.shape, "c16")), lambda np, a, x: a // x,
        lambda np, a, x: np.multiply(a, x, where=np.array([True, False, True]), out=np.ones(a.shape, np.result_type(a, numpy.asarray(x)))),
    ]  # fmt: skip
    for operation in operations:
        left = numpy.array([[0, 1, 2]] * 2 * size).astype(dtype)
        right = values * size if size > 1 and len(values) == 2 else values
        wanted, mine = told(numpy, operation, left, right), told(bh, operation, bh.array(left), right)
        assert mine[0] == wanted[0]
        assert mine[1] == wanted[1] or size > 1


def test_lists_of_numbers_are_operands_in_place():
    for values in LISTS:
        results = []
        for module in (numpy, bh):
            a = module.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
            results.append(told(module, lambda np, a, x: operator.imul(a, x), a, values)[0])
        assert results[0] == results[1]


def test_errors_of_lists_are_raised_where_they_are_asked_for():
    with bh.errstate(all="raise"), pytest.raises(FloatingPointError, match="divide by zero encountered in divide"):
        bh.ones(2) / [0, 1]
