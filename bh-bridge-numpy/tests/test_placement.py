"""Where little work runs on the stack of a device: at its call in host memory, as long as its arrays are there or it has earned that they
come, and on the device with the key `placement`."""

import json
import os
import subprocess
import sys

import pytest
from conftest import BUILD_QUICKLY

PRELUDE = """
import json
import numpy
import bh as np
from bh import _native

stack = _native.Stack()

def count(work):
    stack.flush()
    before = dict(stack.counters())
    work()
    stack.flush()
    after = dict(stack.counters())
    return {name: after[name] - before.get(name, 0) for name in after}
"""


def found(program, *words, **settings):
    """The JSON that a program prints on the stack `opencl`."""
    env = {**os.environ, "BH_STACK": "opencl", "BH_OPENCL_DEVICE": "cpu", "BH_OPENCL_CACHE_DIR": "", "BH_OPENCL_TUNE": "off", **BUILD_QUICKLY, **settings}
    done = subprocess.run([sys.executable, "-c", PRELUDE + program, *words], capture_output=True, text=True, env=env)
    if done.returncode and "OpenCL" in done.stderr and "no device" in done.stderr:
        pytest.skip("there is no OpenCL")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


LITTLE = """
x = np.arange(100.0)

def work():
    global x
    for _ in range(50):
        x = np.sqrt(x * x + 1.0)
        x[3] = x.sum()

counts = count(work)
print(json.dumps([counts["immediate"], counts.get("opencl.kernels", 0), float(x.sum())]))
"""


def test_loops_over_little_arrays_run_at_their_calls():
    immediate, kernels, total = found(LITTLE)
    assert immediate >= 250 and kernels == 0
    _, kernels, same = found(LITTLE, BH_OPENCL_PLACEMENT="device")
    assert kernels > 0 and same == pytest.approx(total, rel=1e-12)


ROWS = """
import sys
n = 600
a = np.fromfunction(lambda i, j: 1.0 / (i + j + 1), (n, n)) + np.eye(n) * n
b = np.ones(n)
np.flush()

def solve():
    global x
    x = np.zeros(n)
    for i in range(n):
        x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]
    float(x[-1])

counts = [count(solve) for _ in range(2)]
truth = numpy.linalg.solve(numpy.tril(numpy.asarray(a)), numpy.ones(n))
print(json.dumps([float(abs(numpy.asarray(x) - truth).max()), [c.get("opencl.kernels", 0) for c in counts], [c.get("node.to_host_bytes", 0) for c in counts]]))
"""


def test_an_array_of_the_device_whose_rows_are_used_comes_to_the_host_once():
    error, kernels, to_host = found(ROWS)
    assert error < 1e-12
    assert kernels[0] < 600 and kernels[1] == 0, kernels
    assert to_host[0] <= 2 * 600 * 600 * 8 + 600 * 16 and to_host[1] <= 600 * 16, to_host


EDGES = """
n = 700
u = np.fromfunction(lambda i, j: (i * j) % 7.0, (n, n))

def step():
    global u, error
    for _ in range(30):
        v = u.copy()
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        error = float(abs(v - u).max())
        v[0] = v[1]
        v[:, -1] = 1.0
        u = v

step()
counts = count(step)
w = numpy.fromfunction(lambda i, j: (i * j) % 7.0, (n, n))
for _ in range(60):
    v = w.copy()
    v[1:-1, 1:-1] = 0.25 * (w[:-2, 1:-1] + w[2:, 1:-1] + w[1:-1, :-2] + w[1:-1, 2:])
    v[0] = v[1]
    v[:, -1] = 1.0
    w = v
print(json.dumps([float(abs(numpy.asarray(u) - w).max()), counts.get("node.to_host_bytes", 0)]))
"""


def test_little_work_between_much_stays_where_that_is():
    error, to_host = found(EDGES)
    assert error < 1e-12 and to_host < 700 * 700 * 8, to_host

