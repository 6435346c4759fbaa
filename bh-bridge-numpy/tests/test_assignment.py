"""Conversions and errors of assignments, as in NumPy."""

import platform
import warnings

import numpy
import pytest

import bh

CASES = [
    ("u1", 300), ("u1", -1), ("i8", float("nan")), ("i8", float("inf")), ("f8", 1j), ("i4", 2**40), ("u1", [300, 1]),
    ("f8", [1j, 1]), ("i8", [float("nan"), 1]), ("u1", numpy.int64(300)), ("u1", numpy.array([300, 1])), ("f8", "3.5"),
    ("f8", "three"), ("f8", None), ("f8", [1, 2, 3]), ("f8", 2**70), ("i8", 2**70), ("bool", 3), ("bool", [2.5, 0]),
]  # fmt: skip
WAYS = {
    "an element": lambda np, a, value: a.__setitem__(0, value),
    "all": lambda np, a, value: a.__setitem__(slice(None), value),
    "indices": lambda np, a, value: a.__setitem__([0, 1], value),
    "a mask": lambda np, a, value: a.__setitem__(np.asarray([True, True]), value),
    "fill": lambda np, a, value: a.fill(value),
    "put": lambda np, a, value: a.put([0, 1], value),
    "place": lambda np, a, value: np.place(a, np.asarray([True, False]), [value]),
    "putmask": lambda np, a, value: np.putmask(a, np.asarray([True, False]), value),
    "copyto": lambda np, a, value: np.copyto(a, value),
    "copyto without rule": lambda np, a, value: np.copyto(a, value, casting="unsafe"),
    "full_like": lambda np, a, value: a.__setitem__(slice(None), np.full_like(a, value)),
    "flat": lambda np, a, value: a.flat.__setitem__(slice(0, 2), value),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype, value", CASES, ids=str)
def test_as_numpy_does(way, dtype, value):
    if way in ("an element", "fill") and isinstance(value, list):
        pytest.skip("NumPy takes the list for a number")
    theirs, mine = numpy.ones(2, dtype), bh.ones(2, dtype)
    errors = (ValueError, TypeError, OverflowError)
    try:
        WAYS[way](numpy, theirs, value)
    except errors as error:
        expected = error
    else:
        WAYS[way](bh, mine, value)
        numpy.testing.assert_array_equal(numpy.asarray(mine), theirs)
        return
    with pytest.raises(errors) as raised:
        WAYS[way](bh, mine, value)
    assert type(raised.value) is type(expected) and mine.tolist() == [1, 1]


# On other processors NumPy's own loops disagree on what numbers beyond a type of whole numbers become (docs/numbers.md).
BEYOND = platform.machine() == "x86_64"
DTYPES = ["?", "i1", "u1", "i2", "u4", "i4", "i8", "u8", "f4", "f8", "c8", "c16"]


def defined(numbers):
    """These numbers, or some that all types have."""
    return numbers if BEYOND else numpy.abs(numbers) % 100


def assigned(module, seed):
    """The arrays after some assignments of arrays of other types and layouts, by slices and by indices, with their warnings."""
    source = numpy.random.default_rng(seed)
    size = int(source.choice([1, 2, 5, 40, 300]))
    host = [defined(source.normal(size=size) * 10.0 ** source.integers(0, 6)).astype(source.choice(DTYPES)) for _ in range(3)]
    host[1] = host[1] if source.random() < 0.7 else numpy.stack([host[1], host[1]], 1)[:, source.integers(0, 2)]
    places = source.integers(-size, size, int(source.integers(1, size + 1)))
    first, target, other, third = map(module.array, [host[0], *host])
    grid = module.zeros((3, size), source.choice(DTYPES), order=source.choice(["C", "F"]))
    places, step = module.asarray(places), int(source.choice([1, -1, 2]))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        grid[1] = other
        grid[:, 0] = third[:1]
        grid[0, ::step] = other[::step]
        grid[1:] = third[::-1]
        target[places] = other[: len(places)][::1]
        target[places[::-1]] = target[: len(places)]
        third[places[::step]] = first[: len(places)][::step].astype(third.dtype)
        target[...] = other
    told = [f"{one.category.__name__}: {one.message}" for one in found]
    return [(numpy.asarray(one).tobytes(), one.dtype) for one in (grid, target, other, third)], told


@pytest.mark.parametrize("seed", range(150))
def test_arrays_of_any_type_are_assigned_as_in_numpy(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, warned = assigned(numpy, seed)
        before = bh._native.set_shortcuts(False)
        try:
            assert assigned(bh, seed)[0] == expected
        finally:
            bh._native.set_shortcuts(before)
        assert assigned(bh, seed) == (expected, warned)


def test_lost_parts_are_warned_of():
    a = bh.zeros(2)
    with pytest.warns(numpy.exceptions.ComplexWarning):
        a[:] = bh.asarray([1j, 2])
    assert a.tolist() == [0, 2]


def test_known_indices_are_checked_at_once():
    a, b = bh.zeros(3), bh.ones(3)
    for call in (lambda: a.put([3], 1), lambda: a.put(-4, 1), lambda: bh.take(a, [3]), lambda: a.flat.__setitem__([5], 1)):
        with pytest.raises(IndexError, match="out of bounds"):
            call()
    a.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        a.put([0], 1)
    assert b.tolist() == [1, 1, 1] and a.tolist() == [0, 0, 0]


VALUES = """
2 + 1j
numpy.complex64(2 + 1j)
numpy.complex128(3 + 1j)
x[5] + 1j
x[5] * 1j
np.sum(x[:3] * 1j)
np.array(2 + 1j)
np.array([2 + 1j])
np.array([[2.5]])
np.array([2, 3])
numpy.array([2.5], object)
numpy.array(2.5, object)
'3'
'x'
None
object()
[1]
[1j]
[None]
range(1)
1 << 70
float('nan')
numpy.float32('inf')
numpy.timedelta64(3, 'D')
""".strip().splitlines()
KEYS = {"an element": "a[5] = value", "a tuple": "a[5,] = value", "with an ellipsis": "a[5, ...] = value", "flat": "a.flat[5] = value", "all": "a[1:3] = value"}


def stored(m, value, statement, dtype, size):
    """The array after an assignment, or the class of its error, and the classes of its warnings."""
    names = {"np": m, "numpy": numpy, "a": m.arange(size).astype(dtype), "x": m.arange(size).astype(dtype)}
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        names["value"] = eval(value, names)
        try:
            exec(statement, names)
            result = numpy.asarray(names["a"])[:10].tolist()
        except (TypeError, ValueError, OverflowError) as error:
            result = next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")
    return repr(result), sorted({warning.category.__name__ for warning in found} - {"RuntimeWarning"})


@pytest.mark.parametrize("size", [10, 100_000])
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("value", VALUES)
def test_elements_take_what_numpys_take(value, key, size):
    for dtype in "? u1 i8 f4 f8 D".split():
        if key == "all" and ("inf" in value or "timedelta" in value or "range" in value or "nan" in value or dtype == "?"):
            continue
        if key == "flat" and ("inf" in value or "timedelta" in value):
            continue
        assert stored(bh, value, KEYS[key], dtype, size) == stored(numpy, value, KEYS[key], dtype, size), dtype


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "?", "c16"])
@pytest.mark.parametrize("rows", [4, 5000])
def test_lists_of_numbers_are_assigned_as_in_numpy(dtype, rows):
    keys = [(0,), (1, slice(0, 2)), (slice(None), 1), ([0, 2],), (slice(None), [0, 2]), (slice(1, 3),), (..., -1), (0, 0), (slice(None, None, -1), 0)]
    values = [[1, 2, 3], (2.7, 5), [[1], [2]], [[1, 2], [3, 4]], [7], [True, False], [1, [2, 3]], [], [300, 2], [2**70, 1], [numpy.float64(3), 2, 1], [1j, 2]]
    for key in keys:
        for value in values:
            results = []
            for module in (numpy, bh):
                a = module.zeros((rows, 3), dtype)
                try:
                    a[key] = value
                    results.append(numpy.asarray(a).tobytes())
                except Exception as error:
                    results.append(type(error))
            assert results[0] == results[1], (key, value)


