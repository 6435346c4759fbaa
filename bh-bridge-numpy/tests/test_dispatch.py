"""Calls that go to the recorder without Python in between: the same as NumPy's, whatever their form."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import bh
from bh import FallbackError

TYPES = "bool int8 int64 uint8 uint64 float32 float64 complex64 complex128".split()


def same(mine, reference):
    mine = np.asarray(mine)
    assert mine.dtype == np.asarray(reference).dtype and mine.shape == np.shape(reference)
    np.testing.assert_allclose(mine, reference, rtol=1e-6)


def outcome(work):
    """The result of a call, or the class of its exception."""
    try:
        return work()
    except Exception as error:
        return type(error)


def agree(work):
    mine, reference = outcome(lambda: work(bh)), outcome(lambda: work(np))
    if mine is FallbackError:
        return
    if isinstance(reference, type):
        assert mine is reference
    else:
        same(mine, reference)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", "add multiply maximum minimum logical_and logical_or bitwise_or".split())
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4), (2, 0, 3)])
def test_reductions_of_all_forms(name, dtype, shape):
    values = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 3).astype(dtype)
    for axis in (None, 0, -1, 1, (0, 1), (0, 0), ()):
        for keywords in ({}, {"keepdims": True}):
            # The second call finds what the first has put into the table.
            for _ in range(2):
                agree(lambda module: getattr(module, name).reduce(module.array(values), axis=axis, **keywords))
    agree(lambda module: getattr(module, name).reduce(module.array(values)))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", "negative positive square reciprocal fabs ceil trunc conjugate absolute".split())
def test_functions_of_one_operand(name, dtype):
    for values in (np.array([0.0, -0.0, 1.5, -2.5, np.nan, np.inf]), np.array([[1, 2], [3, 4]]), np.array(3)):
        with np.errstate(all="ignore"):
            values = values.astype(dtype)
            for _ in range(2):
                agree(lambda module: getattr(module, name)(module.array(values)))
            if name == "negative" and np.dtype(dtype).kind == "f":
                assert (np.signbit(np.asarray(-bh.array(values))) == np.signbit(-values))[~np.isnan(values)].all()


def test_scalars_of_numpy_before_any_type_was_asked_for():
    program = "import numpy, bh; a = bh.zeros(3); b = a * numpy.float64(2); print(b.dtype, (numpy.float64(2) + a).dtype, (a > numpy.int8(1)).dtype)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["float64", "float64", "bool"]


def test_lines_of_long_programs_are_told_apart(tmp_path):
    count, file = 3000, str(tmp_path / "long.py")
    found = {}
    exec(compile("def run(site):\n    return [\n" + "        site(),\n" * count + "    ]\n", file, "exec"), found)
    for _ in range(2):
        assert found["run"](bh._native.call_site) == [(file, line) for line in range(3, count + 3)]


STATEMENTS = """
    v = p[k]; v = p[m]; p[m] = 0; p[m] = s; p[m] = q[m]; p[m] = q[~m]; p[k] = q; p[k] = 1; p[k] = q[0]; p[k[:3]] = q[:3]
    p[w] = 2; v = p[w]; v = A[w]; v = A[w, w]; v = A[w, 1:]; A[w] = q[:4]; A[w, 1] -= A[w, :3] @ A[:3, w]; v = A[z]; v = A[z, z]; A[z] = 3
    v = np.where(m, p, q); v = np.where(m, p, 1); v = np.where(p > 1, 0.5, q); v = np.where(m, p, s); v = np.where(A > 1, A, q[:4])
    v = np.where(m, A, p); v = np.where(p, p, q); v = np.where(m[:2], p, q)
    v = p @ q; v = np.dot(p, q); v = p.dot(q); v = A @ A; v = A @ q[:4]; v = q[:4] @ A; v = A.T @ A; v = np.dot(A, p); v = np.inner(p, q)
    v = A[:0] @ A; v = A[:, :0] @ A[:0]; v = p[:0] @ q[:0]; v = p @ A; v = np.dot(p, 2); v = np.outer(p, q)
    v = p + s; v = s * p; v = n8 + p; v = p - n8; v = np.add(s, p); v = np.sqrt(np.abs(p)); v = -p; v = +q; v = np.square(A)
    v = p.sum(); v = A.max(axis=0); v = A.min(axis=(0, 1)); v = A.sum(axis=-1, keepdims=True); v = np.any(m); v = np.all(A > 0, axis=1)
    p += q; p *= 2; q -= s; A += q[:4]; v = p[2:] + q[:-2]; v = p > q; p[1] = q[0]; v = p[0] + 1; v = max(p[0], q[1]); v = p[w] > q[w]
    p = p.astype(float); p = p.astype(np.float32); p = p.astype(int); q = q.astype(np.int8); q = q.astype(float); A = A.astype(complex)
    A = A.astype(float); m = p > 1; m = ~m; k = k[::-1]; v = p[k][m]; v = p[k[m]]; v = p[m].sum(); v = A[A > 1]; A[A > 1] = 0.5
    A[A < 0] = A[A < 0] * 2; v = A[m[:4]]; A[m[:4]] = 1; v = p[k - 6]; p[k - 6] = 1; v = p[[0, -1]]; v = k[z]; v = p[k[z]:]
    v = np.sort(p); v = np.argmax(q); v = np.argmin(A); v = np.concatenate((p, q)); v = np.stack((p, q)); v = np.concatenate((A, A[:1]))
    v = np.zeros(3); v = np.ones((2, 2), int); v = np.full(2, 1.5); v = np.eye(3); v = np.arange(4); v = np.arange(3.5); v = np.array([1, 2])
    v = np.zeros_like(p); v = np.ones_like(A); v = np.array(p); v = q.copy(); v = p[::-1].copy(); v = A.ravel(); v = A.T.flatten()
    v = p.reshape(-1, 2); v = A.reshape(-1); v = np.squeeze(A[:1]); v = np.transpose(A); v = np.expand_dims(p, 0); v = p.astype(np.float32)
    v = np.count_nonzero(m); v = np.flatnonzero(m); v = np.nonzero(m)[0]; v = np.take(p, k); v = A[k % 4]; v = A[:, k[:3] % 4]; v = A[[0, 2]]
    p[1:-1] = q[1:-1]; p[:] = 0; A[1] = 2; A[:, 0] = q[:4]; p[::2] = q[::2]; p[1:] = p[:-1]; p[...] = q; v = np.array([e for e in p])
    v = np.array(p.item(2)); v = np.array(A.item(1, 2)); p[z] = 4; v = p[np.array(1)]; v = np.array(float(p[1])); v = p.max(); v = np.min(A, 0)
    p[2] += q[1]; A[1, w] *= A[w, 1]; v = s * p[1]; v = p[1] * q; v = p[1] > s; v = np.array(bool(m[2])); v = np.array([p[0], q[1]])
    v = np.roll(p, 2, 0); v = np.roll(A, 1, axis=0); v = np.roll(A, (1, -2), (0, 1)); v = np.roll(A.T, -1, 1); v = np.roll(A[1:, ::2], 3, (1, 0))
    v = np.cumsum(A, axis=1); v = np.cumsum(A, 0); v = np.cumsum(A.T, axis=-1); v = np.clip(p, -1, 1.5); v = A.clip(0, 2); v = np.clip(k, 1, 3)
    v = np.vdot(p, q); v = np.full_like(A, 2); v = np.full_like(k, -7); v = np.full_like(p, w); v = np.array([1, w, 2.5], float)
    A[range(4), k[:4] % 4] -= 1; v = A[range(3), [0, 1, 2]]; p[k[:0]] = q[k[:0]]; p[k[:0]] += 1; v = p[k[:0]]; A[k[:0] % 4] = A[:0]
    v = np.array(p.tolist()); v = np.array(k[::2].tolist()); v = np.frombuffer(A.T.tobytes()); v = np.frombuffer(p[::2].tobytes())
    v = A.mean(1, keepdims=True); v = np.var(A, axis=0); v = A.std(axis=-1, keepdims=True); v = np.std(A); v = A.var((0, 1)); v = A.T.var(axis=0)
    v = A.sum(0, keepdims=True); v = np.max(A, axis=1, keepdims=True); v = np.var(p); v = np.deg2rad(p); v = np.degrees(A); v = np.radians(k)
    v = np.frombuffer(m.tobytes(), bool); v = np.array(A[:, 1].tolist()); v = np.fft.fft(p).real + 99; v = np.fft.ifft(A).imag + 99
    v = np.fft.rfft(A).real + 99; v = np.fft.fft(A.T).imag + 99; v = np.fft.rfft(p[1:]).imag + 99
    v = np.mean(k); v = (A > 0).mean(axis=1); v = (A.T > 0).mean(0, keepdims=True); v = k.std(); v = np.var(m); v = k[::2].mean()
    v = np.where(m, 1, -1); v = np.where(A > 0, 2.5, 0); v = np.where(m, s, s); v = np.where(A.T > 0, 1, 2); v = np.where(m, n8, n8); v = np.where(m, True, False)
    v = np.vdot(A, A + 1); v = np.vdot(A.T, A); v = np.linalg.norm(A, axis=1, keepdims=True); v = np.linalg.norm(k); v = np.linalg.norm(A.T, axis=-1)
    v = np.concatenate([[1.0], p]); v = np.hstack([2, p, 0.5]); v = np.vstack([p, [1, 2, 3, 4, 5, 6]]); v = np.column_stack([p, k])
    v = np.divide(p, q, out=np.zeros_like(p), where=q != 0); np.subtract(p, q, out=p, where=m)
    v = np.nansum(p); v = np.nansum(A, axis=0); v = np.nanprod(q / 2); v = np.nanmean(A, 1, keepdims=True); v = np.nanmean(k); v = np.nanvar(A, axis=0)
    v = np.nanstd(A.T, axis=1); v = np.nanstd(p); v = np.nancumsum(A, axis=1); v = np.nancumsum(p); v = np.nansum(m); v = np.nanmean(A[::-1], axis=0)
    v = np.nanvar(p[::2]); v = np.nanmean(np.where(m, p, np.nan)); v = np.nanstd(np.where(A > 0, np.nan, A), 0); v = np.nansum(p[:0]); v = np.add.reduceat(p, [0, 3, 1]); v = np.add.accumulate(A, 1)
    v = np.multiply.reduceat(A, k[:2] % 4, axis=1); v = np.maximum.accumulate(p); v = np.minimum.reduceat(A.T, [2], 0); v = np.add.reduceat(p, [9])
    np.add(A, 1, out=A, where=A > 0); v = np.mgrid[0:2, 0:1:3j][1]; v = np.c_[p, q]; v = np.r_[p, 1.5, k]; v = np.gradient(A, q[:4], axis=0)
