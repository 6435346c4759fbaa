"""Derivatives of functions in plain NumPy, against complex steps and central differences; test_derived_programs.py has longer programs."""

import numpy
import pytest

import bh
import bh as np

SHAPE = (4, 5)


def values(shape=SHAPE, low=0.2, high=0.9, seed=0):
    return numpy.random.default_rng(seed).uniform(low, high, shape)


def check(function, *arrays, rtol=1e-6, step=1e-4):
    """Compares all gradients of `function`, whose results are weighted, with differences of the fourth order along a direction."""
    rng = numpy.random.default_rng(7)
    result = numpy.asarray(function(*[np.array(a) for a in arrays]))
    weights = rng.standard_normal(result.shape)
    if result.dtype.kind == "c":
        weights = weights + 1j * rng.standard_normal(result.shape)
    directions = [rng.standard_normal(a.shape) for a in arrays]
    directions = [d + 1j * rng.standard_normal(d.shape) if a.dtype.kind == "c" else d for a, d in zip(arrays, directions)]

    def scalar(*given):
        result = function(*given) * weights
        return result.real.sum() if result.dtype.kind == "c" else result.sum()

    def moved(by):
        return float(scalar(*[np.array((a + by * d).astype(a.dtype)) for a, d in zip(arrays, directions)]))

    found = bh.grad(scalar, tuple(range(len(arrays))))(*[np.array(a) for a in arrays])
    slope = (8 * (moved(step) - moved(-step)) - (moved(2 * step) - moved(-2 * step))) / (12 * step)
    pieces = [numpy.real(numpy.sum(numpy.asarray(g) * d)) for g, d in zip(found, directions)]
    size = sum(numpy.sum(numpy.abs(numpy.asarray(g) * d)) for g, d in zip(found, directions))
    assert all(g.dtype == a.dtype and g.shape == a.shape for g, a in zip(found, arrays))
    assert abs(sum(pieces) - slope) <= rtol * max(size, abs(slope), 1e-3), (sum(pieces), slope)
    # The way forward gives the same.
    value, tangent = bh.jvp(function, [np.array(a) for a in arrays], directions)
    forward = numpy.sum(numpy.asarray(tangent) * weights).real
    assert abs(forward - sum(pieces)) <= 1e-9 * max(size, 1e-3)


ONE = """negative positive absolute conjugate sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arctanh exp exp2 expm1 log log2
log10 log1p sqrt cbrt square reciprocal deg2rad rad2deg fabs sign floor ceil trunc rint""".split()
TWO = "add subtract multiply divide power arctan2 hypot maximum minimum fmax fmin logaddexp logaddexp2 fmod remainder copysign".split()
COMPLEX = """negative conjugate absolute sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh exp expm1 log log1p sqrt
square reciprocal real imag""".split()


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_operand(name):
    function = getattr(np, name)
    x = values()
    check(function, x)
    check(lambda x: function(x.T[::-1, 1:]), x)
    check(lambda x: function(np.broadcast_to(x[:, :1], SHAPE)), x)

    def in_place(x):
        x *= 0.9
        function(x[1:], out=x[1:])
        x[:, 1:] *= x[:, :-1]
        return x

    check(in_place, x)
    if name in "sin cos tan exp log sqrt arctan tanh square".split():
        step = 1e-30
        exact = numpy.imag(getattr(numpy, name)(x + 1j * step)) / step
        numpy.testing.assert_allclose(bh.grad(lambda x: function(x).sum())(np.array(x)), exact, rtol=1e-14)


def test_arccosh_and_error_functions():
    check(np.arccosh, values(low=1.3, high=2.0))


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_operands(name):
    function = getattr(np, name)
    x, y = values(), values(seed=1, low=0.35, high=0.8)
    check(function, x, y)
    check(function, x, y[0])
    check(lambda x: function(x, 0.55) + function(0.55, x), x)

    def in_place(x, y):
        function(x, y, out=x)
        x[1:] = function(x[:-1], y[1:])
        return x + y

    check(in_place, x, y)


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_functions(name):
    z = values() + 1j * values(seed=3)
    check(getattr(np, name), z)
    check(lambda z: getattr(np, name)(z[::-1].T * 1.5j) * z.T, z)


def test_ties_share_as_in_jax():
    x = np.array([1.0, 2.0, 2.0])
    assert bh.grad(lambda x: np.maximum(x, np.array([1.0, 1.0, 3.0])).sum())(x).tolist() == [0.5, 1.0, 0.0]
    assert bh.grad(lambda x: x.max())(x).tolist() == [0.0, 0.5, 0.5]