def test_lists_are_assigned_by_masks():
    results = []
    for module in (numpy, bh):
        a = module.arange(12.0).reshape(4, 3)
        a[a > 8] = [1, 2, 3]
        a[a[:, 0] == 3] = [7, 8, 9]
        a[numpy.array([True, False, False, True])] = [[5], [6]]
        results.append(numpy.asarray(a).tolist())
    assert results[0] == results[1]


@pytest.mark.parametrize("rows", [3, 5000])
@pytest.mark.parametrize("steps", [(1, 1), (-1, 1), (2, 1), (2, 2), (0, 1), (1, 0)])
def test_views_whose_elements_share_memory_keep_the_last_value(rows, steps):
    results = []
    for module in (numpy, bh):
        base = module.arange(2.0 * rows + 4)
        first = base[2 * rows if steps[0] < 0 else 0:]
        windows = module.lib.stride_tricks.as_strided(first, (rows, 2), (8 * steps[0], 8 * steps[1]))
        windows[:] = module.arange(2.0 * rows).reshape(rows, 2)
        windows[1:, 0] = module.arange(rows - 1.0) + 0.5
        windows[1] = [7, 8]
        results.append((numpy.asarray(base).tolist(), numpy.asarray(windows).tolist()))
    assert results[0] == results[1]
