"""Calls of functions, methods and universal functions: in all forms that Python has, also those that pass no tuple."""

import functools
import pickle
import sys
import types

import numpy
import pytest

import bh as np
from bh import _native

CALLS = [
    lambda f, a, b: f(a, b),
    lambda f, a, b: f(*[a, b]),
    lambda f, a, b: f(a, *(b,)),
    lambda f, a, b: type(f).__call__(f, a, b),
    lambda f, a, b: f.__call__(a, b),
    lambda f, a, b: functools.partial(f, a)(b),
    lambda f, a, b: next(map(f, [a], [b])),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", ["add", "dot", "maximum"])
def test_all_forms_of_calls_give_the_same(call, name):
    a, b = numpy.arange(1.0, 6.0), numpy.arange(5.0)
    assert numpy.array_equal(call(getattr(np, name), np.array(a), np.array(b)), getattr(numpy, name)(a, b))


def test_arguments_by_name():
    a, out = np.arange(6.0), np.zeros(6)
    assert np.sum(a, axis=0) == np.sum(a, 0) == np.sum(a=a) == a.sum(axis=None) == 15.0
    assert np.sum(**{"a": a, "axis": 0}) == 15.0
    assert np.sqrt(a, out=out) is out and np.sqrt(a, out) is out and np.add(a, a, **{"out": out}) is out
    assert numpy.array_equal(out, numpy.arange(6.0) * 2)
    assert np.zeros(3, dtype=np.int64).dtype == np.zeros(dtype=np.int64, shape=3).dtype == np.int64
    assert np.zeros(3, **{"".join(["d", "type"]): bool}).dtype == bool
    assert np.concatenate((a, a), axis=0).shape == (12,) and np.expand_dims(a, axis=0).shape == (1, 6)


@pytest.mark.parametrize(
    "call",
    [
        lambda np, a: np.sum(a, axes=0),
        lambda np, a: np.sum(),
        lambda np, a: np.sqrt(),
        lambda np, a: np.sqrt(a, a, a, a),
        lambda np, a: np.sqrt(a, nonsense=1),
        lambda np, a: np.zeros(3, dtypes=int),
        lambda np, a: a.sum(0, axis=0),
        lambda np, a: a.item(1, 2, 3),
        lambda np, a: np.argmax(),
        lambda np, a: type(a).sum(),
    ],
)
def test_wrong_arguments_are_refused_as_in_numpy(call):
    with pytest.raises((TypeError, ValueError)) as theirs:
        call(numpy, numpy.arange(4.0))
    with pytest.raises(theirs.type):
        call(np, np.arange(4.0))


def test_methods_are_bound_where_they_are_kept():
    a = np.arange(6.0)
    total, shape = a.sum, a.reshape
    assert total() == np.ndarray.sum(a) == 15.0 and shape(2, 3).shape == shape((2, 3)).shape == (2, 3)
    assert list(map(np.ndarray.sum, [a, a])) == [15.0, 15.0]
    assert total.__self__ is a and total.__name__ == "sum" and isinstance(np.ndarray.sum, _native.Function)
    assert type(np.ndarray.__dict__["sum"]).__name__ == "Method"


def test_functions_in_classes_are_methods_where_those_of_numpy_are():
    class Mine:
        zeros, total = np.zeros, np.sum

    class Theirs:
        zeros, total = numpy.zeros, numpy.sum

    assert Mine().zeros(3).shape == Theirs().zeros(3).shape == (3,)
    for kind in (Mine, Theirs):
        assert isinstance(kind().total, types.MethodType) and not isinstance(kind().zeros, types.MethodType)


def test_functions_are_pickled_by_name():
    for function in (np.zeros, np.sum, np.sqrt):
        assert pickle.loads(pickle.dumps(function)) is function


def test_calls_that_fail_leave_references_as_they_are():
    a, text = np.arange(3.0), "nonsense that nobody else has"
    before = sys.getrefcount(text), sys.getrefcount(a)
    for _ in range(50):
        with pytest.raises(TypeError):
            np.sum(a, **{text: text})
        a.sum(), np.sqrt(a), np.add(a, a, out=a), a.item(0), a.reshape(1, 3)
    assert (sys.getrefcount(text), sys.getrefcount(a)) == before


def test_entries_serve_calls_where_python_has_them():
    # Of a class whose objects have one, the flag says so: `Py_TPFLAGS_HAVE_VECTORCALL`.
    for function in (np.zeros, np.sqrt, np.ndarray.__dict__["sum"]):
        assert type(function).__flags__ & 1 << 11


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u8"])
def test_elements_are_numbers_of_python(dtype):
    a = np.arange(6).astype(dtype).reshape(2, 3)
    assert a.item(1, -1) == a.item(5) == a[1].item(2) == a.item((1, 2)) == 5 and type(a.item(1, 2)) is type(a[1, 2].item())
    assert a[:1, :1].item() == 0 and a[1, 2].item() == 5
    for wrong in ((2, 0), (0, 3), (6,), (0, 0, 0), (-7,)):
        with pytest.raises((IndexError, ValueError)):
            a.item(*wrong)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_roots_by_powers_are_those_of_numpy(dtype):
    values = numpy.array([0.0, -0.0, 1.0, 2.0, 3.0, 1e300, 1e-310, numpy.inf, numpy.nan, 0.1] * 30).astype(dtype)
    for length in (1, 10, 300):
        theirs, mine = values[:length].copy(), np.array(values[:length])
        assert (mine**0.5).tobytes() == (theirs**0.5).tobytes()
        x = mine.copy()
        x **= 0.5
        assert x.tobytes() == (theirs**0.5).tobytes()
        before = _native.set_shortcuts(False)
        try:
            assert (mine**0.5).tobytes() == (theirs**0.5).tobytes()
        finally:
            _native.set_shortcuts(before)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "c16"])
