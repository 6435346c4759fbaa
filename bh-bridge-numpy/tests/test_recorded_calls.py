"""Calls on arrays that are not little, recorded without Python: as by Python's way, bit by bit, and as NumPy's."""

import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import BUILD_QUICKLY, LIMIT

import bh

SHAPES = [(3000,), (150, 130), (12, 150, 10), (1, 20000), (130, 0), (40, 41)]
ORDERS = {
    "as in C": lambda a: a, "turned": lambda a: a.T, "a part": lambda a: a[..., 1:], "steps": lambda a: a[..., ::2], "backwards": lambda a: a[::-1],
    "axes moved": lambda a: a.swapaxes(0, -1) if a.ndim > 2 else a,
}  # fmt: skip
TYPES = "float64 float32 complex128 complex64 int64 int32 uint8 bool".split()


def transforms(rng, a):
    """A call of `numpy.fft`, with options of all kinds, some of which are errors."""
    name = rng.choice("fft ifft rfft irfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn hfft ihfft".split())
    pick = lambda *values: values[rng.integers(len(values))]
    axis = lambda: int(rng.integers(-a.ndim, a.ndim + (rng.random() < 0.05)))
    size = lambda: pick(None, 7, 16, 151, int(rng.integers(-1, 200)))
    options = {}
    if rng.random() < 0.4:
        options["norm"] = pick(None, "ortho", "forward", "backward", "none such")
    if name.endswith(("2", "n")):
        axes = [axis() for _ in range(rng.integers(0, 3))]
        if rng.random() < 0.5:
            options["axes"] = pick(tuple, list)(axes)
        if rng.random() < 0.4:
            options["s"] = pick(tuple, list)(pick(-1, 8, 33) for _ in range(len(axes) if rng.random() < 0.9 else 1))
    else:
        if rng.random() < 0.5:
            options["n"] = size()
        if rng.random() < 0.6:
            options["axis"] = axis()
    # Some by their places.
    placed = []
    for key in ("s", "axes") if name.endswith(("2", "n")) else ("n", "axis"):
        if key not in options or rng.random() < 0.5:
            break
        placed.append(options.pop(key))
    return lambda module, a: getattr(module.fft, name)(a, *placed, **options)


def others(rng, a):
    """A call of another function."""
    pick = lambda *values: values[rng.integers(len(values))]
    axis, kind = int(rng.integers(-a.ndim, a.ndim)), pick(None, float, "f4", np.int64, bool, complex)
    number, order = pick(2, 2.5, -1, 0, 1j, True), pick("xy", "ij")
    calls = [
        lambda np, a: np.zeros_like(a), lambda np, a: np.ones_like(a, dtype=kind), lambda np, a: np.full_like(a, number), lambda np, a: np.zeros_like(a, kind),
        lambda np, a: np.full_like(a, number, dtype=kind), lambda np, a: np.zeros_like(np.empty_like(a)), lambda np, a: np.empty_like(a, kind).astype(bool) & False,
        lambda np, a: np.zeros(a.shape), lambda np, a: np.ones(a.shape, kind), lambda np, a: np.full(a.shape, number), lambda np, a: np.arange(a.size),
        lambda np, a: np.arange(5, 3 * a.size, 3), lambda np, a: np.linspace(0, 1.5, a.size), lambda np, a: np.linspace(-1, 2, num=a.size, endpoint=False),
        lambda np, a: np.linspace(-1, 2, 5000, False), lambda np, a: np.linspace(2, 2, 1), lambda np, a: np.linspace(0, 3, 0),
        lambda np, a: np.meshgrid(a[..., 0].ravel(), a[0].ravel()[:30]), lambda np, a: np.meshgrid(a.ravel()[:200:3], a.ravel()[:40] > 0, indexing=order),
        lambda np, a: np.meshgrid(a.ravel()[:20], a.ravel()[:30], a.ravel()[3:13], indexing=order), lambda np, a: np.meshgrid(a.ravel()),
        lambda np, a: np.sort(a, axis), lambda np, a: np.sort(a), lambda np, a: np.argsort(a, axis=axis, stable=True), lambda np, a: np.sort(a, axis=axis),
        lambda np, a: a.argmax(axis), lambda np, a: np.argmin(a, axis=axis), lambda np, a: np.argmax(a, axis=axis, keepdims=True), lambda np, a: a.argmin(),
        lambda np, a: np.median(a, axis=axis), lambda np, a: np.argsort(a), lambda np, a: a.argsort(axis, kind="stable"),
        lambda np, a: np.gradient(a, axis=axis), lambda np, a: np.gradient(a), lambda np, a: np.gradient(a, 2, axis=axis), lambda np, a: np.gradient(a, 0.5, 3)[0],
        lambda np, a: np.gradient(a, 0.3, axis=[axis, 0])[1], lambda np, a: np.gradient(a, 2.5, axis=(axis,), edge_order=2),
        lambda np, a: np.take(a, [1, 0, -1], axis), lambda np, a: a.take((2, 5), axis=axis), lambda np, a: np.take(a, [0]), lambda np, a: a.take([99, 2], axis=axis),
        lambda np, a: a[[1, 0]], lambda np, a: a[[1, -1, 0, 1]], lambda np, a: a[[7, 2, 5]] + 1, lambda np, a: np.take(a, [], axis),
        lambda np, a: np.einsum("ij,kj->ik", a, a), lambda np, a: np.einsum("ij,kj", a, a[:3]), lambda np, a: np.einsum("i...,i...->...", a, a), lambda np, a: np.einsum("ijk,ljk->li", a, a),
    ]  # fmt: skip
    return calls[rng.integers(len(calls))]


