"""Floating-point warnings and errors of what is carried out at once, as NumPy's."""

import warnings

import numpy
import pytest

import bh
import bh as np


def told(module, expression):
    """The warnings of an expression, as text."""
    names = {
        "np": module, "a": module.array([1.0, 2.0, 0.0]), "nan": module.array([1.0, numpy.nan, 3.0]), "i": module.array([1, 2, 0]),
        "big": module.array([1e308, 1e308, 1.0]), "low": module.array([-128], "i1"), "c": module.array([1e300 + 1j, numpy.nan]),
    }  # fmt: skip
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        eval(expression, names)
    return [f"{one.category.__name__}: {one.message}" for one in found]


@pytest.mark.parametrize("expression", """
a / 0 | a / 0.0 | a / a | 1 / a | nan / a | nan + nan | nan * 2 | np.exp(nan) | np.sqrt(-a) | np.sqrt(nan) | np.log(a) | np.log(nan)
big * 10 | big + big | big - (-big) | np.sum(big) | big.sum() | i // 0 | i % i | i / i | 1 // i | np.divmod(i, 0) | low // -1 | a == nan
np.sin(a * np.inf) | a.astype(int) | nan.astype(int) | nan.astype("i4") | (big * 1).astype("f4") | np.power(0.0, -a) | np.signbit(a)
np.hypot(a, a) | np.arctanh(a) | np.maximum(nan, a) | np.float32([1e30]) * np.float32([1e30]) | np.reciprocal(a) | np.nanmean(nan)
np.isclose(nan, a) | np.copysign(a, -a) | np.std(nan) | np.mean([]) | c.astype("f4") | c.astype(int) | np.square(big) | np.exp2(big)
np.add.accumulate(big) | np.cumprod(nan) | np.add.reduceat(big, [0, 2]) | np.isclose(a, a, rtol=np.inf) | np.mean(a, where=a > 5) | np.full_like(a, 2) / 0 | np.cosh(big) | np.expm1(big) | np.float64(1) / a
np.var([]) | np.var([1], ddof=1) | np.std(np.ones((1, 2)), axis=0, ddof=1) | np.mean(np.zeros((0, 3)), axis=0) | np.mean(np.array([], "f4")) | np.var(np.zeros((0, 2)), axis=0)
big ** 2 | big ** 2.0 | np.power(big, 2) | c ** 2 | np.dot(big, big) | big @ big | np.matmul(big, big) | np.inner(big, big) | np.vdot(big, big) | np.outer(big, big)
big.cumsum() | np.array([big, big]).cumprod(0) | np.linspace(np.inf, 1, 4) | np.linspace(-1, -np.inf, 4, False) | np.linspace(-1.7e308, big[:1] * 1.7, 3) | np.linspace(np.inf, 1, 1)
np.linspace(np.inf, np.inf, 3, retstep=True) | np.linspace(1j, np.inf, 3) | np.linspace(np.nan, 1, 3) | np.linspace(0, np.inf, 3, dtype=int) | np.linspace(i, np.inf, 3)
np.stack([big, big]) @ big | np.dot(np.stack([big, a]), np.stack([big, a], 1)) | np.dot(nan, a) | np.std(big / a) | np.var(big * 10) | a @ nan
""".replace("\n", "|").split("|"))  # fmt: skip
def test_warnings_are_numpys(expression):
    if not expression.strip():
        return
    expected = told(numpy, expression.strip())
    # The first call of a function is looked up in Python, the second one is not.
    assert told(np, expression.strip()) == expected and told(np, expression.strip()) == expected


@pytest.mark.parametrize("change", ["b /= 0", "b *= 1e308", "b -= b * np.inf", "b += nan", "b /= nan", "b **= 2", "b **= 2.0", "k //= 0", "k %= k"])
def test_operators_in_place_warn(change):
    def run(module):
        names = {"np": module, "b": module.array([0.0, 3.0, 1e300]), "k": module.array([0, 3]), "nan": module.array([1.0, numpy.nan, 2.0])}
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            exec(change, names)
        return [str(one.message) for one in found]

    expected = run(numpy)
    assert run(np) == expected and run(np) == expected