BETWEEN = """
import sys
n = 600
c, d = (numpy.random.default_rng(seed).random((n, n)) for seed in range(2))
a, b = np.array(c), np.array(d)
told, truth = [], []

def step():
    for t in range(20):
        told.append(float((a * b).sum()))
        truth.append((c * d).sum())
        match sys.argv[1]:
            case "read":
                told.extend([float(a[t, 3]), float((a[t] * 2.0).sum())])
                truth.extend([c[t, 3], (c[t] * 2.0).sum()])
            case "written":
                a[t, 3] = told[-1] * 1e-6
                c[t, 3] = truth[-1] * 1e-6

counts = count(step)
print(json.dumps([numpy.allclose(told, truth, rtol=1e-9), counts["opencl.upload_bytes"], counts["opencl.refused_blocks"]]))
"""


@pytest.mark.parametrize("way", ["read", "written"])
def test_elements_of_an_array_that_is_on_both_sides_leave_the_work_to_the_device(way):
    same, uploaded, refused = found(BETWEEN, way)
    # The arrays come to the device once.
    assert same and uploaded <= 2 * 600 * 600 * 8 + 20 * 8 and refused == 0, (uploaded, refused)


TURNS = """
n = 300
a = np.asarray(numpy.random.default_rng(0).random((n, n)))
rows = np.asarray(numpy.random.default_rng(0).random((n, n)))

def alternate():
    for t in range(8):
        numpy.asarray(a)[0, 0] = t
        float((a * 2.0).sum())

def compute():
    for t in range(40):
        float((a * 2.0).sum())

def multiply():
    for t in range(8):
        numpy.asarray(rows)[0, 0] = t
        float((rows @ rows)[0, 0])

counts = [count(work) for work in (alternate, compute, multiply)]
print(json.dumps([[c.get("opencl.refused_blocks", 0) for c in counts], [c.get("opencl.kernels", 0) for c in counts]]))
"""


def test_work_on_an_array_that_came_again_and_again_goes_back_to_the_device():
    refused, kernels = found(TURNS)
    assert refused[0] > 0 and refused[1] <= 16 and kernels[1] > 20, (refused, kernels)
    # Much work stays there.
    assert refused[2] == 0 and kernels[2] >= 8, (refused, kernels)


READS = """
n = 900
a = np.asarray(numpy.random.default_rng(1).random((n, n)))
mask = a[0] > 0.5
wanted = numpy.asarray(a).sum()

def read():
    float((a * 2).sum())
    for i in range(3):
        float(a[:16].copy()[i, i])
        float(a[i][mask].sum())
        float((np.pad(a, 2, mode="edge") * 2).sum())

def change():
    global wanted
    for i in range(3):
        wanted += 10 - float(a[i, 5])
        a[i, 5] = 10
        wanted += numpy.asarray(a[i + 5] * 2).sum() - numpy.asarray(a[i + 5]).sum()
        a[i + 5] *= 2
        error = abs(float((a * 2).sum()) - 2 * wanted)
        assert error < 1e-6, error

counts = []
for work in (read, read, change, read):
    counts.append(count(work).get("opencl.upload_bytes", 0))
print(json.dumps([counts, a.nbytes]))
"""


def test_parts_read_in_host_memory_leave_the_copy_on_the_device():
    (first, again, changed, later), size = found(READS)
    assert size <= first < 1.1 * size and again < 0.1 * size, (first, again)
    # Each change of an element and a row makes that copy old, once.
    assert changed <= 3.1 * size and later <= 1.1 * size, (changed, later)


