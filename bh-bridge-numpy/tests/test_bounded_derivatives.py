"""Derivatives under a bound of memory: the same bits, the peak within the bound, and no more runs than binomial checkpoints need."""

import gc
import json
import os
import subprocess
import sys

import numpy
import pytest
from conftest import LIMIT
from test_random_members import LENGTH, random_program

import bh
import bh as np

GRID = (40, 30)
FIELD = 8 * GRID[0] * GRID[1]


def field(seed=0):
    return np.array(numpy.random.default_rng(seed).uniform(0.1, 0.9, GRID))


def in_place(u, k):
    for _ in range(60):
        u[1:-1, 1:-1] += 0.1 * k[1:-1, 1:-1] * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
        u *= 1 - 0.01 * u
    return (u * u).sum()


def new_arrays(u, k):
    for _ in range(60):
        flux = k * np.sin(u)
        u = u + 0.1 * (np.roll(flux, 1, axis=0) - flux)
    return (u * u * k).sum()


def buffers(u, k):
    first, second = np.empty(GRID), np.zeros(GRID)
    for _ in range(60):
        np.multiply(u, k, out=first)
        np.cos(first, out=second)
        second[0] = 0
        u += 0.1 * second
    return (u * first).sum()


def branches(u, k):
    count = 0
    for step in range(60):
        if bh.stop_gradient(u).max() > 0.5:
            u = u * 0.98
            count += 1
        u[u > 0.6] *= 0.9
        noise = bh.random.default_rng(step).random(GRID)
        u = u + 0.01 * noise * k
    return (u**3).sum() * count


def two_loops(u, k):
    for _ in range(40):
        u = np.tanh(u + 0.1 * k)
    v = np.zeros(GRID)
    for _ in range(40):
        v += 0.1 * u * np.exp(-v)
        u -= 0.01 * v
    return (u * v).sum()


def turned(u, k):
    u = np.asfortranarray(u)
    for _ in range(40):
        u = u + 0.1 * np.sin(k) * u.sum(axis=0)
        u /= u.max()
    return (u * u).sum()


def straight(u, k):
    for step in range(40):
        u = getattr(np, ("sin", "cos", "tanh", "arctan", "sqrt")[step * step % 5])(u * k + 1.5)
        if step % 3 == 1:
            u[step % 7 :] += 0.1 * k[step % 7 :]
    return u.sum()


@bh.custom_vjp
def limited(x):
    return x * x


limited.defvjp(lambda x: (x * x, x), lambda x, g: (bh.clip(2 * x * g, -1, 1),))


def known(u, k):
    for _ in range(20):
        u = u + 0.05 * limited(u) * k
        u[1:] += 0.1 * u[:-1]
    return u.sum()


PROGRAMS = [in_place, new_arrays, buffers, branches, two_loops, turned, straight, known]


def bits(found):
    return [numpy.asarray(part).tobytes() for part in found]


def least(program, given=lambda: (field(), field(1))):
    plan = bh.grad(program, (0, 1), memory=1 << 40).plan(*given())
    assert plan.states == 0 and plan.runs == plan.steps
    with pytest.raises(MemoryError, match="takes at least") as error:
        bh.grad(program, (0, 1), memory=1)(*given())
    return int(str(error.value).split("takes at least ")[1].split()[0])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradients_have_the_same_bits(program):
    value, expected = bh.value_and_grad(program, (0, 1))(field(), field(1))
    smallest = least(program)
    for states in (0, 1, 2, 4, 9):
        found = bh.value_and_grad(program, (0, 1), memory=smallest + states * FIELD)
        arguments = field(), field(1)
        again, gradients = found(*arguments)
        assert float(again) == float(value)
        assert bits(gradients) == bits(expected), states
        plan = found.plan(field(), field(1))
        assert plan.steps > 3 and plan.states <= plan.steps and plan.peak <= smallest + states * FIELD, plan
        # The caller's array keeps what the function has left in it.
        plain = field(), field(1)
        program(*plain)
        assert bits(arguments) == bits(plain)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_way_back_may_be_taken_several_times(program):
    def outputs(u, k):
        program(u, k)
        return u * k

    _, plain = bh.vjp(outputs, field(), field(1))
    u = field()
    value, back = bh.vjp(outputs, u, field(1), memory=least(program) + 3 * FIELD)
    u[:] = 0
    value *= 2
    for seed in (2, 3):
        assert bits(back(field(seed))) == bits(plain(field(seed)))


