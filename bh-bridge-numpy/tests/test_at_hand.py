"""Functions of little computed arrays, which NumPy runs, have the bits of recorded ones; arrays of the numbers in lists."""

import contextlib
import re

import numpy
import pytest

import bh
from bh._array import memory
from bh._numpy import immediate
from bh._numpy.registry import FUNCTIONS

CALLS = {
    "searchsorted": lambda np, a, b, i: np.searchsorted(np.sort(a), b, "right"),
    "digitize": lambda np, a, b, i: np.digitize(a, np.sort(b)),
    "argwhere": lambda np, a, b, i: np.argwhere(a > 0.5),
    "bincount": lambda np, a, b, i: (np.bincount(i), np.bincount(i, a), np.bincount(i, weights=b, minlength=12)),
    "argmax": lambda np, a, b, i: (np.argmax(np.stack([a, b]), axis=0), np.argmax(np.append(a, np.nan), keepdims=True), i.argmax(axis=-1)),
    "argmin": lambda np, a, b, i: (np.argmin(np.stack([a, b]), axis=1), np.argmin(np.append(a, np.nan)), i.argmin(0)),
    "repeat": lambda np, a, b, i: (np.repeat(a, 3), a.repeat(2)),
    "append": lambda np, a, b, i: np.append(a, b),
    "lexsort": lambda np, a, b, i: np.lexsort((a, i)),
    "interp": lambda np, a, b, i: (np.interp(b, np.sort(a), a), np.interp(0.5, np.sort(a), a, left=-1.0)),
    "histogram": lambda np, a, b, i: np.histogram(a, 5),
    "median": lambda np, a, b, i: (np.median(a), np.median(a, axis=0)),
    "nanmedian": lambda np, a, b, i: np.nanmedian(a),
    "percentile": lambda np, a, b, i: (np.percentile(a, 30), np.percentile(a, [1, 50.5])),
    "quantile": lambda np, a, b, i: np.quantile(a, 0.3, method="nearest"),
    "nanpercentile": lambda np, a, b, i: np.nanpercentile(a, 30),
    "nanquantile": lambda np, a, b, i: np.nanquantile(a, 0.3),
    "polydiv": lambda np, a, b, i: (np.polydiv(a, b), np.polydiv(np.append(b, a), [2.0, 1.0])),
    "polyval": lambda np, a, b, i: (np.polyval(a, b), np.polyval([1.0, 2.0], a)),
    "gradient": lambda np, a, b, i: (np.gradient(np.append(a, b), 0.1), np.gradient(np.append(a, b), np.arange(2.0 * len(a)) ** 2)),
    "pad": lambda np, a, b, i: (np.pad(a, 2), np.pad(a, (1, 0), "edge")),
    "insert": lambda np, a, b, i: np.insert(a, 1, 9.0),
    "delete": lambda np, a, b, i: np.delete(a, 0),
    "isin": lambda np, a, b, i: np.isin(i, [1, 3]),
    "sort": lambda np, a, b, i: (np.sort(a + 0.0), np.sort(i, kind="stable"), in_place(np, b, "sort")),
    "argsort": lambda np, a, b, i: (np.argsort(b), b.argsort(axis=None), np.argsort(i, kind="stable")),
    "partition": lambda np, a, b, i: (np.partition(b, 0)[0], np.partition(b, [0, -1])[[0, -1]], in_place(np, b, "partition", 0)[0]),
    "argpartition": lambda np, a, b, i: (np.argpartition(b, 0)[0], b.argpartition(-1)[-1]),
    "packbits": lambda np, a, b, i: (np.packbits(b > 0), np.packbits(i, bitorder="little")),
    "histogram2d": lambda np, a, b, i: np.histogram2d(a, b, 3),
    "histogramdd": lambda np, a, b, i: np.histogramdd(a, 3)[0],
    "convolve": lambda np, a, b, i: (np.convolve(i, i), np.convolve(i, [1, 2], "same")),
    "correlate": lambda np, a, b, i: np.correlate(i, i, "full"),
    "nan_to_num": lambda np, a, b, i: (np.nan_to_num(np.where(a > 0.2, np.nan, a)), np.nan_to_num(np.where(b > 0.5, np.inf, b), posinf=9.0), np.nan_to_num(i)),
    "nanargmin": lambda np, a, b, i: np.nanargmin(np.append(np.where(a > 0.5, np.nan, a), 7.0)),
    "nanargmax": lambda np, a, b, i: (np.nanargmax(np.append(np.nan, b)), np.nanargmax(np.stack([a, b]), axis=0)),
    "count_nonzero": lambda np, a, b, i: (np.count_nonzero(i), np.count_nonzero(np.stack([a, b]), axis=0), np.count_nonzero(b > 0, keepdims=True)),
    "nonzero": lambda np, a, b, i: (np.nonzero(i), np.nonzero(np.stack([a > 0, b > 0]))),
    "flatnonzero": lambda np, a, b, i: np.flatnonzero(np.stack([a > 0, b > 0])),
    "take": lambda np, a, b, i: (np.take(a, [0, -1]), np.take(np.stack([a, b]), i, 1, mode="clip"), np.take(b, 0), b.take(i, mode="wrap")),
    "resize": lambda np, a, b, i: (np.resize(a, 3), np.resize(i, (5, 2))),
    "unravel_index": lambda np, a, b, i: (np.unravel_index(i, (3, 4)), np.unravel_index(5, (2, 3)), np.unravel_index([1, 2], (2, 2), "F")),
    "ravel_multi_index": lambda np, a, b, i: (np.ravel_multi_index((i, i), (9, 9)), np.ravel_multi_index((1, 1), (2, 3), order="F")),
    "nanmin": lambda np, a, b, i: (np.nanmin(np.append(a, np.nan)), np.nanmin(np.stack([a, b]), axis=0), np.nanmin(i)),
    "nanmax": lambda np, a, b, i: (np.nanmax(np.append(np.nan, b)), np.nanmax(np.stack([a, b]), axis=1, keepdims=True)),
    "trim_zeros": lambda np, a, b, i: (np.trim_zeros(i), np.trim_zeros(np.append(i, 0), "b")),
    "block": lambda np, a, b, i: (np.block([a, b]), np.block([[a[:, None], np.stack([b, b], 1)], [1.0, np.zeros((1, 2))]])),
    "concatenate": lambda np, a, b, i: (np.concatenate([a, [1.0, 2.0], i]), np.concatenate(([[0.5]], np.stack([a[:1], b[:1]])))),
    "concat": lambda np, a, b, i: np.concat([i, [3]]),
    "hstack": lambda np, a, b, i: (np.hstack([1, a, [2, 3]]), np.hstack([np.stack([a, b]), [[1], [2]]])),
    "vstack": lambda np, a, b, i: np.vstack([a[:2], np.ones(len(a[:2])), [1, 2][: len(a)]]),
    "dstack": lambda np, a, b, i: (np.dstack([a, i]), np.dstack([[1, 2], [0.5, 3]])),
    "column_stack": lambda np, a, b, i: (np.column_stack([a, i]), np.column_stack([a > 0, b])),
    "ediff1d": lambda np, a, b, i: (np.ediff1d(a), np.ediff1d(i, to_end=9), np.ediff1d(a, b, b)),
    "tile": lambda np, a, b, i: (np.tile(a, 2), np.tile(i, (2, 3)), np.tile(np.stack([a, b]), 2)),
    "choose": lambda np, a, b, i: (np.choose(i % 2, [a, b]), np.choose(i, [a, 2.5, b], mode="wrap"), np.choose(i % 3, np.stack([a, b, a]))),
    "cross": lambda np, a, b, i: (np.cross(np.stack([a, b, a - b], -1), np.stack([b, a * 3, b / 7], -1)), np.cross(np.stack([a, b, i]), np.array([3, 1, 2]), axisa=0)),
    "kron": lambda np, a, b, i: (np.kron(a, b), np.kron(np.eye(2), i)),
    "tril": lambda np, a, b, i: (np.tril(np.stack([a, b])), np.tril(i, -1)),
    "triu": lambda np, a, b, i: (np.triu(np.stack([a, b]), 1), np.triu(i > 2)),
    "extract": lambda np, a, b, i: (np.extract(a > 0, b), np.extract(i, a)),
    "compress": lambda np, a, b, i: (np.compress(a > 0, b), np.compress([True, False], np.stack([a, b]), axis=0)),
    "take_along_axis": lambda np, a, b, i: (np.take_along_axis(a, np.argsort(b), 0), np.take_along_axis(np.stack([a, b]), np.array([[0], [0]]), axis=1)),
    "isclose": lambda np, a, b, i: (np.isclose(a, a + 1e-9), np.isclose(a, np.append(b[1:], np.nan), equal_nan=True), np.isclose(i, i + 1, 0.5)),
    "allclose": lambda np, a, b, i: (np.allclose(a, a + 1e-9), np.allclose(a, b, 0.1, 0.5)),
    "array_equal": lambda np, a, b, i: (np.array_equal(a, a), np.array_equal(a, b), np.array_equal(np.append(a, np.nan), np.append(a, np.nan), equal_nan=True)),
    "ptp": lambda np, a, b, i: (np.ptp(a), np.ptp(np.stack([a, b]), axis=0), np.ptp(i)),
    "select": lambda np, a, b, i: (np.select([a > 0, b > 0], [a, b]), np.select([i > 2], [i], -1)),
    "unpackbits": lambda np, a, b, i: np.unpackbits(i.astype("u1"), count=11),
    "all": lambda np, a, b, i: (np.all(a, where=b > 0), np.all(np.stack([a, b]), axis=0, where=i > 3), (i > 1).all(where=a > 0)),
    "any": lambda np, a, b, i: (np.any(i, where=b > 0), np.any(np.stack([a, b]), axis=1, where=i > 3), (i > 7).any(where=a > 0)),
    "copyto": lambda np, a, b, i: (in_place(np, a, np.copyto, b), in_place(np, a, np.copyto, 2.5, where=b > 0), in_place(np, a, np.copyto, i, where=i > 3)),
    "fix": lambda np, a, b, i: (np.fix(a * 9), np.fix(-b * 0.1)),
    "iscomplex": lambda np, a, b, i: (np.iscomplex(a), np.iscomplex(a + 1j * (i - 3))),
    "isneginf": lambda np, a, b, i: np.isneginf(np.where(a > 0, -np.inf, np.where(b > 0, np.nan, np.inf))),
    "isposinf": lambda np, a, b, i: (np.isposinf(np.where(a > 0, -np.inf, np.where(b > 0, np.nan, np.inf))), np.isposinf(i)),
    "isreal": lambda np, a, b, i: (np.isreal(a), np.isreal(a + 1j * (i - 3))),
    "nancumprod": lambda np, a, b, i: (np.nancumprod(np.where(a > 0.5, np.nan, a)), np.nancumprod(np.stack([a, b]), axis=0), np.nancumprod(i)),
    "place": lambda np, a, b, i: (in_place(np, a, np.place, a > 0, b), in_place(np, i, np.place, i > 3, [1, 2])),
    "polyadd": lambda np, a, b, i: (np.polyadd(a, b), np.polyadd([1.0, 2.0, 3.0], i)),
    "polymul": lambda np, a, b, i: (np.polymul(i, i), np.polymul([2, 1], i)),
    "polysub": lambda np, a, b, i: (np.polysub(a, b), np.polysub(i, [1.0, 2.0, 3.0])),
    "put": lambda np, a, b, i: (in_place(np, a, np.put, [0, -1], [1.5, 2.5]), in_place(np, a, np.put, i, b, mode="wrap"), in_place(np, i, "put", i, 3, mode="clip")),
    "put_along_axis": lambda np, a, b, i: (in_place(np, a, np.put_along_axis, np.argsort(b), b, 0), in_place(np, np.stack([a, b]), np.put_along_axis, np.array([[0], [0]]), 9.5, 1)),
    "putmask": lambda np, a, b, i: (in_place(np, a, np.putmask, a > 0, b), in_place(np, i, np.putmask, i > 3, [1, 2])),
    "sort_complex": lambda np, a, b, i: (np.sort_complex(a + 1j * b), np.sort_complex(i)),
    "unwrap": lambda np, a, b, i: (np.unwrap(a * 9), np.unwrap(np.stack([a, b]) * 9, axis=0), np.unwrap(i, period=4)),
    "vander": lambda np, a, b, i: (np.vander(a, 3), np.vander(i, increasing=True)),
} | {
    name: lambda np, a, b, i, name=name: getattr(np, name)(a, b) for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d")
} | {
    name: lambda np, a, b, i, name=name: getattr(np, name)(i) for name in ("unique", "unique_all", "unique_counts", "unique_inverse", "unique_values")
}  # fmt: skip


