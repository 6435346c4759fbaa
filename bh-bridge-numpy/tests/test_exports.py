"""Memory that programs read and write beside bh: what each side writes, the other side reads, wherever operations run."""

import os
import subprocess
import sys

import bh
import numpy
import pytest
from conftest import BUILD_QUICKLY

PROGRAM = """
import random, sys
import bh
import numpy

SIZE = 7


class Pair:
    # An array of bh and NumPy's, with the views of memory that the program holds.
    def __init__(self, rng):
        self.expected = numpy.array([float(rng.randrange(9)) for _ in range(SIZE)])
        self.array, self.views = bh.array(self.expected), []

    def part(self, rng):
        return [slice(None), slice(2, 5), slice(None, None, 2), slice(1, None), slice(-1, None, -2)][rng.randrange(5)]


def read_element(rng, one, other):
    at = rng.randrange(SIZE)
    assert float(one.array[at]) == one.expected[at]

def test_element(rng, one, other):
    at = rng.randrange(SIZE)
    assert bool(one.array[at]) == bool(one.expected[at])

def add_up(rng, one, other):
    assert float(one.array.sum()) == one.expected.sum()

def read_all(rng, one, other):
    assert numpy.array_equal(numpy.array(one.array), one.expected)

def combine(rng, one, other):
    assert float((one.array * other.array).sum()) == (one.expected * other.expected).sum()

def write_once(rng, one, other):
    part, number = one.part(rng), float(rng.randrange(9))
    numpy.asarray(one.array[part])[:] = number
    one.expected[part] = number

def write_buffer(rng, one, other):
    at, number = rng.randrange(SIZE), float(rng.randrange(9))
    with memoryview(one.array) as memory:
        memory[at] = number
    one.expected[at] = number

def hold(rng, one, other):
    one.views.append(numpy.asarray(one.array))

def hold_without_a_buffer(rng, one, other):
    one.views.append(numpy.ndarray(SIZE, buffer=one.array))

def take_over(rng, one, other):
    # The recorder gets the memory of an array that only the bridge knew.
    one.array._memory

def multiply(rng, one, other):
    assert (one.array[:, None] @ other.array[None, :]).tolist() == numpy.outer(one.expected, other.expected).tolist()

def trace(rng, one, other):
    outer, number = one.array, float(rng.randrange(9))
    traced = bh.jit(lambda x: x * 2.0 + outer)
    assert traced(other.array + number).tolist() == ((other.expected + number) * 2.0 + one.expected).tolist()

def write_held(rng, one, other):
    if one.views:
        at, number = rng.randrange(SIZE), float(rng.randrange(9))
        rng.choice(one.views)[at] = number
        one.expected[at] = number

def read_held(rng, one, other):
    for view in one.views:
        assert numpy.array_equal(view, one.expected)

def let_go(rng, one, other):
    if one.views:
        one.views.pop(rng.randrange(len(one.views)))

def change(rng, one, other):
    number = float(rng.randrange(1, 4))
    one.array += number
    one.expected += number

def assign(rng, one, other):
    part = one.part(rng)
    one.array[part] = other.array[part] + 1.0
    one.expected[part] = other.expected[part] + 1.0

def copy(rng, one, other):
    one.array, one.expected, one.views = other.array.copy(), other.expected.copy(), []


STEPS = [read_element, test_element, add_up, read_all, combine, write_once, write_buffer, hold, hold_without_a_buffer, take_over, multiply, trace, write_held, read_held, let_go, change, assign, copy]

for seed in range(int(sys.argv[1]), int(sys.argv[2])):
    rng, done = random.Random(seed), []
    pairs = [Pair(rng), Pair(rng)]
    try:
        for _ in range(40):
            step, (one, other) = rng.choice(STEPS), rng.sample(pairs, 2)
            done.append((step.__name__, pairs.index(one)))
            step(rng, one, other)
        for pair in pairs:
            read_all(rng, pair, pair)
    except AssertionError:
        sys.exit(f"seed {seed}: {done}")
print("done")
"""
DEVICE = {"BH_STACK": "opencl", "BH_OPENCL_DEVICE": "cpu", "BH_OPENCL_PLACEMENT": "device", **BUILD_QUICKLY}


@pytest.mark.parametrize(("keys", "seeds"), [({"BH_STACK": "cpu"}, (0, 60)), (DEVICE, (0, 25))], ids=["cpu", "opencl"])
def test_both_sides_read_what_either_writes(tmp_path, keys, seeds):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    line = [sys.executable, str(file), *map(str, seeds)]
    done = subprocess.run(line, capture_output=True, text=True, env={**os.environ, **keys})
    if keys is DEVICE and "OpenCL" in done.stderr and done.returncode:
        pytest.skip("there is no OpenCL")
    assert done.returncode == 0 and done.stdout.split() == ["done"], done.stderr[-2000:]


def test_exports_leave_little_arrays_to_the_bridge():
    stack = bh._native.Stack()
    count = lambda: dict(stack.counters())
    a, before = bh.ones(10), count()
    view = numpy.asarray(a)
    view[2:4] = 5.0
    a[1:3] *= 3.0
    inner = numpy.asarray(a[1:4])
    frozen = a.copy()
    frozen.flags.writeable = False
    kept = memoryview(frozen)
    frozen.flags.writeable = True
    frozen += 1
    frozen.flags.writeable = False
    a.data
    assert view.tolist() == a.tolist() == [1, 3, 15, 5, 1, 1, 1, 1, 1, 1] and inner.tolist() == [3, 15, 5]
    assert kept.readonly and [it + 1 for it in kept.tolist()] == frozen.tolist() and not numpy.asarray(frozen).flags.writeable
    after = count()
    assert (after["arrays"], after["bases"]) == (before["arrays"], before["bases"])
    # Taken over with views outside: both sides go on with one memory, also after the array's name is gone.
    a._memory
    a += bh.ones(10)
    view[0] = 7.0
    assert float(a.sum()) == 45.0 and inner.tolist() == [4, 16, 6]
    del a
    bh.flush()
    assert view.tolist() == [7, 4, 16, 6, 2, 2, 2, 2, 2, 2]


def test_writes_reach_an_array_whose_element_was_read_before(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(
        "import bh, numpy\nm = bh.array(numpy.ones(7))\nbool(m[0])\nnumpy.asarray(m)[:] = [1, 0, 1, 0, 1, 0, 0]\nprint(float(m.sum()))\n"
    )
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, env={**os.environ, **DEVICE})
    if "OpenCL" in done.stderr and done.returncode:
        pytest.skip("there is no OpenCL")
    assert done.stdout.split() == ["3.0"], done.stderr[-2000:]


@pytest.mark.parametrize("given", [lambda array: array, lambda array: array.data], ids=["array", "data"])
def test_numpys_constructor_keeps_the_memory(given):
    """`numpy.ndarray(buffer=...)` gives the buffer back at once and keeps the object alone."""
    array = bh.zeros((4, 4))
    view = numpy.ndarray((4, 2), buffer=given(array), strides=array.strides, dtype="f8", offset=8)
    total = array + 1.0
    view[:] = 5.0
    assert float(array.sum()) == 40.0 and float(total.sum()) == 16.0
    array[...] = total
    assert (view == 1.0).all()
    del array, total
    bh.flush()
    assert (view == 1.0).all()