def outcome(call, module, a):
    try:
        made = call(module, a)
    except Exception as error:
        return type(error)
    return [np.asarray(one) for one in (made if type(made) in (tuple, list) else [made])]


def beside(rng, kinds):
    """Checks one random call three ways."""
    shape = SHAPES[rng.integers(len(SHAPES))]
    values = rng.integers(-50, 50, shape) if rng.random() < 0.5 else rng.normal(size=shape) * 10
    if rng.random() < 0.3:
        values = values + 1j * rng.integers(-4, 4, shape)
    values = values.astype(TYPES[rng.integers(len(TYPES))] if np.isrealobj(values) else rng.choice(["c16", "c8"]))
    if kinds == [others] and values.dtype.kind in "fc" and rng.random() < 0.3:
        values.reshape(-1)[:: rng.integers(7, 3000)] = np.nan
    name = rng.choice(list(ORDERS))
    call = kinds[rng.integers(len(kinds))](rng, ORDERS[name](values))
    found = []
    for module, taken in ((bh, True), (bh, False), (np, True)):
        before = bh._native.set_shortcuts(taken)
        try:
            array = module.array(values)
            # A result that is not computed yet, too.
            array = array + module.zeros((), array.dtype) if array.dtype != bool else array
            found.append(outcome(call, module, ORDERS[name](array)))
        finally:
            bh._native.set_shortcuts(before)
    one, other, reference = found
    if isinstance(reference, type):
        assert one is other is reference, (call.__closure__ and [cell.cell_contents for cell in call.__closure__], values.dtype, shape)
        return
    assert type(one) is type(other) is list and len(one) == len(other) == len(reference), (one, other)
    for a, b, c in zip(one, other, reference):
        assert a.dtype == b.dtype == c.dtype and a.shape == b.shape == c.shape
        assert (not a.size or a.strides == b.strides) and a.tobytes() == b.tobytes()
        # NumPy fills lines without elements with memory that nobody wrote.
        if not values.size:
            continue
        size = float(np.nan_to_num(np.abs(c)).max()) if c.size and c.dtype.kind in "fc" else 1.0
        np.testing.assert_allclose(a, c, rtol=2e-4 if c.dtype in ("f4", "c8") else 1e-9, atol=size * (1e-4 if c.dtype in ("f4", "c8") else 1e-11))


@pytest.mark.falls_back
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kinds", [[transforms], [others]], ids=["transforms", "others"])
def test_random_calls(kinds, seed):
    rng = np.random.default_rng([seed, len(kinds[0].__name__)])
    with np.errstate(all="ignore"):
        for _ in range(25):
            beside(rng, kinds)


@pytest.mark.parametrize("stack", ["opencl", "cluster"])
def test_random_calls_on_other_stacks(stack, tmp_path):
    ranks = {"BH_CLUSTER_RANKS": "2"} if stack == "cluster" else {"BH_OPENCL_DEVICE": "cpu", "XDG_CACHE_HOME": str(tmp_path), **BUILD_QUICKLY}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "test_random_calls and not stacks and (transforms-1] or others-1])", __file__]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | ranks | {"BH_STACK": stack}, timeout=LIMIT)
    if "there is no" in done.stdout + done.stderr and "OpenCL" in done.stdout + done.stderr:
        pytest.skip("there is no OpenCL")
    assert done.returncode == 0, done.stdout[-3000:]


NOT_WAITING = """
import numpy, bh
for axis in (None, 0, 1):
    for value in (1.0, numpy.nan):
        a = bh.array(numpy.random.default_rng(0).normal(size=(200, 301))) + 0
        a[3, 5] = value
        batches = bh._native.Stack().work()[1]
        found = bh.median(a, axis=axis)
        assert bh._native.Stack().work()[1] == batches
        numpy.testing.assert_array_equal(numpy.asarray(found), numpy.median(numpy.asarray(a), axis=axis))
"""


def test_medians_on_devices_wait_for_nothing(tmp_path):
    device = {"BH_STACK": "opencl", "BH_OPENCL_DEVICE": "cpu", "XDG_CACHE_HOME": str(tmp_path), **BUILD_QUICKLY}
    done = subprocess.run([sys.executable, "-c", NOT_WAITING], capture_output=True, text=True, env=os.environ | device, timeout=LIMIT)
    if "there is no" in done.stderr and "OpenCL" in done.stderr:
        pytest.skip("there is no OpenCL")
    assert done.returncode == 0, done.stderr[-3000:]