FOLDS = {
    "sum": lambda x: x.sum(axis=0),
    "sum of all": lambda x: x.sum(),
    "sum where": lambda x: np.sum(x, axis=1, where=x > 0.5),
    "prod": lambda x: x.prod(axis=1),
    "max": lambda x: x.max(axis=0),
    "min": lambda x: x.T.min(axis=0),
    "mean": lambda x: x.mean(axis=(0, 1)),
    "var": lambda x: x.var(axis=1),
    "std": lambda x: x.std(),
    "cumsum": lambda x: np.cumsum(x, axis=0),
    "cumprod": lambda x: np.cumprod(x, axis=1),
    "norm": lambda x: np.sqrt((x * x).sum(axis=0, keepdims=True)),
    "average": lambda x: np.average(x, axis=0, weights=[1.0, 2.0, 3.0, 4.0]),
    "logsumexp": lambda x: np.log(np.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1)),
    "trapezoid": lambda x: np.trapezoid(x, axis=1),
    "diff": lambda x: np.diff(x, axis=1),
    "nansum": lambda x: np.nansum(x),
    "ptp": lambda x: np.ptp(x, axis=0),
}


@pytest.mark.parametrize("name", FOLDS)
def test_folds(name):
    check(FOLDS[name], values())
    check(lambda x: FOLDS[name](x * x[:, ::-1]), values())


@pytest.mark.parametrize("zeros", [(), (2,), (1, 3), (0, 2, 4)])
def test_products_with_zeros(zeros):
    x = values((2, 5))
    x[0, list(zeros)] = 0.0
    check(lambda x: np.prod(x, axis=1), x)
    check(lambda x: np.cumprod(x, axis=1), x)


INDICES = {
    "slices": lambda x: x[1:, ::2] + x[:-1, ::2] ** 2,
    "take": lambda x: np.take(x, [0, 3, 3, -1], axis=1),
    "rows": lambda x: x[[0, 0, 2]],
    "pairs": lambda x: x[[0, 1, 0], [4, 4, 4]],
    "mask": lambda x: x[x > 0.5] ** 2,
    "where": lambda x: np.where(x > 0.5, x * x, 1 / x),
    "clip": lambda x: np.clip(x, 0.3, 0.7),
    "sort": lambda x: np.sort(x, axis=1) * np.arange(5.0),
    "sort along columns": lambda x: np.sort(x, axis=0) ** 2,
    "roll": lambda x: np.roll(x, 1, axis=0) * x,
    "flip": lambda x: np.flip(x) * x,
    "concatenate": lambda x: np.concatenate([x, x * x], axis=1),
    "stack": lambda x: np.stack([x, np.sin(x)]),
    "reshape": lambda x: x.T.reshape(2, 10) ** 2,
    "diagonal": lambda x: np.diagonal(x) ** 2,
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, axis=1).sum(axis=2) ** 2,
    "astype": lambda x: x.astype(np.float32).astype(np.float64) * x,
    "argmax": lambda x: x[np.arange(4), x.argmax(axis=1)],
    "repeat": lambda x: np.repeat(x, 2, axis=0) ** 2,
    "tile": lambda x: np.tile(x, (2, 1)) ** 2,
    "pad": lambda x: np.pad(x, 1) ** 2,
    "interp": lambda x: np.interp(x[0], np.array([0.0, 0.5, 1.0]), np.array([0.0, 2.0, 1.0])),
    "complex": lambda x: np.abs(x + 1j * x[::-1]) * (x + 2j * x).imag,
}


@pytest.mark.parametrize("name", INDICES)
def test_indices_and_shapes(name):
    check(INDICES[name], values(), rtol=1e-4 if name == "astype" else 1e-6, step=1e-2 if name == "astype" else 1e-4)


def rows(x):
    x[[0, 2]] = x[[1, 3]] ** 2
    return x


def repeated(x):
    y = np.zeros(3)
    y[[0, 1, 0]] = x[0, :3]
    return y * x[0, 0]


def masked(x):
    x[x > 0.5] *= 2
    x[x < 0.4] = 0.0
    return x * x


def masked_values(x):
    y = x * x
    y[x > 0.5] = np.sin(x[x > 0.5])
    return y


def added(x):
    y = np.zeros(5)
    np.add.at(y, [0, 1, 0, 4], x[:, 0] * x[:, 1])
    return y * y


def filled(x):
    y = np.empty((4, 5))
    y[:] = x
    y[0] = 1.0
    y[:, 0] = y[:, 1] * x[:, 2]
    y += x * y
    return y


