"""How bh's arrays meet NumPy's arrays, and libraries that know only those."""

import bisect
import copy
import importlib
import operator
import pickle
import subprocess
import sys
import types

import numpy
import pytest

import bh
from bh._numpy import fallback as _fallback, inner_parts
from conftest import LIMIT, same


def test_universal_functions_of_numpy_stay_on_the_stack(monkeypatch):
    x = bh.arange(4.0)
    monkeypatch.setattr(_fallback, "call", None)
    for result in (numpy.add(x, 1), numpy.sqrt(x), numpy.arange(4.0) + x, x + numpy.arange(4.0), numpy.float64(2) * x):
        assert type(result) is bh.ndarray
    for result in (numpy.sum(x), numpy.mean(x), numpy.concatenate([x, x]), numpy.where(x > 1, x, 0), numpy.add.reduce(x)):
        assert type(result) is bh.ndarray
    assert numpy.shape(x) == (4,) and numpy.ndim(x) == 1


def test_out_of_numpy():
    x = bh.arange(3.0)
    out = numpy.zeros(3)
    with bh.fallback("silent"):
        assert numpy.add(x, 1, out=out) is out
    same(out, numpy.array([1.0, 2, 3]))
    a = numpy.ones(3)
    with bh.fallback("silent"):
        a += x
    assert type(a) is numpy.ndarray
    same(a, numpy.array([1.0, 2, 3]))


def test_copies_and_pickles():
    x = bh.arange(6.0).reshape(2, 3)
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), bh.array(x), x.copy()):
        assert type(y) is bh.ndarray and y is not x
        same(y, x)
        y[0] = 9
    same(x, numpy.arange(6.0).reshape(2, 3))


def test_text_is_that_of_numpy():
    for a in (numpy.arange(3.0), numpy.array(2.5), numpy.zeros((0, 2)), numpy.arange(2000), numpy.array([True]), numpy.array([1 + 2j])):
        assert repr(bh.asarray(a)) == repr(a) and str(bh.asarray(a)) == str(a)


def test_types_that_bh_lacks_are_numpys():
    for value in (["a", "b"], numpy.zeros(2, "f2"), numpy.array(["2020-01-01"], "M8[D]"), [None], numpy.zeros(2, "i4,f4")):
        assert type(bh.array(value)) is numpy.ndarray
    with bh.fallback("silent"):
        assert bh.ones(2).astype("f2").dtype == numpy.float16
    assert type(bh.concatenate([numpy.array(["a"]), numpy.array(["b"])])) is numpy.ndarray


def test_truth_lengths_and_iteration():
    x = bh.arange(3)
    for wrong in (lambda: bool(x), lambda: float(x), lambda: len(x.sum()), lambda: list(x.sum())):
        with pytest.raises((ValueError, TypeError)):
            wrong()
    assert [int(v) for v in x] == [0, 1, 2] and len(x) == 3 and 2 in x and 7 not in x
    assert range(3)[x[1]] == 1 and [5, 6, 7][x[2]] == 7
    same(bh.array([[x[0], x[1]], [x[2], 4]]), numpy.array([[0, 1], [2, 4]]))


def test_errors_name_the_line_that_recorded():
    x = bh.arange(3.0)
    y = bh.take(x, bh.asarray([7] * 300_000))
    with pytest.raises(IndexError, match=r"test_protocols.py:\d+"):
        y.tolist()
    # An index whose value is known fails at once.
    with pytest.raises(IndexError, match="index 7 is out of"):
        bh.take(x, bh.asarray([7]))
    with pytest.raises(IndexError, match="index 7 is out of"):
        x[bh.asarray([0, 7])] = 5.0
    same(x + 1, numpy.arange(3.0) + 1)


def test_random_numbers_are_numpys():
    mine, reference = bh.random.default_rng(7), numpy.random.default_rng(7)
    for name, arguments in (("random", ((3, 4),)), ("normal", (1, 2, 5)), ("integers", (0, 9, 6)), ("permutation", (5,)), ("choice", (9, 3))):
        same(getattr(mine, name)(*arguments), getattr(reference, name)(*arguments))
    assert mine.bit_generator.state == reference.bit_generator.state
    bh.random.seed(3)
    mine = bh.random.rand(3), bh.random.randint(0, 9, 4), bh.random.randn(2, 2)
    numpy.random.seed(3)
    same(mine, (numpy.random.rand(3), numpy.random.randint(0, 9, 4), numpy.random.randn(2, 2)))
    x, a = bh.arange(9), numpy.arange(9)
    bh.random.default_rng(1).shuffle(x)
    numpy.random.default_rng(1).shuffle(a)
    same(x, a)


