"""Operands of classes that decide what functions do: with or without the ways past Python, the results are NumPy's."""

import numpy
import pytest

import bh


class Plain(numpy.ndarray):
    """Derived from NumPy's arrays, without anything of its own."""


class Noted(numpy.ndarray):
    """Derived, with universal functions of its own that note what they get."""

    def __array_ufunc__(self, function, method, *inputs, **options):
        shown = [numpy.asarray(one) if isinstance(one, Noted) else one for one in inputs]
        self.seen = [type(one).__name__ for one in shown]
        return getattr(function, method)(*shown, **options).view(Noted)


class Writes(numpy.ndarray):
    """Derived: its universal functions change the other operand, and return it."""

    def __array_ufunc__(self, function, method, *inputs, **options):
        other = next(one for one in inputs if not isinstance(one, Writes) and hasattr(one, "shape"))
        other[...] = 7
        return other


class Decides(numpy.ndarray):
    """Derived, with functions of its own."""

    def __array_function__(self, function, types, args, kwargs):
        return function.__name__, len(args), sorted(kwargs)


class Reflected(numpy.ndarray):
    """Derived, with operators of its own."""

    def __radd__(self, other):
        return "radd", numpy.asarray(other).tolist()


class Holder:
    """No array, with functions of both kinds."""

    def __array_ufunc__(self, function, method, *inputs, **options):
        return function.__name__, method, [numpy.asarray(one).tolist() if not isinstance(one, Holder) else "holder" for one in inputs]

    def __array_function__(self, function, types, args, kwargs):
        return function.__name__, len(args), sorted(kwargs)


class Leaves:
    """No array, and no operand of universal functions."""

    __array_ufunc__ = None

    def __radd__(self, other):
        return "radd"


class Fails(Holder):
    def __array_ufunc__(self, function, method, *inputs, **options):
        return NotImplemented

    def __array_function__(self, function, types, args, kwargs):
        return NotImplemented


HOST = numpy.array([3.0, 1.0, 2.0])
OTHERS = {
    **{kind.__name__: lambda kind=kind: HOST[::-1].copy().view(kind) for kind in (Plain, Noted, Writes, Decides, Reflected)},
    "masked": lambda: numpy.ma.masked_array([1.0, 2.0, 3.0], [True, False, False]),
    "matrix": lambda: numpy.matrix([[1.0, 2.0, 3.0]]),
    "without dimensions": lambda: numpy.array(2.0).view(Plain),
    "objects": lambda: numpy.array([1, 2.5, True], object).view(Plain),
    "Holder": Holder, "Leaves": lambda leaves=Leaves(): leaves, "Fails": Fails,
}  # fmt: skip

CALLS = {
    "add": lambda np, a, o: np.add(a, o),
    "add from the left": lambda np, a, o: np.add(o, a),
    "alone": lambda np, a, o: (np.add(o, o), np.negative(o)),
    "with a number": lambda np, a, o: np.multiply(o, 2.5),
    "modf": lambda np, a, o: np.modf(o),
    "a + o": lambda np, a, o: a + o,
    "o + a": lambda np, a, o: o + a,
    "a * o": lambda np, a, o: a * o,
    "a == o": lambda np, a, o: a == o,
    "a < o": lambda np, a, o: a < o,
    "sum": lambda np, a, o: (np.sum(o), np.sum(o, axis=0), np.max(o, axis=-1, keepdims=True)),
    "mean": lambda np, a, o: np.mean(o),
    "sort": lambda np, a, o: np.sort(o, axis=-1),
    "concatenate": lambda np, a, o: np.concatenate([np.stack([a]) if np.ndim(o) == 2 else a, o]),
    "stack": lambda np, a, o: np.stack((o, a)),
    "where": lambda np, a, o: np.where(a > 1, o, a),
    "dot": lambda np, a, o: np.dot(o, a),
    "clip": lambda np, a, o: np.clip(o, 1.5, 2.5),
    "take": lambda np, a, o: (np.take(o, [0]), np.take(a, np.asarray([1]))),
    "reshape": lambda np, a, o: np.reshape(o, (1, -1)),
    "copy": lambda np, a, o: np.copy(o),
    "median": lambda np, a, o: np.median(o),
    "array_equal": lambda np, a, o: (np.array_equal(o, o), np.array_equal(a, o)),
    "isclose": lambda np, a, o: np.isclose(a, o),
    "zeros_like": lambda np, a, o: np.zeros_like(o),
    "atleast_2d": lambda np, a, o: np.atleast_2d(o),
    "strange axis": lambda np, a, o: np.sum(o, axis=5),
    "strange shape": lambda np, a, o: np.add(np.ones(5), o),
}


def told(value):
    """Class, type, shape and elements of a result; arrays of both packages are alike."""
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [told(one) for one in value]
    if type(value) is bh.ndarray:
        value = numpy.asarray(value)
    kind = type(value).__name__
    if isinstance(value, numpy.ma.MaskedArray):
        return kind, value.dtype.str, value.tolist()
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        return kind, value.dtype.str, value.shape, numpy.asarray(value).tolist()
    return kind, repr(value)


@pytest.mark.falls_back
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shortcuts", [True, False])
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", CALLS)
def test_results_are_numpys(name, other, shortcuts, request):
    if (name, other) == ("isclose", "Writes"):
        pytest.skip("NumPy's code gets a copy of the array here")
    before = bh._native.set_shortcuts(shortcuts)
    request.addfinalizer(lambda: bh._native.set_shortcuts(before))
    found = []
    for np in (numpy, bh):
        a, o = np.array(HOST), OTHERS[other]()
        try:
            result = CALLS[name](np, a, o)
            # An operand that is returned is the program's own array.
            outcome = told(result), result is a
        except Exception as error:
            outcome = type(error).__name__
        found.append((outcome, told(a), getattr(o, "seen", None)))
    assert found[0] == found[1]


def test_calls_beside_other_classes_run_no_python_of_the_package(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("Python looks at the call")

    a, plain, holder = bh.array(HOST), HOST.view(Plain), Holder()
    bh.add(holder, 1)
    monkeypatch.setattr(type(bh.add), "_call", refuse)
    monkeypatch.setattr(bh.ndarray, "_array_ufunc", refuse)
    for one in (bh.add(a, plain), bh.add(plain, a), a + plain, plain + a, plain * a):
        assert type(one) is Plain
    assert bh.exp(holder)[0] == "exp" and (a + holder)[0] == "add" and bh.sum(holder)[0] == "sum"


def test_classes_see_what_the_program_knows():
    a = bh.array(HOST)
    assert bh.add(a, HOST.view(Writes)) is a and a.tolist() == [7, 7, 7]


@pytest.mark.falls_back
@pytest.mark.parametrize("name", ["atleast_1d", "atleast_2d", "atleast_3d"])
def test_views_beside_other_classes_show_the_array(name):
    found = []
    for np in (numpy, bh):
        a = np.array(HOST)
        one, other = getattr(np, name)(a, HOST.copy().view(Plain))
        one[...] = 9
        found.append((a.tolist(), type(other).__name__.replace("bh.", "")))
    assert found[0] == found[1]


@pytest.mark.falls_back
@pytest.mark.parametrize("name", ["diff", "polyder", "polyint"])
def test_no_steps_give_the_array_itself(name):
    for np in (numpy, bh):
        a = np.array(HOST)
        getattr(np, name)(a, 0)[...] = 9
        assert a.tolist() == [9, 9, 9]
