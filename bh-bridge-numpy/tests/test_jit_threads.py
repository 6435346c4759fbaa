"""bh.jit: threads that call one function, or other ones meanwhile, get what the plain functions give."""

import random
import sys
import threading

import numpy
import pytest

import bh


@pytest.fixture(autouse=True)
def threads_take_turns():
    """Threads give way to others as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def at_once(work, count=4):
    """Calls a function with 0, 1, … in threads of their own, and raises what one of them raises."""
    failures = []

    def run(number):
        try:
            work(number)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "threads wait for each other"
    if failures:
        raise failures[0]


def test_a_pure_function():
    f = bh.jit(lambda x: (x * 2 + 1).sum())

    def work(number):
        for size in range(100):
            assert float(f(bh.ones(30_000 + size))) == 3 * (30_000 + size)

    at_once(work)


def test_a_function_that_writes_its_argument():
    @bh.jit
    def f(x, y):
        x += y
        x *= 2
        return x[1:] - x[:-1], x.sum()

    def work(number):
        for size in range(150):
            x, y = bh.arange(20_000.0 + size), bh.ones(20_000 + size) * number
            want = (numpy.asarray(x + 0) + number) * 2
            differences, total = f(x, y)
            assert (numpy.asarray(differences) == 2).all() and float(total) == want.sum()
            assert (numpy.asarray(x) == want).all()

    at_once(work)


def test_a_number_that_changes():
    f = bh.jit(lambda x, t: (x * t, t * 2), traced="t")

    def work(number):
        for turn in range(100):
            x, t = bh.ones(1000 + turn % 5), number + turn / 4
            product, double = f(x, t)
            assert (numpy.asarray(product) == t).all() and double == 2 * t

    at_once(work)


def test_plain_operations_of_other_threads():
    """Other threads record, read, free, adopt and change arrays while one traces."""
    functions = [bh.jit(function) for function in (lambda x: x * 2 + bh.arange(x.size), lambda x: bh.cumsum(x)[::-1], lambda x: x @ x)]
    memory = numpy.arange(50_000.0)

    def work(number):
        choose = random.Random(number)
        for turn in range(150):
            size = 1000 + choose.randrange(50)
            x = bh.arange(float(size))
            plain = numpy.arange(float(size))
            if number % 2:
                y = x * choose.randrange(5)
                adopted = bh.asarray(memory)
                y[::2] = adopted[: len(y[::2])]
                if choose.random() < 0.5:
                    assert float(y[2]) == 1
                del adopted
            else:
                assert (numpy.asarray(functions[0](x)) == plain * 3).all()
                assert (numpy.asarray(functions[1](x)) == numpy.cumsum(plain)[::-1]).all()
                assert float(functions[2](x)) == plain @ plain

    at_once(work, 6)


def test_globals_that_other_threads_change():
    scope = {}
    exec("K = 1.0\ndef helper(x): return x * K\ndef f(x): return helper(x) + K * 0", scope)
    f = bh.jit(scope["f"])

    def work(number):
        for turn in range(200):
            if number:
                scope["K"] = float(turn % 7)
            else:
                result = numpy.asarray(f(bh.ones(500)))
                assert (result == result[0]).all() and result[0] in range(7)

    at_once(work, 3)
    scope["K"] = 12.0
    assert (numpy.asarray(f(bh.ones(500))) == 12).all()


def test_a_traced_function_that_waits_for_a_thread_that_calls_it():
    @bh.jit
    def inner(x):
        return x + 1

    results = []

    @bh.jit(static="results")
    def outer(x):
        at_once(lambda number: results.append(numpy.asarray(inner(bh.ones(700)))), 1)
        return x * 2

    assert (numpy.asarray(outer(bh.ones(900))) == 2).all()
    assert (results[0] == 2).all()


def test_calls_are_recorded_although_threads_meet():
    f = bh.jit(lambda x: x * 2)

    def work(number):
        for turn in range(50):
            assert (numpy.asarray(f(bh.ones(800))) == 2).all()

    at_once(work)
    f(bh.ones(800))
    traces = f.traces
    assert traces >= 1
    f(bh.ones(800))
    assert f.traces == traces