def test_squares_have_the_bits_of_batches(dtype):
    values = (numpy.arange(40) - (0 if dtype == "u1" else 17)).astype(dtype) * numpy.asarray(1.7).astype(dtype)
    mine = np.array(values)
    at_once, power = mine**2, np.power(mine, 2)
    before = _native.set_shortcuts(False)
    try:
        assert at_once.tobytes() == power.tobytes() == (mine**2).tobytes() == (mine * mine).tobytes()
    finally:
        _native.set_shortcuts(before)


@pytest.mark.parametrize("source", ["f8", "f4", "i8", "i2", "u1", "?"])
@pytest.mark.parametrize("target", ["f8", "f4", "i8", "i2", "u1", "?"])
def test_conversions_at_once_have_the_bits_of_batches(source, target):
    values = (numpy.arange(24) * 5 - (0 if source in "u1?" else 40)).astype(source).reshape(4, 6)
    for mine in (np.array(values), np.array(values)[1:, ::2], np.array(values).T, np.array(values)[2]):
        at_once = mine.astype(target)
        before = _native.set_shortcuts(False)
        try:
            assert at_once.tobytes() == mine.astype(target).tobytes() and at_once.dtype == target
        finally:
            _native.set_shortcuts(before)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "c16", "u1", "?"])
def test_running_sums(dtype):
    values = (numpy.arange(50) % 7).astype(dtype)
    for key in (slice(None), slice(None, None, 3), slice(None, None, -1)):
        mine, theirs = np.array(values)[key], values[key]
        assert numpy.array_equal(np.cumsum(mine), numpy.cumsum(theirs)) and np.cumsum(mine).dtype == numpy.cumsum(theirs).dtype
        assert numpy.array_equal(mine.cumsum(axis=0), theirs.cumsum(axis=0))
    with numpy.errstate(over="ignore"):
        assert np.isinf(np.cumsum(np.array([1e308, 1e308, 1e308]))[-1])


def test_new_axes_in_keys():
    a = numpy.arange(6.0)
    m = np.array(a)
    for key in (None, (None, slice(1, 4)), (slice(None), None), (None, None, 2), (2, None)):
        assert m[key].shape == a[key].shape and numpy.array_equal(m[key], a[key])
    m[:, None] = 2.0
    assert numpy.array_equal(m, numpy.full(6, 2.0))
    with np.fallback("silent"):
        assert np.zeros((1,) * 16)[None].shape == (1,) * 17


