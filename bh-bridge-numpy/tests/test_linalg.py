"""Factorisations: the factors give the matrix back, and values are NumPy's; by NumPy's LAPACK, and by methods of the stack."""

import os
import pickle
import subprocess
import sys

import numpy
import pytest

import bh
from bh._array import memory
from bh._numpy import lapack
from conftest import decomposes, same

pytestmark = pytest.mark.skipif(not decomposes(), reason="the stack has no methods for decompositions")

KINDS = ("f4", "f8", "F", "D")


def matrix(kind, *shape):
    generator = numpy.random.default_rng(sum(shape))
    made = generator.normal(size=shape) + (1j * generator.normal(size=shape) if kind in "FD" else 0)
    return made.astype(kind)


def close(mine, reference, kind):
    value = numpy.asarray(mine)
    assert value.shape == numpy.shape(reference)
    numpy.testing.assert_allclose(value, reference, atol=2e-4 if kind in ("f4", "F") else 1e-11, rtol=1e-4 if kind in ("f4", "F") else 1e-11)


def adjoint(x):
    return bh.conj(bh.swapaxes(x, -1, -2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (2, 5, 3), (2, 2, 3, 3), (0, 3), (1, 1)])
def test_qr_and_svd(kind, shape):
    a = matrix(kind, *shape)
    x = bh.asarray(a)
    for mode in ("reduced", "complete"):
        q, r = bh.linalg.qr(x, mode)
        expected = numpy.linalg.qr(a, mode)
        assert (q.shape, r.shape, q.dtype, r.dtype) == (expected.Q.shape, expected.R.shape, a.dtype, a.dtype)
        close(q @ r, a, kind)
        close(adjoint(q) @ q, numpy.broadcast_to(numpy.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1])), kind)
        same(bh.tril(r, -1), numpy.zeros(r.shape, kind))
    for full in (True, False):
        u, s, vh = bh.linalg.svd(x, full_matrices=full)
        expected = numpy.linalg.svd(a, full_matrices=full)
        assert (u.shape, vh.shape, s.dtype) == (expected.U.shape, expected.Vh.shape, expected.S.dtype)
        close(s, expected.S, kind)
        short = s.shape[-1]
        close((u[..., :short] * s[..., None, :]) @ vh[..., :short, :], a, kind)
    close(bh.linalg.svdvals(x), numpy.linalg.svdvals(a), kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(5, 5), (3, 4, 4), (1, 1)])
def test_eigenvalues(kind, shape):
    a = matrix(kind, *shape)
    hermitian = a + numpy.conj(numpy.swapaxes(a, -1, -2))
    for triangle in "LU":
        values, vectors = bh.linalg.eigh(bh.asarray(hermitian), triangle)
        close(values, numpy.linalg.eigh(hermitian, triangle).eigenvalues, kind)
        close((vectors * values[..., None, :]) @ adjoint(vectors), hermitian, kind)
        close(bh.linalg.eigvalsh(bh.asarray(hermitian), triangle), numpy.linalg.eigvalsh(hermitian, triangle), kind)
    values, vectors = bh.linalg.eig(bh.asarray(a))
    close(bh.asarray(a) @ vectors, numpy.asarray(vectors * values[..., None, :]), kind)
    order = lambda v: numpy.sort_complex(numpy.round(numpy.asarray(v), 3).astype(complex))
    numpy.testing.assert_allclose(order(values), order(numpy.linalg.eigvals(a)), atol=3e-3)
    assert values.dtype == numpy.linalg.eigvals(a).dtype == bh.linalg.eigvals(bh.asarray(a)).dtype


def test_types_of_real_eigenvalues_are_numpys():
    a = numpy.array([[2.0, 1], [1, 2]])
    values, vectors = bh.linalg.eig(bh.asarray(a))
    assert values.dtype == vectors.dtype == numpy.linalg.eig(a).eigenvalues.dtype
    assert sorted(values.real.tolist()) == pytest.approx([1, 3])


def test_what_follows_from_factors():
    a, b = matrix("f8", 6, 3), matrix("f8", 6, 2)
    x, y = bh.asarray(a), bh.asarray(b)
    for name in ("pinv", "matrix_rank", "cond"):
        close(getattr(bh.linalg, name)(x), getattr(numpy.linalg, name)(a), "f8")
    for order in (2, -2, "nuc"):
        close(bh.linalg.norm(x, order), numpy.linalg.norm(a, order), "f8")
        close(bh.linalg.norm(bh.stack([x, x], 1), order, (0, 2), True), numpy.linalg.norm(numpy.stack([a, a], 1), order, (0, 2), True), "f8")
    for right in (b, b[:, 0]):
        mine, reference = bh.linalg.lstsq(x, bh.asarray(right)), numpy.linalg.lstsq(a, right)
        for one, other in zip(mine, reference):
            close(one, other, "f8")
    t = matrix("f8", 4, 6, 24).reshape(4, 6, 8, 3)
    close(bh.linalg.tensorinv(bh.asarray(t)), numpy.linalg.tensorinv(t), "f8")
    close(bh.linalg.tensorsolve(bh.asarray(t), bh.ones((4, 6))), numpy.linalg.tensorsolve(t, numpy.ones((4, 6))), "f8")
    stacked = matrix("f8", 3, 4, 4)
    close(bh.linalg.inv(bh.asarray(stacked)), numpy.linalg.inv(stacked), "f8")
    close(bh.linalg.det(bh.asarray(stacked)), numpy.linalg.det(stacked), "f8")


