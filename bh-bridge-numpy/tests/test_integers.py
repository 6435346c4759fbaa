"""Whole numbers that do not fit a type, and negative whole powers: NumPy's errors, and its values where there is no error."""

import operator
import platform

import numpy
import pytest

import bh

pytestmark = pytest.mark.falls_back

TYPES = "i1 i2 i4 i8 u1 u2 u4 u8".split()
NUMBERS = [-1, -2, -129, 127, 128, 255, 256, 300, -32769, 65536, 2**31, -(2**31) - 1, 2**32, 2**63, -(2**63) - 1, 2**64, 2**70, 0, 3]
OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide", "mod": "remainder", "pow": "power",
    "lshift": "left_shift", "rshift": "right_shift", "and_": "bitwise_and", "or_": "bitwise_or", "xor": "bitwise_xor", "lt": "less",
}  # fmt: skip
# One element, a few that are computed at once, many that are recorded, and none.
SIZES = [1, 50, 33_000, 0]


def outcome(call, np):
    """The result as an array, or the error."""
    try:
        value = numpy.asarray(call(np))
    except (ValueError, OverflowError, TypeError) as error:
        return type(error), str(error)
    return value.dtype, value.tolist()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("kind", TYPES)
def test_numbers_beyond_a_type(kind, name, size):
    function, in_place = getattr(operator, name), getattr(operator, f"i{name.strip('_')}", None)
    for number in NUMBERS:
        calls = [
            lambda np: function(np.full(size, 5, kind), number),
            lambda np: function(number, np.full(size, 5, kind)),
            lambda np: getattr(np, OPERATORS[name])(np.full(size, 5, kind), number),
            lambda np: getattr(np, OPERATORS[name])(np.full(size, 5, kind), number, out=np.zeros(size)),
        ]
        calls += [lambda np: in_place(np.full(size, 5, kind), number)] if in_place else []
        for place, call in enumerate(calls):
            assert outcome(call, bh) == outcome(call, numpy), (place, number)


@pytest.mark.parametrize("size", SIZES[:3])
@pytest.mark.parametrize("exponents", TYPES)
@pytest.mark.parametrize("kind", TYPES)
def test_negative_powers_of_arrays(kind, exponents, size):
    for values in ([-1], [0, -2], [3, 2], [0]):
        if min(values) < 0 and exponents[0] == "u":
            continue
        calls = [
            lambda np: np.full(size * len(values), 3, kind) ** np.array(values * size, exponents),
            lambda np: np.full(size, 3, kind) ** numpy.dtype(exponents).type(values[-1]),
            lambda np: np.power(np.full(size * len(values), 3, kind), np.array(values * size, exponents), out=np.zeros(size * len(values))),
            lambda np: operator.ipow(np.full(size * len(values), 3, kind), np.array(values * size, exponents)),
        ]
        for place, call in enumerate(calls):
            assert outcome(call, bh) == outcome(call, numpy), (place, values)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="NumPy's conversions are the processor's")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("limits", [(-2, 2, 5), (0, 300, 7), (-0.5, 0.5, 5), (-3.5, 3.5, 8), ([-2, 0], [2, 3], 5)])
@pytest.mark.parametrize("kind", TYPES[1:])
def test_equal_distances_between_whole_numbers(kind, limits):
    start, stop, count = limits
    expected = numpy.linspace(start, stop, count, dtype=kind)
    mine = numpy.asarray(bh.linspace(start, stop, count, dtype=kind))
    assert mine.dtype == expected.dtype and mine.tolist() == expected.tolist()