"""


def names(module, rng):
    arrays = {
        "p": rng.integers(-3, 4, 6).astype(float), "q": rng.integers(-3, 4, 6).astype(float), "m": rng.random(6) < 0.5,
        "k": rng.permutation(6), "A": rng.integers(-3, 4, (4, 4)).astype(float), "z": np.array(2), "v": np.zeros(1),
    }  # fmt: skip
    found = {name: module.array(value) for name, value in arrays.items()}
    # The scalar `w` comes from an array.
    return found | {"np": module, "w": module.array([3, 1])[1], "s": np.float64(1.5), "n8": np.int8(3)}


def said(statement, found):
    try:
        exec(statement, found)
        return None
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        return type(error)


@pytest.mark.parametrize("seed", range(30))
def test_random_programs_with_and_without_shortcuts(seed):
    statements = [text.strip() for text in STATEMENTS.replace("\n", ";").split(";") if text.strip()]
    choice = np.random.default_rng(seed)
    sides = [(name, names(module, np.random.default_rng(seed))) for name, module in (("taken", bh), ("left", bh), ("numpy", np))]
    with np.errstate(all="ignore"), warnings.catch_warnings(), bh.fallback("silent"):
        warnings.simplefilter("ignore")
        for number in choice.integers(0, len(statements), 60):
            text = statements[number]
            outcomes = []
            for name, found in sides:
                before = bh._native.set_shortcuts(name != "left")
                try:
                    outcomes.append(said(text, found))
                finally:
                    bh._native.set_shortcuts(before)
            assert outcomes[0] == outcomes[1] and (outcomes[0] is None) == (outcomes[2] is None), (text, outcomes)
            for name in "pqmkAv":
                taken, left, reference = (np.asarray(found[name]) for _, found in sides)
                assert taken.dtype == left.dtype == reference.dtype and taken.shape == left.shape == reference.shape, text
                assert taken.tobytes() == left.tobytes(), text
                np.testing.assert_allclose(taken, reference, rtol=1e-5, err_msg=text)
                # From the same values again: products may be rounded differently.
                for (_, found), module in zip(sides, (bh, bh, np)):
                    if found[name] is not None and reference.ndim:
                        found[name] = module.array(reference)


def test_random_programs_on_data_at_hand():
    environment = os.environ | {"BH_RECORDER_IMMEDIATE_BYTES": "16384"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "with_and_without or at_hand_are", __file__]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.skipif(os.environ.get("BH_RECORDER_IMMEDIATE_BYTES", "0") == "0", reason="nothing is carried out where it is called")
def test_elements_at_hand_are_scalars_of_numpy():
    a, u, m = bh.array([1.5, 2.5]), bh.array([1, 2]), bh.array([True, False])
    assert [type(x[0]) for x in (a, u, m)] == [np.float64, np.int64, np.bool_]
    assert type(a[0] + u[1]) is np.float64 and type(a[0] * a) is bh.ndarray
    assert [type(element) for element in a] == [np.float64] * 2 and max(a[0], a[1]) == 2.5
    a[0] = u[1]
    a[1] += 1
    with pytest.raises(IndexError, match="index 2 is out of bounds for axis 0 with size 2"):
        a[2]
    with pytest.raises(IndexError, match="index -3 is out of bounds for axis 0 with size 2"):
        a[-3] = 1
    assert a.tolist() == [2, 3.5]
    # Memory that NumPy shares is changed in place.
    shared = np.asarray(a)
    a[0] = 7
    assert shared[0] == 7


def test_a_scalar_is_an_index_and_an_array_without_dimensions_asks_for_a_copy():
    for index, shares in ((bh.array([1, 2])[1], True), (bh.array(2), False)):
        a = bh.zeros((3, 2))
        row = a[index]
        row[...] = 1
        assert float(a.sum()) == (2 if shares else 0)
        a[index] = 3
        a[index, 0] += bh.float64(1)
        assert a.tolist() == [[0, 0], [0, 0], [4, 3]]
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        bh.zeros(3)[bh.array(3)]
    with pytest.raises(IndexError, match="index-sized"):
        bh.zeros(3)[2**63]
    with pytest.raises(IndexError, match="index-sized"):
        bh.zeros(3)[bh.array(2**63, dtype=bh.uint64)]


@pytest.mark.parametrize("arguments", [(5,), (-5,), (0,), (2, 9), (9, 2), (9, 2, -3), (2, 9, 4), (1, 2**62, 2**61), (True,), (3, None)])
def test_ranges_of_whole_numbers(arguments):
    agree(lambda module: module.arange(*arguments))
    agree(lambda module: module.arange(*arguments, dtype=np.float32))


def test_names_of_one_function_are_names_of_one_function_here_too():
    for module, other in ((bh, np), (bh.linalg, np.linalg), (bh.fft, np.fft), (bh.random, np.random)):
        names = [name for name in dir(other) if hasattr(module, name) and callable(getattr(other, name))]
        mine, theirs = ([[getattr(where, name) is getattr(where, first) for first in names] for name in names] for where in (module, other))
        assert mine == theirs
    assert bh.around(bh.array([1.25, 2.5]), 1).tolist() == [1.2, 2.5]


def test_numbers_of_numpy_are_compared_from_the_left():
    a = bh.arange(4.0)
    for made in (np.float64(2) < a, np.float64(2) == a, np.array(2.0) * a, np.int64(2) != a):
        assert type(made) is bh.ndarray and made.shape == (4,)
    assert (np.float64(2) <= a).tolist() == [False, False, True, True] and type(np.float64(2) > (a * 1)[1]) is np.bool
    assert (np.array(2, "f4") * bh.ones(2, "f4")).dtype == "f4" and (np.array(2.0) * bh.ones(2, "f4")).dtype == "f8"


def test_classes_with_functions_of_their_own_say_what_they_are():
    class Own:
        def __array_function__(self, function, types, args, kwargs):
            return function.__name__

        def __array__(self, dtype=None, copy=None):
            return np.arange(2.0)

    for name in ("shape", "ndim", "size", "iscomplexobj", "isrealobj", "common_type"):
        assert getattr(bh, name)(Own()) == getattr(np, name)(Own()) == name

    assert bh.common_type(bh.ones(2), Own()) == "common_type"

    class Derived(np.ndarray):
        def __array_function__(self, function, types, args, kwargs):
            assert function is np.copyto
            np.copyto(args[0], np.asarray(args[1]) + 1)

    value = np.arange(2.0).view(Derived)
    assert bh.full((2, 2), value, float).tolist() == [[1.0, 2.0]] * 2 == np.full((2, 2), value, float).tolist()
    assert bh.full((2, 2), value).tolist() == [[0.0, 1.0]] * 2 == np.full((2, 2), value).tolist()
    assert bh.full((2, 2), bh.arange(2.0)).tolist() == [[0.0, 1.0]] * 2