def test_second_derivatives_under_a_bound():
    def twice(memory):
        inner = bh.grad(in_place, 0, memory=memory)
        return bh.grad(lambda u: (inner(u, field(1)) * field(2)).sum())(field())

    # The outer derivative is that of another program.
    numpy.testing.assert_allclose(twice(12 * FIELD), twice(None), rtol=1e-10)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_states_on_disk_change_no_bit(program):
    value, expected = bh.value_and_grad(program, (0, 1))(field(), field(1))
    # Where steps are cut depends on the bound, too.
    smallest = least(program) * 5 // 4
    for states, disk in ((1, 2), (1, 60), (3, 5), (4, "1 GiB")):
        found = bh.value_and_grad(program, (0, 1), memory=smallest + states * FIELD, disk=disk if isinstance(disk, str) else disk * FIELD)
        again, gradients = found(field(), field(1))
        assert float(again) == float(value)
        assert bits(gradients) == bits(expected), (states, disk)
    alone = bh.grad(program, (0, 1), memory=smallest).plan(field(), field(1))
    plan = bh.grad(program, (0, 1), memory=smallest, disk="1 GiB").plan(field(), field(1))
    assert max(plan.peak, alone.peak) <= smallest
    assert plan.runs <= alone.runs and (plan.disk > 0 or plan.runs == alone.runs), plan

    def outputs(u, k):
        program(u, k)
        return u * k

    _, plain = bh.vjp(outputs, field(), field(1))
    _, back = bh.vjp(outputs, field(), field(1), memory=smallest + FIELD, disk=40 * FIELD)
    for seed in (2, 3):
        assert bits(back(field(seed))) == bits(plain(field(seed)))


def test_random_programs_have_the_same_bits_within_random_bounds():
    again, on_disk = 0, 0
    for seed in range(40):
        rng = numpy.random.default_rng(seed)
        program, names = random_program(rng, int(rng.integers(20, 60)))
        given = lambda u=rng.uniform(0.2, 0.9, LENGTH), v=rng.uniform(0.2, 0.9, LENGTH): (np.array(u), np.array(v))
        expected = bits(bh.grad(program, (0, 1))(*given()))
        # Where steps are cut depends on the bound, too.
        smallest = 2 * least(program, given)
        for states, disk in rng.integers((0, 1), (6, 60), (2, 2)).tolist():
            memory = smallest + 16 * LENGTH * states
            found = bh.grad(program, (0, 1), memory=memory)
            assert bits(found(*given())) == expected, (seed, names, states)
            again += found.plan(*given()).states > 0
            found = bh.grad(program, (0, 1), memory=memory, disk=16 * LENGTH * disk)
            assert bits(found(*given())) == expected, (seed, names, states, disk)
            on_disk += found.plan(*given()).disk > 0
    assert again > 20 and on_disk > 10, (again, on_disk)


def open_states():
    """The files for states that this process has open."""
    paths = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
    return [path for path in paths if os.path.islink(path) and "bh-states" in os.readlink(path)]


