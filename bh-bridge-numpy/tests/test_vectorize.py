"""Functions of scalars with control flow: the same numbers as from calling them for each element."""

import cmath
import importlib.util
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from conftest import LIMIT, same
from soaking import functions as scalar_programs

import bh
from bh._jit.scalar import program, reader, registers

BENCHES = Path(__file__).resolve().parents[2] / "benches"
# How many random functions are tried; more for longer runs.
PROGRAMS = int(os.environ.get("BH_TEST_PROGRAMS", "100"))


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


scalars = module(BENCHES / "scalars.py")


def check(function, *arrays, otypes=None, ulps=0, check_type=True):
    """Compares bh.vectorize with numpy.vectorize."""
    mine = bh.vectorize(function, otypes=otypes)(*map(bh.asarray, arrays))
    with numpy.errstate(all="ignore"):
        expected = numpy.vectorize(function, otypes=otypes)(*arrays)
    same(mine, expected, ulps, check_type)


@pytest.mark.parametrize("function", scalars.PROGRAMS, ids=lambda function: function.__name__)
def test_programs(function):
    make, _ = scalars.PROGRAMS[function]
    # Enough elements that some are moved together.
    for count in (1, 3, 10_000):
        check(function, *make(numpy.random.default_rng(5), count), ulps=0 if function not in (scalars.kepler, scalars.burning_ship, scalars.basin) else 64)