@pytest.mark.falls_back
@pytest.mark.parametrize("call", [
    "solve(np.zeros((2, 2)), np.ones(2))", "inv(np.zeros((3, 3)))", "cholesky(-np.eye(2))",
    "eig(np.full((2, 2), np.inf))", "qr(np.ones(3))", "eig(np.ones((2, 3)))", "solve(np.ones((2, 3)), np.ones(2))",
    "qr(np.eye(2), 'other')", "eigh(np.eye(2), 'X')", "lstsq(np.ones((2, 2)), np.ones(3))",
])  # fmt: skip
def test_failures_are_numpys(call):
    with pytest.raises(Exception) as expected:
        eval("np.linalg." + call, {"np": numpy})
    with pytest.raises(type(expected.value)):
        eval("np.linalg." + call, {"np": bh})
    same(bh.linalg.inv(bh.eye(2)), numpy.eye(2))


@pytest.mark.falls_back
def test_eigenvalues_of_nan_are_nan():
    a = numpy.stack([numpy.eye(2), numpy.full((2, 2), numpy.nan)])
    same(bh.linalg.eigvalsh(bh.asarray(a)), numpy.linalg.eigvalsh(a))
    assert numpy.isnan(numpy.asarray(bh.linalg.eigh(bh.asarray(a)).eigenvalues)[1]).all()


HAS_ARRAYS = pytest.mark.skipif(
    os.environ.get("BH_LINALG") == "stack" or not memory.in_process(bh._native.Stack().name), reason="LAPACK is not asked"
)


@HAS_ARRAYS
@pytest.mark.parametrize("call", [
    "solve(a, b)", "solve(a, b[:, 0])", "inv(a)", "det(a)", "slogdet(a)", "cholesky(p)", "qr(a)", "svd(a)", "svdvals(a)",
    "eigh(a)", "eigvalsh(a)", "eig(a)", "eigvals(a)", "lstsq(a[:, :4], b)", "inv(a[::2, ::2])", "det(a[:8].reshape(2, 4, 9)[..., :4])",
    "svd(a.T)", "pinv(a)", "pinv(a, hermitian=False)", "matrix_rank(a)", "cond(a)", "cond(a, 1)", "tensorinv(a[:8, :8].reshape(2, 4, 4, 2))",
    "tensorsolve(a.reshape(3, 3, 9), b[:, 0].reshape(3, 3))",
])  # fmt: skip
@pytest.mark.parametrize("follows", [False, True])
def test_bits_and_types_are_numpys(call, follows):
    before = bh._native.follow_array_api(follows)
    try:
        _bits_and_types_are_numpys(call, follows)
    finally:
        bh._native.follow_array_api(before)


def _bits_and_types_are_numpys(call, follows):
    a, b = matrix("f8", 9, 9), matrix("f8", 9, 2)
    p = a @ a.T + 9 * numpy.eye(9)
    expected = eval("np.linalg." + call, {"np": numpy, "a": a, "b": b, "p": p})
    found = eval("np.linalg." + call, {"np": bh, "a": bh.asarray(a) * 1.0, "b": bh.asarray(b) + 0.0, "p": bh.asarray(p)})
    assert isinstance(found, tuple) == isinstance(expected, tuple)
    parts = zip(found, expected) if isinstance(expected, tuple) else [(found, expected)]
    for mine, reference in parts:
        assert follows or isinstance(mine, numpy.generic) == isinstance(reference, numpy.generic)
        assert numpy.asarray(mine).dtype == numpy.asarray(reference).dtype
        assert numpy.asarray(mine).tobytes() == numpy.asarray(reference).tobytes()


@HAS_ARRAYS
@pytest.mark.parametrize("call", ["roots([1, -3, 2])", "roots(a[0])", "poly(a)", "polyfit(a[0], a[1], 2)", "polyfit(a[0], a[1:3].T, 1, w=a[3] ** 2)"])
def test_roots_and_fits_are_numpys(call):
    host = matrix("f8", 9, 9)
    expected = eval("np." + call, {"np": numpy, "a": host})
    found = eval("np." + call, {"np": bh, "a": bh.asarray(host) * 1.0})
    assert type(found) is bh.ndarray and found.dtype == expected.dtype
    assert numpy.asarray(found).tobytes() == expected.tobytes()


@HAS_ARRAYS
def test_who_follows_the_array_api_gets_arrays():
    before = bh._native.follow_array_api(True)
    try:
        found = bh.linalg.det(bh.eye(3)), *bh.linalg.slogdet(bh.stack([bh.eye(2), bh.eye(2)])[0])
    finally:
        bh._native.follow_array_api(before)
    assert [(type(one) is bh.ndarray, one.shape) for one in found] == [(True, ())] * 3