def test_stacks_by_name():
    name = bh.Stack().name
    with bh.stack(name):
        x = bh.ones(3)
    assert x._stack == name and bh.stack([x, x]).shape == (2, 3)
    with pytest.raises(bh.Error, match="no-such-stack"):
        bh.stack("no-such-stack")


@pytest.fixture
def array_api():
    """For tests that ask arrays for their namespace: afterwards the array API is no longer followed."""
    yield
    bh._native.follow_array_api(False)


def test_whoever_asks_for_the_namespace_gets_arrays_without_dimensions(array_api):
    x = bh.arange(6.0)
    x.sum(), x.sum()
    assert x.__array_namespace__() is bh
    for made in (x.sum(), x[2], x.max() + 1, bh.argmax(x), bh.count_nonzero(x > 2), bh.mean(x)):
        assert type(made) is bh.ndarray and made.shape == ()
        made[...] = 7
        assert made == 7
    assert bh.clip(x, 2).tolist() == [2, 2, 2, 3, 4, 5] and bh.clip(x, max=2).tolist() == [0, 1, 2, 2, 2, 2]
    assert bh.clip(x, 1, max=2).tolist() == [0 + 1, 1, 2, 2, 2, 2]
    kept = other = x.sum()
    other += 1
    assert kept == 15 and other == 16


def test_scalars_are_not_assigned_to_where_programs_take_them_for_numbers():
    with pytest.raises(TypeError, match="does not support item assignment"):
        bh.ones((200, 200)).sum()[...] = 1


def test_namespace_of_the_array_api(array_api):
    x = bh.ones(3)
    assert x.__array_namespace__(api_version="2024.12") is bh and x.device == "cpu"
    with pytest.raises(ValueError):
        x.__array_namespace__(api_version="1999.01")
    assert bh.asarray(x, copy=True) is not x and bh.asarray(x) is x


def test_import_loads_no_further_parts_of_numpy():
    program = "import sys, numpy; before = set(sys.modules); import bh; print(*(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT).stdout.split()
    assert "bh" in loaded and not [name for name in loaded if name.startswith(("numpy.f2py", "numpy.testing", "numpy.distutils"))]
    assert bh.testing.assert_raises is numpy.testing.assert_raises


def test_every_public_name_of_numpy_is_there():
    for module, mine in ((numpy, bh), (numpy.linalg, bh.linalg), (numpy.fft, bh.fft), (numpy.random, bh.random)):
        missing = [name for name in dir(module) if not name.startswith("_") and not hasattr(mine, name)]
        assert not missing, missing


def test_numpys_functions_of_whole_axes_run_as_bhs():
    a, b = bh.arange(12.0).reshape(2, 2, 3), bh.arange(9.0).reshape(3, 3)
    before = sum(bh._numpy.fallback.counts.values())
    made = numpy.matmul(a, b)
    assert type(made) is bh.ndarray and sum(bh._numpy.fallback.counts.values()) == before
    same(made, numpy.matmul(numpy.asarray(a), numpy.asarray(b)))
    same(numpy.vecdot(a, a), numpy.vecdot(numpy.asarray(a), numpy.asarray(a)))


@pytest.mark.falls_back
def test_numpys_functions_of_whole_axes_take_axes():
    a, b = bh.arange(100.0).reshape(2, 10, 5), bh.arange(100.0).reshape(10, 2, 5)
    axes = [(0, 1), (0, 1), (0, 1)]
    expected = numpy.matmul(numpy.asarray(a), numpy.asarray(b), axes=axes)
    for function in (numpy.matmul, bh.matmul):
        same(function(a, b, axes=axes), expected)


