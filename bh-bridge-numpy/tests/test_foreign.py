"""Calls of other packages in the program's own modules: their functions get NumPy's arrays, those of the program and of bh do not."""

import concurrent.futures
import functools
import inspect
import pickle
import sys
import traceback
import types
import warnings

import numpy
import pytest

import bh
from bh._numpy import foreign, imports, loading

pytestmark = pytest.mark.falls_back

# A package whose functions and classes tell what they get.
ELSEWHERE = '''
import sys
import warnings
import numpy as np

def kind(value=None, *others, key=None):
    return type(value)

def kinds(*values):
    return [type(value) for value in values]

def same(value):
    return value

def part(value):
    return value[1:]

def parts(value):
    return value[:1], [value[1:]]

def fill(value):
    value[...] = 7

def applied(function, value):
    return function(value)

def answer(function, value):
    return type(function(value))

def keep(items):
    items.append(np.ones(1))

def caller():
    return sys._getframe(1).f_code.co_name

def variable(name, out=None):
    return sys._getframe(1).f_locals[name]

def warn(value):
    warnings.warn("careful", stacklevel=2)

def fail(value):
    raise ValueError("no")

def is_array(value):
    return isinstance(value, np.ndarray) and type(value) is np.ndarray

def wrapping(function):
    def wrapper(value):
        return type(value), function(value)
    wrapper.__module__, wrapper.__name__ = function.__module__, function.__name__
    return wrapper

class Table:
    def __init__(self, value=None):
        self.value = type(value)
        self.kept = {}
    def put(self, value):
        return type(value)
    @classmethod
    def of(cls, value):
        return type(value)
    @staticmethod
    def plain(value):
        return type(value)
    def __call__(self, value):
        return type(value)
    def __getitem__(self, key):
        return self.kept[key] if isinstance(key, str) else type(key)
    def __setitem__(self, key, value):
        self.kept[key if isinstance(key, str) else type(key)] = type(value)
    def __delitem__(self, key):
        self.kept[type(key)] = "deleted"
    def __iter__(self):
        return iter([1, 2])
    def __add__(self, other):
        return type(other)
    @property
    def method(self):
        return kind
    @property
    def shown(self):
        return self._shown
    @shown.setter
    def shown(self, value):
        self._shown = type(value)

class Attributes:
    def __setattr__(self, name, value):
        object.__setattr__(self, name, type(value))

class Plain:
    pass

table = Table()
'''


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """That package, installed."""
    folder = tmp_path / "installed"
    folder.mkdir()
    (folder / "elsewhere.py").write_text(ELSEWHERE)
    monkeypatch.syspath_prepend(folder)
    installed = (*imports._installed(), str(folder))
    monkeypatch.setattr(imports, "_installed", lambda: installed)
    import elsewhere

    yield elsewhere
    del sys.modules["elsewhere"]
    for known in (foreign._direct, foreign._given, foreign._held, foreign._methods):
        known.clear()
    foreign._direct[foreign._NOWHERE] = False


def run(source, **names):
    """Runs a module of the program; the result is its names."""
    scope = {"__name__": "program", "np": bh, "numpy": numpy, "x": bh.arange(4.0), **names}
    exec(loading.compiled("import elsewhere\n" + inspect.cleandoc(source), "program.py"), scope)
    return types.SimpleNamespace(**scope)


@pytest.mark.parametrize("make", [numpy.random.RandomState, numpy.random.default_rng])
def test_generators_of_numpy_shuffle_rows(elsewhere, make):
    names = run("rows = np.arange(12.0).reshape(6, 2)\ngenerator.shuffle(rows)", generator=make(3))
    expected = numpy.arange(12.0).reshape(6, 2)
    make(3).shuffle(expected)
    assert type(names.rows) is bh.ndarray and names.rows.tolist() == expected.tolist()


CALLABLES = """
    import functools, math, operator
    from elsewhere import Table, kind, table
    def plain(value): return value
    def with_defaults(value, other=1): return value
    def make(cell): return lambda value: cell
    closure, of_other = make(1), make(kind)
    class Own:
        def __call__(self, value): return value
        def method(self, value): return value
    class Wrapping(Own):
        def __init__(self, function): functools.update_wrapper(self, function)
    class Derived(Table): pass
    class Meta(type): pass
    class Made(metaclass=Meta): pass
    own, derived, wrapping, of_wrapped = Own(), Derived(), Wrapping(plain), Wrapping(kind)
    objects = [
        plain, with_defaults, closure, of_other, Own, Wrapping, Derived, Meta, Made, own, derived, wrapping, of_wrapped, own.method,
        Own.method, derived.put, table.put, Table, kind, table, functools.partial(plain), functools.partial(kind), len, print, math.sqrt,
        operator.add, [].append, "".join, {}.get, str.upper, dict.fromkeys, int, type, object().__str__, numpy.sin, numpy.sum, np.sin,
        np.sum, x.sum, numpy.ones(1).sum, functools.lru_cache(plain), functools.lru_cache(kind), None, 3,
    ]
"""


