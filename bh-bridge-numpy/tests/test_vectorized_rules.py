"""Functions of numbers that are compiled: one rule of Python in each, with the results of Python."""

import math

import numpy
import pytest
from test_vectorize import check, compiled

# Functions of one or two numbers, one rule of Python in each.


def and_or(x, y):
    return (x and y) + (y or 3.0) * (not x)


def chained(x, y):
    return 1 if -1 < x <= y < 2 else 0 if x == y else -1


def smallest(x, y):
    return min(x, y, 1.0) + max(x, -y) * 2


def first_nan(x, y):
    return max(x - x / (y if y != 0 else 1), math.nan) if x > 2 else min(math.nan, y)


def rounded(x, y):
    return round(x) + math.floor(y) * 10 + math.ceil(x) * 100 + int(y) * 1000 + math.trunc(x)


def divided(x, y):
    return (x // 0.75) + (y % 1.25) + (x % -1.25) - y // -0.75


def powers(x, y):
    return x**2 + abs(y) ** 3 + x**0


def several(x, y):
    if x > y:
        return x, 1
    return y, 2


def else_of_while(x, y):
    n = 0
    while x > 0:
        x -= 1
        n += 1
        if n > 1 and y > 0:
            break
    else:
        return -n
    return n


def else_of_for(x, y):
    for k in range(4):
        if k > x:
            break
        if y < 0:
            continue
        x = x - 0.25
    else:
        x = 100.0
    return x + k


def steps(x, y):
    total = 0
    for k in range(int(x), int(y) * 2, 2):
        total = total * 3 + k
    for k in range(int(y), int(x), -1 if x < 1 else -2):
        total = total * 2 - k
    return total


def nested_loops(x, y):
    total = 0.0
    for i in range(4):
        k = 0
        while k < i + x:
            k += 1
            if k > 3:
                break
            for j in range(k):
                if y < j:
                    continue
                total += i * k + j
        if total > 20:
            return total
    return -total


def after_loop(x, y):
    k = 7
    for k in range(3):
        if x > k:
            break
    return k + y


def tuples(x, y):
    point = (x, y)
    other = (1.0, -1.0)
    point, other = (other, point) if x > y else (point, other)
    a, (b, c) = point[0], other
    for part in (a, b, c):
        x = x * 0.5 + part
    return x


def inner(x, y):
    scale = 2.0

    def scaled(value):
        return value * scale if value > 0 else offset

    offset = x + 1
    return scaled(y) + (lambda value: value + scale)(x)


def without_side_effects(x, y):
    return x / y if y != 0 else math.sqrt(x) if x > 0 else 0.0


def recurrence(x, y):
    a, b = x, y
    for _ in range(int(abs(x)) + 1):
        a, b = b, a + b
    return a


def counted(x, y):
    flags = 0
    flags += x > 1
    flags += (y > 1) * 2
    return flags + True


def costly_exits(x, y):
    """Work of elements that leave is done behind the loop."""
    for k in range(12):
        if x > 6:
            return math.sqrt(x) + math.sqrt(math.sqrt(abs(y))) * k / 3
        for j in range(3):
            if y + j > 5:
                return math.sqrt(y) * math.sqrt(x * x) - j
        x, y = x + abs(y) * 0.5 + 0.25, y * 1.25
    return math.sqrt(abs(x))


def inner_turns(x, y):
    """Loops in loops, in both branches, that are left for several places."""
    total, k = 0, 0
    while k < 6:
        k += 1
        if x > 0:
            m = k
            while m != 1:
                m = m // 2 if m % 2 == 0 else 3 * m + 1
                total += 1
                if total > 40:
                    return total * 0.5
                if m == 2 and y > 1:
                    break
            else:
                total += 100
        else:
            for m in range(5):
                if m > x + k:
                    break
                if y < m - 2:
                    total -= 1
                    continue
                total += m
            total += 7
        for j in range(3):
            if total % 5 == j:
                break
            total += j
    return total + y


def never_reached(x, y):
    above = x > y
    for k in range(1):
        if 7 != 2:
            return x - y
    return x if above and k else y


RULES = [and_or, chained, smallest, first_nan, rounded, divided, powers, several, else_of_while, else_of_for, steps, nested_loops, after_loop,
    tuples, inner, without_side_effects, recurrence, counted, costly_exits, inner_turns,
    never_reached]  # fmt: skip


@pytest.mark.parametrize("function", RULES, ids=lambda function: function.__name__)
def test_rules(function):
    x, y = (part.ravel() for part in numpy.meshgrid(numpy.arange(-3, 4) / 1.5, numpy.arange(-2, 4) / 1.25))
    otypes = [float, int] if function is several else None
    check(function, x, y, otypes=otypes, ulps=8 if function is powers else 0, check_type=function is not several)


def test_loops_in_loops_are_one():
    text = compiled(inner_turns, "f8", "f8")
    # One loop that waits, and none in it.
    assert text.count("run(plan") == 1 and text.count("def turns") == 1
