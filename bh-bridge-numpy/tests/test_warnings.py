"""Floating-point warnings and errors of what is carried out at once, as NumPy's."""

import warnings

import numpy
import pytest

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
""".replace("\n", "|").split("|"))  # fmt: skip
def test_warnings_are_numpys(expression):
    if not expression.strip():
        return
    expected = told(numpy, expression.strip())
    # The first call of a function is looked up in Python, the second one is not.
    assert told(np, expression.strip()) == expected and told(np, expression.strip()) == expected


@pytest.mark.parametrize("change", ["b /= 0", "b *= 1e308", "b -= b * np.inf", "b += nan", "b /= nan", "k //= 0", "k %= k"])
def test_operators_in_place_warn(change):
    def run(module):
        names = {"np": module, "b": module.array([0.0, 3.0, 1e300]), "k": module.array([0, 3]), "nan": module.array([1.0, numpy.nan, 2.0])}
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            exec(change, names)
        return [str(one.message) for one in found]

    expected = run(numpy)
    assert run(np) == expected and run(np) == expected


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
])  # fmt: skip
def test_divisions_of_many_whole_numbers_by_zero_warn(expression):
    def told_of(module):
        i = module.arange(20000)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            for _ in range(2):
                eval(expression, {"i": i, "np": module})
        return [str(one.message) for one in found]

    assert told_of(np) == told_of(numpy)
