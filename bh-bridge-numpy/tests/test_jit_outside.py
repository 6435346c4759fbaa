"""bh.jit: whatever a function reads outside of its arguments is changed, and calls give what the plain function gives."""

import datetime
import gc
import io
import itertools
import random
import sys
import time
import types
import warnings

import numpy
import pytest

import bh

# By name: a program with a function `f`, and changes of what it reads, one after the other.
CASES = {
    "a global": ("K = 3\ndef f(x): return x * K", "K = 8", "K = 2.5"),
    "a builtin that is shadowed": ("def f(x): return x * len('abc')", "len = lambda text: 7", "del len"),
    "a closure": ("def make():\n k = 3\n def f(x): return x * k\n def put(v):\n  nonlocal k\n  k = v\n return f, put\nf, put = make()", "put(8)", "put(2.5)"),
    "an attribute of a class": ("class C: k = 3\ndef f(x): return x * C.k", "C.k = 8", "class C: k = 5"),
    "an attribute of a base class": ("class B: k = 3\nclass C(B): pass\ndef f(x): return x * C.k", "B.k = 8", "C.k = 2", "del C.k"),
    "an attribute of a metaclass": ("class M(type): k = 3\nclass C(metaclass=M): pass\ndef f(x): return x * C.k", "M.k = 8"),
    "an attribute of an object": ("class C: pass\no = C(); o.k = 3\ndef f(x): return x * o.k", "o.k = 8", "o = C(); o.k = 4"),
    "an attribute of the object's class": ("class C: k = 3\no = C()\ndef f(x): return x * o.k", "C.k = 8", "o.k = 5", "del o.k"),
    "a slot": ("class C: __slots__ = 'k',\no = C(); o.k = 3\ndef f(x): return x * o.k", "o.k = 8"),
    "a slot through another name": ("class C: __slots__ = 'k',\no = C(); o.k = 3\ndef f(x):\n p = o\n return x * p.k", "o.k = 8"),
    "attributes of attributes": ("class C: pass\no = C(); o.p = C(); o.p.k = 3\ndef f(x): return x * o.p.k", "o.p.k = 8", "o.p = C(); o.p.k = 4"),
    "a property": ("class C:\n m = 3\n k = property(lambda self: self.m * S)\nS = 2\no = C()\ndef f(x): return x * o.k", "o.m = 8", "S = 5", "C.k = 3"),
    "a property through another name": ("class C:\n m = 3\n k = property(lambda self: self.m * S)\nS = 2\no = C()\ndef f(x):\n p = o\n return x * p.k", "o.m = 8", "S = 5", "C.k = property(lambda self: 3)"),
    "a property beside an array": ("class C:\n m = 3.5\n k = property(lambda self: self.m * 2)\no = C()\nu = bh.arange(30_000.0)\ndef f(x): return x * o.k + u", "o.m = 8", "u = u + 1"),
    "a descriptor": ("class D:\n k = 3\n def __get__(self, o, c): return self.k\nd = D()\nclass C: m = d\ndef f(x): return x * C.m", "d.k = 8", "D.__get__ = lambda self, o, c: 5"),
    "__getattr__": ("S = 3\nclass C:\n def __getattr__(self, name): return S\no = C()\ndef f(x): return x * o.k", "S = 8", "C.__getattr__ = lambda self, name: 5"),
    "a class through another name": ("class C: k = 3\ndef f(x):\n c = C\n return x * c.k", "C.k = 8"),
    "getattr": ("class C: k = 3\ndef f(x): return x * getattr(C, 'k')", "C.k = 8"),
    "an object that is given on": ("class C: k = 3\no = C()\ndef g(o): return o.k\ndef f(x): return x * g(o)", "C.k = 8", "o.k = 5"),
    "a class method": ("class C:\n k = 3\n @classmethod\n def g(cls, x): return x * cls.k * S\nS = 2\ndef f(x): return C.g(x)", "C.k = 8", "S = 5"),
    "a static method": ("class C:\n @staticmethod\n def g(x): return x * S\nS = 2\ndef f(x): return C.g(x)", "S = 5", "C.g = staticmethod(lambda x: x + 1)"),
    "a method": ("class C:\n k = 3\n def g(self, x): return x * self.k * S\nS = 2\no = C()\ndef f(x): return o.g(x)", "o.k = 8", "S = 5", "C.g = lambda self, x: x + 1"),
    "a bound method": ("class C:\n k = 3\n def g(self, x): return x * self.k * S\nS = 2\no = C(); m = o.g\ndef f(x): return m(x)", "o.k = 8", "S = 5"),
    "an object that is called": ("class C:\n k = 3\n def __call__(self, x): return x * self.k * S\nS = 2\no = C()\ndef f(x): return o(x)", "o.k = 8", "S = 5"),
    "operators of an object": ("class C:\n k = 3\n def __matmul__(self, x): return x * self.k * S\nS = 2\no = C()\ndef f(x): return o @ x", "o.k = 8", "S = 5"),
    "a helper's defaults": ("def g(x, k=3): return x * k\ndef f(x): return g(x)", "g.__defaults__ = (8,)"),
    "a helper's keyword defaults": ("def g(x, *, k=3): return x * k\ndef f(x): return g(x)", "g.__kwdefaults__ = {'k': 8}", "g.__kwdefaults__['k'] = 5"),
    "a helper's code": ("def g(x): return x * 2\ndef h(x): return x * 7\ndef f(x): return g(x)", "g.__code__ = h.__code__"),
    "its own defaults": ("def f(x, k=3): return x * k", "f.__defaults__ = (8,)"),
    "its own keyword defaults": ("def f(x, *, k=3): return x * k", "f.__kwdefaults__ = {'k': 8}", "f.__kwdefaults__['k'] = 5"),
    "its own code": ("def f(x): return x * 2\ndef h(x): return x * 7", "f.__code__ = h.__code__"),
    "a mutable default": ("def g(x, k=[3]): return x * k[0]\ndef f(x): return g(x)", "g.__defaults__[0][0] = 8"),
    "a default that is an object": ("class C: k = 3\ndef g(x, c=C): return x * c.k\ndef f(x): return g(x)", "C.k = 8"),
    "a default that is a function": ("def h(x): return x * S\nS = 3\ndef f(x, g=h): return g(x)", "S = 8"),
    "annotations": ("def g(x: 3): return x\ndef f(x): return x * g.__annotations__['x']", "g.__annotations__['x'] = 8"),
    "an attribute of a function": ("def g(x): return x\ng.k = 3\ndef f(x): return x * g.k", "g.k = 8"),
    "an attribute of a module": ("def f(x): return x * mod.k", "mod.k = 8"),
    "a module through another name": ("def f(x):\n m = mod\n return x * m.k", "mod.k = 8"),
    "an import": ("def f(x):\n import jit_outside_module as m\n return x * m.k", "mod.k = 8"),
    "an import of a name": ("def f(x):\n from jit_outside_module import k\n return x * k", "mod.k = 8"),
    "a function of a module": ("def f(x): return mod.g(x)", "mod.k = 8", "mod.g = lambda x: x + 1"),
    "a dictionary": ("D = {'k': 3}\ndef f(x): return x * D['k']", "D['k'] = 8", "D = {'k': 5}"),
    "a nested list": ("D = [[1, {'k': 3}]]\ndef f(x): return x * D[0][1]['k']", "D[0][1]['k'] = 8"),
    "a set": ("D = {1, 2}\ndef f(x): return x * len(D)", "D.add(7)"),
    "a dictionary that is no plain one": ("import collections\nD = collections.defaultdict(int, k=3)\ndef f(x): return x * D['k']", "D['k'] = 8"),
    "a queue": ("import collections\nD = collections.deque([3])\ndef f(x): return x * D[0]", "D[0] = 8"),
    "an object in a list": ("class C: k = 3\nD = [C()]\ndef f(x): return x * D[0].k", "D[0].k = 8", "C.k = 5; del D[0].k"),
    "a function in a list": ("S = 3\nD = [lambda x: x * S]\ndef f(x): return D[0](x)", "S = 8", "D[0] = lambda x: x * S + 1", "S = 5"),
    "a closure in a list": ("def make(k):\n def g(x): return x * k\n def put(v):\n  nonlocal k\n  k = v\n return g, put\nD = list(make(3))\ndef f(x): return D[0](x)", "D[1](8)", "D[:] = make(4)", "D[1](9)"),
    "a partial function": ("import functools\nS = 3\ndef g(x, k): return x * k * S\np = functools.partial(g, k=2)\ndef f(x): return p(x)", "S = 8", "p = functools.partial(g, k=5)", "p.keywords['k'] = 4"),
    "a decorated function": ("import functools\nS = 3\ndef twice(g):\n @functools.wraps(g)\n def h(x): return g(g(x))\n return h\n@twice\ndef g(x): return x * S\ndef f(x): return g(x)", "S = 8"),
    "a cached function": ("import functools\nK = 3\n@functools.lru_cache\ndef g(): return K\ndef f(x): return x * g()", "K = 8; g.cache_clear()"),
    "helpers of helpers": ("S = 3\ndef a(x): return x * S\ndef b(x): return a(x)\ndef c(x): return b(x)\ndef f(x): return c(x)", "S = 8", "a = lambda x: x + S"),
    "a jitted helper": ("S = 3\n@bh.jit\ndef g(x): return x * S\ndef f(x): return g(x)", "S = 8"),
    "a vectorized helper": ("S = 3\n@bh.vectorize\ndef g(x): return x * S\ndef f(x): return g(x)", "S = 8"),
    "a generator function": ("S = 3\ndef g(x):\n yield x * S\n yield x\ndef f(x): return sum(g(x))", "S = 8"),
    "a generator": ("import itertools\nG = (k * k for k in itertools.count(2))\ndef f(x, again=[]): return x * next(G)",),
    "an iterator": ("import itertools\nG = itertools.count(2)\ndef f(x): return x * next(G)",),
    "a comprehension": ("S = 3\ndef f(x): return sum([x * S for _ in range(2)])", "S = 8"),
    "the environment": ("import os\nos.environ['BH_TEST_K'] = '3'\ndef f(x): return x * int(os.environ['BH_TEST_K'])", "os.environ['BH_TEST_K'] = '8'"),
    "a variable of the environment": ("import os\nos.environ['BH_TEST_K'] = '3'\ndef f(x): return x * int(os.getenv('BH_TEST_K'))", "os.environ['BH_TEST_K'] = '8'"),
    "globals()": ("K = 3\ndef f(x): return x * globals()['K']", "K = 8"),
    "eval": ("K = 3\ndef f(x): return x * eval('K')", "K = 8"),
    "a named tuple": ("import collections\nT = collections.namedtuple('T', 'k')\nt = T(3)\ndef f(x): return x * t.k", "t = T(8)"),
    "an enumeration": ("import enum\nclass E(enum.IntEnum):\n A = 3\n B = 8\ne = E.A\ndef f(x): return x * e", "e = E.B"),
    "a data class": ("import dataclasses\n@dataclasses.dataclass\nclass P: k: int\np = P(3)\ndef f(x): return x * P(2).k * p.k", "p.k = 8", "P.__init__ = lambda self, k: setattr(self, 'k', 7)"),
    "an array in an object": ("class C: pass\no = C(); o.u = bh.arange(30_000.0)\ndef f(x):\n p = o\n return x * p.u", "o.u = o.u + 1", "o.u += 2"),
    "NumPy's array in an object": ("class C: pass\no = C(); o.u = numpy.arange(3)\ndef f(x):\n p = o\n return x * float(p.u[1])", "o.u[1] = 8"),
    "an attribute that the function sets": ("class C: k = 3\no = C()\ndef f(x):\n o.k += 1\n return x * 2", "o.k = 9"),
    "an attribute that is found once": ("import functools\nclass C:\n k = 3\n @functools.cached_property\n def m(self): return self.k\no = C()\ndef f(x): return x * o.m", "o.m = 8"),
    "a generator of numbers": ("import random\nR = random.Random(3)\ndef f(x): return x * R.random()",),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_changes_outside_are_seen(name, monkeypatch):
    program, *changes = CASES[name]
    module = types.ModuleType("jit_outside_module")
    exec("k = 3\ndef g(x): return x * k", module.__dict__)
    monkeypatch.setitem(sys.modules, "jit_outside_module", module)
    monkeypatch.setenv("BH_TEST_K", "")
    # Each has objects of its own.
    scopes = [{"bh": bh, "numpy": numpy, "mod": module, "__name__": name} for _ in range(2)]
    for scope in scopes:
        exec(program, scope)
    jitted, plain = bh.jit(scopes[0]["f"]), scopes[1]["f"]
    x = bh.arange(30_000.0) + 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for change in (None, *changes):
            for scope in scopes if change else ():
                exec(change, scope)
            for _ in range(3):
                assert (numpy.asarray(jitted(x)) == numpy.asarray(plain(x))).all(), change


@pytest.mark.parametrize(
    "number, text",
    [
        (itertools.count(3).__next__, "of class count"),
        (random.random, "of class Random"),
        (random.gauss, "another result at each call"),
        (lambda: random.random(), "random.random"),
        (lambda: time.time(), "time.time"),
        (lambda: datetime.datetime.now().year, "now"),
        (lambda: float(input()), "input"),
        ((k for k in itertools.count()).__next__, "of class generator"),
    ],
)
def test_what_changes_unseen_is_run_as_usual(number, text, monkeypatch):
    monkeypatch.setattr("builtins.input", input)
    monkeypatch.setattr("sys.stdin", io.StringIO("1\n2\n3\n"))
    f = bh.jit(lambda x: x + number())
    x = bh.ones(30_000)
    with pytest.warns(RuntimeWarning, match=f"{text}.*static"):
        f(x)
    f(x)
    assert (f.traces, f.plain) == (0, 2)


@pytest.mark.parametrize("name", ["a global", "an attribute of a class", "a method", "a function in a list", "a helper's defaults", "a property"])
def test_what_does_not_change_is_recorded_once(name):
    scope = {"bh": bh, "__name__": name}
    exec(CASES[name][0], scope)
    f = bh.jit(scope["f"])
    for size in range(5):
        x = bh.arange(30_000.0) + size
        assert (numpy.asarray(f(x)) == numpy.asarray(scope["f"](x))).all()
    assert (f.traces, f.plain) == (1, 0)


def test_callbacks_of_the_garbage_collector_and_finalizers_are_no_part_of_a_function():
    clock, ran = time.perf_counter, []

    def callback(*_):
        ran.append(clock())

    class Finalized:
        def __init__(self):
            self.cycle = self

        def __del__(self):
            ran.append(clock())

    @bh.jit
    def adds(x):
        return [x + number for number in range(50)][1]

    before = gc.get_threshold()
    gc.callbacks.append(callback)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(4):
                Finalized()
                gc.set_threshold(1)
                assert (numpy.asarray(adds(bh.zeros(5))) == 1).all()
                gc.set_threshold(*before)
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(callback)
    assert ran
    assert (adds.traces, adds.plain) == (1, 0)