def test_inner_parts_of_numpy_take_arrays():
    importlib.import_module("numpy._core._multiarray_tests")
    inner = bh._core._multiarray_tests
    assert inner.test_as_c_array(bh.arange(24.0), 3) == 3.0 and inner is bh._core._multiarray_tests
    assert bh._core.umath.minimum is bh.minimum
    assert bh.add._resolve_dtypes_and_context((numpy.dtype("i4"),) * 2 + (None,))[0][2] == numpy.dtype("i4")


@pytest.mark.falls_back
def test_functions_of_numpy_write_to_their_arguments():
    from numpy.lib.recfunctions import assign_fields_by_name

    for assign in (assign_fields_by_name, bh.lib.recfunctions.assign_fields_by_name):
        target = bh.zeros(3)
        assign(target, bh.arange(3.0))
        same(target, numpy.arange(3.0))


def test_classes_with_functions_of_their_own_decide():
    class Own:
        def __array_function__(self, function, types, args, kwargs):
            return function.__name__

    assert bh.histogram2d(Own(), [1, 2]) == "histogram2d" and bh.histogram2d([1, 2], [1, 2], bins=[Own(), 5]) == "histogram2d"


def test_inner_parts_of_numpy_may_hold_what_has_no_hash():
    class Unhashed:
        def __hash__(self):
            raise NameError("no hash")

    module = types.ModuleType("numpy._core._held")
    module.held = Unhashed()
    assert inner_parts._Inner(module).held is module.held


def test_functions_in_c_take_arrays_for_sequences():
    a = bh.arange(5.0)
    assert bisect.bisect(a, 2.5) == 3 and bisect.bisect_left(bh.arange(50000.0) * 2, 7) == 4
    weekdays = numpy.busdaycalendar(weekmask=bh.array([False, True, True, True, True, False, False]))
    assert weekdays.weekmask.tolist() == [False, True, True, True, True, False, False]
    with pytest.raises(TypeError, match="Concatenation"):
        operator.concat(a, [1.0])
    assert sys.getsizeof(a.reshape(1, 5).copy()) > sys.getsizeof(a)
    assert a.__array_interface__ == a.__array_interface__ and len(a.__array_interface__) == 6


def test_functions_that_give_an_argument_back_give_the_array():
    from numpy.lib.recfunctions import stack_arrays, structured_to_unstructured

    a = bh.arange(3)
    with bh.fallback("silent"):
        assert stack_arrays((a,)) is a
        records = numpy.array([(1, 2), (4, 5)], "i4,i4")
        assert numpy.shares_memory(structured_to_unstructured(records), records)


class WithMethods:
    """An object with methods that functions of NumPy call."""

    def __array__(self, dtype=None, copy=None):
        return numpy.arange(3.0)

    def __array_ufunc__(self, *args, **kwargs):
        return NotImplemented

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: (name, args, kwargs)


@pytest.mark.parametrize("name, args", [
    *((name, ()) for name in """sum prod max min amax any all mean std var argmax argmin cumsum cumprod argsort squeeze transpose round
    around nonzero""".split()), ("searchsorted", (1,)), ("reshape", ((3, 1),)), ("repeat", (2,)), ("take", ([0],)),
    ("clip", (1, 2)), ("swapaxes", (0, 1)), ("choose", ([1],)), ("argpartition", (1,)),
])  # fmt: skip
def test_objects_with_methods_are_asked_by_functions(name, args):
    mine = getattr(bh, name)(WithMethods(), *args)
    assert mine == getattr(numpy, name)(WithMethods(), *args)


def test_numbers_are_close_to_each_other():
    assert bh.isclose(1.0, 1.0 + 1e-12) is numpy.True_ and not bh.isclose(1, numpy.float32(2))


class Measured:
    """A number of units, which says itself what functions of NumPy do, and has no memory that they should see."""

    def __init__(self, value):
        self.value = value

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("the unit would be lost")

    def __array_function__(self, function, types, args, kwargs):
        strip = lambda value: value.value if type(value) is Measured else type(value)(map(strip, value)) if type(value) in (list, tuple) else value
        result = function(*map(strip, args), **{name: strip(value) for name, value in kwargs.items()})
        return type(result)(map(Measured, result)) if type(result) in (list, tuple) else Measured(result)