def test_files_of_states_are_gone_afterwards(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    # Errors of other tests may hold theirs until the collector runs.
    gc.collect()
    before, seen = len(open_states()), []

    def ended_by(error):
        def program(u, k):
            value = in_place(u, k)
            seen.append((len(open_states()) - before, os.listdir(tmp_path)))
            if error:
                raise error
            return value

        return bh.grad(program, memory=least(in_place), disk="1 GiB")

    ended_by(None)(field(), field(1))
    for error in (ValueError("wrong"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            ended_by(error)(field(), field(1))
    assert seen == [(1, [])] * 3
    assert len(open_states()) == before


def test_errors_of_the_disk():
    with pytest.raises(TypeError, match="bound of memory"):
        bh.grad(in_place, disk="1 GiB")
    with pytest.raises(ValueError, match="disk: a number of bytes"):
        bh.grad(in_place, memory="1 GiB", disk="much")
    inner = bh.grad(in_place, 0, memory=least(in_place), disk="1 GiB")
    with pytest.raises(bh.Error, match="disk: a derivative inside of another"):
        bh.grad(lambda u: (inner(u, field(1)) * field(2)).sum())(field())
    assert not open_states()


FULL = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from test_bounded_derivatives import FIELD, bh, field, in_place, least, open_states
memory = least(in_place)
resource.setrlimit(resource.RLIMIT_FSIZE, (3 * FIELD, resource.RLIM_INFINITY))
try:
    bh.grad(in_place, memory=memory, disk="1 GiB")(field(), field(1))
except OSError as error:
    print(error)
assert not open_states()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(float(bh.grad(in_place, memory=memory, disk="1 GiB")(field(), field(1)).sum()))
"""


def test_a_full_disk_and_a_missing_directory_are_errors(tmp_path):
    text = [sys.executable, "-c", FULL, os.path.dirname(__file__)]
    done = subprocess.run(text, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stderr
    error, total = done.stdout.strip().splitlines()
    assert "disk: a state of the program cannot be written" in error
    assert float(total) == float(bh.grad(in_place)(field(), field(1)).sum())
    missing = {**os.environ, "TMPDIR": str(tmp_path / "missing")}
    done = subprocess.run(text, capture_output=True, text=True, timeout=LIMIT, check=False, env=missing)
    assert "disk: there can be no file for states" in done.stdout + done.stderr


def test_bounds_are_sizes_and_shares():
    expected = bh.grad(in_place)(field(), field(1))
    for memory in (1 << 30, "1 GiB", "50%", 0.25):
        assert bits([bh.grad(in_place, memory=memory)(field(), field(1))]) == bits([expected])
    for memory in ("much", -1, 0, float("nan")):
        with pytest.raises(ValueError, match="memory: a number of bytes"):
            bh.grad(in_place, memory=memory)


MEASURED = """
import json, sys, numpy, bh, bh as np
from bh._jit.taped import Taped
from bh._jit.trees import full

size, steps, states, name, disk = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5])

def heat(u, k):
    for _ in range(steps):
        u[1:-1, 1:-1] += k * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return (u * u).sum()

def reaction(u, k):
    for _ in range(steps):
        u = u + k * (np.roll(u, 1, 0) + np.roll(u, -1, 0) - 2 * u) + 0.01 * u * (1 - u * u)
    return (u * u).sum()

program = {"heat": heat, "reaction": reaction}[name]
rng = numpy.random.default_rng(0)
u = np.array(rng.uniform(0.1, 0.9, (size, size)))
field = 8 * size * size
bh.grad(program)(u.copy()[:8, :8].copy(), 0.1)
float(u.sum())
before = bh.Stack().memory()[0]
taped = Taped(program, (u, 0.1), {}, (0,), False, later=False, bound=(states * field, disk * field if disk else None))
plan = taped.plan()
way = taped._back.begin([full(1.0, taped.number())], True)
(found,) = way.finish()
float(found.sum())
peak = bh.Stack().memory()[1] - before
print(json.dumps({"plan": plan._asdict(), "again": way.runs(), "peak": peak, "bound": states * field}))
"""


def fewest(steps, states):
    """Runs of binomial checkpoints (Griewank and Walther)."""
    from math import comb

    runs = 0
    while comb(states + runs, states) < steps:
        runs += 1
    return runs * steps - comb(states + runs, states + 1)


def measure(program, steps, disk):
    """How a long loop does within a bound of 20 states in memory."""
    text = [sys.executable, "-c", MEASURED, "256", str(steps), "20", program, str(disk)]
    done = subprocess.run(text, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_states_on_disk_save_runs_and_keep_the_bound():
    alone, measured = measure("reaction", 1000, 0), measure("reaction", 1000, 200)
    plan = measured["plan"]
    assert measured["peak"] <= 1.05 * measured["bound"], measured
    assert plan["steps"] + measured["again"] == plan["runs"]
    assert 0 < plan["disk"] <= 200 * 8 * 256 * 256
    assert plan["runs"] < 0.8 * alone["plan"]["runs"], (plan, alone)


@pytest.mark.parametrize("program", ["heat", "reaction"])
def test_long_loops_take_few_runs_and_keep_the_bound(program):
    steps = 1000
    measured = measure(program, steps, 0)
    plan = measured["plan"]
    assert abs(plan["steps"] - steps) <= 2
    assert measured["peak"] <= 1.05 * measured["bound"], measured
    runs = plan["steps"] + measured["again"]
    # Nothing that the rules of the linear program read has to be kept.
    assert (plan["states"] == 0) == (program == "heat")
    if plan["states"] == 0:
        assert runs == plan["steps"]
        return
    assert runs <= 1.05 * fewest(plan["steps"], plan["states"]), (runs, plan)
    assert runs == plan["runs"]