def swapped(x):
    x[0], x[1] = x[1].copy(), np.sin(x[0])
    return x * x


def put(x):
    np.put(x, [1, 3], x[0, :2] * 3)
    return x**3


def copied(x):
    y = np.zeros_like(x)
    np.copyto(y, x * x, where=x > 0.5)
    return y + x


@pytest.mark.parametrize("function", [rows, repeated, masked, masked_values, added, filled, swapped, put, copied])
def test_assignments(function):
    check(function, values())


PRODUCTS = {
    "matrices": lambda a, b: a @ b.T,
    "vector": lambda a, b: a @ b[0],
    "from the left": lambda a, b: a[:, 0] @ b,
    "dot": lambda a, b: np.dot(a[0], b[1]),
    "outer": lambda a, b: np.outer(a[0], b[:, 1]),
    "einsum": lambda a, b: np.einsum("ij,kj->ik", a, b),
    "tensordot": lambda a, b: np.tensordot(a, b, axes=((0,), (0,))),
    "batches": lambda a, b: np.matmul(a[:, None, :], b[:, :, None]),
    "fft": lambda a, b: np.fft.fft(a * b),
    "ifft": lambda a, b: np.fft.ifft(a + 1j * b),
    "spectrum": lambda a, b: np.abs(np.fft.fft(a) * np.fft.fft(b)) ** 2,
    "convolve": lambda a, b: np.convolve(a[0], b[0]),
    "cross": lambda a, b: np.cross(a[:, :3], b[:, 1:4]),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
    check(PRODUCTS[name], values(), values(seed=5))


def test_large_products_and_slices():
    check(lambda a, b: np.tanh(a @ b)[1:, ::2], values((40, 70)), values((70, 30), seed=2))
    check(lambda a, b: a.T @ b, values((40, 3)) + 1j * values((40, 3), seed=4), values((40, 2), seed=2) + 0j)


def definite(a):
    return a @ np.conj(a).swapaxes(-1, -2) + 3 * np.eye(a.shape[-1])


STACKED = {
    "solve": lambda a, b: np.linalg.solve(a, b),
    "inv": lambda a, b: np.linalg.inv(a) * b,
    "det": lambda a, b: np.linalg.det(a) * b[..., 0, 0],
    "slogdet": lambda a, b: np.linalg.slogdet(a)[1] * b[..., 0, 0],
    "cholesky": lambda a, b: np.linalg.cholesky(definite(a)) * b,
    "qr": lambda a, b: np.linalg.qr(a)[0] * b + np.linalg.qr(a)[1],
    "eigh": lambda a, b: np.linalg.eigh(definite(a))[0] + b[..., 0],
    "eigvals": lambda a, b: np.linalg.eigvals(a).sum(axis=-1).real * b[..., 0, 0],
    "svd": lambda a, b: np.linalg.svd(a)[1] * b[..., 0],
    "svd of all": lambda a, b: (lambda u, s, v: (u * s[..., None, :] ** 2) @ v)(*np.linalg.svd(a)) * b,
}


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("name", STACKED)
def test_linear_algebra_of_stacks(name, kind):
    a, b = (numpy.random.default_rng(seed).uniform(0.2, 0.9, (2, 3, 4, 4)) for seed in (1, 2))
    a += 2 * numpy.eye(4)
    if kind == "complex":
        a = a + 1j * numpy.random.default_rng(3).uniform(0.2, 0.9, a.shape)
    if kind == "complex" and name == "slogdet":
        pytest.skip("the phase has no part in it")
    check(STACKED[name], a, b, rtol=1e-5)


CUTS = [("arcsin", 2), ("arcsin", -2), ("arccos", 2), ("arccos", -2), ("arccosh", 0.5), ("arccosh", -2), ("arcsinh", 2j), ("arcsinh", -2j), ("sqrt", -2), ("log", -2)]


@pytest.mark.parametrize("name, where", CUTS)
@pytest.mark.parametrize("side", [0.0, -0.0], ids=["above", "below"])
def test_sides_of_branch_cuts(name, where, side):
    """The derivative on a cut is that of the values on this side of it, which the sign of a zero says."""
    across = isinstance(where, complex)
    at = lambda h: numpy.array([complex(side, where.imag + h) if across else complex(where + h, side)])
    value = getattr(numpy, name)
    expected = (value(at(1e-6)) - value(at(-1e-6))) / (2e-6j if across else 2e-6)
    _, tangent = bh.jvp(getattr(np, name), (np.array(at(0.0)),), (np.ones(1, complex),))
    assert numpy.allclose(numpy.asarray(tangent), expected, rtol=1e-8)