@pytest.mark.parametrize(
    "call",
    [
        lambda np, q, a: np.append(q, q), lambda np, q, a: np.append(a, q), lambda np, q, a: np.append(q, a), lambda np, q, a: np.ravel(q),
        lambda np, q, a: np.dot(q, a), lambda np, q, a: np.dot(a, q), lambda np, q, a: np.concatenate([a, q]), lambda np, q, a: np.where(a > 1, q, a),
        lambda np, q, a: np.interp(1.5, q, a), lambda np, q, a: np.isin(a, q), lambda np, q, a: np.cross(q, a), lambda np, q, a: np.diff(q),
        lambda np, q, a: np.meshgrid(q, a), lambda np, q, a: np.sum(q), lambda np, q, a: np.max(q, axis=0), lambda np, q, a: np.any(q),
        lambda np, q, a: np.copy(q), lambda np, q, a: np.zeros_like(q), lambda np, q, a: np.full_like(q, 3), lambda np, q, a: np.linalg.norm(q),
        lambda np, q, a: np.clip(q, 1, 2), lambda np, q, a: np.searchsorted(q, a), lambda np, q, a: np.median(q), lambda np, q, a: np.sort(q),
        lambda np, q, a: np.broadcast_arrays(q, a), lambda np, q, a: np.einsum("i,i", q, a), lambda np, q, a: np.prod(q, keepdims=True),
    ],
)  # fmt: skip
def test_classes_of_others_decide(call):
    wanted = call(numpy, Measured(numpy.array([1.0, 2.0, 3.0])), numpy.array([2.0, 3.0, 4.0]))
    made = call(bh, Measured(bh.array([1.0, 2.0, 3.0])), bh.array([2.0, 3.0, 4.0]))
    for mine, theirs in zip(*((value if type(value) in (list, tuple) else (value,)) for value in (made, wanted))):
        assert type(mine) is Measured
        same(mine.value, theirs.value)


# A container with functions of its own, as NumPy's guide to custom containers writes one, in a module that knows one NumPy.
CONTAINER = """
HANDLED = {}


class Diagonal:
    def __init__(self, n, value):
        self.n, self.value = n, value

    def __array__(self, dtype=None, copy=None):
        return self.value * np.eye(self.n)

    def __array_function__(self, function, kinds, args, kwargs):
        if function not in HANDLED or not all(issubclass(kind, (Diagonal, np.ndarray)) for kind in kinds):
            return NotImplemented
        return function is HANDLED[function][0] and HANDLED[function][1](*args, **kwargs)

    def __array_ufunc__(self, function, method, *inputs, **options):
        if function is not np.multiply or method != "__call__":
            return NotImplemented
        n, factor = (self.n, inputs[1]) if inputs[0] is self else (self.n, inputs[0])
        return Diagonal(n, self.value * factor)


HANDLED[np.sum] = np.sum, lambda a: a.n * a.value
HANDLED[np.mean] = np.mean, lambda a: np.mean(np.asarray(a.value / a.n))
HANDLED[np.linalg.norm] = np.linalg.norm, lambda a: abs(a.value) * a.n**0.5
HANDLED[np.concatenate] = np.concatenate, lambda parts: [type(part).__name__ for part in parts]


class Inherits(Diagonal):
    pass


def refused(call):
    try:
        return call()
    except TypeError:
        return "refused"


d, e = Diagonal(4, 3.0), Inherits(4, 2.0)
found = [np.sum(d), float(np.mean(d)), np.linalg.norm(d), np.concatenate([d, np.ones(2)]), np.concatenate([np.ones(2), e]), np.sum(e)]
found += [np.multiply(d, 2.0).value, (np.float64(2.0) * d).value, np.multiply(3.0, e).value, refused(lambda: np.add(d, 1)), refused(lambda: np.median(d))]
"""


def test_containers_are_asked_about_the_functions_that_their_module_names():
    results = []
    for module in (numpy, bh):
        scope = {"__name__": "container", "np": module}
        exec(CONTAINER, scope)
        results.append(scope["found"])
    assert results[0] == results[1] and results[1][:3] == [12.0, 0.75, 6.0]


def test_containers_of_modules_that_know_numpy_itself_are_asked_about_its_functions():
    scope = {"__name__": "container", "np": numpy, "bh": bh}
    exec(CONTAINER, scope)
    assert bh.sum(scope["d"]) == 12.0 and bh.multiply(scope["d"], 2.0).value == 6.0


