"""Shared memory, copies, and orders in memory, as in NumPy."""

import hashlib

import numpy
import pytest

import bh
from conftest import same
from bh.random import MT19937, Generator

MADE = {
    "strings": numpy.array(["a", "b"]),
    "objects": numpy.array([1, None], object),
    "dates": numpy.array(["2020-01-01", "2021-01-01"], "M8[D]"),
    "halves": numpy.array([1.0, numpy.nan], "f2"),
    "other bytes": numpy.array([1.0, 2.0], ">f8"),
}


@pytest.mark.falls_back
@pytest.mark.parametrize("kind", MADE)
def test_copies_of_types_that_bh_lacks(kind):
    for make in (bh.array, bh.copy, lambda value: bh.array(value, copy=True)):
        value = MADE[kind].copy()
        made = make(value)
        assert not numpy.shares_memory(numpy.asarray(made), value)
        numpy.testing.assert_array_equal(numpy.asarray(made), value)
    assert bh.array(value, copy=False) is value or kind == "other bytes"


@pytest.mark.falls_back
@pytest.mark.parametrize("name", "nanmax nanmin nansum nanprod nanmean nanargmax nan_to_num cov corrcoef unwrap sort_complex".split())
def test_arguments_keep_their_elements(name):
    value = numpy.array([3.0, numpy.nan, 1.0], "f2")
    before = value.copy()
    getattr(bh, name)(value)
    numpy.testing.assert_array_equal(value, before)


def forms(generator, out):
    """Calls that write numbers into an array."""
    yield lambda: generator.random(out=out)
    yield lambda: generator.random(None, "f8", out)
    yield lambda: generator.random(out.shape, out=out)
    yield lambda: generator.standard_normal(out=out)
    yield lambda: generator.standard_exponential(None, numpy.float64, "zig", out)
    yield lambda: generator.standard_gamma(2.0, out=out)
    yield lambda: generator.permuted(out, axis=0, out=out)


def test_generators_write_into_arrays():
    shape = (2, 3)
    expected, out = numpy.zeros(shape), bh.zeros(shape)
    numbers = zip(forms(numpy.random.Generator(numpy.random.MT19937(1)), expected), forms(Generator(MT19937(1)), out))
    for theirs, mine in numbers:
        theirs()
        assert mine() is out
        numpy.testing.assert_array_equal(numpy.asarray(out), expected)


def test_functions_of_others_write_into_arrays():
    twice = numpy.frompyfunc(lambda x: 2 * x, 1, 1)
    a, out = bh.arange(3.0), bh.zeros(3)
    assert twice(a, out=out, casting="unsafe") is out
    assert out.tolist() == [0, 2, 4]
    add = numpy.frompyfunc(lambda x, y: x + y, 2, 1)
    assert add(a, 1, out=(out,), casting="unsafe") is out
    assert out.tolist() == [1, 2, 3]
    out.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        twice(a, out=out, casting="unsafe")