def in_place(np, array, change, *arguments, **options):
    """A copy of an array after a function, or a method of this name, has changed it."""
    made = np.array(array)
    result = getattr(made, change)(*arguments, **options) if isinstance(change, str) else change(made, *arguments, **options)
    assert result is None
    return made


def bits(value):
    """Types, shapes and bytes of what a call gave."""
    if isinstance(value, tuple):
        return [bits(part) for part in value]
    host = numpy.asarray(value)
    return host.dtype, host.shape, host.tobytes()


@contextlib.contextmanager
def recording():
    """Has the package record what NumPy computes at once."""

    def refuse(*arguments):
        raise immediate.Later

    before = bh._native.set_shortcuts(False)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(immediate, "taken", refuse)
            yield
    finally:
        bh._native.set_shortcuts(before)


def test_folds_of_lists_give_numbers():
    for name in ("add", "multiply", "logical_or", "logical_and", "maximum", "bitwise_or"):
        result, expected = getattr(bh, name).reduce([3, 0, 5]), getattr(numpy, name).reduce([3, 0, 5])
        assert type(result) is type(expected) and result == expected, name
    assert type(bh.add.reduce(((1.5, 2.0), (3.0, 4.0)), axis=None)) is numpy.float64


# Functions of two operands that are compositions in bh, and have one right result, some of whole numbers only: `fmax` of zeros of both
# signs has two. On little arrays NumPy computes them.
WHOLE = "divmod fmax fmin gcd lcm".split()
COMPOSED = [*WHOLE, *"copysign heaviside logical_and logical_or logical_xor nextafter".split()]
SPECIAL = {
    "f": [0.0, -0.0, 1.0, -1.5, numpy.inf, -numpy.inf, numpy.nan, 3e-39, 7.0],
    "i": [0, 1, -1, 6, -4, 100, -128, 127, 35],
    "u": [0, 1, 4, 6, 255, 100, 21, 128, 35],
    "b": [True, False],
}