class Boxed:
    """An array in a box whose class knows only its own objects and NumPy's arrays, as NumPy's page of `NDArrayOperatorsMixin` writes it."""

    __array_priority__ = 100.0

    def __init__(self, value):
        self.value = value

    def _of(self, values):
        if not all(isinstance(value, (Boxed, numpy.ndarray, numpy.generic, int, float)) for value in values):
            return None
        return [value.value if isinstance(value, Boxed) else value for value in values]

    def __array_ufunc__(self, function, method, *inputs, out=None, **options):
        values = self._of(inputs)
        if values is None or out is not None and self._of(out) is None:
            return NotImplemented
        result = getattr(function, method)(*values, **options | ({"out": tuple(self._of(out))} if out else {}))
        return out[0] if out else Boxed(result)

    def __array_function__(self, function, kinds, args, options):
        parts = args[0] if isinstance(args[0], (list, tuple)) else args
        values = self._of(parts)
        if values is None:
            return NotImplemented
        return Boxed(function(values, **options) if parts is args[0] else function(*values, **options))

    __add__, __radd__ = lambda self, other: numpy.add(self, other), lambda self, other: numpy.add(other, self)
    __matmul__, __lt__ = lambda self, other: numpy.matmul(self, other), lambda self, other: numpy.less(self, other)


BOXED_CALLS = [
    lambda q, a: q + a, lambda q, a: a + q, lambda q, a: q < a, lambda q, a: q @ a, lambda q, a: numpy.multiply(q, a), lambda q, a: numpy.power(q, a),
    lambda q, a: numpy.add(q, a, where=numpy.asarray(a) > 1, out=Boxed(numpy.zeros(numpy.shape(a)))), lambda q, a: numpy.subtract.outer(q, a),
    lambda q, a: q + a.sum(), lambda q, a: q + (a * 2 + 1), lambda q, a: numpy.concatenate([q, a]), lambda q, a: numpy.stack([q, a]),
    lambda q, a: numpy.dot(q, a), lambda q, a: numpy.allclose(q, a),
]  # fmt: skip
BOXED_VALUES = [
    lambda np: np.arange(9.0).reshape(3, 3), lambda np: np.arange(9.0).reshape(3, 3).T, lambda np: np.arange(18).reshape(3, 6)[:, ::2],
    lambda np: np.zeros((0, 0), np.float32), lambda np: np.broadcast_to(np.arange(4.0), (4, 4)), lambda np: np.arange(2000.0 * 2000)[:4].reshape(2, 2),
]  # fmt: skip


@pytest.mark.parametrize("value", BOXED_VALUES)
@pytest.mark.parametrize("call", BOXED_CALLS)
def test_classes_that_refuse_arrays_of_bh_get_those_of_numpy(call, value):
    with bh.fallback("silent"):
        mine = call(Boxed(value(numpy)), value(bh))
    theirs = call(Boxed(value(numpy)), value(numpy))
    assert type(mine) is Boxed and type(theirs) is Boxed
    same(mine.value, theirs.value)


def test_outputs_of_bh_take_what_other_classes_give():
    out, view = bh.zeros(6), bh.zeros(6)[::2]
    with bh.fallback("silent"):
        assert numpy.add(Boxed(numpy.arange(6.0)), 1, out=out) is out
        numpy.add(Boxed(numpy.arange(3.0)), bh.ones(3), out=view)
    same(out, numpy.arange(6.0) + 1)
    same(view, numpy.arange(3.0) + 1)


def test_classes_that_refuse_all_arrays_are_refused():
    class Refusing:
        __array_ufunc__ = __array_function__ = lambda self, *args, **options: NotImplemented

    for call in (lambda a: numpy.add(Refusing(), a), lambda a: numpy.add(a, Refusing()), lambda a: numpy.concatenate([Refusing(), a])):
        errors = []
        for module in (numpy, bh):
            with pytest.raises(TypeError) as error, bh.fallback("silent"):
                call(module.arange(3.0))
            errors.append(str(error.value).partition(" at 0x")[0])
        assert errors[0].partition("<")[0] == errors[1].partition("<")[0]
