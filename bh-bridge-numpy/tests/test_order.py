"""The order of complex numbers, and extremes at indices that repeat: NumPy's results, without NumPy."""

import numpy
import pytest

import bh as np
from conftest import same

NAN = float("nan")
COMPLEX = numpy.array([2 + 1j, 1 + 3j, complex(NAN, 1), 1 - 3j, 2 + 1j, complex(1, NAN), 0, complex(NAN, NAN), complex(NAN, -1), -1j])


def both(expression, **names):
    mine = eval(expression, {"np": np, **{name: np.asarray(value) for name, value in names.items()}})
    same(mine, eval(expression, {"np": numpy, **names}))


@pytest.mark.parametrize("expression", """
np.sort(c) | np.argsort(c) | np.sort_complex(c) | np.sort(c[:4].reshape(2, 2), 0) | np.argsort(m, 1) | np.sort(m, None) | np.maximum(c, c[::-1])
np.minimum(c, c[::-1]) | c.max() | c.min() | m.max() | m.min(1) | np.max(m, 0, keepdims=True) | np.min(m, (0, 1)) | np.argmax(c) | np.argmin(m)
np.argmax(m, 1) | np.argmin(m, 0) | np.clip(m, 1, 2) | np.ptp(m)
""".replace("\n", "|").strip("|").split("|"))  # fmt: skip
def test_complex_numbers_have_numpys_order(expression):
    both(expression.strip(), c=COMPLEX, m=COMPLEX[[0, 1, 3, 4, 6, 9]].reshape(2, 3))


@pytest.mark.parametrize("name", ["maximum", "minimum"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i2", "u8", "?"])
def test_extremes_at_indices_that_repeat(name, dtype):
    rng = numpy.random.default_rng(3)
    for shape in ((7,), (5, 4)):
        start = rng.integers(0, 9, shape).astype(dtype)
        for values in (rng.integers(0, 9, 30), 4, numpy.int8(1), rng.integers(0, 9, 1)):
            given = values.astype(dtype) if isinstance(values, numpy.ndarray) else values
            if dtype == "f8" and numpy.ndim(given) and given.size > 3:
                given[3] = NAN
            if dtype in "?u8" and not isinstance(given, numpy.ndarray):
                continue
            index = rng.integers(-shape[0], shape[0], 30)
            mine, theirs = np.asarray(start), start.copy()
            key = index if len(shape) == 1 else (index, 2)
            getattr(np, name).at(mine, key, np.asarray(given) if isinstance(given, numpy.ndarray) else given)
            getattr(numpy, name).at(theirs, key, given)
            same(mine, theirs)


def test_extremes_at_parts():
    mine, theirs = np.zeros((3, 4)), numpy.zeros((3, 4))
    for library, array in ((np, mine), (numpy, theirs)):
        library.maximum.at(array[:, ::2], [0, 2, 0], library.asarray([[1.0, 5.0], [2.0, 2.0], [3.0, 4.0]]))
        library.minimum.at(array, (slice(None), [1, 1]), -1.0)
    same(mine, theirs)


def test_whole_numbers_are_rounded_to_tens():
    for values in (numpy.arange(-60, 60), numpy.array([14, 15, 25, 250], "u1")):
        for decimals in (-1, -2):
            both(f"np.round(v, {decimals})", v=values)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i1", "i8", "u2", "?"])
def test_places_of_extremes(dtype):
    rng = numpy.random.default_rng(5)
    for count in [*range(1, 40), 100, 1000, 5000]:
        values = rng.integers(0, 7, count).astype(dtype) - (numpy.dtype(dtype).kind == "f") * 3
        values[rng.integers(0, count)] *= -1 if dtype != "?" and dtype != "u2" else 1
        for broken in (None, 0, count - 1, count // 2):
            if broken is not None and numpy.dtype(dtype).kind == "f":
                values[broken:][::5] = NAN
            both("np.argmax(a), np.argmin(a), np.argmax(a[::-1]), np.argmin(a[::2])", a=values)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u2"])
def test_places_of_extremes_in_later_blocks(dtype):
    rng = numpy.random.default_rng(6)
    for count in (31, 32, 255, 256, 257, 511, 600, 900):
        values = rng.permutation(count).astype(dtype)
        for place in (0, 1, count // 2, count - 1):
            values[place], other = values.max(), values[place]
            both("np.argmax(a), np.argmin(a), np.argmax(a[1:]), np.argmin(a[::-1])", a=values)
            values[place] = other
            if numpy.dtype(dtype).kind == "f":
                values[place] = NAN
                both("np.argmax(a), np.argmin(a)", a=values)
                values[place] = other


@pytest.mark.parametrize("dtype", ["f8", "f4", "i1", "i8", "u2", "?", "c16"])
def test_places_of_extremes_along_axes(dtype):
    rng = numpy.random.default_rng(7)
    for shape in ((1, 5), (5, 1), (7, 9), (3, 4, 5), (40, 33), (2, 3, 300), (64, 300)):
        values = rng.integers(0, 9, shape).astype(dtype)
        for broken in (False, True):
            if broken and numpy.dtype(dtype).kind in "fc":
                values[rng.random(shape) < 0.1] = NAN
            for axis in range(-len(shape), len(shape)):
                both(f"np.argmax(a, {axis}), np.argmin(a, axis={axis}), a.argmax({axis}), np.argmin(a.T, {axis}), np.argmax(a[::-1, ::2], axis={axis})", a=values)


@pytest.mark.parametrize("extent", [2, 3, 7, 8, 16, 17, 31, 33, 127, 128, 300, 32767, 32768])
def test_places_of_extremes_in_recorded_rows(extent):
    # Indices are compared in types that hold the extent; rows of few elements are folded side by side.
    rng = numpy.random.default_rng(extent)
    rows = max(3, 20_000 // extent)
    for dtype in ("i1", "?", "u1", "i2", "u2", "f2", "i4", "f4", "i8", "u8", "f8"):
        values = rng.integers(0, 5, (rows, extent)).astype(dtype)
        # The last element alone is the extreme of some rows, so that an index next to the extent is found.
        values[:: 2, -1] = 1 if dtype == "?" else 9
        values[:: 2, :-1] = 0
        if values.dtype.kind == "f":
            values[::3, extent // 2] = NAN
        for given in (values, numpy.asfortranarray(values)):
            mine = np.asarray(given) + np.zeros((), dtype)
            for name in ("argmax", "argmin"):
                for axis in (0, 1):
                    same(getattr(np, name)(mine, axis), getattr(numpy, name)(given, axis))
                same(getattr(np, name)(mine[::-1, ::2], 1), getattr(numpy, name)(given[::-1, ::2], 1))


def test_axes_that_no_array_has():
    for axis in (2, -3, 1.0, True, None):
        outcomes = []
        for library in (numpy, np):
            try:
                outcomes.append(numpy.asarray(library.argmax(library.asarray([[1, 5, 2], [7, 0, 3]]), axis)).tolist())
            except (TypeError, numpy.exceptions.AxisError) as error:
                outcomes.append(f"{type(error).__name__}: {error}")
        assert outcomes[0] == outcomes[1], axis