SHARING = {
    "ravel of steps": lambda np, a: a[::2].ravel(),
    "ravel of a column": lambda np, a: a[:, 0].ravel(),
    "ravel": lambda np, a: a.ravel(),
    "ravel in Fortran's order": lambda np, a: a.ravel("F"),
    "ravel of a transposed array in any order": lambda np, a: a.T.ravel("K"),
    "ravel of a transposed array in its own order": lambda np, a: a.T.ravel("A"),
    "function ravel": lambda np, a: np.ravel(a[0, ::2], "C"),
    "asfortranarray": lambda np, a: np.asfortranarray(a),
    "asfortranarray of a transposed array": lambda np, a: np.asfortranarray(a.T),
    "asarray in Fortran's order": lambda np, a: np.asarray(a, order="F"),
    "asarray in C's order of a transposed array": lambda np, a: np.asarray(a.T, order="C"),
    "asarray": lambda np, a: np.asarray(a),
    "require": lambda np, a: np.require(a[::2], requirements="C"),
    "require what is there": lambda np, a: np.require(a, requirements=["C", "W"]),
    "require a type": lambda np, a: np.require(a, "f4"),
    "ascontiguousarray": lambda np, a: np.ascontiguousarray(a.T),
    "copy": lambda np, a: a.T.copy(),
    "copy in any order": lambda np, a: np.copy(a.T),
    "copy in Fortran's order": lambda np, a: a.copy("f"),
    "array in any order": lambda np, a: np.array(a.T),
    "array of a list": lambda np, a: np.array([[1, 2], [3, 4]], order="F"),
    "empty_like": lambda np, a: np.empty_like(a.T),
    "zeros_like of three dimensions": lambda np, a: np.zeros_like(a.reshape(2, 3, 2).transpose(1, 2, 0)),
    "ones_like in C's order": lambda np, a: np.ones_like(a.T, order="C"),
    "full_like of another shape": lambda np, a: np.full_like(a.T, 3, shape=(2, 3, 4)),
    "zeros in Fortran's order": lambda np, a: np.zeros((2, 3), order="F"),
    "reshape in Fortran's order": lambda np, a: a.reshape(4, 3, order="f"),
    "reshape a transposed array in its order": lambda np, a: a.T.reshape(6, 2, order="A"),
    "flatten": lambda np, a: a.T.flatten("f"),
    "flatten in any order": lambda np, a: a.T.flatten("K"),
    "astype": lambda np, a: a.T.astype("f4"),
    "astype of the same type": lambda np, a: a.T.astype("f8"),
    "astype without a copy": lambda np, a: a.T.astype("f8", copy=False),
    "astype in Fortran's order": lambda np, a: a.astype("f4", order="F"),
}


@pytest.mark.parametrize("name", SHARING)
def test_sharing_and_order(name):
    theirs, mine = numpy.arange(12.0).reshape(3, 4).copy(), bh.arange(12.0).reshape(3, 4).copy()
    expected, result = SHARING[name](numpy, theirs), SHARING[name](bh, mine)
    assert bh.shares_memory(result, mine) == numpy.shares_memory(expected, theirs)
    if "empty" not in name:
        numpy.testing.assert_array_equal(numpy.asarray(result), expected)
    assert result.strides == expected.strides
    for flag in ("C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA", "WRITEABLE"):
        assert result.flags[flag] == expected.flags[flag] or flag == "OWNDATA" and expected.base is not theirs, flag