def test_random_programs(tmp_path):
    random = numpy.random.default_rng(0)
    x, y, n = random.integers(-8, 9, 40) / 4, random.uniform(-3, 3, 40), random.integers(-2, 9, 40)
    for seed in range(PROGRAMS // 4):
        function, text = scalar_programs.function(seed, tmp_path)
        expected = numpy.vectorize(function, otypes=[float, int])(x, y, n)
        mine = bh.vectorize(function, otypes=[float, int])(*map(bh.asarray, (x, y, n)))
        for one, other in zip(mine, expected):
            assert numpy.array_equal(numpy.asarray(one), other, equal_nan=True), (seed, text)


@pytest.fixture
def masked(monkeypatch):
    """Loops are operations on whole arrays under masks, as where the stack has no scalar programs."""
    monkeypatch.setattr(registers, "is_worth", lambda function: False)


@pytest.mark.usefixtures("masked")
def test_random_programs_under_masks(tmp_path):
    test_random_programs(tmp_path)


def test_random_programs_of_many_elements(tmp_path):
    random = numpy.random.default_rng(1)
    x, y, n = random.integers(-8, 9, 6000) / 4, random.uniform(-3, 3, 6000), random.integers(-2, 9, 6000)
    for seed in range(1000, 1000 + PROGRAMS // 25):
        function, text = scalar_programs.function(seed, tmp_path)
        expected = numpy.vectorize(function, otypes=[float, int])(x, y, n)
        mine = bh.vectorize(function, otypes=[float, int])(*map(bh.asarray, (x, y, n)))
        for one, other in zip(mine, expected):
            assert numpy.array_equal(numpy.asarray(one), other, equal_nan=True), (seed, text)


def test_random_programs_of_complex_numbers():
    random = numpy.random.default_rng(2)
    z, n = random.integers(-16, 17, 50) / 8 + 1j * random.uniform(-2, 2, 50), random.integers(0, 20, 50)
    for seed in range(PROGRAMS // 4):
        function = scalar_programs.scalar("complex", seed)
        mine = bh.vectorize(function, otypes=[complex])
        with numpy.errstate(all="ignore"):
            expected = numpy.vectorize(function, otypes=[complex])(z, n)
        found = numpy.asarray(mine(bh.asarray(z), bh.asarray(n)))
        assert numpy.array_equal(found, expected, equal_nan=True), (seed, scalar_programs.complex_text(seed))
        assert is_one_operation(mine), seed


def test_functions_of_one_text_are_read_once(monkeypatch):
    def scaled(factor, offset, function=None):
        return lambda x, offset=offset: factor * x + offset if function is None else function(x)

    readings, read = [], reader.read
    monkeypatch.setattr(reader, "read", lambda *args: readings.append(args) or read(*args))
    x = numpy.arange(3.0)
    for factor, offset in ((2, 1), (2, 1), (2, 1.5), (2.0, 1), (3, 1), (2, 1)):
        made = scaled(factor, offset)
        same(bh.vectorize(made)(bh.asarray(x)), numpy.vectorize(made)(x))
    # Other numbers of the closure and other defaults are another function.
    assert len(readings) == 5
    same(bh.vectorize(scaled(0, 0, lambda x: x * 2))(bh.asarray(x)), x * 2)
    same(bh.vectorize(scaled(0, 0, lambda x: x * 3))(bh.asarray(x)), x * 3)


def is_one_operation(made):
    """Is a function one operation of the stack for all arguments that it had?"""
    read = [one for (code, *_), one in program._programs.items() if code == made.pyfunc.__code__]
    return all(written for one in read for written in one._written.values()) and read != []


@pytest.mark.parametrize("function", [scalars.julia, scalars.basin, scalars.legendre], ids=lambda function: function.__name__)
def test_loops_are_one_operation(function):
    made = bh.vectorize(function)
    arrays = scalars.PROGRAMS[function][0](numpy.random.default_rng(5), 10)
    with numpy.errstate(all="ignore"):
        same(made(*map(bh.asarray, arrays)), numpy.vectorize(function)(*arrays))
    assert is_one_operation(made)


def exact_parts(x, y):
    """Numbers with just these parts, whatever they are."""
    z = complex(x, y)
    for k in range(3):
        if k == 1:
            return z
    return z * 0


def test_complex_numbers_of_any_parts():
    parts = numpy.array([0.0, -0.0, 1.5, -2.0, math.inf, -math.inf, math.nan])
    x, y = (part.ravel() for part in numpy.meshgrid(parts, parts))
    made = bh.vectorize(exact_parts)
    found = numpy.asarray(made(bh.asarray(x), bh.asarray(y)))
    assert is_one_operation(made)
    for mine, part in ((found.real, x), (found.imag, y)):
        same(numpy.copysign(1, mine[~numpy.isnan(part)]), numpy.copysign(1, part[~numpy.isnan(part)]))
        same(mine, part)


def in_table(n):
    total = 0
    while n != 0:
        total += TABLE[n % 7, -1] - TABLE[0, n % 3]
        n = n // 7
    return total


TABLE = numpy.arange(21).reshape(7, 3) ** 2


def test_subscripts_of_arrays_are_in_one_operation():
    n = numpy.arange(500) * 37
    made = bh.vectorize(in_table)
    same(made(bh.asarray(n)), numpy.vectorize(in_table)(n))
    assert is_one_operation(made)


def compiled(function, *dtypes):
    """The functions on arrays that are written for a function."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return program.compiled(reader.read(function, names)[0], dtypes)[1]


def test_whole_numbers():
    def mixed(a, b):
        c = (a << 2) ^ (b >> 1) | (a & ~b)
        if b:
            c += a // b - a % b
        while c > 20:
            c //= 4
        return math.gcd(c, 12) + c % 8 - c // -8

    a, b = (part.ravel() for part in numpy.meshgrid(numpy.arange(-9, 40), numpy.arange(-7, 8)))
    check(mixed, a, b)


def test_truth_values():
    def chosen(p, q):
        r = p and not q
        return (p ^ q) | r, p + q

    p, q = numpy.array([False, False, True, True]), numpy.array([False, True, False, True])
    one, other = bh.vectorize(chosen)(bh.asarray(p), bh.asarray(q))
    same(one, (p ^ q) | (p & ~q))
    # Sums of truth values are such, as those of NumPy's scalars.
    same(other, p | q)


def test_complex_numbers():
    def turned(z, w):
        if z == w:
            return 0j
        z = z * w + 1
        return complex(z.imag, -z.real) + cmath.exp(w * 0.1) + abs(z) + z.conjugate()

    random = numpy.random.default_rng(2)
    z, w = random.normal(size=(2, 50)) + 1j * random.normal(size=(2, 50))
    z[3] = w[3]
    check(turned, z, w, ulps=64)


def test_mathematics():
    def many(x, y):
        z = math.exp(-x) + math.atan2(y, x) + math.hypot(x, y) + math.log(x, 3) + math.fabs(-y) + math.pow(x, 1.5)
        return z + numpy.sin(x) * numpy.maximum(x, y) + bh.where(x > y, 1.0, 2.0) + math.copysign(x, -y) + numpy.clip(x, 1.0, 2.0)

    random = numpy.random.default_rng(2)
    check(many, random.uniform(0.1, 5, 40), random.uniform(0.1, 5, 40), ulps=128)


def test_types_are_numpys():
    def half(x, y):
        if x > y:
            return x * 0.5
        return y + 1

    for kinds in (("f4", "f4"), ("f4", "f8"), ("i4", "i4"), ("u1", "i2"), ("f4", "i4")):
        x, y = (numpy.arange(1, 6).astype(kind) for kind in kinds)
        mine = bh.vectorize(half)(bh.asarray(x), bh.asarray(y[::-1]))
        expected = numpy.where(x > y[::-1], x * 0.5, y[::-1] + 1)
        same(mine, expected)


def summed(x, y):
    for k in range(3):
        x = x + k
    return x


KINDS = "?bBhHiIlLfdFD"
TYPED = [lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y, lambda x, y: x // y, lambda x, y: x % y,
    lambda x, y: x & y, lambda x, y: x | y, lambda x, y: x ^ y, lambda x, y: x << y, lambda x, y: x >> y, lambda x, y: ~x, lambda x, y: -x,
    lambda x, y: not x, lambda x, y: abs(x), lambda x, y: x**2, lambda x, y: x < y, lambda x, y: x >= y, lambda x, y: x == y,
    lambda x, y: -1 < x < 200, lambda x, y: x + 1, lambda x, y: x * 0.5, lambda x, y: x + True, lambda x, y: (x == y) + (x != y),
    lambda x, y: ((x == y) + (x != y)) * 1.5, lambda x, y: (not x) + (not y), lambda x, y: (x == y) * 2, lambda x, y: bool(x) + bool(y),
    lambda x, y: int(x), lambda x, y: float(x), lambda x, y: math.sqrt(x), lambda x, y: math.atan2(x, y), lambda x, y: math.log(x + 1),
    lambda x, y: math.isnan(x), lambda x, y: math.floor(x), lambda x, y: numpy.float32(x), lambda x, y: numpy.bool_(x) + numpy.bool_(y),
    lambda x, y: x and x, lambda x, y: x or x, lambda x, y: x if y else x, lambda x, y: max(x, x), lambda x, y: x.real, lambda x, y: x.imag,
    lambda x, y: numpy.add(x, y), lambda x, y: numpy.maximum(x, y), summed]  # fmt: skip


@pytest.mark.falls_back
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("place", range(len(TYPED)))
def test_types_are_those_of_numpys_scalars(place):
    random, function = numpy.random.default_rng(place), TYPED[place]
    for one, other in [("?", "?"), *random.choice(list(KINDS), (10, 2))]:
        x, y = random.integers(0, 5, 6).astype(one), random.integers(1, 4, 6).astype(other)
        try:
            expected = numpy.vectorize(function)(x, y)
        except OverflowError:
            # Whole numbers leave their type, which elements of bh do as those of NumPy's arrays.
            continue
        except TypeError:
            with pytest.raises(TypeError):
                bh.vectorize(function)(bh.asarray(x), bh.asarray(y))
            continue
        same(bh.vectorize(function)(bh.asarray(x), bh.asarray(y)), expected, 4)


def test_broadcasting_and_arguments():
    def weighted(x, y, weight=2, *, shift=0):
        while x < y:
            x += weight
        return x + shift

    mine = bh.vectorize(weighted)
    x, y = numpy.arange(4.0)[:, None], numpy.arange(9.0)
    same(mine(bh.asarray(x), bh.asarray(y)), numpy.vectorize(weighted)(x, y))
    same(mine(bh.asarray(x), y=bh.asarray(y), weight=3.0, shift=1), numpy.vectorize(weighted)(x, y, weight=3.0, shift=1))
    same(mine(2.0, 7.5), numpy.vectorize(weighted)(2.0, 7.5))
    same(bh.vectorize(weighted, otypes=[float])(bh.zeros(0), bh.zeros(0)), numpy.zeros(0))


OFFSET = 1.0


def test_names_mean_what_they_mean_now():
    global OFFSET
    scale = 2.0
    mine = bh.vectorize(lambda x: x * scale + OFFSET if x > 0 else 0.0)
    same(mine(bh.asarray([1.0, -1.0])), numpy.array([3.0, 0.0]))
    scale, OFFSET = 3.0, 5.0
    same(mine(bh.asarray([1.0, -1.0])), numpy.array([8.0, 0.0]))


def test_tables():
    table, grid = bh.asarray([1.0, 5.0, 2.0, 8.0]), numpy.arange(6).reshape(2, 3)

    @bh.vectorize
    def found(x, i):
        total = 0.0
        for k in range(len(table)):
            if table[k] > x:
                total += k
        if 0 <= i < grid.shape[1]:
            total += grid[1, i] + table[-1]
        return total

    x, i = numpy.array([0.0, 3.0, 6.0, 9.0]), numpy.array([-100, 0, 2, 100])
    same(found(bh.asarray(x), bh.asarray(i)), numpy.array([6.0, 4 + 3 + 8, 3 + 5 + 8, 0.0]))


def test_nothing_is_told_of_branches_not_taken(recwarn):
    def careful(x, n):
        root = math.sqrt(x) if x >= 0 else 0.0
        return root + (1 // n if n else 0) + (1 / x if x else 0.0) + (math.log(x) if x > 0 else 0.0)

    check(careful, numpy.array([-1.0, 0.0, 4.0]), numpy.array([0, 1, -2]))
    bh.flush()
    assert not recwarn.list


def recursive(n):
    return 1 if n < 2 else n * recursive(n - 1)


def without_result(x):
    if x > 0:
        return x


def unbound(x):
    if x > 0:
        y = 1
    return y


def raising(x):
    if x > 100:
        raise ValueError
    return x


def named(x):
    many = {0: x, 1: x} if x > 0 else {}
    return many[0]


def of_other(x):
    return raising(x) + 1


def written(x):
    while x > 1:
        print(x)
        x -= 1
    return x


def digits(n):
    return len(str(n)) + len(f"{n}")


def powered(n):
    return n**n if n > 0 else 0


REFUSED = {
    recursive: "'recursive' calls itself", without_result: "may end without a result", unbound: "'y' may have no value",
    raising: "'raise' is not understood", named: "is not understood", of_other: "in 'raising', line",
    written: "the call 'print\\(x\\)' is not understood", digits: "the call 'str\\(n\\)' is not understood", powered: "powers that may be negative",
}  # fmt: skip


@pytest.mark.parametrize("function", REFUSED, ids=lambda function: function.__name__)
def test_what_is_refused_names_the_line(function):
    with pytest.raises(bh.FallbackError, match=f"line \\d+: .*{REFUSED[function]}" if function is not of_other else REFUSED[function]) as caught:
        bh.vectorize(function)(bh.arange(3))
    line = int(str(caught.value).partition("line ")[2].partition(":")[0])
    first = (raising if function is of_other else function).__code__.co_firstlineno
    assert first <= line <= first + 4


@pytest.mark.falls_back
def test_what_is_refused_is_called_for_each_element():
    same(bh.vectorize(recursive)(bh.arange(1, 5)), numpy.array([1, 2, 6, 24]))


@pytest.mark.parametrize("stack", ["cpu", "opencl"])
def test_stacks(stack):
    numbers = numpy.arange(1, 200)
    try:
        with bh.using(stack):
            x = bh.asarray(numbers)
            values = [numpy.asarray(bh.vectorize(function)(x)) for function in (scalars.collatz, scalars.piecewise)]
    except bh.Error as reason:
        pytest.skip(f"no {stack}: {reason}")
    # The arrays' stack counts, wherever they are used.
    values += [numpy.asarray(bh.vectorize(function)(x)) for function in (scalars.collatz, scalars.piecewise)]
    for function, value in zip((scalars.collatz, scalars.piecewise) * 2, values):
        same(value, numpy.vectorize(function)(numbers))


def test_traced_by_jit():
    straight = bh.vectorize(scalars.piecewise)
    twice = bh.jit(lambda x: straight(x) + straight(-x))
    x = numpy.linspace(-3, 3, 9)
    for _ in range(2):
        same(twice(bh.asarray(x)), numpy.vectorize(scalars.piecewise)(x) + numpy.vectorize(scalars.piecewise)(-x))
    assert twice.traces == 1
    waiting = bh.vectorize(scalars.collatz)
    looped = bh.jit(lambda x: waiting(x))
    for _ in range(2):
        same(looped(bh.arange(1, 5)), numpy.vectorize(scalars.collatz)(numpy.arange(1, 5)))


@pytest.mark.usefixtures("masked")
def test_not_traced_by_jit_where_a_loop_waits():
    waiting = bh.vectorize(scalars.collatz)
    with pytest.raises(bh.Error, match="traced function"):
        bh.jit(lambda x: waiting(x))(bh.arange(1, 5))


ENDLESS = """
import bh, sys
def endless(x):
    while x > 0:
        x = x + 1.0 if x < 5 else x
    return x
x = bh.arange(1.0, 1001.0)
try:
    print("begun", flush=True)
    print(bh.vectorize(endless)(x))
except KeyboardInterrupt:
    print("stopped", float(x.sum()))
"""


def test_endless_loops_are_stopped(tmp_path):
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS)
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.5)
    process.send_signal(signal.SIGINT)
    # The end of the process waits for the loop, which gives up after 2^33 turns.
    said, _ = process.communicate(timeout=LIMIT)
    assert said == "stopped 500500.0\n" and process.returncode == 0


def test_constants_of_several_types_are_chosen_from():
    def helper(x, y):
        f, g = y, x
        if x < y:
            f, g = g, f + 1
        return max(min(f, g), y)

    def function(x, n):
        return abs(helper(-0.25, 3)) if n > 2 else x

    x, n = bh.linspace(-1, 1, 24), bh.arange(24) % 7
    expected = numpy.vectorize(function, otypes=[float])(numpy.asarray(x), numpy.asarray(n))
    numpy.testing.assert_array_equal(numpy.asarray(bh.vectorize(function, otypes=[float])(x, n)), expected)
