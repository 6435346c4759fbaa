"""Functions of scalars with objects and lists: the same numbers as from calling them for each element."""

import dataclasses
import math
import os
from typing import NamedTuple

import numpy
import pytest
from conftest import same
from soaking import objects

import bh
from bh._jit.scalar import registers

PROGRAMS = int(os.environ.get("BH_TEST_PROGRAMS", "100"))


def compare(seed, folder, count):
    random = numpy.random.default_rng(seed)
    x, y, n = random.integers(-8, 9, count) / 4, random.uniform(-3, 3, count), random.integers(0, 9, count)
    function, text = objects.function(seed, folder)
    expected = numpy.vectorize(function, otypes=[float, int])(x, y, n)
    mine = bh.vectorize(function, otypes=[float, int])(*map(bh.asarray, (x, y, n)))
    for one, other in zip(mine, expected):
        assert numpy.array_equal(numpy.asarray(one), other, equal_nan=True), (seed, text)


def test_random_programs(tmp_path):
    for seed in range(max(PROGRAMS // 6, 1)):
        compare(seed, tmp_path, 40)


def test_random_programs_under_masks(tmp_path, monkeypatch):
    monkeypatch.setattr(registers, "is_worth", lambda function: False)
    for seed in (2, 5):
        compare(seed, tmp_path, 40)


class Vector:
    def __init__(self, x, y, z=0.0):
        self.x, self.y, self.z = x, y, z

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y, self.z + other.z)

    def __mul__(self, factor):
        return Vector(self.x * factor, self.y * factor, self.z * factor)

    __rmul__ = __mul__

    def __neg__(self):
        return Vector(-self.x, -self.y, -self.z)

    def __getitem__(self, at):
        return self.x if at == 0 else self.y if at == 1 else self.z

    def __eq__(self, other):
        return self.x == other.x and self.y == other.y

    def dot(self, other):
        return self.x * other.x + self.y * other.y + self.z * other.z

    @property
    def length(self):
        return math.sqrt(self.dot(self))


def operators(x, y):
    a = Vector(x, y)
    b = 2.0 * a + -Vector(y, x, 1.0)
    return b.length + a.dot(b) + b[int(abs(x)) % 3] + (a == b)


class Counter:
    def __init__(self):
        self.count = 0
        self.items = []

    def add(self, by=1):
        self.count += by
        return self.count


def changing_objects(x, y):
    counter = Counter()
    while counter.count < x * 3:
        counter.add(2 if y > 0 else 1)
    return counter.count + counter.add() * 100


class Sphere:
    def __init__(self, radius):
        self.radius = radius

    def area(self):
        return 4 * math.pi * self.radius**2


class Plane:
    sides = 2

    def __init__(self, a, b):
        self.a, self.b = a, b

    def area(self):
        return self.a * self.b * self.sides

    @staticmethod
    def of(size):
        return Plane(size, size)

    @classmethod
    def unit(cls):
        return cls(1.0, 1.0)


class Ball(Sphere):
    def __init__(self, weight):
        super().__init__(1.0)
        self.weight = weight

    def area(self):
        return super().area() * self.weight


def dispatch(x, y):
    if x > 1:
        shape = Sphere(x)
    elif x > 0:
        shape = Plane.of(y)
    else:
        shape = Ball(y)
    total = 0.0
    for k in range(3):
        total += shape.area()
        if k == 1:
            # The class of the next turn is another one.
            shape = Plane(k, 2.0) if y > 0 else Plane.unit()
    return total if isinstance(shape, Sphere) else total * 0.5


def none_or_number(x, y):
    best = None
    for k in range(8):
        distance = (k - x) ** 2 + y
        if best is None or distance < best:
            best = distance
    return best


class Hit(NamedTuple):
    time: float
    place: int


def named_tuples(x, y):
    hit = None
    for k in range(6):
        time = x * k - y
        if time > 0 and (hit is None or time < hit.time):
            hit = Hit(time, k)
    if hit is None:
        return -1.0
    time, place = hit
    return time * 10 + place + hit[0]


@dataclasses.dataclass
class Grid:
    size: int
    cells: list = dataclasses.field(default_factory=list)
    scale: float = 0.5

    def __post_init__(self):
        self.doubled = self.scale * 2

    def fill(self, x):
        for k in range(self.size):
            self.cells.append(x * k * self.doubled)


def data_classes(x, y):
    grid = Grid(4)
    grid.fill(x)
    return sum(grid.cells) + grid.cells[int(abs(y)) % 4]


HITS = [Hit(1.0, 2), Hit(0.5, 3)]


def named_tuples_from_outside(x, y):
    total = 0.0
    for hit in HITS:
        if hit.time < x:
            total += hit.place * y
    time, place = HITS[0]
    return total + HITS[int(abs(y)) % 2].time + time * place


SCENE = [Sphere(1.0), Plane(2.0, 3.0), Ball(0.5)]


def objects_from_outside(x, y):
    total = 0.0
    for shape in SCENE:
        total += shape.area() * x
    largest = SCENE[0] if x > 0 else SCENE[1]
    return total + SCENE[int(abs(y)) % 3].area() + largest.area()


def items(x, y):
    values = [x, y, x + y, 1.0]
    values[1] += 3
    place = int(abs(x) * 7) % 4
    values[place] = values[place - 1] * 2
    return sum(values) + max(values) + values[-1] + len(values) + (x in values) + (1.0, x, y)[place % 3]


def stacks(x, y):
    stack, total = [int(abs(x) * 10)], 0
    while stack:
        number = stack.pop()
        total += number
        if number > 1:
            if len(stack) < 20:
                stack.append(number // 2)
            if len(stack) < 20:
                stack.append(number // 3)
    return total


def comprehensions(x, y):
    weights = [k * x for k in range(5) if k * y < 3]
    table = [[i * x + j for j in range(3)] for i in range(2)]
    table[int(abs(x)) % 2][1] += y
    return sum(weights) + len(weights) + table[1][1] + sum(value * y for value in weights) + any(value > 2 for value in weights)


def methods_of_lists(x, y):
    values = [x, y, x * y, x - y, 0.5]
    values.sort()
    values.insert(1, 7.0)
    values.extend([y])
    first = values.pop(0)
    values.reverse()
    return first + 10 * values[0] + 100 * values[2] + values.count(0.5) + sorted(values)[2] + len(values.copy())


def replaced_under_a_test(x, y):
    values = [x]
    for k in range(3):
        if len(values) < 3:
            values = [x, y, x * y, 2.0]
            values.append(k)
            values.append(y)
    return sum(values) + len(values)


def made_again(x, y):
    total = 0.0
    for k in range(20):
        values = []
        for j in range(3):
            if j < x + k:
                values.append(j * y)
        total += sum(values) + len(values)
    return total


def swapped(x, y):
    a, b = Vector(x, 1.0), Vector(y, 2.0)
    if x < y:
        a, b = b, a
    a, c = a + b, a
    return a.x + 2 * b.x + c.y


CASES = [operators, changing_objects, dispatch, none_or_number, named_tuples, named_tuples_from_outside, data_classes, objects_from_outside, items, stacks, comprehensions,
    methods_of_lists, replaced_under_a_test, made_again, swapped]  # fmt: skip


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_cases(function):
    x, y = (part.ravel() for part in numpy.meshgrid(numpy.arange(-3, 4) / 1.5, numpy.arange(-2, 4) / 1.25))
    mine = bh.vectorize(function, otypes=[float])(bh.asarray(x), bh.asarray(y))
    with numpy.errstate(all="ignore"):
        same(mine, numpy.vectorize(function, otypes=[float])(x, y), 4)


def test_objects_from_outside_may_change():
    ball = Ball(2.0)
    mine = bh.vectorize(lambda x: ball.area() * x)
    x = numpy.array([1.0, 2.0])
    same(mine(bh.asarray(x)), ball.area() * x, 4)
    ball.weight = 3.0
    same(mine(bh.asarray(x)), ball.area() * x, 4)


def subscript_beyond(x):
    values = [x, x]
    for _ in range(2):
        values[0] = values[int(x)]
    return values[0]


def popped_too_often(x):
    values = [x]
    total = 0.0
    for _ in range(int(x)):
        total += values.pop()
    return total


@pytest.mark.parametrize("function", [subscript_beyond, popped_too_often], ids=lambda function: function.__name__)
def test_subscripts_out_of_range_are_errors(function):
    made = bh.vectorize(function)
    assert float(made(bh.asarray([1.0, 0.0]))[0]) == 1.0
    with pytest.raises(IndexError, match="values"):
        made(bh.asarray([1.0, 2.0])).tolist()


def endless_list(x):
    values = [x]
    while values[-1] < 100:
        values.append(values[-1] * 2)
    return len(values)


def long_list(x):
    values = [1.0] if x > 1 else []
    for k in range(400):
        values.append(x)
    return len(values)


def two_names(x):
    values = [x] if x > 1 else [1.0]
    others = values
    others.append(1.0)
    return len(values)


def changed_outside(x):
    SCENE[0].radius = x
    return x


def list_as_result(x):
    return [x, x]


def changed_meanwhile(x):
    values = [x] if x > 1 else [1.0]
    for value in values:
        if len(values) < 3:
            values.append(value)
    return len(values)


def no_attribute(x):
    return Sphere(x).weight


def several_kinds(x):
    value = Sphere(x)
    if x > 1:
        value = [x]
    return len(value)


REFUSED = {
    endless_list: "line \\d+: a list that may grow without a bound in the loop of line \\d+", long_list: "a list of up to \\d+ items: 256 are the most",
    two_names: "another name for a list", changed_outside: "an object from outside of the function", list_as_result: "one that is no number",
    changed_meanwhile: "a list that changes while a loop goes through it", no_attribute: "Sphere has no attribute 'weight'",
    several_kinds: "'value' is a list here and Sphere elsewhere",
}  # fmt: skip


@pytest.mark.parametrize("function", REFUSED, ids=lambda function: function.__name__)
def test_what_is_refused(function):
    with pytest.raises(bh.FallbackError, match=REFUSED[function]):
        bh.vectorize(function)(bh.arange(3.0))


def test_memory_is_known_beforehand():
    """The example of Firepile's section 3.1: 128 items, k = 10, arrays of k² and of up to 2k² numbers in single precision."""
    k = 7

    @bh.vectorize
    def lists(x):
        n = k * k
        a, total = [x] * n, x * 0
        for i in range(n):
            b = [x] * (n + i)
            total = total + b[i] + a[i]
        return total

    x = bh.ones(128, "f4")
    assert lists.memory(x) == {"a": k * k * 128 * 4, "b": (2 * k * k - 1) * 128 * 4}
    same(lists(x), numpy.full(128, 2 * k * k, "f4"))