def without_signs_of_nan(value):
    """The `bits` of a result in which each NaN is the usual one: compositions do not keep their signs."""
    if isinstance(value, tuple):
        return [without_signs_of_nan(part) for part in value]
    host = numpy.array(value)
    if host.dtype.kind == "f":
        host[numpy.isnan(host)] = numpy.nan
    return bits(host)


@pytest.mark.parametrize("name", COMPOSED)
@pytest.mark.parametrize("dtype", "f4 f8 i1 i4 i8 u1 u8 bool".split())
def test_composed_functions_have_the_bits_of_what_is_recorded(name, dtype, request):
    function, reference = getattr(bh, name), getattr(numpy, name)
    kind = numpy.dtype(dtype).kind
    if name in WHOLE and kind in "fb":
        pytest.skip("whole numbers only")
    # Results of numbers of one byte may be half floats, which bh lacks.
    before = bh._numpy.fallback.mode("silent")
    request.addfinalizer(lambda: bh._numpy.fallback.mode(before))
    x, y = (part.ravel().astype(dtype) for part in numpy.meshgrid(SPECIAL[kind], SPECIAL[kind]))
    number = SPECIAL[kind][-1]
    for arguments in ((x, y), (x, x[::-1].copy()), (x, number), (number, y), (x[:1], y), (x.reshape(-1, 1), y[:3])):
        made = [bh.array(one) if isinstance(one, numpy.ndarray) else one for one in arguments]
        with numpy.errstate(all="ignore"):
            expected = without_signs_of_nan(reference(*arguments))
            at_once = without_signs_of_nan(function(*made))
            shortcuts = bh._native.set_shortcuts(False)
            recorded = without_signs_of_nan(function(*made))
            bh._native.set_shortcuts(shortcuts)
        assert at_once == recorded == expected, arguments


