"""Changes at places that a program names: sums at indices, rows in exchange, and lists of numbers joined with arrays."""

import numpy
import pytest

import bh
from conftest import same

TYPES = "i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 c8 c16".split()
# Small arrays are computed at once, large ones are recorded and, of many indices, summed by several threads.
SIZES = [(7, 5), (300, 1600), (9000, 40), (300_000, 400_000)]
NUMBERS = [1, -1, 300, 2.5, True, 2**40, 2**63, 2**70, -(2**70), float("inf"), 1j, numpy.int8(3), numpy.float32(0.1)]


def outcome(work):
    """The result of a change, or the error that it raises."""
    try:
        return work()
    except Exception as error:
        return type(error), str(error)


def alike(mine, theirs):
    if isinstance(theirs, tuple):
        assert mine == theirs
    else:
        same(mine, theirs, ulps=0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.falls_back
@pytest.mark.parametrize("name", ["add", "subtract"])
@pytest.mark.parametrize("value", NUMBERS, ids=str)
@pytest.mark.parametrize("dtype", ["?", *TYPES])
def test_numbers_at_indices(name, value, dtype):
    def work(np):
        a, index = np.ones(6, dtype), np.asarray([0, 5, 5, -1, 2])
        getattr(np, name).at(a, index, value)
        return a

    alike(outcome(lambda: work(bh)), outcome(lambda: work(numpy)))


@pytest.mark.parametrize("name", ["add", "subtract"])
@pytest.mark.parametrize("value", [0, 0.0, -0.0, float("nan"), -float("nan")], ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_signs_of_zeros_and_nan_at_indices(name, value, dtype):
    mine, theirs = bh.array([0.0, -0.0, 1.0], dtype), numpy.array([0.0, -0.0, 1.0], dtype)
    getattr(bh, name).at(mine, bh.asarray([0, 1, 2]), value)
    getattr(numpy, name).at(theirs, [0, 1, 2], value)
    assert numpy.signbit(numpy.asarray(mine)).tolist() == numpy.signbit(theirs).tolist()


@pytest.mark.parametrize("name", ["add", "subtract"])
@pytest.mark.parametrize(("length", "count"), SIZES)
@pytest.mark.parametrize("index_type", ["i8", "i4", "u1"])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_arrays_at_indices(name, length, count, index_type, step):
    def work(np):
        a = (np.arange(length * 2) % 7 * 0.5)[::step]
        index = np.arange(count) * 7919 % min(length, 200 if index_type == "u1" else length)
        index, values = index.astype(index_type), np.arange(count) % 13 * 0.25
        getattr(np, name).at(a, index, values)
        if index_type != "u1":
            getattr(np, name).at(a, -1 - index, values[:1])
        return a

    alike(work(bh), work(numpy))


@pytest.mark.parametrize("dtype", ["i8", "f8", "c16"])
@pytest.mark.parametrize("shape", [(40, 30), (700, 600)])
def test_arrays_at_indices_of_tables(dtype, shape):
    def work(np):
        a, index = np.zeros(shape, dtype), np.arange(5000)
        np.add.at(a, (index * 31 % shape[0], index * 17 % shape[1]), index.astype(dtype))
        np.add.at(a[:, 3], index * 5 % shape[0], 2)
        np.add.at(a, (slice(1, 9, 2), index % shape[1]), 1)
        np.add.at(a.T, [3, 3, -1], np.ones(shape[0], dtype))
        return a

    alike(work(bh), work(numpy))


@pytest.mark.parametrize("length", [6, 300_000])
def test_sums_that_overflow_elsewhere_are_no_error(length):
    """Values of different places are never added to each other."""
    index, values = numpy.arange(length) * 7919 % length, numpy.full(length, 1e308)
    mine, theirs = bh.zeros(length), numpy.zeros(length)
    with bh.errstate(all="raise"):
        bh.add.at(mine, bh.asarray(index), bh.asarray(values))
        numpy.add.at(theirs, index, values)
        same(mine, theirs, ulps=0)


@pytest.mark.parametrize("bad", [-300_001, 300_000, 2**40])
def test_an_index_that_names_nothing_is_an_error(bad):
    index = numpy.arange(300_000)
    index[250_000] = bad
    a = bh.zeros(300_000)
    with pytest.raises(IndexError, match=f"index {bad} is out of bounds"):
        bh.add.at(a, bh.asarray(index), 1.0)
        a.tolist()


KEYS = [[0, 1], [5, 0], [2, 2], [-1, 3, 0], [4], [True, False, True, False, False, False], [0, 6], (1, 2), list(range(6)) * 2]
VALUES = {
    "rows in exchange": lambda np, a, key: a[key[::-1]],
    "a number": lambda np, a, key: 3,
    "a number that does not fit": lambda np, a, key: 1e300,
    "a row": lambda np, a, key: np.arange(a.shape[1]).astype(a.dtype),
    "a column": lambda np, a, key: np.arange(len(key)).astype(a.dtype)[:, None],
    "its own rows": lambda np, a, key: a[1 : 1 + len(key)],
    "another type": lambda np, a, key: np.arange(a.shape[1]),
    "a shape that does not fit": lambda np, a, key: np.zeros((7, 3), a.dtype),
    "a list": lambda np, a, key: [1] * a.shape[1],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("layout", ["C", "F", "strided"])
@pytest.mark.parametrize("dtype", ["f8", "i4", "?"])
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_rows_at_a_few_places(key, value, dtype, layout, pending):
    if 6 in key and value == "a shape that does not fit":
        pytest.skip("of two errors NumPy tells the other one")

    def work(np):
        a = np.arange(6 * 9000).reshape(6, 9000).astype(dtype) if pending else np.arange(6 * 20).reshape(6, 20).astype(dtype)
        a = np.asfortranarray(a) if layout == "F" else a[:, ::3] if layout == "strided" else a
        a[key] = VALUES[value](np, a, key)
        a[1:] = a[:-1].copy()
        return a

    alike(outcome(lambda: work(bh)), outcome(lambda: work(numpy)))


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("kind", ["i8", "i4", "u1", "u8", "f8"])
def test_rows_in_exchange_at_the_place_of_an_extreme(kind, pending):
    """Rows that arrays without dimensions name, as elimination exchanges them."""

    def work(np):
        a, order = (np.arange(90_000 if pending else 90).reshape(90, -1) * 7919 % 1009).astype("f8"), np.arange(90)
        for k in range(8):
            p = np.asarray(k + np.argmax(np.abs(a[k:, k % a.shape[1]]))).astype(kind)
            a[[k, p]] = a[[p, k]]
            order[[k, p]] = order[[p, k]]
            a[k + 1 :] -= a[k] * 0.5
        return a, order

    mine, theirs = outcome(lambda: work(bh)), outcome(lambda: work(numpy))
    if isinstance(theirs[0], type):
        assert mine[0] is theirs[0]
    else:
        same(mine[0], theirs[0], ulps=0)
        same(mine[1], theirs[1], ulps=0)


@pytest.mark.parametrize("dtype", ["?", "i4", "i8", "u8", "f4", "f8", "c16"])
@pytest.mark.parametrize("count", [0, 3, 9000])
@pytest.mark.parametrize("beside", [[0], [1.5, 2], [True], [1j], [[1]], [], (7, 8), [2**40]], ids=str)
def test_lists_joined_with_arrays(dtype, count, beside):
    def work(np):
        a = np.arange(count).astype(dtype)
        return np.concatenate((beside, a)), np.hstack([a, beside, a]), np.concatenate([a, beside, a], axis=0)

    mine, theirs = outcome(lambda: work(bh)), outcome(lambda: work(numpy))
    assert isinstance(theirs[0], type) == isinstance(mine[0], type)
    for one, other in zip(mine, theirs):
        assert one == other if isinstance(theirs[0], type) else same(one, other, ulps=0) is None


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin", "bitwise_and", "bitwise_or"])
@pytest.mark.parametrize("types", ["i8 i4", "i4 i8 i8", "u1 i1", "? i2", "f4 i4", "f8 f4 i1", "u8 i8", "f4 c8", "? ?", "u2 i2 f4", "u2 i1 c8"])
@pytest.mark.parametrize("count", [4, 9000])
def test_folds_of_lists_of_arrays_of_several_types(name, types, count):
    def work(np):
        arrays = [(np.arange(count) * step % 11 - (0 if "u" in kind else 3)).astype(kind) for step, kind in enumerate(types.split(), 3)]
        return getattr(np, name).reduce(arrays)

    alike(outcome(lambda: work(bh)), outcome(lambda: work(numpy)))


@pytest.mark.parametrize("others", ["?", "i1", "i8", "u8", "f4", "c8"])
@pytest.mark.parametrize("wide", ["f8", "c16"])
@pytest.mark.parametrize("shapes", [((5,), (5,)), ((3, 5), (5,)), ((5,), (5, 2)), ((4, 5), (5, 3)), ((90, 120), (120, 100))])
def test_products_of_two_types(shapes, wide, others):
    def work(np):
        a, b = (np.arange(numpy.prod(shape)).reshape(shape) % 5 for shape in shapes)
        a, b = a.astype(wide) / 4, b.astype(others)
        return a @ b, np.dot(a, b), b.T @ a.T, a[..., ::-1] @ b[::-1]

    for mine, theirs in zip(work(bh), work(numpy)):
        same(mine, theirs, ulps=64)