def test_orders_that_there_are_not():
    a = bh.ones((2, 2))
    calls = [
        lambda: bh.array([1], order="Z"), lambda: a.copy("Z"), lambda: a.ravel("Z"), lambda: a.reshape(4, order="K"),
        lambda: bh.zeros(3, order="A"), lambda: bh.empty_like(a, order="Z"), lambda: a.flatten("Z"),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(ValueError, match="order"):
            call()


@pytest.mark.falls_back
def test_orders_go_to_numpy_and_back():
    a = bh.arange(6.0).reshape(2, 3).T
    assert bh.asarray(numpy.asarray(a)).strides == a.strides
    assert a.tobytes("A") == numpy.arange(6.0).tobytes()


@pytest.mark.parametrize("name", ["sort", "argsort", "partition", "argpartition"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_sorted_arrays_are_in_c_order(name, axis):
    a = bh.asarray(numpy.random.default_rng(3).random((3, 4, 5)))
    made = getattr(bh, name)(a, *([1] if "partition" in name else []), axis=axis)
    line = made.reshape(-1)
    made[0, 0, 0] = -7
    assert made.flags.c_contiguous and line[0] == -7


class Shows:
    """An object that shows itself as an array of bh."""

    def __init__(self):
        self.asked = []

    def __array__(self, dtype=None, copy=None):
        self.asked.append(copy)
        return bh.arange(3)


def test_whoever_shows_an_array_has_copied_it():
    value = Shows()
    made = [bh.array(value), bh.array(value, copy=True), bh.asarray(value), bh.array(value, copy=False)]
    assert value.asked == [True, True, None, False]
    for array in made:
        assert type(array) is bh.ndarray
        numpy.testing.assert_array_equal(numpy.asarray(array), [0, 1, 2])


@pytest.mark.falls_back
def test_objects_in_lists_show_themselves_as_arrays():
    numpy.testing.assert_array_equal(numpy.asarray(bh.array([Shows(), Shows()])), [[0, 1, 2], [0, 1, 2]])
    numpy.testing.assert_array_equal(numpy.sort(numpy.asarray(bh.random.permutation(Shows()))), [0, 1, 2])


def test_memory_of_others_stays_theirs():
    memory = bytearray(32)
    made = bh.frombuffer(memory, float)
    memory[:8] = numpy.float64(2.5).tobytes()
    assert made[0] == 2.5
    array = bh.arange(4.0)
    view = bh.asarray(memoryview(array))
    array[1] = 7
    assert view[1] == 7 and bh.array(memoryview(array), copy=False)[1] == 7
    assert numpy.asarray(bh.array(memoryview(array)))[1] == 7 and bh.shares_memory(array, view)
    assert not bh.shares_memory(array, view.copy()) and not bh.shares_memory(array, numpy.ones(4))


def test_what_is_read_only_stays_so():
    for made in (bh.frombuffer(bytes(16), float), bh.asarray(numpy.broadcast_to(1.0, 3)), bh.frombuffer(bytes(8), "i1")):
        assert type(made) is bh.ndarray and not made.flags.writeable
        with pytest.raises(ValueError):
            made[0] = 1
    with pytest.raises(ValueError):
        bh.frombuffer(bytes(16), float).setflags(write=True)
    assert not bh.broadcast_to(bh.arange(2.0), (2, 2)).flags.writeable


def test_strides_are_set_in_place():
    array = bh.arange(6)
    with pytest.warns(DeprecationWarning):
        (view := array[:3]).strides = 16
    numpy.testing.assert_array_equal(numpy.asarray(view), [0, 2, 4])


@pytest.mark.parametrize("value", [numpy.float64("nan"), numpy.float32("inf")])
def test_numbers_beyond_whole_ones_become_what_arrays_of_them_become(value):
    assert bh.array(value, dtype=bh.int32) == bh.array(value).astype(bh.int32)


def test_what_is_shown_without_being_copied_is_copied_where_that_is_asked_for():
    base = bh.arange(3)

    class Shown:
        def __array__(self, dtype=None):
            return base

    with pytest.warns(DeprecationWarning, match="copy"):
        made = bh.array(Shown(), copy=True)
    made[0] = 7
    assert base[0] == 0
    with pytest.warns(DeprecationWarning, match="copy"), pytest.raises(ValueError, match="Unable to avoid copy"):
        bh.array(Shown(), copy=False)


def test_arrays_that_are_broadcast_warn_of_the_first_assignment():
    wide, plain = bh.broadcast_arrays(bh.arange(2), bh.arange(4).reshape(2, 2))
    with pytest.warns(FutureWarning, match="future versions"):
        assert wide.flags.writeable
    assert memoryview(wide).readonly
    with pytest.warns(DeprecationWarning, match="overlapping memory"):
        wide[0, 0] = 5
    wide[0, 1] = 6
    assert wide.tolist() == [[5, 6], [5, 6]]
    plain += 1
    assert plain.tolist() == [[1, 2], [3, 4]] and not memoryview(plain).readonly
    quiet = bh.broadcast_arrays(bh.arange(2), bh.ones((2, 2)))[0]
    quiet.flags.writeable = True
    quiet[0, 0] = 1


def test_more_elements_than_addresses_are_no_copy():
    wide = bh.broadcast_to(bh.zeros((), "u1"), 2**62)
    assert wide.shape == (2**62,)
    with pytest.raises(MemoryError):
        bh.array(wide)


def test_elements_that_share_memory_keep_the_last_value():
    def program(np):
        a = np.lib.stride_tricks.as_strided(np.arange(3.0), (2, 3), (0, 8))
        a[:] = np.arange(6.0).reshape(2, 3)
        a[1] += 1
        np.add(a, 1, out=a)
        return a.tolist()

    assert program(bh) == program(numpy)


def test_what_is_chosen_or_joined_has_the_order_of_what_says_so():
    for np in (bh, numpy):
        a, key = np.arange(10), np.arange(10).reshape(5, 2).T
        assert a[key].flags.f_contiguous and a.reshape(-1, 1)[key, 0].flags.f_contiguous and not a[key.copy("C")].flags.f_contiguous
        assert a[key.tolist()].flags.c_contiguous and np.concatenate([key, key]).flags.f_contiguous
        assert np.block([[key, key], [key, key]]).flags.f_contiguous and np.concatenate([key, key.copy("C")]).flags.c_contiguous
    b = numpy.arange(24).reshape(2, 3, 4)
    one, two = numpy.array([[0, 1], [1, 0]]).T, numpy.array([[2, 1], [0, 1]]).T
    for key in ((one, two), (one, slice(None), two), (slice(None), two), (slice(1), two, two), (one, 1), (Ellipsis, two)):
        same(bh.array(b)[tuple(bh.asarray(part) if isinstance(part, numpy.ndarray) else part for part in key)], b[key])
    for axis in (0, 1, 2, -1):
        same(bh.concatenate([bh.asarray(b).T, bh.asarray(b).T], axis), numpy.concatenate([b.T, b.T], axis))


def test_any_order_asks_for_no_copy():
    x = bh.arange(9).reshape(3, 3)[::2, ::2]
    assert bh.array(x, copy=None, order="A") is x and bh.asarray(x, order="A") is x


@pytest.mark.falls_back
def test_functions_of_others_write_to_operands():
    from numpy._core._operand_flag_tests import inplace_add

    a, b = numpy.arange(16).reshape(4, 4), numpy.arange(9).reshape(3, 3)
    mine = bh.array(a)
    inplace_add(mine[:-1, :-1], bh.array(b))
    inplace_add(a[:-1, :-1], b)
    same(mine, a)


def test_types_with_metadata_are_numpys():
    kind = numpy.dtype(int, metadata={"of": 1})
    for made in (bh.ones(3, kind), bh.zeros((2, 2), kind), bh.asarray(numpy.ones(3, kind)), bh.array([1, 2], kind)):
        assert type(made) is numpy.ndarray and made.dtype.metadata == {"of": 1}


def test_strides_are_warned_of_whatever_they_are():
    with pytest.warns(DeprecationWarning), pytest.raises(TypeError):
        bh.array(0).strides = None


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow")
@pytest.mark.parametrize("value", [numpy.nan, numpy.inf, -1e30, numpy.float32("inf"), 300.0])
@pytest.mark.parametrize("kind", ["i1", "u4", "i8"])
def test_arrays_are_filled_with_what_numpy_makes_of_a_number(value, kind):
    expected = numpy.full(3, value, kind)[1]
    assert bh.full(3, value, kind)[1] == bh.full_like(bh.zeros(3, kind), value)[2] == bh.full((2, 2), value, kind, "F")[0, 0] == expected


def test_memory_of_others_is_not_looked_for_in_circles():
    class Round(bytearray):
        @property
        def base(self):
            return self

    shown = numpy.frombuffer(memoryview(Round(16)), "f8")
    same(bh.asarray(shown), shown)


def test_who_asks_for_bytes_gets_one_row_of_them():
    array = bh.arange(6.0).reshape(2, 3)
    assert hashlib.md5(array).digest() == hashlib.md5(numpy.asarray(array)).digest()
    assert memoryview(array).ndim == 2 and bytes(array) == array.tobytes()


WRITES = """
x.flat[:1] = 7
x.flat[[0, 4]] = 7, 8
x[[0, 1]] = 7
x[[0, 1], [1, 2]] = [7, 8]
x[x > 1] = 7
x[x > 0] = [7, 8, 9, 10]
x[np.array([True, False])] = [7, 8, 9]
x[:, 1] = [3, 4]
x[0, 0] = 7
np.put(x, [0, 4], 5)
np.putmask(x, x > 1, 5)
np.place(x, x > 1, 5)
np.copyto(x, 5, where=np.array([[True, False, True], [False, False, True]]))
np.add.at(x, (0, 1), 5)
np.maximum.at(x, (0, 1), 5)
np.add(x, 1, out=x)
np.sqrt(x, out=x, where=x > 1)
np.cumsum(y + 1, axis=1, out=x)
np.take(y, [[0, 1, 2], [3, 4, 5]], out=x)
np.fill_diagonal(x, 9)
np.put_along_axis(x, np.array([[0], [1]]), 9, 1)
np.clip(x, 0, 1, out=x)
np.matmul(y + 1, np.ones((3, 3)), out=x)
""".strip().splitlines()


@pytest.mark.falls_back
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("write", WRITES)
def test_elements_that_share_memory_are_written_as_numpys(write):
    found = []
    for np in (bh, numpy):
        a, b = np.arange(3.0), np.arange(6.0).reshape(2, 3)
        for x, y in (np.broadcast_arrays(a, b), np.meshgrid(a, b[:, 0], copy=False)):
            exec(write, {"np": np, "x": x, "y": y + 0})
            found.append([numpy.array(x), numpy.array(y), numpy.array(a), numpy.array(b)])
    half = len(found) // 2
    for mine, theirs in zip(found[:half], found[half:]):
        for one, other in zip(mine, theirs):
            numpy.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("size", [8, 5000])
def test_arrays_of_lists_of_arrays_are_numpys(size):
    def parts(module):
        a = module.arange(2.0 * size).reshape(2, size)
        return {
            "two": [a, a + 1], "tuple": (a, a), "orders": [module.asfortranarray(a.T), a.T + 0], "views": [a[:, ::-1], a[::-1]], "nested": [[a, a + 2], [a, a * 3]],
            "types": [a, a.astype("f4")], "whole": [a.astype("i4"), a.astype("u1")], "rows": list(a), "one": [a], "host": [a, numpy.ones((2, size))],
            "shapes": [a, a[:1]], "depths": [a, [a, a]], "none": [a[:, :0], a[:, :0]], "numbers": [a[0], 3.0], "long": [a.astype("longlong"), a.astype("longlong")],
            "complex": [a * 1j, a], "masks": [a > 1, a > 2],
        }  # fmt: skip

    for name, value in parts(numpy).items():
        for options in ({}, {"dtype": "f4"}, {"dtype": float}, {"ndmin": 5}, {"order": "F"}, {"copy": None}, {"ndmax": 1}):
            results = []
            for module, given in ((numpy, value), (bh, parts(bh)[name])):
                try:
                    made = module.array(given, **options)
                    order = made.flags.c_contiguous, made.flags.f_contiguous
                    results.append((made.dtype, made.shape, order, str(made.tolist())))
                except (TypeError, ValueError) as error:
                    results.append(type(error))
            assert results[0] == results[1], (name, options)


def test_arrays_of_lists_are_copies():
    a, b = bh.ones((100, 100)), bh.zeros((100, 100))
    made = bh.array([a, b])
    a[:], made[1] = 5, 7
    assert made[0].max() == 1 and b.max() == 0 and bh.asarray([a, b])[0, 0, 0] == 5


@pytest.mark.parametrize("seed", range(40))
def test_blocks_of_few_elements(seed):
    # Blocks of few elements are computed along a longer dimension around them, whatever lies where.
    rng = numpy.random.default_rng(seed)
    short = [int(extent) for extent in rng.integers(1, 6, 2)]
    long = [int(rng.choice([5, 16, 17, 64, 300, 2048, 2049])), *rng.choice([1, 3, 16], rng.integers(0, 2)).tolist()]
    shape = [max(1, 30_000 // int(numpy.prod(short + long))), *long, *short]
    dtype = rng.choice(["f8", "f4", "i8", "i2", "u1", "?", "c16"])
    places = rng.permutation(len(shape))
    stored = numpy.asarray(rng.integers(0, 100, [shape[place] for place in places])).astype(dtype)
    back = numpy.argsort(places)
    small = numpy.asarray(rng.integers(0, 100, shape[-1])).astype(dtype)
    taken = rng.integers(-stored.size, stored.size, shape)

    def results(library):
        a, b, rows = library.asarray(stored).transpose(back), library.asarray(small), library.asarray(taken)
        yield library.ascontiguousarray(a)
        yield (a + b)[..., ::-1] + a
        yield library.where(a > b[0], a, b)
        yield library.asarray(stored).reshape(-1)[rows] + a
        target = library.zeros(tuple(shape[:-1]) + (shape[-1] + 1,), dtype)
        target[..., 1:] = a
        target[..., :-1] += b
        yield target
        target[..., 1:] = target[..., :-1] * a
        yield target
        yield library.ascontiguousarray(a).reshape(-1, shape[-1])[1:].astype("f8" if dtype != "c16" else "c16")

    for mine, theirs in zip(results(bh), results(numpy)):
        same(mine, theirs)