def test_native_answers_are_those_that_python_decides(elsewhere, monkeypatch):
    names = run(CALLABLES)
    # With and without a module that has the names.
    for module in (None, names):
        if module:
            monkeypatch.setitem(sys.modules, "program", module)
        for turn in range(3):
            for one in names.objects:
                decided = foreign._see(one) is one
                assert (foreign.see(one) is one) == decided, one
                for other in names.objects[:: turn + 5]:
                    sites = [None]
                    for called in (one, other, one):
                        assert (foreign.see(called, sites, 0) is called) == (foreign._see(called) is called), (one, other)
                        noted = sites[0]
                        assert noted in (None, False) or foreign._see(noted) is noted
                    assert sites[0] is not names.closure and sites[0] is not names.of_other


def test_native_answers_about_owners_run_no_code_of_the_program(elsewhere):
    counts = []
    names = run("""
        from elsewhere import kind
        def plain(value): return value
        class Owner:
            def __init__(self): self.own, self.other = plain, kind
            def method(self, value): return value
            @property
            def computed(self):
                counts.append("computed")
                return plain
        class Dynamic:
            def __getattr__(self, name):
                counts.append(name)
                return plain
    """, counts=counts)  # fmt: skip
    owner, dynamic, sites = names.Owner(), names.Dynamic(), [set()]
    for _ in range(3):
        for name in ("own", "method"):
            assert foreign.receiver(owner, (name,), sites, 0) is owner
    assert foreign.receiver(names.Owner(), ("other",), [set()], 0).other is not names.kind
    assert foreign.receiver(elsewhere, ("kind",), [set()], 0).kind is not names.kind
    for mine in (numpy, bh, sys):
        assert foreign.receiver(mine, ("sum" if mine is not sys else "exit",), [set()], 0) is mine
    for native in (True, False):
        counts.clear()
        receiver = foreign.receiver if native else foreign._receiver
        receiver(owner, ("computed",), [set()], 0)
        receiver(dynamic, ("anything",), [set()], 0)
        assert counts == ["computed", "anything"]


CALLS = [
    "elsewhere.kind(x)", "kind(x)", "elsewhere.kind(*[x])", "elsewhere.kind(value=x)", "elsewhere.kinds([x][0])[0]",
    # Stored, looked up, and made on the way.
    "stored[0](x)", "stored['f'](x)" , "getattr(elsewhere, 'kind')(x)", "(lambda: elsewhere.kind)()(x)", "holder.f(x)", "holder.inner.f(x)",
    "functools.partial(kind, x)()", "functools.partial(kind)(x)", "list(map(kind, [x]))[0]", "next(map(elsewhere.kind, [x]))",
    "[f(x) for f in (kind,)][0]", "call(kind)", "sorted([x], key=note.append or kind)[0] is x and kind(x)",
    "functools.reduce(lambda one, two: elsewhere.kind(two), [x, x])", "list(itertools.starmap(kind, [(x,)]))[0]",
    "pool.submit(kind, x).result()", "list(pool.map(elsewhere.kind, [x]))[0]",
    # Methods, classes and their objects.
    "elsewhere.Table(x).value", "Table(x).value", "elsewhere.table.put(x)", "Table().put(x)", "table.put(x)", "Table.put(table, x)",
    "Table.of(x)", "table.of(x)", "table.plain(x)", "table(x)", "elsewhere.table(x)", "table.method(x)", "table[x > 1]", "elsewhere.table[x]",
    "Derived(x).value", "Derived().put(x)", "Derived().own(x)[1]", "Deep(x).value", "(lambda bound: bound(x))(table.put)",
    # Arguments of other packages beside arrays.
    "elsewhere.kind({'a': [x]})  and elsewhere.kinds(*{'a': [x]}['a'])[0]",
]  # fmt: skip