CALLS = [
    "np.sqrt(x, out=o, where=x < 0)", "np.sqrt(x, out=o, where=x >= 0)", "np.log(x, out=o, where=[True, False, True])", "np.sqrt(x, out=o)",
    "np.log(x, out=o)", "np.sqrt(x, x)", "np.log(x, out=x)", "np.log(x, out=x, where=x < 0)", "np.exp(x[::-1] * 1e3, out=x)", "np.square(big, out=big)",
    "np.reciprocal(x, out=x, where=x >= 0)", "np.reciprocal(x, x)", "np.log10(x, where=x >= 0, out=None)", "np.power(x, -1.5, out=o, where=x >= 0)",
    "np.power(x, -1.5, out=x)", "np.arctanh(x, o, where=x == 1)", "np.divide(1, x, out=o, where=x == 0)", "np.floor_divide(3, i, out=i, where=i == 0)",
    "np.remainder(3, i, out=k, where=[True, True, False])", "np.add(big, 1, out=single, where=[False, True, True])", "np.sqrt(big, single, where=big < 2)",
    "np.sum(big, where=[True, True, False])", "np.sum(big, where=[True, False, True])", "np.add.reduce(big, initial=1)", "np.sum(big, out=np.zeros(()))",
    "np.sum(big[:1], dtype='f4')", "np.mean(big, where=[True, True, False])", "np.multiply.reduce(big, where=[True, True, False])",
    "np.cumsum(big, out=big)", "np.multiply.outer(big, big)", "np.sum(big, dtype=None)", "big.sum(dtype=None)", "np.prod(big, dtype=None)",
    "np.mean(big, dtype=None)", "np.mean(big, dtype=float)", "np.sum(big, axis=0, dtype=None)",
] + ["np.add(x, 1, out=x, where=x > 0)", "np.subtract(3, i, out=i, where=[True, False, True])"]  # fmt: skip


def operands(module):
    names = {"np": module, "x": module.array([-1.0, 4.0, 0.0]), "o": module.zeros(3), "i": module.array([-1, 4, 0]), "k": module.zeros(3, int)}
    return names | {"big": module.array([1e308, 1e308, 1.0]), "single": module.zeros(3, "f4")}


@pytest.mark.parametrize("call", CALLS)
def test_calls_with_masks_and_places_warn_of_what_they_compute(call):
    def run(module):
        names = operands(module)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            eval(call, names)
        return sorted(str(one.message) for one in found)

    expected = run(numpy)
    assert run(np) == expected and run(np) == expected


@pytest.mark.parametrize("call", [call for call in CALLS if "out=None" not in call])
def test_calls_with_masks_and_places_compute_where_all_errors_are_ignored(call):
    def run(module):
        names = operands(module)
        with numpy.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error")
            result = eval(call, names)
        return [numpy.asarray(one) for one in (result, *(names[name] for name in ("x", "o", "i", "k", "big", "single")))]

    for mine, expected in zip(run(np), run(numpy)):
        numpy.testing.assert_allclose(mine, expected, rtol=1e-12)


def test_floats_that_whole_numbers_cannot_hold_go_into_an_output():
    for np in (bh, numpy):
        out = np.ones((), int)
        with pytest.warns(RuntimeWarning):
            assert np.add.reduce(np.array([numpy.nan, 1.0]), out=out) is out