@HAS_ARRAYS
def test_methods_of_the_stack():
    """This file again, with the methods that devices and ranks use."""
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(tests, capture_output=True, text=True, env={**os.environ, "BH_LINALG": "stack"})
    assert done.returncode == 0, done.stdout


@HAS_ARRAYS
def test_who_does_the_work():
    program = "import bh as np; np.linalg.inv(np.eye(5)); print(np.profile()['instructions'] > 0)"
    for choice, expected in (("numpy", "False"), ("stack", "True")):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "BH_LINALG": choice})
        assert done.stdout.strip() == expected, done.stderr
    wrong = subprocess.run([sys.executable, "-c", "import bh"], capture_output=True, text=True, env={**os.environ, "BH_LINALG": "other"})
    assert "BH_LINALG is 'other', but must be little, numpy or stack" in wrong.stderr


def stacks(kind, rows, columns):
    """A stack that is computed side by side: with a gap between matrices, and of a number that is none of vectors."""
    count = 2 * (2100 // (rows * columns)) + 3
    return matrix(kind, count, rows, columns)[::2], bh.asarray(matrix(kind, count, rows, columns))[::2]


def near(mine, reference, kind, factor=1.0):
    """Do they differ by rounding errors alone?"""
    value = numpy.asarray(mine)
    assert (value.shape, value.dtype) == (reference.shape, reference.dtype)
    bound = factor * 200 * numpy.finfo(kind).eps
    assert numpy.abs(value - reference).max() <= bound * max(1.0, numpy.abs(reference).max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 13, 16])
def test_stacks_of_little_systems(kind, size):
    (a, x), side = stacks(kind, size, size), 3
    b = matrix(kind, len(a), size, side)
    condition = numpy.linalg.cond(a)[:, None, None]
    for right in (b, b[..., :1], b[0]):
        near(bh.linalg.solve(x, bh.asarray(right)) / condition, (numpy.linalg.solve(a, right) / condition).astype(kind), kind, size)
    near(bh.linalg.inv(x) / condition, (numpy.linalg.inv(a) / condition).astype(kind), kind, size)
    near(bh.linalg.det(x), numpy.linalg.det(a), kind, size)
    definite = (a @ numpy.conj(numpy.swapaxes(a, -1, -2)) + numpy.eye(size)).astype(kind)
    y = bh.asarray(definite)
    for upper in (False, True):
        near(bh.linalg.cholesky(y, upper=upper), numpy.linalg.cholesky(definite, upper=upper), kind)
    values, vectors = bh.linalg.eigh(y)
    near(values, numpy.linalg.eigh(definite)[0], kind, size)
    near(bh.linalg.eigvalsh(y, "U"), numpy.linalg.eigvalsh(definite, "U"), kind, size)
    near(y @ vectors, numpy.asarray(vectors * values[..., None, :]), kind, size * numpy.abs(definite).max())
    near(x @ x, a @ a, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (5, 2), (2, 5), (16, 4), (7, 16), (16, 16)])
def test_stacks_of_little_factors(kind, shape):
    a, x = stacks(kind, *shape)
    short, size = min(shape), max(shape)
    for mode in ("reduced", "complete"):
        q, r = bh.linalg.qr(x, mode)
        near(q @ r, a, kind, size)
        near(adjoint(q) @ q, numpy.broadcast_to(numpy.eye(q.shape[-1], dtype=kind), (len(a), q.shape[-1], q.shape[-1])), kind, size)
        assert not bh.tril(r, -1).any()
    for full in (True, False):
        u, s, vh = bh.linalg.svd(x, full_matrices=full)
        expected = numpy.linalg.svd(a, full_matrices=full)
        assert (u.shape, vh.shape) == (expected.U.shape, expected.Vh.shape)
        near(s, expected.S, kind, size)
        near((u[..., :short] * s[..., None, :]) @ vh[..., :short, :], a, kind, size)
    near(bh.linalg.svdvals(x), numpy.linalg.svdvals(a), kind, size)


@HAS_ARRAYS
def test_lapack_computes_stacks_of_little_matrices_if_asked(monkeypatch):
    taken, original = [], lapack.taken
    monkeypatch.setattr(lapack, "taken", lambda *call: taken.append(call[0]) or original(*call))
    x = bh.asarray(matrix("f8", 300, 3, 3))
    for choice, expected in (("little", []), ("numpy", [numpy.linalg.inv, numpy.linalg.svd])):
        monkeypatch.setattr(lapack, "LINALG", choice)
        bh.linalg.inv(x), bh.linalg.svd(x)
        assert taken == expected


@HAS_ARRAYS
def test_traced_functions_keep_methods():
    step = bh.jit(lambda a, b: bh.linalg.solve(a, b) + 1.0)
    for seed in range(4):
        a, b = numpy.random.default_rng(seed).normal(size=(2, 6, 6))
        close(step(bh.asarray(a), bh.asarray(b)), numpy.linalg.solve(a, b) + 1.0, "f8")


def test_functions_are_pickled_by_name():
    for function in (bh.linalg.inv, bh.linalg.eigh, bh.median, bh.repeat):
        assert pickle.loads(pickle.dumps(function)) is function