NAMES = """
    import concurrent.futures, functools, itertools, types
    from elsewhere import Table, kind, table
    holder = types.SimpleNamespace(f=kind, inner=types.SimpleNamespace(f=kind))
    note = []
    class Stored(dict):
        def __missing__(self, name):
            return kind
    stored = Stored()
    def call(function):
        return function(x)
    class Derived(Table):
        def own(self, value):
            return type(value), super().put(value)
    class Deep(Derived):
        def __init__(self, value):
            super().__init__(value)
    pool = concurrent.futures.ThreadPoolExecutor(1)
"""


@pytest.mark.parametrize("call", CALLS)
def test_functions_of_other_packages_get_numpys_arrays(elsewhere, call):
    made = run(inspect.cleandoc(NAMES) + f"\nfirst = {call}\ndef again():\n    return {call}\n")
    assert made.first is numpy.ndarray and {made.again() for _ in range(3)} == {numpy.ndarray}


OWN = """
    from elsewhere import Table
    def plain(value): return type(value)
    def decorated(function): return function
    @decorated
    def wrapped(value): return type(value)
    class Own:
        def method(self, value): return type(value)
        @classmethod
        def of(cls, value): return type(value)
        @staticmethod
        def static(value): return type(value)
        def __call__(self, value): return type(value)
        def __getitem__(self, key): return type(key)
    class Derived(Table):
        def __init__(self): pass
        def method(self, value): return type(value)
    own, derived, held = Own(), Derived(), []
    def kept(value):
        held.append(value)
        return type(held.pop())
"""


@pytest.mark.parametrize("call", [
    "plain(x)", "wrapped(x)", "own.method(x)", "Own.of(x)", "own.static(x)", "own(x)", "own[x]", "derived.method(x)", "kept(x)",
    "(lambda value: type(value))(x)", "[f(x) for f in (plain,)][0]", "type(np.add(x, 1))", "type(x.sum(axis=0, keepdims=True))",
    "type(np.linalg.norm(x, axis=0, keepdims=True))", "type([x].pop(0))", "type(dict(a=x).get('a'))", "list(map(plain, [x]))[0]",
    "functools.partial(plain, x)()", "type(copy.copy(x))", "type(pickle.loads(pickle.dumps(x)))", "type(numpy.sqrt(x))",
])  # fmt: skip
def test_functions_of_the_program_and_of_bh_get_its_arrays(elsewhere, call):
    made = run("import copy, functools, pickle\n" + inspect.cleandoc(OWN) + f"\nfirst = {call}\ndef again():\n    return {call}\n")
    assert made.first is bh.ndarray and {made.again() for _ in range(3)} == {bh.ndarray}


def test_functions_of_the_program_are_called_themselves(elsewhere):
    made = run("""
        def own(): return 1
        given = []
        def call(function):
            given.append(function)
            return function()
        call(own)
    """)
    assert made.given == [made.own] and foreign.see(made.own) is made.own and foreign.see(made.given.append) == made.given.append
    assert foreign.see(bh.sin) is bh.sin and foreign.see(len) is len and foreign.see(dict) is dict


def test_results_that_share_memory_are_arrays_again(elsewhere):
    made = run("""
        whole = elsewhere.same(x)
        part = elsewhere.part(x)
        first, (rest,) = elsewhere.parts(x)
        part[0] = 9
        new = elsewhere.applied(lambda value: value + 1, x)
    """)
    assert made.whole is made.x and type(made.part) is type(made.first) is type(made.rest) is bh.ndarray
    assert made.x.tolist() == [0, 9, 2, 3] and made.rest.tolist() == [9, 2, 3]


def test_what_functions_write_is_seen(elsewhere):
    made = run("""
        pending = x * 2 + 1
        elsewhere.fill(x[1:3])
        items = [x]
        elsewhere.keep(items)
        elsewhere.fill(np.zeros((0, 3)))
        numbers = elsewhere.same(pending)
    """)
    assert made.x.tolist() == [0, 7, 7, 3] and made.items[0] is made.x and made.items[1].tolist() == [1]
    assert made.numbers.tolist() == [1, 3, 5, 7]


def test_pending_numbers_are_numbers(elsewhere):
    made = run("""
        import array, datetime, decimal, struct, time
        total = np.ones(100_000).sum()
        kinds = elsewhere.kinds(total, [total], {"a": total})
        span = datetime.timedelta(seconds=np.ones(60_000).sum())
        time.sleep(np.zeros(100_000).sum())
        values = array.array("d", [np.ones(70_000).sum()])
        exact = decimal.Decimal(np.ones(50_000).sum())
        packed = struct.pack("d", np.ones(40_000).sum())
    """)
    assert made.kinds[0] is numpy.float64 and made.span.total_seconds() == 60_000 and made.values[0] == 70_000 and made.exact == 50_000
    assert made.packed == numpy.float64(40_000).tobytes()