@pytest.mark.parametrize("name", COMPOSED)
def test_composed_functions_of_little_arrays_record_nothing(name, monkeypatch):
    def refuse(*arguments):
        raise AssertionError("Python composes the call")

    monkeypatch.setattr(type(bh.add), "_call", refuse)
    a, b = numpy.array([4, 0, 6]), numpy.array([2, 3, 5])
    for arguments in ((a, b), (a, 4)):
        made = [bh.array(one) if isinstance(one, numpy.ndarray) else one for one in arguments]
        assert bits(getattr(bh, name)(*made)) == bits(getattr(numpy, name)(*arguments))


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 2), (0, 3), (1, 1)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_lengths_of_vectors_have_the_bits_of_what_is_recorded(shape, dtype, monkeypatch):
    source = numpy.random.default_rng(7)
    x, y = (source.normal(size=shape).astype(dtype) for _ in range(2))
    a, b = bh.array(x), bh.array(y)
    before = bh._native.set_shortcuts(False)
    recorded = bits(bh.hypot(a, b)), bits(bh.hypot(a.T, b.T)), bits(bh.hypot(a, a[:1]))
    bh._native.set_shortcuts(before)
    assert (bits(bh.hypot(a, b)), bits(bh.hypot(a.T, b.T)), bits(bh.hypot(a, a[:1]))) == recorded
    assert numpy.allclose(bh.hypot(a, b), numpy.hypot(x, y), rtol=4 * numpy.finfo(dtype).eps, atol=0)
    if x.size:
        monkeypatch.setattr(type(bh.add), "_call", None)
        bh.hypot(a, b)


@pytest.mark.parametrize("name", [name for name, row in FUNCTIONS.items() if row.by_numpy])
def test_functions_have_the_bits_of_what_is_recorded(name):
    source = numpy.random.default_rng(5)
    for turn in range(40):
        size = int(source.integers(1, 40))
        hosts = source.normal(size=size).round(turn % 3 + 1), source.normal(size=size), source.integers(0, 9, size)
        at_once = bits(CALLS[name](bh, *map(bh.array, hosts)))
        before = bh._native.set_shortcuts(False)
        by_python = bits(CALLS[name](bh, *map(bh.array, hosts)))
        bh._native.set_shortcuts(before)
        with recording():
            recorded = bits(CALLS[name](bh, *map(bh.array, hosts)))
        assert at_once == by_python == recorded == bits(CALLS[name](numpy, *hosts)), hosts


@pytest.mark.parametrize(
    "key",
    [
        lambda np: np.ix_([0, 2], [1, 1]), lambda np: ([0, 2], [1, 3]), lambda np: (np.array([0, 2]), slice(1, None)), lambda np: (slice(None), np.array([[0], [1]])),
        lambda np: (1, [0, -1]), lambda np: (..., [0]), lambda np: ([0], None, [1]), lambda np: ([True, False, True],), lambda np: np.array([9]), lambda np: [[0, 1], [1, 0]],
        lambda np: (np.array([0, 1]), slice(None, None, -1), np.array([1, 0])), lambda np: (np.zeros((3, 4), bool),), lambda np: [], lambda np: np.array([0.5]),
    ],
)  # fmt: skip
def test_indexing_has_the_bits_of_what_is_recorded(key, monkeypatch):
    host = numpy.arange(24.0).reshape(3, 4, 2)

    def taken(np, array):
        try:
            return bits(array[key(np)])
        except IndexError:
            return IndexError

    at_once = taken(bh, bh.array(host))
    with monkeypatch.context() as patch:
        patch.setattr(immediate, "_MOST", -1)
        assert at_once == taken(bh, bh.array(host)) == taken(numpy, host)