RANDOM = """
import sys
from concurrent.futures import ThreadPoolExecutor

SHAPES = (3, 4), (40, 50), (300, 400), (300, 400), (3, 4), (2, 70000)

def play(np, seed):
    rng = numpy.random.default_rng(seed)
    arrays = [np.asarray(rng.random(shape)) for shape in SHAPES]
    whole = [np.asarray(rng.integers(0, 50, shape)) for shape in SHAPES]
    told = []
    for _ in range(60):
        a, b = (arrays[rng.integers(len(arrays))] for _ in range(2))
        i, j = int(rng.integers(a.shape[0])), int(rng.integers(a.shape[1]))
        match rng.integers(18):
            case 0:
                a[i] = a[i - 1] * 0.5 + a[:, j].sum()
            case 1 if a.shape == b.shape:
                a *= b
            case 2:
                a[:, j] = np.sqrt(abs(a[:, j - 1]))
            case 3:
                told.append(float(a[i, j]))
            case 4:
                a[a > a.mean()] *= 0.25
            case 5:
                arrays[rng.integers(len(arrays))] = np.cos(a) + a[i, j]
            case 6:
                a[i, : j + 1] = np.cumsum(a[i, : j + 1])
            case 7:
                told.append(float((a[i] @ a[i - 1])))
            case 8:
                for k in range(40):
                    a[i, j] = 0.5 * a[i, j] + 0.25 * a[i - 1, j]
            case 9:
                a[i, 1:] = a[i, :-1]
                a[:, ::-1] = a.copy() if rng.integers(2) else a
            case 10:
                arrays[rng.integers(len(arrays))] = a[rng.integers(-a.shape[0], a.shape[0], 3)] * 0.5
            case 11:
                rows = rng.permutation(a.shape[1])[: a.shape[1] // 2]
                a[:, rows] = a[:, rows[::-1].copy()] + 0.125
            case 12 if len(arrays) > 3:
                del arrays[rng.integers(len(arrays))], a, b
            case 13:
                view = a[:, ::-2] if rng.integers(2) else a.T
                view[:3, -1] += 0.5
                if view.shape[0] > 2 and len(arrays) < 9:
                    arrays.append(view)
            case 14:
                seen = numpy.asarray(a)
                told.append(float(seen[i].sum()))
                arrays[rng.integers(len(arrays))] = np.asarray(seen.copy())
            case 15:
                for k in range(4):
                    told.append(float((a * 2.0 - 1.0).max()))
                    a[i, (j + k) % a.shape[1]] = 0.25 * k
            case 16:
                c = whole[rng.integers(len(whole))]
                for k in range(0, c.shape[0], 1 + c.shape[0] // 8):
                    c[k] = (c[k - 1] + c[:, 0].sum()) % 50
                told.append(float((c[:, ::-1] > c).sum() + c[-1, -1]))
            case 17:
                c = whole[rng.integers(len(whole))]
                np.add.at(c, (rng.integers(0, c.shape[0], 30), rng.integers(0, c.shape[1], 30)), 3)
                told.append(float(c[c > 40].sum() + c.argmax()))
    return told + [float(numpy.asarray(a).sum()) for a in arrays + whole]

first, last, threads = map(int, sys.argv[1:])
with ThreadPoolExecutor(threads) as pool:
    one = list(pool.map(lambda seed: play(np, seed), range(first, last)))
two = [play(numpy, seed) for seed in range(first, last)]
print(json.dumps([first + at for at, (a, b) in enumerate(zip(one, two)) if not numpy.allclose(a, b, rtol=1e-9, atol=1e-9)]))
"""


@pytest.mark.parametrize(
    ("settings", "threads"),
    [({}, 1), ({"BH_OPENCL_PLACEMENT": "2KiB 300"}, 1), ({"BH_RECORDER_IMMEDIATE_BYTES": "3000"}, 1), ({}, 3)],
    ids=["auto", "sizes", "very little", "threads"],
)
def test_programs_of_little_and_large_parts_give_what_numpy_gives(settings, threads):
    assert found(RANDOM, "0", "12" if threads == 1 else "6", str(threads), **settings) == []


def test_the_key_says_what_it_takes():
    env = {**os.environ, "BH_STACK": "opencl", "BH_OPENCL_DEVICE": "cpu", "BH_OPENCL_PLACEMENT": "elsewhere"}
    done = subprocess.run([sys.executable, "-c", "import bh; print(bh.ones(3) + 1)"], capture_output=True, text=True, env=env)
    assert done.returncode and "placement" in done.stderr and "256KiB 4194304" in done.stderr, done.stderr
