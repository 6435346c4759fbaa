"""`bh.parallel`: functions of indices, as if they were called for one index after the other."""

import math
import os

import numpy
import pytest
from conftest import same
from soaking import functions as scalar_programs

import bh
from bh._jit.scalar import program as _program
from bh._jit.scalar import registers

# How many random functions are tried; more for longer runs.
PROGRAMS = int(os.environ.get("BH_TEST_PROGRAMS", "100"))


def called(function, shape):
    """The function's result for each index, and the arrays that it writes."""
    return numpy.array([function(*index) for index in numpy.ndindex(*shape)]).reshape(shape)


def check(make, shape, *arrays):
    """Compares the function that `make` makes of arrays: its result, and what becomes of the arrays."""
    mine, expected = [bh.asarray(array) for array in arrays], [array.copy() for array in arrays]
    result, reference = bh.parallel(make(*mine), shape), called(make(*expected), shape)
    if result is not None:
        same(result, reference)
    for one, other in zip(mine, expected):
        same(one, other)


def product(a, b):
    def element(i, j):
        total = 0.0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        return total

    return element


def triangle(a):
    """A serial loop whose bounds are indices."""

    def element(i, j):
        total = 0.0
        for k in range(j, i + 1):
            if k % 2 and k != j:
                continue
            total += a[i, k]
        return total

    return element


def smoothed(a):
    """Branches at the borders: subscripts that are out of range are not used."""

    def element(i, j):
        if i == 0 or j == 0 or i == a.shape[0] - 1 or j == a.shape[1] - 1:
            return a[i, j]
        return (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]) * 0.25

    return element


def clamped(a):
    return lambda i: a[max(i - 2, 0)] + a[min(i + 2, len(a) - 1)] + a[-i] + a[(i * i) % len(a)]


def steps(a):
    """How often a number is halved, by a loop that waits, with subscripts in it."""

    def element(i):
        x, n = a[i], 0
        while x > 1:
            x = x / 2 + a[n] * 0
            n += 1
        return n

    return element


MATRIX = numpy.arange(30.0).reshape(5, 6) % 7
RESULTS = [(product, (5, 5), MATRIX, MATRIX.T.copy()), (triangle, (5, 5), MATRIX), (smoothed, (5, 6), MATRIX), (clamped, (30,), MATRIX.ravel()),
    (steps, (30,), MATRIX.ravel())]  # fmt: skip


@pytest.mark.parametrize("make, shape, arrays", [(make, shape, arrays) for make, shape, *arrays in RESULTS], ids=lambda value: getattr(value, "__name__", ""))
def test_results(make, shape, arrays):
    check(make, shape, *arrays)


@pytest.mark.parametrize("make, shape, arrays", [(make, shape, arrays) for make, shape, *arrays in RESULTS], ids=lambda value: getattr(value, "__name__", ""))
def test_results_under_masks(make, shape, arrays, monkeypatch):
    monkeypatch.setattr(registers, "is_worth", lambda function: False)
    check(make, shape, *arrays)


def imperfect(a, sums, largest):
    """Statements around the inner loop."""

    def row(i):
        total, top = 0.0, -math.inf
        for k in range(a.shape[1]):
            total += a[i, k]
            if a[i, k] > top:
                top = a[i, k]
        sums[i] = total
        largest[i, 0] = top

    return row


def histogram(a, counts):
    def count(i):
        if a[i] != 3:
            counts[int(a[i])] += 1
            counts[0] -= 2

    return count


def swapped(a, b):
    """A value that was read stays, although the array changes."""

    def swap(i):
        kept = a[i]
        a[i] = b[i]
        b[i] = kept

    return swap


def scattered(a, places):
    """Of those that go to one place, the last one stays."""

    def put(i, j):
        if (i + j) % 3:
            a[places[i], j % 2] = i * 10 + j
        return i

    return put


def early(a):
    def change(i):
        if i % 2:
            return
        a[i] = -1.0
        if i > 6:
            return
        a[i + 1] = 5.0

    return change


