"""Linear algebra where it goes wrong: singular, infinite, NaN, empty and misshapen matrices have NumPy's values and errors."""

import os
import subprocess
import sys

import numpy
import pytest

import bh
from bh._array import memory
from conftest import decomposes

pytestmark = [pytest.mark.skipif(not decomposes(), reason="the stack has no methods for decompositions"), pytest.mark.falls_back]

NAN, INF = numpy.nan, numpy.inf
MATRICES = {
    "singular": [[1.0, 2, 3], [4, 5, 6], [7, 8, 9]],
    "zeros": numpy.zeros((3, 3)),
    "a row of zeros": [[1.0, 2], [0, 0]],
    "equal rows": [[2.0, 1, 3], [2, 1, 3], [1, 0, 1]],
    "NaN": numpy.full((2, 2), NAN),
    "NaN above": [[1.0, NAN], [2, 3]],
    "NaN in the corner": [[1.0, 2], [2, NAN]],
    "NaN beside zeros": [[0.0, NAN], [0, 1]],
    "infinite above": [[1.0, INF], [0, 1]],
    "infinite first": [[INF, 1.0], [1, 2]],
    "infinite last": [[1.0, 2], [3, -INF]],
    "infinite": numpy.full((2, 2), INF),
    "nothing": numpy.zeros((0, 0)),
    "no rows": numpy.zeros((0, 3)),
    "no columns": numpy.zeros((3, 0)),
    "a stack of none": numpy.zeros((0, 2, 2)),
    "a stack of empty ones": numpy.zeros((2, 0, 0)),
    "not square": [[1.0, 1, 2], [3, 5, 5]],
    "not positive definite": [[1.0, 2], [2, 1]],
    "a negative number": [[-2.0]],
    "zero": [[0.0]],
    "one NaN": [[NAN]],
    "one infinity": [[INF]],
    "a number": [[4.0]],
    "a stack with a singular one": [[[1.0, 2], [3, 4]], [[1, 2], [2, 4]]],
    "a stack with NaN": [[[4.0, 2], [2, 4]], [[NAN, 2], [2, 4]], [[1, INF], [2, 4]]],
    "factors that overflow": numpy.diag([1e200, 1e200, 1e-200, 1e-200]),
    "a determinant that overflows": -numpy.diag([1e200, 1e200, 1e200]),
    "whole numbers": [[1, 2], [2, 4]],
    "positive definite": [[4.0, 1, 0], [1, 3, 1], [0, 1, 2]],
    "a vector": [1.0, 2],
}
CALLS = {
    "inv": lambda np, a: np.linalg.inv(a),
    "det": lambda np, a: np.linalg.det(a),
    "slogdet": lambda np, a: tuple(np.linalg.slogdet(a)),
    "solve": lambda np, a: np.linalg.solve(a, np.ones(a.shape[-1:])),
    "solve for two": lambda np, a: np.linalg.solve(a, np.ones((a.shape[-1], 2))),
    "solve for NaN": lambda np, a: np.linalg.solve(a, np.full((a.shape[-1], 1), NAN)),
    "cholesky": lambda np, a: np.linalg.cholesky(a),
    "cholesky, upper": lambda np, a: np.linalg.cholesky(a, upper=True),
    "qr": lambda np, a: abs(np.linalg.qr(a)[1]),
    "svd": lambda np, a: np.linalg.svd(a)[1],
    "svdvals": lambda np, a: np.linalg.svdvals(a),
    "eigh": lambda np, a: np.linalg.eigh(a)[0],
    "eigvalsh": lambda np, a: np.linalg.eigvalsh(a),
    "eig": lambda np, a: numpy.sort(np.linalg.eig(a)[0]),
    "eigvals": lambda np, a: numpy.sort(np.linalg.eigvals(a)),
    "pinv": lambda np, a: np.linalg.pinv(a),
    "matrix_rank": lambda np, a: np.linalg.matrix_rank(a),
    "lstsq": lambda np, a: tuple(np.linalg.lstsq(a, np.ones(a.shape[0])))[::3],
    "norm": lambda np, a: np.linalg.norm(a, 2),
    "nuclear norm": lambda np, a: np.linalg.norm(a, "nuc"),
    "matrix_power": lambda np, a: np.linalg.matrix_power(a, -1),
}
# Eigenvalues of these are as good as the square root of the precision.
DEFECTIVE = {"equal rows", "singular"}