def test_functions_and_modules_are_numpys(elsewhere):
    made = run("""
        functions = elsewhere.same(np.add), elsewhere.same(np.median), elsewhere.same(np), elsewhere.same(np.ndarray), elsewhere.same(np.linalg)
    """)
    assert made.functions == (numpy.add, numpy.median, numpy, numpy.ndarray, numpy.linalg)


def test_callbacks_answer_with_numpys_arrays(elsewhere):
    made = run("""
        def double(value): return np.asarray(value) * 2
        class Scale:
            def method(self, value): return np.asarray(value) * 3
        scale = Scale()
        kinds = elsewhere.answer(double, 1.5), elsewhere.answer(scale.method, x), elsewhere.answer(lambda value: [np.ones(2)], 1)
        total = elsewhere.answer(lambda value: np.ones(100_000).sum(), 1)
        kept, method = elsewhere.same(double), elsewhere.same(scale.method)
        in_box = elsewhere.same([double])
        at = elsewhere.applied(lambda value: (x, np.add(x, 1)), 0)
    """)
    assert made.kinds[0] in (numpy.float64, numpy.ndarray) and made.kinds[1:] == (numpy.ndarray, list) and made.total is numpy.float64
    assert made.kept is made.double and made.method == made.scale.method and made.in_box == [made.double]


def double(value):
    return bh.asarray(value) * 2


def test_callbacks_stay_the_functions_that_they_are():
    given = foreign.answering(double)
    assert given is foreign.answering(double) and given == double and hash(given) == hash(double) and {double: 1}[given] == 1
    assert isinstance(given, types.FunctionType) and inspect.isfunction(given) and str(inspect.signature(given)) == "(value)"
    assert given.__code__ is double.__code__ and given.__name__ == "double" and pickle.loads(pickle.dumps(given)) is double
    assert repr(given) == repr(double) and type(given(numpy.ones(2))) is numpy.ndarray
    wrapper = functools.wraps(double)(lambda value: "wrapped")
    assert foreign.answering(wrapper)(1) == "wrapped" and foreign.answering(inspect.stack) is inspect.stack

    class Own:
        def method(self):
            return bh.ones(2)

    own = Own()
    method = foreign.answering(own.method)
    assert method == own.method and method.__self__ is own and type(method()) is numpy.ndarray and inspect.ismethod(method)
    import weakref

    assert type(weakref.WeakMethod(method)()()) is numpy.ndarray


def test_functions_that_wrap_those_of_the_program(elsewhere):
    made = run("""
        def own(value): return type(value)
        seen = elsewhere.wrapping(own)(x)
    """)
    assert made.seen == (numpy.ndarray, numpy.ndarray)


def test_subscripts_of_other_packages_objects(elsewhere):
    made = run("""
        table = elsewhere.Table()
        table["a"] = x
        table[x > 1] = 2.0
        read = table["a"], table[x], table[1:2]
        del table[x]
        class Box: pass
        box = Box()
        box.table = table
        box.table["b"] = x
        own = {}
        own["x"] = x
        y = np.zeros(4)
        for k in range(4):
            y[k] = x[k]
        y[x > 2] += 1
    """)
    assert made.read == (numpy.ndarray, numpy.ndarray, slice) and made.table.kept == {"a": numpy.ndarray, numpy.ndarray: "deleted", "b": numpy.ndarray}
    assert made.own["x"] is made.x and made.y.tolist() == [0, 1, 2, 4]


def test_attributes_of_other_packages_objects(elsewhere):
    made = run("""
        class Derived(elsewhere.Table):
            own = None
        class Described:
            def __set__(self, owner, value): owner.kept["described"] = type(value)
        elsewhere.Plain.described = Described()
        table, attributes, plain, derived = elsewhere.Table(), elsewhere.Attributes(), elsewhere.Plain(), Derived()
        total = np.ones(100_000).sum()
        def assign():
            table.shown, attributes.total, attributes.x = x, total, x
            plain.x = derived.own = plain.total = x
            derived.shown = [x]
            plain.kept = {}
            plain.described = x
            plain.x[1] = 7
            seen.append((table.shown, attributes.total, attributes.x, type(plain.x), derived.own is x, derived.shown, plain.kept["described"]))
        seen = []
        for _ in range(3):
            assign()
    """)
    assert set(made.seen) == {(numpy.ndarray, numpy.float64, numpy.ndarray, bh.ndarray, True, list, bh.ndarray)} and made.x[1] == 7
    with pytest.raises(AttributeError, match="property 'method' of 'Table' object has no setter"):
        run("elsewhere.table.method = x")