@pytest.mark.parametrize("seed", range(60))
def test_repeated_and_turned_arrays_are_numpys(seed):
    source = numpy.random.default_rng(seed)
    shape = source.integers(1, 7, source.integers(1, 4))
    host = (source.normal(size=shape) * 9).astype(source.choice(["?", "i2", "f4", "f8", "c16"]))
    axis = source.choice([None, *range(-len(shape), len(shape))])
    axis, times, turns = None if axis is None else int(axis), int(source.choice([0, 1, 2, 3, 50, 700])), int(source.integers(-5, 6))
    order, steps = source.permutation(len(shape)), tuple(slice(None, None, int(step)) for step in source.choice([1, -1, 2], len(shape)))
    plane = tuple(map(int, source.choice(len(shape), 2, replace=False))) if len(shape) > 1 else (0, 0)

    def run(module):
        array = module.asarray(host).transpose(order)[steps]
        made = [module.repeat(array, times, axis), array.repeat(times, axis=axis), array, module.array_equal(array, array[..., ::-1])]
        if len(shape) > 1:
            made += [module.rot90(array, turns, plane), module.cumsum(array.T, 0), module.argsort(array, 0, stable=True), module.pad(array, 1)]
            made += [module.array_equal(array, module.rot90(array, turns, plane)), module.array_equal(module.rot90(array, 1, plane), module.rot90(array, -3, plane))]
        return [(*bits(one), one.strides if index < 2 and one.size else ()) for index, one in enumerate(made)]

    expected = run(numpy)
    assert run(bh) == expected
    with recording():
        assert run(bh) == expected


def test_planes_that_are_none_are_refused_as_in_numpy():
    for arguments in ((numpy.ones(3),), (numpy.ones((2, 2)), 1, (0, 0)), (numpy.ones((2, 2)), 1, (0, 2)), (numpy.ones((2, 2)), 1, (0, 1, 1)), (numpy.ones((2, 2)), 1, (0, -2))):
        with pytest.raises(ValueError) as expected:
            numpy.rot90(*arguments)
        with pytest.raises(ValueError, match=re.escape(str(expected.value))):
            bh.rot90(bh.asarray(arguments[0]), *arguments[1:])


@pytest.mark.parametrize("size", [0, 1, 100, 70000])
def test_masks_that_are_not_computed_yet_are_counted(size):
    host = numpy.random.default_rng(1).integers(0, 3, (size, 2))
    array = bh.asarray(host) + 0
    assert int(bh.count_nonzero(array != 1)) == numpy.count_nonzero(host != 1)
    assert bh.count_nonzero(array != 1, axis=0).tolist() == numpy.count_nonzero(host != 1, axis=0).tolist()
    raw = bh.zeros(size, bool)
    numpy.asarray(raw).view("u1")[:] = 3
    assert int(bh.count_nonzero(raw)) == size and int(bh.count_nonzero(raw & (raw | True))) == size


def test_what_is_written_to_is_the_programs_own():
    for options in ({"copy": False}, {"copy": False, "nan": 3.0}):
        held = bh.array([bh.nan, 1.0])
        assert bh.nan_to_num(held, **options) is held and held[0] == options.get("nan", 0.0)
    held = bh.array([bh.nan, 1.0])
    bh.nan_to_num(held, False)
    assert held[0] == 0.0
    values, out = bh.array([3.0, 1.0, 2.0]), bh.array(0.0)
    bh.median(values, out=out)
    assert float(out) == 2.0
    box = bh.ix_(values > 1, bh.array([0, 2]))
    assert isinstance(box[0], bh._native.ndarray) and box[0].shape == (2, 1) and box[1].shape == (1, 2)


LINES = {
    "ascending": [-2.5, -1.0, -0.5, 0.0, 0.125, 0.5, 0.75, 1.0, 1.5, 2.0, 2.0, 3.0],
    "steps": [0.0, 0.0, 0.0, 1.0, 1.0, 1.0],
    "out of order": [1.0, -1.0, 2.5, 0.5, 0.25, -2.0, 1.5, 0.0, -0.5, 3.0, -3.0, 2.0, 1.0],
    "with NaN": [numpy.nan, -1.0, -0.5, 0.0, numpy.nan, 1.0, 2.0],
    "infinite": [-numpy.inf, 0.0, 1.0, numpy.inf],
    "two points": [0.0, 1.0],
    "one point": [0.5],
    "whole": list(range(-4, 9)),
}


@pytest.mark.parametrize("name", LINES)
def test_lines_through_points_have_the_bits_of_numpys(name):
    rng = numpy.random.default_rng(8)
    points = numpy.array(LINES[name])
    heights = [rng.normal(size=points.size), rng.integers(-5, 5, points.size), rng.normal(size=points.size).astype("f4")]
    heights += [numpy.where(numpy.arange(points.size) % 3 == 1, bad, heights[0]) for bad in (numpy.inf, -numpy.inf, numpy.nan)]
    places = [rng.normal(size=n) * 2 for n in (1, 3, 40, 600)] + [points, rng.normal(size=(7, 6)).T, numpy.array([numpy.nan, numpy.inf, -numpy.inf, -0.0])]
    places += [numpy.arange(12).astype(kind) - 3 for kind in ("i8", "i4", "i2", "i1", "f4", "u8", "u4", "u2", "u1")] + [0.25, 1, numpy.float32(0.3), numpy.int64(-9), numpy.nan]
    for options in ({}, {"left": -1.5, "right": 7}, {"left": numpy.nan}, {"left": None, "right": numpy.float64(-0.0)}):
        for y in heights:
            for x in places:
                with numpy.errstate(all="ignore"):
                    expected = numpy.interp(x, points, y, **options)
                got = bh.interp(bh.asarray(x) if isinstance(x, numpy.ndarray) else x, bh.asarray(points), bh.asarray(y), **options)
                assert bits(got) == bits(expected) and isinstance(got, bh.ndarray) == isinstance(expected, numpy.ndarray)
    # Views, which have their elements at distances, and options without names.
    x, y = bh.asarray(numpy.repeat(points, 2))[::2], bh.stack([bh.asarray(heights[0])] * 2, axis=1)[:, 1]
    assert bits(bh.interp(x, x, y, -1, 2.5)) == bits(numpy.interp(points, points, heights[0], -1, 2.5))