def in_loop(a):
    """Assignments in a loop that waits."""

    def change(i):
        k = i
        while a[k] < 100 and k < 3 * i:
            a[k] += 50
            k += 30

    return change


WRITES = [(imperfect, (5,), MATRIX, numpy.zeros(5), numpy.zeros((5, 2))), (histogram, (30,), MATRIX.ravel(), numpy.zeros(7, int)),
    (swapped, (6,), MATRIX[0].copy(), MATRIX[1].copy()), (scattered, (4, 6), numpy.zeros((5, 2), int), numpy.array([4, 2, 4, 1])),
    (early, (10,), numpy.zeros(12)), (in_loop, (30,), numpy.arange(120.0))]  # fmt: skip


@pytest.mark.parametrize("make, shape, arrays", [(make, shape, arrays) for make, shape, *arrays in WRITES], ids=lambda value: getattr(value, "__name__", ""))
def test_writes(make, shape, arrays):
    check(make, shape, *arrays)


def own(a, b):
    """Elements that an index has for itself: read and written, in branches and loops, and added to."""

    def change(i, j):
        k = 0
        while b[i + 1, 2 * j] > k:
            if a[i, j] > 20:
                return
            k += 1
            a[i, j] += b[k % 3, j] + k
        if k % 2 == 0:
            a[i, j] = -1.0

    return change


def moved(a, b):
    """Reads and writes are of different arrays."""

    def change(i):
        total = 0.0
        for k in range(3):
            total += a[i + k]
        b[2 * i + 1] = total

    return change


def tallied(a, counts, last):
    """Results of loops are written at computed subscripts, after them: added up, or the last one stays."""

    def put(i):
        steps, n = 0, int(a[i]) * 7 + 3
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        counts[steps % 5 - 5] += 1 + i % 2
        if steps % 3 == 2:
            last[steps % 4] = 10 * i

    return put


def beside(a, b, c):
    """Elements that an index has for itself beside such."""

    def put(i):
        total = 0.0
        for k in range(i % 4):
            total += a[i + k]
        b[i] = total
        c[int(total) % 7] = i
        return total

    return put


OWN = [(tallied, (24,), MATRIX.ravel(), numpy.zeros(5, int), numpy.zeros(4)), (beside, (9,), numpy.arange(20.0), numpy.zeros(9), numpy.zeros(7, int)),
    (own, (4, 3), numpy.arange(20.0).reshape(4, 5), MATRIX), (moved, (7,), MATRIX[0:2].ravel(), numpy.zeros(16)),
    (imperfect, (5,), MATRIX, numpy.zeros(5), numpy.zeros((5, 2)))]  # fmt: skip


@pytest.mark.parametrize("make, shape, arrays", [(make, shape, arrays) for make, shape, *arrays in OWN], ids=lambda value: getattr(value, "__name__", ""))
def test_own_elements_are_written_by_one_operation(make, shape, arrays):
    _program._programs.clear()
    check(make, shape, *arrays)
    (program,) = _program._programs.values()
    assert all(program._written.values()) and program._written


@pytest.mark.parametrize("dtype", ["bool", "i1", "i4", "f4", "f8", "c8", "c16"])
def test_elements_that_are_neighbours_one_for_all_or_anywhere(dtype):
    numbers = numpy.random.default_rng(3).integers(-9, 10, (30, 60))
    whole = (numbers > 0) if dtype == "bool" else (numbers * (1 + 0.5j) if dtype[0] == "c" else numbers).astype(dtype)

    def make(a, back):
        def element(i, j):
            total = a[i, j] * 0 + back[0, j] * 0
            for k in range(3 + i % 3):
                if (i + j) % 4 == k:
                    continue
                total = total + a[i, j + k] + a[k, 7] + back[i + k, j] + a[(i * j + k) % 30, -k - 1]
            return total

        return element

    mine = bh.asarray(whole)
    result = bh.parallel(make(mine, mine[:, ::-1]), (24, 50))
    with numpy.errstate(all="ignore"):
        same(result, called(make(whole, whole[:, ::-1]), (24, 50)))