WITH_LISTS = {
    **{name: lambda m, a, b, name=name: getattr(m, name)(a, b) for name in "add subtract multiply divide maximum hypot less equal power floor_divide bitwise_or dot inner outer vdot matmul".split()},
    **{name: lambda m, a, b, name=name: getattr(m, name)(a) for name in "sqrt negative absolute exp sign isfinite sum prod max any all mean std var cumsum argmax sort ravel zeros_like atleast_2d count_nonzero array asarray transpose".split()},
    "norm": lambda m, a, b: m.linalg.norm(a),
    "operators": lambda m, a, b: (a + m.array(b), m.array(a) * b, m.array(a) == b, m.array(a) @ m.array(b), m.array(a).dot(b)),
    "choice": lambda m, a, b: m.where(m.array(a) != 0, a, b),
    "axes": lambda m, a, b: (m.sum(a, 0), m.max(a, axis=-1), m.stack([a, b]), m.clip(a, 0, 2), m.full_like(a, 2), m.roll(a, 1)),
    "types": lambda m, a, b: [m.array(a, dtype=dtype) for dtype in (m.float32, m.int16, m.complex64, float, bool)],
    "assigned": lambda m, a, b: filled(m, "f8", a),
    "assigned to few": lambda m, a, b: filled(m, "i2", a),
    "assigned to a row": lambda m, a, b: filled(m, "f8", a, 0),
    "assigned to one": lambda m, a, b: filled(m, "f8", a, (0, 0)),
    "in place": lambda m, a, b: added(m.array(a, dtype=complex), b),
}


def filled(m, dtype, values, key=slice(None)):
    result = m.zeros((3, 2), dtype)
    result[key] = values
    return result


def added(result, values):
    result += values
    return result


def a_list(rng):
    """A list or tuple of numbers, or of such rows."""
    kinds = [lambda: int(rng.integers(-3, 4)), lambda: float(rng.integers(-3, 4)) / 2, lambda: bool(rng.integers(2)), lambda: complex(rng.integers(3), 1), lambda: numpy.float64(1.5), lambda: numpy.int64(2), lambda: 2**63]
    chosen = rng.choice(len(kinds), p=[0.35, 0.35, 0.12, 0.05, 0.06, 0.06, 0.01], size=rng.integers(1, 3))
    leaf = lambda: kinds[rng.choice(chosen)]()
    make = tuple if rng.random() < 0.3 else list
    columns = int(rng.choice((0, 1, 2, 3), p=[0.05, 0.15, 0.6, 0.2]))
    row = lambda: make(leaf() for _ in range(columns))
    return row() if rng.random() < 0.5 else [row() for _ in range(int(rng.choice((1, 2, 3))))]


def outcome(m, call, a, b):
    """Types, shapes and bytes, or the class of the error."""
    try:
        result = call(m, a, b)
    except Exception as error:
        return type(error).__name__
    results = result if isinstance(result, (tuple, list)) else [result]
    return [(one.dtype, one.shape, numpy.nan_to_num(numpy.asarray(one)).tolist()) for one in map(numpy.asarray, results)]


@pytest.mark.parametrize("name", WITH_LISTS)
@pytest.mark.filterwarnings("ignore")
def test_lists_in_the_place_of_arrays(name):
    rng = numpy.random.default_rng(len(name))
    for _ in range(40):
        a, b = a_list(rng), a_list(rng)
        b = b if rng.random() < 0.5 else a
        theirs = outcome(numpy, WITH_LISTS[name], a, b)
        with_shortcuts = outcome(np, WITH_LISTS[name], a, b)
        before = _native.set_shortcuts(False)
        try:
            without = outcome(np, WITH_LISTS[name], a, b)
        finally:
            _native.set_shortcuts(before)
        assert str(with_shortcuts) == str(without), (a, b)
        if name in ("exp", "hypot", "std", "var", "mean", "norm", "sqrt", "power") and not isinstance(theirs, str):
            (*mine, values), (*expected, others) = with_shortcuts[0], theirs[0]
            assert mine == expected and numpy.allclose(values, others, rtol=1e-12), (a, b)
        else:
            assert str(with_shortcuts) == str(theirs), (a, b)