def test_errstate_decides():
    a = np.array([1.0, 0.0])
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        a / 0, np.log(a)
    with np.errstate(divide="raise"):
        for wrong in (lambda: a / 0, lambda: np.log(a), lambda: np.array([1]) // 0):
            with pytest.raises(FloatingPointError, match="divide by zero"):
                wrong()
    met = []
    with np.errstate(divide="call", call=lambda kind, flag: met.append(kind)):
        1 / a
    assert met == ["divide by zero"]


def test_a_warning_names_the_line_of_the_program():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(3):
            np.array([1.0]) / 0
    assert [one.filename for one in found] == [__file__]


def test_floats_beyond_a_type_are_warned_of_where_they_are_assigned():
    a = np.zeros(3, np.float32)
    for assign in (lambda: a.fill(1e100), lambda: a.__setitem__(0, 1e100), lambda: a.__setitem__(slice(2), np.array([1e100, 1.0]))):
        with pytest.warns(RuntimeWarning, match="overflow encountered in cast"):
            assign()
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        np.zeros(2, int)[0] = numpy.float64("nan")
    with pytest.raises(OverflowError):
        np.zeros(2, "i1")[1] = numpy.float64(1e300)


@pytest.mark.parametrize("expression", [
    "i // 0", "i % 0", "np.divmod(i, 0)", "np.fmod(i, 0)", "i // 2", "i % 7", "i // -1", "(i + 1) // 0", "i[:0] // 0", "i.astype('u1') // 0",
    "i // i", "np.divmod(1, i)", "(i + 1) % (i - 5)", "i // (i + 1)", "np.floor_divide(-i, i)",
])  # fmt: skip
def test_divisions_of_many_whole_numbers_by_zero_warn(expression):
    def told_of(module):
        i = module.arange(10000)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            for _ in range(2):
                eval(expression, {"i": i, "np": module})
        return [str(one.message) for one in found]

    assert told_of(np) == told_of(numpy)


def test_divisors_are_waited_for_where_little_is_done_at_once():
    @bh.jit
    def f(a, b):
        return a // b

    a = np.arange(10000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f(a, a + 1)[5] == 0 and f(a, a)[5] == 1
        with np.errstate(divide="ignore", over="ignore"):
            assert (a // a)[0] == 0
        least = np.full(10000, numpy.iinfo("i8").min)
        with pytest.raises(RuntimeWarning, match="overflow encountered in floor_divide"):
            least // (a * 0 - 1)
        # Divisions of many whole numbers give no warning.
        many = np.arange(100000)
        assert (many // many)[7] == 1


@pytest.mark.parametrize("expression", [
    "1 / x", "np.log(x - 5)", "np.divide(x, x, out=x)", "x.__itruediv__(0)", "np.sqrt(-x - 1)", "(x * 1e300) * 1e300", "x @ (x * np.inf)",
    "np.dot(x, x * np.inf)", "(x * 1e308).sum()", "(x / x).astype(int)", "np.add(x * np.nan, 1, dtype=int, casting='unsafe')",
    "np.add(x, 1, where=x > 3, out=x)", "np.divide(1, x, where=x > 3, out=x)", "x + 1", "np.exp(-x)", "np.exp(-1000 - x)", "x * 1e-320",
])  # fmt: skip
@pytest.mark.parametrize("modes", [{"all": "raise"}, {"divide": "raise", "under": "warn"}, {"invalid": "call"}])
def test_errors_that_are_asked_for_come_at_any_size(expression, modes):
    def met(module):
        found = []
        call = {"call": lambda kind, flag: found.append(kind)}
        with warnings.catch_warnings(record=True) as told, module.errstate(divide="ignore", invalid="ignore", over="ignore"):
            warnings.simplefilter("always")
            x = module.arange(50000.0)
            try:
                with module.errstate(**modes, **call):
                    eval(expression, {"x": x, "np": module})
            except FloatingPointError as error:
                found.append(str(error))
        return found, [str(one.message) for one in told]

    assert met(np) == met(numpy)


def test_errors_are_asked_for_until_no_context_does():
    @np.errstate(divide="raise")
    def reciprocal(x):
        return 1 / x

    x = np.arange(50000.0)
    with pytest.raises(FloatingPointError, match="divide by zero encountered in divide"):
        reciprocal(x)
    assert not bh._native.errors_asked()
    before = np.seterr(all="raise")
    try:
        with pytest.raises(FloatingPointError), np.errstate(divide="warn"):
            np.log(-x - 1)
    finally:
        assert np.seterr(**before)["invalid"] == "raise"
    assert np.isinf(1 / x)[0] and not bh._native.errors_asked()


def test_numbers_beyond_single_precision_are_warned_of_where_they_are_chosen():
    for np in (bh, numpy):
        with pytest.warns(RuntimeWarning, match="overflow encountered in cast"):
            assert np.isinf(np.where([True, False], np.ones(2, "f4"), 1e150)).tolist() == [False, True]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.where([True], np.ones(1, "f4"), np.inf), np.where([True], np.ones(1), 1e150), np.where([True], 1e150, 2.0)


@pytest.mark.falls_back
def test_warnings_of_fallbacks_are_no_errors_where_warnings_are():
    with bh.fallback("warn"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bh.ones(2).view(numpy.int32).size == 4
    with bh.fallback("error"), pytest.raises(bh.FallbackError):
        bh.ones(2).view(numpy.int32)