def test_operators_and_loops_are_as_they_are(elsewhere):
    made = run("added = elsewhere.Table() + x\nitems = [item for item in elsewhere.Table()]")
    # Operators find their functions without a call.
    assert made.added is bh.ndarray and made.items == [1, 2]


def test_packages_that_take_arrays_of_bh_get_them(elsewhere, monkeypatch):
    monkeypatch.setitem(foreign.BY_PROTOCOL, "elsewhere", "the test says so")
    foreign._direct.clear()
    assert run("kind = elsewhere.kind(x)").kind is bh.ndarray
    monkeypatch.setattr(imports, "shown", {"elsewhere"})
    foreign._direct.clear()
    assert run("kind = elsewhere.kind(x)").kind is numpy.ndarray


def test_frames_and_lines_are_those_of_the_program(elsewhere):
    made = run("""
        def who():
            return elsewhere.caller()
        def own():
            mine = 7
            return elsewhere.variable("mine", out=x)
        def deep(n):
            return 0 if n == 0 else 1 + deep(n - 1)
        class Own:
            def deep(self, n):
                return 0 if n == 0 else 1 + self.deep(n - 1)
        def fails():
            return elsewhere.fail(
                1,
            )
        def missing():
            return elsewhere.absent(x)
        def warns():
            return elsewhere.warn(1)
    """)
    assert made.who() == "who" and made.own() == 7
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        made.warns()
    assert found[0].filename == "program.py" and found[0].lineno == 19
    depth = len(inspect.stack()) + 3
    for deep in (made.deep, made.Own().deep):
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(depth + 100)
        try:
            assert deep(90) == 90
        finally:
            sys.setrecursionlimit(before)
    with pytest.raises(ValueError) as caught:
        made.fails()
    entries = traceback.extract_tb(caught.value.__traceback__)[1:]
    assert [(entry.name, entry.lineno) for entry in entries[:1]] == [("fails", 13)] and entries[-1].name == "fail" and len(entries) == 2
    with pytest.raises(AttributeError, match="module 'elsewhere' has no attribute 'absent'") as caught:
        made.missing()
    assert [entry.name for entry in traceback.extract_tb(caught.value.__traceback__)[1:]] == ["missing"]


def test_pools_of_processes_call_functions_of_other_packages(elsewhere):
    calls = run("def given(function): return [function]\nhanded = []").__dict__
    assert calls["handed"] == []
    handed = foreign.handed(elsewhere.kind)
    assert pickle.loads(pickle.dumps(handed))(bh.ones(2)) is numpy.ndarray and foreign.handed(double) is double and foreign.handed(3) == 3
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert foreign.see(pool.submit)(elsewhere.kind, bh.ones(2)).result() is numpy.ndarray


def test_code_in_c_of_the_program_is_another_packages(tmp_path):
    module = types.ModuleType("compiled_beside")
    module.__file__ = str(tmp_path / "compiled_beside.abi3.so")
    sys.modules["compiled_beside"] = module
    try:
        assert not foreign._Modules()["compiled_beside"]
        module.__file__ = str(tmp_path / "compiled_beside.py")
        assert foreign._Modules()["compiled_beside"]
    finally:
        del sys.modules["compiled_beside"]


def python_calls(function, *args):
    """The result of a function, and the names of the functions in Python that ran for it."""
    names = []
    sys.setprofile(lambda frame, event, _: event == "call" and names.append(frame.f_code.co_name))
    try:
        result = function(*args)
    finally:
        sys.setprofile(None)
    return result, names


@pytest.mark.parametrize("array", [bh.zeros(3), bh.zeros((2, 3))[0], bh.zeros(3).view(type("Own", (bh.ndarray,), {}))])
def test_subscripts_of_own_arrays_are_their_own(array):
    sites = [set()]
    assert foreign.subscripted(array, sites, 0) is array
    result, names = python_calls(foreign.subscripted, array, sites, 0)
    assert result is array and names == []


@pytest.mark.parametrize("function", [bh.add, bh.sum, bh.zeros, numpy.add])
def test_functions_that_take_arrays_of_bh_are_known_without_python(function):
    result, names = python_calls(foreign.see, function)
    assert result is function and names == []
