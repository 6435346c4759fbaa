"""`vmap` against calls for one member after the other."""

import dataclasses

import numpy
import pytest
from test_derivatives import FOLDS, INDICES, ONE, TWO, added, copied, filled, repeated, rows, swapped, values
from test_derivatives_of_numpy import COMPOSED, FOURIER, REAL, RECTANGULAR, SQUARE
from test_derived_programs import PROGRAMS

import bh
import bh as np

MEMBERS = 3


def stacked(shape, seed=0, **bounds):
    return values((MEMBERS, *shape), seed=seed, **bounds)


def check(function, *arrays, in_axes=0, rtol=1e-12):
    """Compares `vmap` with calls for one member after the other, also of arguments that it changes."""
    axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(arrays)
    count = next(a.shape[axis] for a, axis in zip(arrays, axes) if axis is not None)
    given = [np.array(a) for a in arrays]
    found = bh.vmap(function, in_axes)(*given)
    expected, left = [], []
    for number in range(count):
        own = [np.array(a if axis is None else numpy.take(a, number, axis)) for a, axis in zip(arrays, axes)]
        expected.append(numpy.asarray(function(*own)))
        left.append(own)
    numpy.testing.assert_allclose(numpy.asarray(found), numpy.stack(expected), rtol=rtol, atol=1e-12)
    assert found.dtype == expected[0].dtype
    for at, axis in enumerate(axes):
        if axis is not None:
            numpy.testing.assert_allclose(given[at], numpy.stack([own[at] for own in left], axis), rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_operand(name):
    function = getattr(np, name)
    check(lambda x: function(x.T[::-1, 1:]) + function(np.broadcast_to(x[:, :1], x.shape)).T[:, 1:], stacked((4, 4)))


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_operands(name):
    function = getattr(np, name)
    x, y = stacked((4, 5)), stacked((4, 5), seed=1, low=0.35)
    check(function, x, y)
    check(lambda x, y: function(x, y[0]) + function(0.5, x), x, y[0], in_axes=(0, None))
    check(lambda x, y: function(x, y, out=x)[1:], x, y)


@pytest.mark.parametrize("name", FOLDS)
def test_folds(name):
    check(FOLDS[name], stacked((4, 5)))


@pytest.mark.parametrize("name", [name for name in INDICES if name not in ("mask", "interp")])
def test_indices_and_shapes(name):
    check(INDICES[name], stacked((4, 5)))


def cleared(x):
    x[x < 0.4] = 0.0
    x[1][x[0] > 0.5] = x[0, 0]
    return x * x


@pytest.mark.parametrize("function", [rows, repeated, cleared, added, filled, swapped, copied])
def test_assignments(function):
    check(function, stacked((4, 5)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    function, shapes = PROGRAMS[name]
    check(function, *[stacked(shape, seed=at) for at, shape in enumerate(shapes)], rtol=1e-10)


@pytest.mark.parametrize("name", [name for name in SQUARE if name != "cond"])
def test_square_matrices(name):
    check(SQUARE[name], stacked((4, 4)), rtol=1e-9)


@pytest.mark.parametrize("name", RECTANGULAR)
def test_rectangular_matrices(name):
    check(RECTANGULAR[name], stacked((5, 3)), rtol=1e-9)


@pytest.mark.parametrize("name", [*FOURIER, *REAL])
def test_fourier_transforms(name):
    check({**FOURIER, **REAL}[name], stacked((4, 5)))


# NumPy's code of these reads whether there is NaN.
READ_BY_NUMPY = ("median", "median of an odd number", "median of all", "quantile", "percentile", "nanmean", "i0", "piecewise", "lexsorted")


@pytest.mark.parametrize("name", [name for name in COMPOSED if name not in READ_BY_NUMPY])
def test_composed_functions(name):
    check(COMPOSED[name], stacked((4, 5)), rtol=1e-10)


PRODUCTS = {
    "matrices": (lambda a, b: a @ b, (4, 5), (5, 3)),
    "matrix and vector": (lambda a, b: a @ b, (4, 5), (5,)),
    "vector and matrix": (lambda a, b: a @ b, (4,), (4, 3)),
    "vectors": (lambda a, b: a @ b, (4,), (4,)),
    "turned matrices": (lambda a, b: a.T @ b.T, (4, 5), (3, 4)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
    function, first, second = PRODUCTS[name]
    check(function, stacked(first), stacked(second, seed=1))
    check(function, stacked(first), values(second, seed=1), in_axes=(0, None))
    check(function, values(first), stacked(second, seed=1), in_axes=(None, 0))
    check(function, stacked(first) + 1j, stacked(second, seed=1) * 1j)
    many = lambda shape: numpy.random.default_rng(1).integers(-5, 5, (MEMBERS, *shape))
    check(function, many(first), many(second))


def test_axes_of_arguments_and_results():
    x, y = values((4, MEMBERS, 5)), values((5, MEMBERS))
    check(lambda x, y: x * y, x, y, in_axes=(1, -1))
    found = bh.vmap(lambda x, y: (x * y, {"y": y, "c": y.sum() * 0 + 1}), in_axes=(1, 1), out_axes=(-1, {"y": 1, "c": 0}))(np.array(x), np.array(y))
    numpy.testing.assert_allclose(found[0], numpy.moveaxis(x * y.T, 1, -1))
    numpy.testing.assert_allclose(found[1]["y"], y)
    assert found[1]["c"].tolist() == [1.0] * MEMBERS

    @dataclasses.dataclass
    class Pair:
        a: object
        b: object

    found = bh.vmap(lambda p, k: Pair(p["x"] * k, p["n"] * 2), in_axes=({"x": 0, "n": None}, None))({"x": np.arange(3.0), "n": 7}, 2.0)
    assert (found.a.tolist(), found.b.tolist()) == ([0.0, 2.0, 4.0], [14, 14, 14])
    assert bh.vmap(lambda x: (x, 5), out_axes=(0, None))(np.arange(3))[1] == 5
    assert bh.vmap(lambda x, *, y: x + y)(np.arange(3), y=np.arange(3)).tolist() == [0, 2, 4]
    assert bh.vmap(lambda x: x[0])([numpy.arange(6).reshape(3, 2)]).tolist() == [[0, 1], [2, 3], [4, 5]]


def test_arrays_in_common_that_become_different():
    table = np.arange(5.0)

    def function(x):
        base = table * 2
        base += 1.0
        first = base.copy()
        total = base * x[0]
        base[1:3] = x[:2]
        table_now = first * base
        first += 1.0
        return total + table_now + first * x[1] + base.sum()

    check(function, stacked((3,)))
    assert table.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_values_in_common_from_before_they_change():
    def function(x, weights):
        total = x * 0
        for step in range(6):
            total += x * weights[step % 3 : step % 3 + 2].sum()
            weights *= 0.5
            weights[0] += step
        return total * weights[0]

    x, weights = stacked((2,)), values((5,), seed=3)
    expected = numpy.stack([numpy.asarray(function(np.array(row), np.array(weights))) for row in x])
    numpy.testing.assert_allclose(bh.vmap(function, (0, None))(np.array(x), np.array(weights)), expected, rtol=1e-12)


def test_reading_what_members_have_in_common():
    def function(x, n):
        total = x
        while n > 0:
            total, n = total * float(n), n - 1
        return total

    assert bh.vmap(function, (0, None))(np.arange(3.0), np.array(3.0)).tolist() == [0.0, 6.0, 12.0]


def branches(x):
    return [x if x.sum() > 0 else -x][0]


def reads(x):
    return x * float(x[0])


def selects(x):
    return x[x > 0.5].sum()


def counts(x):
    return x * int(np.count_nonzero(x > 0))


@pytest.mark.parametrize("function", [branches, reads, selects, counts])
def test_reading_what_differs_is_an_error_at_its_line(function):
    with pytest.raises(bh.Error, match="differs among the members") as caught:
        bh.vmap(function)(np.ones((3, 2)))
    assert function.__code__.co_firstlineno + 1 in [entry.lineno + 1 for entry in caught.traceback]
    assert bh.vmap(lambda x: x * 2)(np.ones(3)).tolist() == [2.0, 2.0, 2.0]


def test_arrays_from_outside_are_not_given_values_that_differ():
    outside = np.zeros(2)

    def function(x):
        outside[0] = x
        return x

    with pytest.raises(bh.Error, match=f"test_vmap.py:{function.__code__.co_firstlineno + 1}: .*from outside"):
        bh.vmap(function)(np.ones(3))
    assert outside.tolist() == [0.0, 0.0]


def test_wrong_indices_stay_errors():
    with pytest.raises(IndexError):
        numpy.asarray(bh.vmap(np.take)(np.ones((3, 4)), np.array([[0], [1], [4]])))
    found = bh.vmap(lambda x, i: x[i])(np.arange(12.0).reshape(3, 4), np.array([[0], [-1], [2]]))
    assert found.tolist() == [[0.0], [7.0], [10.0]]


def test_random_numbers_differ_among_members():
    def draw(x):
        return x + np.random.random(4)

    np.random.seed(5)
    found = numpy.asarray(bh.vmap(draw)(np.zeros(7)))
    np.random.seed(5)
    numpy.testing.assert_array_equal(found, [numpy.asarray(draw(0.0)) for _ in range(7)])
    rng = np.random.default_rng(3)
    found = bh.vmap(lambda x: (rng.random(), rng.integers(1000000) + x, rng.random((300, 300)), rng.normal(0.0, 1.0, 2)))(np.zeros(6))
    assert [len(numpy.unique(numpy.asarray(part))) for part in found] == [6, 6, 540000, 12]
    nested = numpy.asarray(bh.vmap(lambda y: bh.vmap(draw)(y))(np.zeros((5, 6))))
    assert len(numpy.unique(nested)) == 120
    found = bh.vmap(bh.grad(lambda x: (x * np.random.random(2)).sum()))(np.ones(3))
    assert len(numpy.unique(numpy.asarray(found))) == 3
    with pytest.raises(bh.Error, match="shuffle writes random numbers"):
        bh.vmap(lambda x: rng.shuffle(np.arange(3.0)))(np.ones(3))


def test_vmap_of_vmap():
    x = values((2, MEMBERS, 4))
    found = bh.vmap(bh.vmap(lambda x: np.sort(x)[::-1].cumsum()))(np.array(x))
    numpy.testing.assert_allclose(found, numpy.cumsum(numpy.sort(x)[..., ::-1], -1))
    outer = bh.vmap(bh.vmap(lambda a, b: a * b, (None, 0)), (0, None))
    numpy.testing.assert_allclose(outer(np.arange(3.0), np.arange(4.0)), numpy.outer(numpy.arange(3.0), numpy.arange(4.0)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_inside_and_outside(name):
    function, shapes = PROGRAMS[name]
    arrays = [stacked(shape, seed=at) for at, shape in enumerate(shapes)]

    def scalar(*given):
        return (function(*given) ** 2).sum()

    numbers = tuple(range(len(arrays)))
    own = [bh.grad(scalar, numbers)(*[np.array(a[m]) for a in arrays]) for m in range(MEMBERS)]
    inside = bh.vmap(bh.grad(scalar, numbers))(*map(np.array, arrays))
    outside = bh.grad(lambda *given: bh.vmap(scalar)(*given).sum(), numbers)(*map(np.array, arrays))
    for at in numbers:
        expected = numpy.stack([numpy.asarray(found[at]) for found in own])
        numpy.testing.assert_allclose(inside[at], expected, rtol=1e-9, atol=1e-12)
        numpy.testing.assert_allclose(outside[at], expected, rtol=1e-9, atol=1e-12)


def test_constants_of_derivatives():
    def function(x):
        return (x * bh.stop_gradient(x * x)).sum()

    x = stacked((4,))
    numpy.testing.assert_allclose(bh.vmap(bh.grad(function))(np.array(x)), x * x, rtol=1e-14)
    numpy.testing.assert_allclose(bh.grad(lambda x: bh.vmap(function)(x).sum())(np.array(x)), x * x, rtol=1e-14)
    twice = bh.custom_vjp(lambda x: x * x)
    twice.defvjp(lambda x: (twice(x), x), lambda x, g: (10.0 * g * x,))
    numpy.testing.assert_allclose(bh.vmap(bh.grad(lambda x: twice(x).sum()))(np.array(x)), 10 * x, rtol=1e-14)
    numpy.testing.assert_allclose(bh.vmap(twice)(np.array(x)), x * x, rtol=1e-14)
    with pytest.raises(bh.Error, match="inside of vmap"):
        bh.grad(lambda x: bh.vmap(twice)(x).sum())(np.array(x))


def test_jitted_functions_inside():
    step = bh.jit(lambda x: np.sin(x) * x)
    x = np.array(stacked((4,)))
    step(x[0]), step(x[0])
    numpy.testing.assert_allclose(bh.vmap(step)(x), np.sin(x) * x, rtol=1e-14)


def test_many_batches():
    def function(x, k):
        for _ in range(700):
            x[1:-1] += k * (x[2:] - 2 * x[1:-1] + x[:-2])
            x *= 0.999
        return x

    check(function, stacked((6,)), numpy.array([0.1, 0.2, 0.3]))


def test_no_members_and_wrong_arguments():
    assert bh.vmap(lambda x: x * 2)(np.ones((0, 3))).shape == (0, 3)
    with pytest.raises(ValueError, match="at least one"):
        bh.vmap(lambda x: x, in_axes=None)(np.ones(3))
    with pytest.raises(ValueError, match="different numbers of members: 3, 4"):
        bh.vmap(lambda x, y: x)(np.ones(3), np.ones(4))
    with pytest.raises(ValueError, match="no axis 1"):
        bh.vmap(lambda x: x, in_axes=1)(np.ones(3))
    with pytest.raises(ValueError, match="2 entries for 1"):
        bh.vmap(lambda x: x, in_axes=(0, 0))(np.ones(3))
    with pytest.raises(TypeError, match="whole numbers or None"):
        bh.vmap(lambda x: x, in_axes="0")(np.ones(3))
    with pytest.raises(ValueError, match="out_axes is None"):
        bh.vmap(lambda x: x, out_axes=None)(np.ones(3))
    with pytest.raises(ZeroDivisionError):
        bh.vmap(lambda x: 1 / 0)(np.ones(3))
    assert bh.vmap(lambda x: x)(np.ones(2)).tolist() == [1.0, 1.0]