def outcome(call, np, a):
    """The results as arrays, or the error."""
    try:
        result = call(np, np.asarray(a))
    except (ValueError, numpy.linalg.LinAlgError) as error:
        return type(error), str(error)
    return [numpy.asarray(part) for part in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["d", "D"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("matrix", MATRICES)
def test_values_and_errors_are_numpys(matrix, call, kind):
    if matrix in DEFECTIVE and call in ("eig", "eigvals"):
        pytest.skip("values that rounding makes")
    a = numpy.asarray(MATRICES[matrix])
    a = a.astype(kind) if a.dtype.kind == "f" else a
    expected, found = outcome(CALLS[call], numpy, a), outcome(CALLS[call], bh, a)
    if isinstance(expected, tuple):
        assert found == expected
        return
    assert isinstance(found, list) and len(found) == len(expected), found
    for mine, reference in zip(found, expected):
        assert (mine.shape, mine.dtype) == (reference.shape, reference.dtype)
        numpy.testing.assert_allclose(mine, reference, rtol=1e-9, atol=1e-9)


SQUARE = [name for name, a in MATRICES.items() if numpy.ndim(a) == 2 and len(set(numpy.shape(a))) == 1 and numpy.size(a)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["d", "D"])
@pytest.mark.parametrize("call", [name for name in CALLS if not name.startswith(("eig", "lstsq", "solve for NaN", "nuclear", "norm", "matrix_rank"))])
@pytest.mark.parametrize("matrix", SQUARE)
def test_stacks_with_such_a_matrix(matrix, call, kind):
    one = numpy.asarray(MATRICES[matrix]).astype(kind)
    others = numpy.random.default_rng(4).normal(size=(2100 // one.size, *one.shape))
    others = others @ numpy.swapaxes(others, -1, -2) + numpy.eye(len(one))
    a = numpy.concatenate([others[:5], one[None], others[5:]])
    makes = CALLS[call] if not call.startswith("solve") else lambda np, a: np.linalg.solve(a, np.ones((a.shape[-1], 2 if "two" in call else 1)))
    expected, found = outcome(makes, numpy, a), outcome(makes, bh, a)
    if isinstance(expected, tuple):
        assert found == expected
        return
    assert isinstance(found, list), found
    for mine, reference in zip(found, expected):
        assert (mine.shape, mine.dtype) == (reference.shape, reference.dtype)
        numpy.testing.assert_allclose(mine, reference, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("size", [12, 40])
def test_larger_matrices_that_are_singular_but_for_rounding_are_left_to_numpy(size):
    a = numpy.random.default_rng(size).integers(-9, 10, (size, size)).astype(float)
    a[size // 2] = a[0] - a[1]
    expected, found = (outcome(lambda np, a: np.linalg.inv(a), np, a) for np in (numpy, bh))
    assert found == expected if isinstance(expected, tuple) else numpy.array_equal(found[0], expected[0])


@pytest.mark.parametrize("kind", ["f", "d", "D"])
def test_singular_systems_that_have_solutions_are_found(kind):
    random, found = numpy.random.default_rng(5), []
    for size in (3, 9, 12, 16, 20, 24, 33, 48, 64):
        for place in range(3):
            a = random.integers(-4, 5, (size, size)).astype(kind) + 4 * size * numpy.eye(size, dtype=kind)
            a[-1 - place % size] = a[place % size]
            b = a @ numpy.ones(size, kind)
            for right in (b, numpy.stack([b, 2 * b], -1)):
                expected = outcome(lambda np, a: np.linalg.solve(a, np.asarray(right)), numpy, a)
                if isinstance(expected, tuple):
                    found.append(outcome(lambda np, a: np.linalg.solve(a, np.asarray(right)), bh, a) == expected)
    assert len(found) > 9 and all(found)


def test_determinants_of_nothing_are_numbers():
    for np in (bh, numpy):
        for made in (np.linalg.det(np.zeros((0, 0))), *np.linalg.slogdet(np.zeros((0, 0)))):
            # Numbers have a hash.
            assert isinstance(hash(made), int) and made.shape == ()
        assert np.linalg.det(np.zeros((2, 0, 0))).tolist() == [1, 1]


def test_solutions_of_stacks_and_of_several_sides():
    random = numpy.random.default_rng(2)
    for a, b in (((3, 4, 4), (3, 4, 2)), ((4, 4), (3, 4, 2)), ((2, 1, 4, 4), (3, 4, 1)), ((5, 5), (5,)), ((20, 20), (20, 1)), ((1, 1), (1, 3))):
        a, b = random.normal(size=a), random.normal(size=b)
        mine, expected = bh.linalg.solve(bh.asarray(a), bh.asarray(b)), numpy.linalg.solve(a, b)
        numpy.testing.assert_allclose(numpy.asarray(mine), expected, rtol=1e-8)
        assert mine.flags.c_contiguous and mine.flags.writeable and mine.shape == expected.shape


def test_scaled_rows_and_columns_are_no_reason():
    scales = 10.0 ** numpy.arange(-12, 13, 4)
    a = numpy.random.default_rng(1).normal(size=(7, 7))
    before = bh._numpy.fallback.mode("error")
    try:
        for scaled in (numpy.diag(scales), a * scales, a * scales[:, None]):
            found = numpy.asarray(bh.linalg.inv(bh.asarray(scaled)))
            numpy.testing.assert_allclose(found, numpy.linalg.inv(scaled), rtol=1e-8)
    finally:
        bh._numpy.fallback.mode(before)


RANKS = """
[stacks]
default = "ranks"
ranks = ["filter", "cluster", "fuser", "node", "ve-cpu"]
[components.cluster]
ranks = 3
small_bytes = 17
"""


@pytest.mark.skipif(
    os.environ.get("BH_LINALG") == "stack" or not memory.in_process(bh._native.Stack().name), reason="LAPACK is not asked"
)
@pytest.mark.parametrize("where", ["stack", "ranks"])
def test_methods_of_the_stack_and_of_ranks(where, tmp_path):
    """This file again, with the methods that devices and ranks use."""
    (tmp_path / "ranks.toml").write_text(RANKS)
    variables = {"BH_LINALG": "stack"} if where == "stack" else {"BH_CONFIG": str(tmp_path / "ranks.toml"), "BH_STACK": "ranks"}
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(tests, capture_output=True, text=True, env={**os.environ, **variables})
    assert done.returncode == 0, done.stdout
