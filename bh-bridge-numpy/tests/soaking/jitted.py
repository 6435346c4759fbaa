"""Random programs with jitted functions: `python -m soaking.jitted FIRST COUNT` prints those whose calls give other results than the
plain function, while what the functions read changes between calls, and other threads call them.
"""

import random
import sys
import threading
import warnings

import numpy

import bh

# The values that a function reads: statements that make one, the expression that reads it, and statements that change it to a number.
READS = (
    ("{n} = 2", "{n}", "{n} = {k}"),
    ("class {n}: k = 2", "{n}.k", "{n}.k = {k}"),
    ("class {n}_base: k = 2\nclass {n}({n}_base): pass", "{n}.k", "{n}_base.k = {k}"),
    ("class {n}_class: k = 2\n{n} = {n}_class()", "{n}.k", "{n}_class.k = {k}", "{n}.k = {k}", "{n} = {n}_class()"),
    ("class {n}_class: __slots__ = 'k',\n{n} = {n}_class(); {n}.k = 2", "{n}.k", "{n}.k = {k}"),
    ("class {n}_class:\n h = 1\n k = property(lambda self: self.h + 1)\n{n} = {n}_class()", "{n}.k", "{n}.h = {k}", "{n}_class.k = property(lambda self: {k})"),
    ("class {n}_class:\n k = 2\n def m(self, x=1): return x * self.k\n{n} = {n}_class()", "{n}.m()", "{n}.k = {k}", "{n}_class.m.__defaults__ = ({k},)"),
    ("def {n}(x=2): return x", "{n}()", "{n}.__defaults__ = ({k},)", "{n}.__code__ = (lambda x=2: x + {k}).__code__"),
    ("def {n}(*, x=2): return x", "{n}()", "{n}.__kwdefaults__ = dict(x={k})", "{n}.__kwdefaults__['x'] = {k}"),
    ("def {n}(x=[2]): return x[0]", "{n}()", "{n}.__defaults__[0][0] = {k}"),
    ("def {n}(): return {n}.k\n{n}.k = 2", "{n}()", "{n}.k = {k}"),
    ("{n}_number = 2\ndef {n}_inner(): return {n}_number\ndef {n}(): return {n}_inner()", "{n}()", "{n}_number = {k}", "{n}_inner = lambda: {k}"),
    ("{n} = [2, dict(k=2)]", "({n}[0] + {n}[1]['k'])", "{n}[0] = {k}", "{n}[1]['k'] = {k}"),
    ("{n} = [lambda: {n}_number]\n{n}_number = 2", "{n}[0]()", "{n}_number = {k}", "{n}[0] = lambda: {k}"),
    ("class {n}_class: pass\n{n} = {n}_class(); {n}.o = {n}_class(); {n}.o.k = 2", "{n}.o.k", "{n}.o.k = {k}", "{n}.o = {n}_class(); {n}.o.k = {k}"),
    ("import functools\n{n} = functools.partial(lambda x, y: x + y, 1, y=1)", "{n}()", "{n}.keywords['y'] = {k}"),
    ("import types\n{n} = types.ModuleType('{n}'); {n}.k = 2", "{n}.k", "{n}.k = {k}"),
    ("def {n}_make():\n k = 2\n def put(v):\n  nonlocal k\n  k = v\n return (lambda: k), put\n{n}, {n}_put = {n}_make()", "{n}()", "{n}_put({k})"),
    ("{n} = np.arange(5.0)", "{n}[2]", "{n} = {n} + {k}", "{n}[2] = {k}", "{n}[...] = {k}"),
    ("class {n}_class: pass\n{n} = {n}_class(); {n}.u = np.arange(5.0)", "{n}.u[3]", "{n}.u[3] = {k}", "{n}.u = {n}.u + {k}"),
    ("import itertools\n{n} = itertools.cycle((1, 2, 3))", "next({n})"),
)  # fmt: skip
# Whether an object is read by its name, through another name, or by a function that gets it.
WAYS = ("{}", "[{}][0]", "(lambda: {})()")
STEPS = ("x = x * {}", "x = x + {}", "x[1:] += x[:-1] * {}", "y = y - x * {}", "x, y = y + {}, x", "x *= 1 + {}", "y[::2] = {}", "y = np.where(x > {}, x, y)")


def program(seed):
    """The text of a program with a function `f`, and texts of changes."""
    chance = random.Random(seed)
    made, changes, lines = [], [], []
    for number in range(chance.randint(1, 5)):
        make, read, *alter = (text.replace("{n}", f"g{number}") for text in chance.choice(READS))
        made.append(make)
        changes += [text.replace("{k}", str(chance.choice((0, 1, 3, 4.5, -2)))) for text in alter]
        lines += [chance.choice(STEPS).format(chance.choice(WAYS).format(read)) for _ in range(chance.randint(1, 3))]
    chance.shuffle(lines)
    chance.shuffle(changes)
    text = "\n".join([*made, "def f(x, y):", *(f"    {line}" for line in lines), "    return x, y + 0, x.sum()"])
    return text, changes


def _called(scope, size, seed):
    x, y = (bh.asarray(numpy.random.default_rng(seed + k).integers(-8, 9, size) / 8) + 0 for k in (0, 1))
    results = scope["call"](x, y)
    return [numpy.array(value) for value in (*results, x, y)]


def difference(seed):
    """The error of the program of a seed; none if it is right."""
    text, changes = program(seed)
    scopes = [{"np": bh, "__name__": "program"} for _ in range(2)]
    for scope in scopes:
        exec(text, scope)
    scopes[0]["call"], scopes[1]["call"] = bh.jit(scopes[0]["f"]), scopes[1]["f"]
    size = random.Random(seed).choice((5, 40, 700, 3000))
    for at, change in enumerate([None, *changes]):
        for scope in scopes if change else ():
            exec(change, scope)
        for again in range(2):
            mine, right = (_called(scope, size, seed + at) for scope in scopes)
            if not all(map(numpy.array_equal, mine, right)):
                return f"after {change!r}, call {again + 1}: {mine}, not {right}"
    if "next(" in text:
        return None
    return _in_threads(scopes, size, seed)


def _in_threads(scopes, size, seed):
    """The error if threads call the function at once, beside others that record."""
    wrong, rights = [], {}
    for turn in range(6):
        rights[turn] = _called(scopes[1], size + turn, seed + turn)

    def work(number):
        try:
            for turn in range(6):
                if number == 3:
                    float((bh.ones(size) * number).sum())
                elif not all(map(numpy.array_equal, _called(scopes[0], size + turn, seed + turn), rights[turn])):
                    wrong.append(f"thread {number}, turn {turn}")
        except Exception as error:
            wrong.append(f"thread {number}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return str(wrong) if wrong or any(thread.is_alive() for thread in threads) else None


def differences(first, count):
    """The programs of these seeds that are wrong: seeds, texts, and what is wrong."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for seed in range(first, first + count):
                try:
                    found = difference(seed)
                except Exception as error:
                    found = f"{type(error).__name__}: {error}"
                if found:
                    yield seed, program(seed)[0], found
    finally:
        sys.setswitchinterval(interval)


if __name__ == "__main__":
    for finding in differences(*map(int, sys.argv[1:3])):
        print(*finding, sep="\n    ")
