"""NumPy's interface on back ends: primitives, whole programs, fallbacks, expressions that are put off, back ends of others."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from bh.backends.layer import numpy_on
from bh.backends import backend
from soaking import functions, judge, programs
from soaking.draft import data
from conftest import LIMIT

ROOT = Path(__file__).resolve().parents[2]
NAMES = ["bh", "numpy", "numexpr"]


@pytest.fixture(params=NAMES)
def name(request):
    if request.param == "numexpr":
        pytest.importorskip("numexpr")
    return request.param


def test_primitives(name):
    work, kind = backend(name), numpy.dtype(float)
    array = lambda *shape: work.view(work.empty(int(numpy.prod(shape)), kind), 0, shape, tuple(numpy.cumprod((1, *shape[:0:-1]))[::-1].tolist()))
    memory = work.empty(6, kind)
    x, back = work.view(memory, 0, (6,), (1,)), work.view(memory, 5, (6,), (-1,))
    work.method("arange", x)
    y, total, running = array(6), work.view(work.empty(1, kind), 0, (), ()), array(6)
    work.ufunc("multiply", y, back, 2.0)
    work.ufunc("add", y, y, x)
    work.reduce("add", total, y, 0)
    work.accumulate("add", running, y, 0)
    work.copy(back, y)
    work.flush()
    assert work.get(total) == 45 and list(work.get(running)) == [10, 19, 27, 34, 40, 45] and list(work.get(x)) == [5, 6, 7, 8, 9, 10]
    with pytest.raises(ValueError, match="no back end 'x', only bh, numpy, numexpr"):
        backend("x")


def test_memory_is_used_again():
    work, kind = backend("numpy"), numpy.dtype(float)
    place = lambda memory: memory.__array_interface__["data"][0]
    first = work.empty(1000, kind)
    at, view = place(first), work.view(first, 10, (5,), (1,))
    del first
    other = work.empty(1000, kind)
    assert place(other) != at, "a view still shows it"
    del view
    assert place(work.empty(2000, numpy.dtype("f4"))) == at, "nobody shows it any more"
    many = [work.empty(1000, kind) for _ in range(2 * work.kept)]
    assert len({place(memory) for memory in many}) == len(many) and len(work._kept) == work.kept
    work.kept = 0
    assert place(work.empty(7, kind)) and not work._kept
    assert work.empty(2, numpy.dtype(object)).dtype == object


PROGRAMS = {
    "views": lambda np, a: (a[1:, ::2] + a[:-1, 1::2], a.T[::-1], a[:, None].shape, a[1, 2], a[-1]),
    "views are written to": lambda np, a: (a[1:].__setitem__((slice(None), 0), 7), a[..., 1].fill(3), a.T.__setitem__(2, a[:, 0]), a)[-1],
    "what overlaps": lambda np, a: (a.__setitem__((slice(None), slice(1, None)), a[:, :-1]), a[1:].__iadd__(a[:-1]), np.add(a[1:], 1, out=a[:-1]), a)[-1],
    "types": lambda np, a: ((a * 3).astype("f4") * 2 + 1, a.astype(int) // 2, a > 3, (a > 3) & (a < 7), a.astype("i2") / 2, -a.astype(bool) if 0 else ~(a > 2)),
    "folds": lambda np, a: (a.sum(), a.sum(axis=0), np.max(a, axis=1, keepdims=True), a.mean(axis=1), (a > 2).all(), a.astype("i2").sum().dtype, a.prod()),
    "runs": lambda np, a: (np.cumsum(a[0]), np.add.accumulate(a, axis=1), np.cumsum(a)),
    "makers": lambda np, a: (np.zeros((2, 3)), np.ones(3, int), np.full(2, 1.5), np.arange(5), np.arange(2, 8, 3.0), np.linspace(0, 1, 5), np.eye(2), np.zeros_like(a)),
    "shapes": lambda np, a: (a.reshape(2, -1), a.T.reshape(-1), np.ravel(a), np.concatenate([a, a[:1]]), np.stack([a, a]), np.atleast_3d(a).shape, np.broadcast_to(a[0], (2, 4))),
    "products": lambda np, a: (a @ a.T, a[0] @ a[1], np.dot(a, a[0]), np.matmul(a.T, a)),
    "choices": lambda np, a: (np.where(a > 3, a, 0), a[a > 3], a[[0, 2]], np.clip(a, 1, 4), np.argmax(a), np.unique(a.astype(int) % 3)),
    "indexed assignment": lambda np, a: (a.__setitem__(a > 5, -1), a.__setitem__(([0, 1], [1, 1]), 9), np.add.at(a, (0, 0), 5), np.put(a, [3], 2), a)[-1],
    "sorting": lambda np, a: (a[:, ::-1].copy().sort(axis=1), np.sort(-a, axis=0), a.argsort(axis=1)),
    "outputs": lambda np, a: (np.sqrt(a, out=a), np.multiply(a, 2, out=a[:, :]), a, np.divmod(a, 2), np.sum(a, axis=0, out=np.zeros(4))),
    "scalars": lambda np, a: (float(a[0, 1]), int(a.sum()), bool(a[0, 0] < 1), f"{a.mean():.2f}", len(a), [float(row.sum()) for row in a], 3.0 in a, a.tolist()),
    "random": lambda np, a: (np.random.default_rng(1).random(3) + a[0, :3], np.linalg.norm(a), np.fft.fft(a[0]).real, np.random.default_rng(1).integers(9)),
    "branches": lambda np, a: (np.exp(-a) * np.sin(a) ** 2 / (1 + np.abs(a)), np.power(a, 2), np.hypot(a, 1), np.minimum(a, 2), np.isfinite(a).all()),
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(name, program, monkeypatch):
    if name == "bh":
        import bh

        if not hasattr(bh, "_native"):
            pytest.skip("the native library is missing")
    monkeypatch.setenv("BH_FALLBACK", "silent")

    def run(np):
        return PROGRAMS[program](np, np.array([[0.0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]))

    check(run(numpy_on(name)), run(numpy))


def check(mine, expected):
    if isinstance(expected, (tuple, list)):
        assert len(mine) == len(expected)
        for one, other in zip(mine, expected):
            check(one, other)
    elif isinstance(expected, numpy.ndarray):
        assert mine.dtype == expected.dtype and mine.shape == expected.shape
        numpy.testing.assert_allclose(numpy.asarray(mine), expected, rtol=1e-12)
    else:
        assert mine == pytest.approx(expected) if isinstance(expected, float) else mine == expected


SIZES = {"heat_equation": (30, 5), "shallow_water": (20, 3), "snakes_and_ladders": (20, 3), "black_scholes": (1000, 2), "lu": (12, 2)}


def run(*arguments, **environment):
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=LIMIT)


@pytest.mark.parametrize("program", SIZES)
def test_papers_programs(name, program):
    script = ROOT / "benches" / program / "numpy_version.py"
    plain, mine = (run(*way, script, *SIZES[program], "f64") for way in ((), ("-m", "bh", "--backend", name)))
    assert mine.returncode == 0, mine.stderr
    numpy.testing.assert_allclose(json.loads(mine.stdout)["checksum"], json.loads(plain.stdout)["checksum"], rtol=1e-11)


def test_expressions_are_put_off():
    pytest.importorskip("numexpr")
    np = numpy_on("numexpr")
    work = np._work.backend
    a = np.arange(1000.0)
    b = np.sqrt(a * 2 + 1) / (a + 3)
    assert work.evaluated == 0 and work.operations == 5
    total = (b * b - 1).sum()
    assert work.evaluated == 1
    x = numpy.arange(1000.0)
    y = numpy.sqrt(x * 2 + 1) / (x + 3)
    assert total == pytest.approx((y * y - 1).sum())
    # Delayed operations read elements as they are now.
    c = a + 1
    d = c * 2
    a += 10
    c[0] = 5
    check([c, d, a, b], [numpy.where(x == 0, 5, x + 1), (x + 1) * 2, x + 10, y])
    # So it does where all elements are overwritten, which is put off as well.
    before, later = work.evaluated, a + 1
    view = a[1:3]
    a *= 2
    a -= 1
    assert work.evaluated == before
    check([view, later, a], [(x + 10)[1:3] * 2 - 1, x + 11, (x + 10) * 2 - 1])
    assert work.evaluated == before + 2
    # Long expressions end by themselves.
    for _ in range(300):
        c = c * 1.01 + a
    assert 1 < work.evaluated < 60
    # Types that numexpr computes otherwise are NumPy's work.
    check([np.arange(5) / 2, np.float32(2) * np.ones(3, "f4"), np.arange(3) + 1j], [numpy.arange(5) / 2, numpy.full(3, 2, "f4"), numpy.arange(3) + 1j])


DEVICE = '''
"""A back end like CuPy: data of its own, which NumPy cannot see, and no running folds."""
import numpy as np
class Device:
    def __init__(self, data): self.data = data
    def __array__(self, *args, **kwargs): raise TypeError("on the device")
def raw(value): return value.data if isinstance(value, Device) else value
class Backend:
    name = "device"
    def empty(self, size, dtype): return Device(np.empty(size, dtype))
    def view(self, memory, offset, shape, strides):
        data = memory.data[offset:]
        return Device(np.lib.stride_tricks.as_strided(data, shape, [s * data.itemsize for s in strides]))
    def put(self, array, data): array.data[...] = data
    def get(self, array): return array.data.copy()
    def copy(self, out, array): np.copyto(out.data, raw(array), casting="unsafe")
    def ufunc(self, name, out, *inputs): getattr(np, name)(*map(raw, inputs), out=out.data)
    def reduce(self, name, out, array, axis): getattr(np, name).reduce(array.data, axis=axis, out=out.data)
    def accumulate(self, name, out, array, axis): raise NotImplementedError
    def method(self, name, out, *inputs):
        if name != "matmul": raise NotImplementedError
        np.matmul(*map(raw, inputs), out=out.data)
    def flush(self): pass
'''
MAIN = """
import numpy as np
from numpy import sqrt, zeros
import numpy.linalg as la
a = np.arange(6.0)
a[::2] *= 2
m = np.ones((2, 3)) @ a.reshape(3, 2)
a[a > 4] = zeros(1)
print(sqrt(a).sum() > 3, m.tolist(), np.cumsum(a).tolist(), round(float(la.norm(m)), 3), type(a).__module__)
"""


def offered(folder):
    """An installed package that offers a back end."""
    (folder / "device_package.py").write_text(DEVICE)
    (folder / "device_package-1.0.dist-info").mkdir()
    (folder / "device_package-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: device-package\nVersion: 1.0\n")
    (folder / "device_package-1.0.dist-info" / "entry_points.txt").write_text("[bh.backends]\ndevice = device_package:Backend\n")
    return os.pathsep.join([str(folder), *filter(None, sys.path)])


def test_back_ends_of_other_packages(tmp_path):
    path = offered(tmp_path)
    (tmp_path / "main.py").write_text(MAIN)
    done = run("-m", "bh", "--backend", "device", "--profile", tmp_path / "main.py", PYTHONPATH=path)
    assert done.stdout == run(tmp_path / "main.py").stdout.replace("numpy", "bh.backends.arrays") and "True" in done.stdout, done.stderr
    for text in ("ufunc ", "by NumPy: add.accumulate", "by NumPy: indexed assignment", "main.py:8: UserWarning: indexed assignment is done by NumPy"):
        assert text in done.stderr, done.stderr
    refused = run("-m", "bh", "--backend", "device", tmp_path / "main.py", PYTHONPATH=path, BH_FALLBACK="error")
    assert refused.returncode != 0 and "the back end device leaves indexed assignment to NumPy" in refused.stderr
    assert "by NumPy" not in run("-m", "bh", "--backend", "device", tmp_path / "main.py", PYTHONPATH=path, BH_FALLBACK="silent").stderr
    unknown = run("-m", "bh", "--backend", "divice", tmp_path / "main.py", PYTHONPATH=path)
    assert unknown.returncode == 2 and "there is no back end 'divice', only bh, numpy, numexpr, device" in unknown.stderr
    assert run("-m", "bh", "--backend", "numpy", "--stack", "cpu", tmp_path / "main.py").returncode == 2


@pytest.mark.parametrize("program", SIZES)
def test_papers_programs_on_a_device(tmp_path, program):
    script = ROOT / "benches" / program / "numpy_version.py"
    mine = run("-m", "bh", "--backend", "device", script, *SIZES[program], "f32", PYTHONPATH=offered(tmp_path), BH_FALLBACK="silent")
    assert mine.returncode == 0, mine.stderr
    numpy.testing.assert_allclose(json.loads(mine.stdout)["checksum"], json.loads(run(script, *SIZES[program], "f32").stdout)["checksum"], rtol=1e-4)


@pytest.mark.parametrize("which", ["numpy", "numexpr", "device"])
def test_random_programs(which, monkeypatch):
    if which == "numexpr":
        pytest.importorskip("numexpr")
    monkeypatch.setenv("BH_FALLBACK", "silent")
    device = {}
    exec(DEVICE, device)
    calls = 0
    for seed in range(150):
        program = programs.program(seed)
        code = compile(program.text, "<program>", "exec")
        np = numpy_on(device["Backend"]() if which == "device" else which)
        names = {"np": np, "data": lambda *args, np=np: np.asarray(data(*args)), "scalar": functions.scalar}
        with numpy.errstate(all="ignore"):
            exec(code, names)
        assert judge.difference(program, names, judge.on_numpy(code)) is None, program.text
        calls += np._work.counts["ufunc"]
    assert calls > 1000