def test_lines_through_points_that_do_not_fit():
    x, two, three = bh.asarray([0.5]), bh.asarray([0.0, 1.0]), bh.asarray([0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="same length"):
        bh.interp(x, two, three)
    with pytest.raises(ValueError, match="empty"):
        bh.interp(x, x[:0], x[:0])
    with pytest.raises(ValueError):
        bh.interp(x, two[None], two[None])
    assert bh.interp(x[:0], two, two).shape == (0,) and bh.interp(x[0] * 1, two, two) == 0.5


@pytest.mark.skipif(not memory.in_process(bh._native.Stack().name), reason="arrays are elsewhere")
def test_little_arrays_are_waited_for_where_a_record_is_long():
    host = numpy.random.default_rng(4).normal(size=300)
    at_once = bits(CALLS["interp"](bh, bh.asarray(host) * 1.0, bh.asarray(host) + 1.0, None))
    with recording():
        assert at_once == bits(CALLS["interp"](bh, bh.asarray(host) * 1.0, bh.asarray(host) + 1.0, None))


def test_recordings_look_at_arrays_anew():
    points, heights = bh.array([0.0, 1.0, 2.0]), bh.array([0.0, 10.0, 20.0])
    step = bh.jit(lambda x: bh.interp(x, points, heights))
    assert float(step(bh.array([0.5]))[0]) == 5.0
    heights[...] = 1.0
    assert float(step(bh.array([0.5]))[0]) == 1.0


@pytest.mark.parametrize("make", ("array", "asarray"))
@pytest.mark.parametrize(
    "source",
    [
        [1, 2], (1.0, 2), [[1, 2.5], (3, 4)], ((1,), (2,)), [[[1.0]], [[2.0]]], [numpy.float64(1), 2], [[numpy.int64(1), 2]], [2**53 + 1, 1.0],
        [], [[]], [[], []], [True, 1], [1, 2**63], [numpy.float32(1), 2.0], [1j, 2], [[1, 2], [3]], [1, [2]], [[1], 2], ["a"], [None], [-0.0],
        [[1.0] * 40] * 40, [numpy.array([1.0, 2.0]), [3.0, 4.0]], [[[[[1]]]]],
    ],
    ids=range(24),
)  # fmt: skip
def test_lists(make, source):
    try:
        wanted = getattr(numpy, make)(source)
    except ValueError:
        with pytest.raises(ValueError):
            getattr(bh, make)(source)
        return
    assert bits(getattr(bh, make)(source)) == bits(wanted)


@pytest.mark.parametrize("count", (1, 7, 3000))
def test_numbers_at_equal_distances(count):
    source = numpy.random.default_rng(count)
    for _ in range(50):
        start, step = source.normal(size=2).round(2) + 1e-3
        for call in (
            lambda np: np.arange(start, start + step * (count - 0.5), step),
            lambda np: np.arange(0, step * (count - 0.5), step),
            lambda np: np.linspace(start, start + step, count),
            lambda np: np.linspace(start, start + step, count, endpoint=False),
            lambda np: np.linspace(0, 5e-324, count),
        ):
            assert bits(call(bh)) == bits(call(numpy))


@pytest.mark.skipif(not memory.in_process(bh._native.Stack().name), reason="arrays are elsewhere")
def test_who_sorts(monkeypatch):
    a = numpy.random.default_rng(3).normal(size=(150, 200)).round(1) + 0.0
    counted = lambda: bh.profile()["instructions"]
    for call in (lambda x: bh.sort(x), lambda x: x.argsort(0), lambda x: bh.median(x, axis=(0, 1)), lambda x: x.sort(0), lambda x: bh.percentile(x, 30, axis=1)):
        x = bh.asarray(a)
        bh.flush()
        before = counted()
        call(x)
        bh.flush()
        at_once = counted() - before
        with monkeypatch.context() as patch:
            patch.setattr(immediate, "_MANY_ELEMENTS", 0)
            patch.setattr(immediate, "_MANY_THREADS", 1)
            x = bh.asarray(a)
            bh.flush()
            before, shortcuts = counted(), bh._native.set_shortcuts(False)
            call(x)
            bh._native.set_shortcuts(shortcuts)
            bh.flush()
            assert counted() - before > at_once
    # Options of the array API that NumPy lacks.
    assert bits(bh.sort(bh.asarray(a[0]), descending=True)) == bits(numpy.sort(a[0])[::-1])
    order = bh.jit(lambda x: bh.argsort(x) + 1)
    for number in range(4):
        assert bits(order(bh.asarray(a[number]))) == bits(numpy.argsort(a[number], kind="stable") + 1)


def test_products_of_stacks():
    for front in ((7,), (2, 3), (5,), (400,), (0,)):
        a, b = numpy.random.default_rng(3).normal(size=(2, *front, 5, 5))
        for calls in (lambda np, x, y: x @ y, lambda np, x, y: np.matmul(x[..., :2, :], y[..., :4]), lambda np, x, y: np.matmul(x[..., 0, :], y) if front == (5,) else x @ y[..., :1]):
            expected = calls(numpy, a, b)
            numpy.testing.assert_allclose(numpy.asarray(calls(bh, bh.asarray(a), bh.asarray(b))), expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("dtype", "f8 f4 i4 u1 ? c16".split())
@pytest.mark.parametrize("shortcuts", [True, False])
def test_pairs_conjugates_and_turned_rows(dtype, shortcuts):
    before = bh._native.set_shortcuts(shortcuts)
    try:
        found = []
        for module in (numpy, bh):
            v = module.array([3, 0, 1, 5]).astype(dtype)
            v = v + v * 2j if dtype == "c16" else v
            M = module.array([[1, 2], [3, 4], [5, 0]]).astype(dtype)
            parts = [v.conj(), v.conjugate(), M.T.conj(), v[0].conj(), module.fliplr(M), module.flipud(v), module.flipud(M), module.fliplr(M.T), module.indices((2, 3), dtype if dtype != "?" else int)]
            for name in ("add", "multiply", "equal", "less_equal", "maximum"):
                function = getattr(module, name)
                parts += [function.outer(v, v[1:]), function.outer(M, v), function.outer(v[::2], 2), function.outer(v, module.ones(2))]
            if dtype != "?":
                parts += [module.diff(v), module.diff(M, 1, 0), module.diff(v, prepend=0), module.diff(v, 2), module.cross(v[:3], v[1:]), module.subtract.outer(v, v)]
            parts.append(module.choose([0, 1, 1], [v[:3], v[1:]]))
            found.append([numpy.asarray(part) for part in parts])
        for made, expected in zip(found[1], found[0], strict=True):
            assert made.dtype == expected.dtype
            numpy.testing.assert_array_equal(made, expected)
    finally:
        bh._native.set_shortcuts(before)
    for call in ("fliplr(np.ones(3))", "flipud(np.array(1.0))", "choose([0, 3], [np.ones(2), np.ones(2)])", "diff(np.array(1.0))", "cross(np.ones(4), np.ones(3))"):
        errors = []
        for module in (numpy, bh):
            with pytest.raises(ValueError) as error:
                eval("np." + call, {"np": module})
            errors.append(str(error.value))
        assert errors[0] == errors[1]


@pytest.mark.parametrize("shortcuts", [True, False])
@pytest.mark.parametrize("pending", [True, False])
def test_folds_in_another_type(shortcuts, pending):
    source, before = numpy.random.default_rng(7), bh._native.set_shortcuts(shortcuts)
    try:
        for _ in range(200):
            host = (source.normal(size=tuple(source.integers(1, 9, source.integers(1, 4)))) * 40).astype(source.choice("f8 f4 i8 i4 u1 ? c16".split()))
            host = host.T if source.random() < 0.3 else host[..., ::-1] if source.random() < 0.3 else host
            dtype = source.choice(["f8", "f4", "i8", "u8", "c16", "i4", "?"])
            if host.dtype.kind == "c" and dtype != "c16" or numpy.dtype(dtype).kind in "iu?" and host.dtype.kind == "f" or dtype == "u8":
                host = numpy.abs(host).astype("u1")
            axis, name = source.choice([None, 0, -1]), source.choice(["sum", "prod", "mean"])
            if name == "prod":
                host = (host != 0).astype(host.dtype) * 2
            if name == "mean" and numpy.dtype(dtype).kind not in "fc":
                continue
            array = bh.array(host)
            array = array + bh.zeros((), array.dtype) if pending and array.dtype != bool else array
            for call in (lambda m, a: getattr(m, name)(a, axis, dtype=dtype), lambda m, a: getattr(a, name)(axis=axis, dtype=numpy.dtype(dtype), keepdims=True)):
                made, expected = numpy.asarray(call(bh, array)), numpy.asarray(call(numpy, host))
                assert made.dtype == expected.dtype and made.shape == expected.shape
                numpy.testing.assert_allclose(made, expected, rtol=1e-5 if dtype == "f4" else 1e-12, atol=1e-4 if dtype == "f4" else 1e-9)
        for name in ("max", "any"):
            with pytest.raises(TypeError):
                getattr(bh, name)(bh.ones(3), dtype=float)
    finally:
        bh._native.set_shortcuts(before)


# Calls that NumPy computes, of little arrays, of larger ones, or of what bh cannot do.
ELSEWHERE = {
    "of two operands": lambda np, a, i: (np.copysign(a, -a), np.heaviside(a, 2.0), np.divmod(7, i + 1)),
    "of vectors": lambda np, a, i: np.cross(a[:3], a[3:6]),
    "tuples and lists": lambda np, a, i: (np.nonzero(i), np.histogram(a, 5), np.select([a > 0], [a]), np.block([[a, a]])),
    "named results": lambda np, a, i: (np.unique_all(i), np.linalg.eigh(np.outer(a[:3], a[:3]))),
    "pieces": lambda np, a, i: (np.append(a, [1.0]), np.tril(a.reshape(2, -1)), np.repeat(a, 2), a[[0, 1]], a[i]),
    "sorted": lambda np, a, i: (np.sort(a), np.median(a.reshape(2, -1), axis=0), np.percentile(a, [30, 60])),
    "matrices": lambda np, a, i: (np.linalg.inv(np.outer(a[:2], a[:2]) + np.diag(a[:2])), np.einsum("i,j->ij", a, a)),
    "many arrays": lambda np, a, i: np.concatenate([a] * 300),
    "left to NumPy": lambda np, a, i: (np.frexp(a), np.ldexp(a, i), np.ma.masked_array(a, a > 1) + a),
}


@pytest.mark.parametrize("count", [6, 1 << 15])
@pytest.mark.parametrize("name", ELSEWHERE)
@pytest.mark.parametrize("shortcuts", [True, False])
def test_results_of_numpy_are_on_the_stack_of_the_operands(name, count, shortcuts, request):
    if count > 6 and name == "matrices":
        pytest.skip("too many products")
    before = bh._numpy.fallback.mode("silent"), bh._native.set_shortcuts(shortcuts)
    request.addfinalizer(lambda: (bh._numpy.fallback.mode(before[0]), bh._native.set_shortcuts(before[1])))
    hosts = numpy.random.default_rng(4).normal(size=count), numpy.random.default_rng(5).integers(0, 6, count)
    with bh.using("cpu-plain") as stack:
        operands = [bh.array(host) for host in hosts]
    assert stack.name != bh.ones(1)._stack

    def check(result, expected):
        if isinstance(expected, tuple):
            assert len(result) == len(expected)
            for pair in zip(result, expected):
                check(*pair)
        elif type(expected) is numpy.ndarray:
            assert type(result) is bh.ndarray and result._stack == stack.name
            numpy.testing.assert_allclose(result, expected, rtol=1e-9)

    check(ELSEWHERE[name](bh, *operands), ELSEWHERE[name](numpy, *hosts))


# Calls that change an array in its memory.
CHANGES = {
    "sort": lambda np, a, i: a.sort(),
    "partition": lambda np, a, i: a.partition(1),
    "put": lambda np, a, i: np.put(a, [1, 0], [7.5, 8.5]),
    "putmask": lambda np, a, i: np.putmask(a, a > 1, 4.0),
    "place": lambda np, a, i: np.place(a, a > 1, [4.0, 5.0]),
    "copyto": lambda np, a, i: np.copyto(a, 3.0, where=a > 1),
    "put_along_axis": lambda np, a, i: np.put_along_axis(a, np.array([1, 0]).reshape((2,) + (1,) * (a.ndim - 1)), 6.0, 0),
    "add.at": lambda np, a, i: np.add.at(a, [0, 0, 1], 1.5),
    "maximum.at": lambda np, a, i: np.maximum.at(a, [0, 0, 1], 1.5),
    "multiply.at": lambda np, a, i: np.multiply.at(a, (i[:2] % 2,), 2.0),
    "negative.at": lambda np, a, i: np.negative.at(a, [0, 0, 1]),
    "of itself": lambda np, a, i: np.put(a, [0, 1], a),
    "of what it shares": lambda np, a, i: np.copyto(a[1:], a[:-1]),
    "at its own": lambda np, a, i: np.add.at(a, [1, 0, 1], a[:1] if a.ndim > 1 else a[0]),
    "of another type": lambda np, a, i: np.put(a, [0], i[:1]),
}
PARTS = {
    "all": lambda a: a, "every second": lambda a: a[::2], "backwards": lambda a: a[::-1], "turned": lambda a: a.T, "a row": lambda a: a.reshape(2, -1)[1],
}  # fmt: skip


@pytest.mark.falls_back
@pytest.mark.parametrize("shape", [(6,), (4, 3)])
@pytest.mark.parametrize("state", ["computed", "recorded", "second stack", "read-only", "lent"])
@pytest.mark.parametrize("name", CHANGES)
def test_arrays_are_changed_in_their_memory(name, state, shape):
    for part in PARTS.values():
        found = []
        for np in (numpy, bh):
            host, numbers = numpy.random.default_rng(8).normal(1, 1, shape), numpy.array([2, 1, 0])
            with bh.using("cpu-plain") if state == "second stack" else contextlib.nullcontext():
                whole, i = np.array(host), np.array(numbers)
            if state == "recorded":
                whole += np.ones(1 << 16)[:1]
            shown = numpy.asarray(whole) if state == "lent" else None
            a = part(whole)
            if state == "read-only":
                if name.endswith(".at") or name == "at its own":
                    # NumPy writes to such memory.
                    pytest.skip("see the test below")
                a.flags.writeable = False
            before = a * 2
            try:
                outcome = CHANGES[name](np, a, i)
            except Exception as error:
                outcome = type(error), str(error)
            if state == "read-only" and outcome and name in ("of itself", "at its own", "of what it shares"):
                # These are refused in other words.
                outcome = outcome[0]
            found.append((outcome, bits(a), bits(whole), bits(before), None if shown is None else bits(shown)))
        assert found[0] == found[1], part


def test_universal_functions_do_not_write_to_read_only_memory():
    a = bh.arange(3.0)
    a.flags.writeable = False
    for call in (lambda: bh.add.at(a, [0], 1.0), lambda: bh.maximum.at(a, [0], 5.0), lambda: bh.negative.at(a, [1])):
        with pytest.raises(ValueError, match="read-only"):
            call()
    assert a.tolist() == [0, 1, 2]