def test_arrays_that_share_memory_are_written_as_statements_come():
    whole = bh.arange(12.0)
    a, b = whole[:6], whole[3:9]

    def shifted(i):
        total = 0.0
        for k in range(2):
            total += a[i + k]
        b[i] = total

    bh.parallel(shifted, 4)
    same(whole, numpy.array([0.0, 1, 2, 1, 3, 5, 7, 7, 8, 9, 10, 11]))


def test_random_programs(tmp_path):
    random = numpy.random.default_rng(4)
    x, y, n = random.integers(-8, 9, 40) / 4, random.uniform(-3, 3, 40), random.integers(-2, 9, 40)
    mine = tuple(map(bh.asarray, (x, y, n)))
    for seed in range(3000, 3000 + PROGRAMS // 10):
        function, text = scalar_programs.function(seed, tmp_path)
        kernel = lambda x, y, n: lambda i: function(x[i * 3 % 40], y[39 - i], n[i])
        expected = zip(*map(kernel(x, y, n), range(40)))
        for one, other in zip(bh.parallel(kernel(*mine), 40), expected):
            assert numpy.array_equal(numpy.asarray(one), other, equal_nan=True), (seed, text)


def test_several_results_and_indices_as_results():
    one, other = bh.parallel(lambda i, j: (i * 2 - j, i > j), (3, 4))
    i, j = numpy.indices((3, 4))
    same(one, i * 2 - j)
    same(other, i > j)


def test_functions_of_one_text_with_other_arrays():
    def moved(a, b, c):
        def put(i):
            kept = a[i]
            b[i] = 0.0
            c[i] = kept + 1

        bh.parallel(put, 3)
        return c

    one, other, third = bh.arange(3.0), bh.ones(3), bh.zeros(3)
    read = len(_program._programs)
    same(moved(one, other, third), numpy.arange(1.0, 4.0))
    same(moved(third, one, other), numpy.arange(2.0, 5.0))
    assert len(_program._programs) == read + 1
    # One array where there were two, others where there was one, another form, and memory that is shared.
    same(moved(other, other, third), numpy.arange(3.0, 6.0))
    same(moved(third, one, other), numpy.arange(4.0, 7.0))
    same(moved(bh.arange(5), bh.zeros(3), bh.zeros(3)), numpy.arange(1.0, 4.0))
    whole = bh.arange(6.0)
    same(moved(whole[1:4], whole[2:5], third), numpy.array([2.0, 3.0, 4.0]))


def test_subscripts_that_are_views():
    a = bh.asarray(MATRIX)
    assert "gather" not in str(bh.explain(bh.parallel(lambda i, j: a[i + 1, 5 - 2 * j] * a[i, j], (4, 3))))


def test_subscripts_out_of_range():
    a = bh.arange(5.0)
    with pytest.raises(IndexError, match="out of (range|bounds)"):
        numpy.asarray(bh.parallel(lambda i: a[i * i], 5))
    with pytest.raises(IndexError, match="a subscript goes from 3 to 7 in an axis of size 5"):
        bh.parallel(lambda i: a[i + 3], 5)

    def far(i):
        total = 0.0
        for k in range(4):
            total += a[i + k]
        return total

    with pytest.raises(IndexError, match="far: index [567] is out of range for dimension 0 of 'a' of extent 5"):
        numpy.asarray(bh.parallel(far, 4))
    same(bh.parallel(lambda i: a[i - 3], 5), numpy.array([2.0, 3.0, 4.0, 0.0, 1.0]))


def test_what_cannot_be_read_names_the_line():
    def text(i):
        if i > 1:
            return str(i)
        return i

    with pytest.raises(TypeError, match="line \\d+: the call 'str\\(i\\)' is not understood"):
        bh.parallel(text, 4)
