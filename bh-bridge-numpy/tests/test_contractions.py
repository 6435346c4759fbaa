"""Sums of products in every notation, of any strides and types, beside NumPy's."""

import numpy
import pytest

import bh as np

TYPES = ["f4", "f8", "c8", "c16", "i4", "i8", "u1", "?"]


def numbers(random, shape, kind):
    """An array of a type, in any order and with any gaps in memory."""
    axes = random.permutation(len(shape))
    steps = [int(random.integers(1, 3)) * int(random.choice([1, 1, -1])) for _ in shape]
    stored = [shape[axis] * abs(steps[axis]) for axis in axes]
    values = random.integers(0, 2, stored) if kind == "?" else random.integers(0 if kind == "u1" else -9, 9, stored)
    values = values.astype(kind)
    if kind[0] == "c":
        values = values + values.dtype.type(0.5j) * random.integers(-9, 9, stored).astype(values.real.dtype)
    turned = values.transpose(numpy.argsort(axes)) if shape else values
    return turned[tuple(slice(None, None, step) for step in steps)]


def same(ours, wanted, context):
    """Equal, but for the rounding of sums."""
    ours = numpy.asarray(ours)
    assert ours.shape == wanted.shape and ours.dtype == wanted.dtype, (context, ours.dtype, wanted.dtype)
    tolerance = 1e-4 if wanted.dtype.char in "fF" else 1e-11
    if wanted.dtype.kind in "fc":
        size = float(numpy.abs(wanted).max(initial=1.0))
        assert float(numpy.abs(ours - wanted).max(initial=0.0)) <= tolerance * size, context
    else:
        assert (ours == wanted).all(), context


def einsum_call(random):
    """Subscripts, and an extent for each."""
    letters = "ijklmn"
    extents = {letter: int(random.choice([1, 2, 3, 5, 17, 30])) for letter in letters}
    count = int(random.integers(1, 4))
    operands = ["".join(random.choice(list(letters), int(random.integers(1, 4)))) for _ in range(count)]
    known = sorted(set("".join(operands)))
    result = "".join(random.permutation(known)[: int(random.integers(0, len(known) + 1))])
    return ",".join(operands) + "->" + result, [[extents[letter] for letter in own] for own in operands]


@pytest.mark.parametrize("seed", range(150))
def test_einsum(seed):
    random = numpy.random.default_rng(seed)
    text, shapes = einsum_call(random)
    kind = TYPES[seed % len(TYPES)]
    values = [numbers(random, shape, kind) for shape in shapes]
    wanted = numpy.einsum(text, *values, optimize=len(values) > 2)
    same(np.einsum(text, *map(np.array, values)), wanted, (seed, text, shapes, kind))


@pytest.mark.parametrize("seed", range(80))
def test_products_of_stacks(seed):
    random = numpy.random.default_rng(seed)
    kind = TYPES[seed % len(TYPES)]
    front = [int(random.choice([1, 2, 3, 7])) for _ in range(int(random.integers(0, 4)))]
    rows, inner, columns = (int(random.choice([1, 2, 4, 20, 70])) for _ in range(3))

    def stacked(*matrix):
        own = [extent if random.random() < 0.7 else 1 for extent in front[int(random.integers(0, len(front) + 1)) :]]
        return numbers(random, [*own, *matrix], kind)

    a, b, x, y = stacked(rows, inner), stacked(inner, columns), stacked(inner), stacked(inner)
    ours = [np.array(value) for value in (a, b, x, y)]
    context = (seed, kind, a.shape, b.shape, x.shape, y.shape)
    same(np.matmul(ours[0], ours[1]), numpy.matmul(a, b), context)
    same(np.vecdot(ours[2], ours[3]), numpy.vecdot(x, y), context)
    same(np.matvec(ours[0], ours[2]), numpy.matvec(a, x), context)
    same(np.vecmat(ours[2], ours[1]), numpy.vecmat(x, b), context)
    same(np.inner(ours[2], ours[3]), numpy.inner(x, y), context)
    same(np.tensordot(ours[0], ours[1], (-1, -2)), numpy.tensordot(a, b, (-1, -2)), context)


def test_a_large_stack_has_the_bits_of_its_matrices():
    random = numpy.random.default_rng(3)
    a, b = (np.array(random.standard_normal(shape)) for shape in ((5, 70, 80), (5, 80, 90)))
    stack = np.matmul(a, b)
    for number in range(5):
        one = np.einsum("sij,sjk->sik", a[number : number + 1], b[number : number + 1])
        assert (stack[number] == one[0]).all()
