"""Modules of the program, compiled with their calls written anew: what they mean, how they are found, loaded and kept, and the
switch that leaves them alone."""

import ast
import inspect
import os
import random
import subprocess
import sys
import textwrap

import numpy
import pytest

import bh
from bh._numpy import hidden, loading, rewriting
from conftest import LIMIT

pytestmark = pytest.mark.falls_back


def written(source):
    """The text of a module with its calls written anew."""
    tree = rewriting.rewrite(ast.parse(source))
    return ast.unparse(tree)


@pytest.mark.parametrize("source", [
    # The module's own functions and classes, builtin functions, literals, and methods without arrays.
    "def f(x): pass\nf(1)", "class C: pass\nC()", "print(1)", "len(x)", "super().f()", "', '.join(x)", "f'{x}'.join(x)", "(lambda: 1)()",
    "x.sum()", "x.reshape(3, -1)", "x.sum(axis=0, keepdims=True)", "str.join(x, y)", "def f():\n    def g(x): pass\n    g(x)",
    "def f(x): pass\n[f(i) for i in (1, 2)]", "x[1]", "x[i]", "d['a'] = b", "@decorator\ndef f(): pass",
    "import torch\nx[1:2, ..., None]", "import torch\nfor i in range(3):\n    x[i, i + 1]",
    "import torch\nfor i, v in enumerate(y):\n    x[i]", "import torch\nx[0] = 1", "x: list[f(1)]\ndef g(x: f(1)) -> f(2): pass",
])  # fmt: skip
def test_calls_that_stay_as_they_are(source):
    assert written(source) == ast.unparse(ast.parse(source))


@pytest.mark.parametrize("source", [
    "f(1)", "from m import f\nf(x)", "import m\nm.f(x)", "import m\nm.a.b(x)", "x.f(y)", "x.y.f(z)", "f()(x)", "x[0](y)", "x.f(*y)", "x.f(**y)",
    "@decorator\ndef f(x): pass\nf(1)", "class C(Base): pass\nC(1)", "def f(x): pass\nf = 2\nf(x)", "len = g\nlen(x)", "map(f, x)",
    "sorted(x, key=f)", "x.__getitem__(y)", "super().__init__(x)", "@f(1)\ndef g(): pass", "def f(sum): sum(x)",
    "def f():\n    global g\n    g = 1\ndef g(x): pass\ng(x)", "from m import *\nsum(x)", "class C:\n    def f(x): pass\n    def g(self): f(1)",
    "def f(x): pass\n[f(i) for f in y]", "def f(x): pass\n(f := y)\nf(x)", "def f(x): pass\ntry: pass\nexcept E as f: pass\nf(x)",
    "def f(x): pass\nmatch y:\n    case {'a': f}: pass\nf(x)", "def f():\n    def g(x): pass\n    def h():\n        nonlocal g\n        g = 1\n    g(x)",
    "import torch\nx[i]", "import torch\nx[b] = 1", "import torch\nx[0] = y", "import torch\nx[i] += 1", "import torch\ndel x[i]",
    "import torch\nx.y[i]", "import torch\nx.y = z", "import torch\nx.y.z, a = b",
])  # fmt: skip
def test_calls_that_are_written_anew(source):
    tree = rewriting.rewrite(ast.parse(source))
    assert ast.unparse(tree).count(hidden.PREFIX) > 4
    compile(tree, "module", "exec")


@pytest.mark.parametrize("first, classes", [("", ["C"]), ("type = type\n", ["C", "type", hidden.TYPE])])
def test_a_module_lists_its_own_classes(first, classes):
    names = {}
    exec(loading.compiled(first + "class C: pass\ndef f(x):\n    return x.real(x)", "program.py"), names)
    assert sorted(name for name, value in names.items() if inspect.isclass(value)) == sorted(classes)


def test_numpy_s_functions_take_objects_whose_array_is_bh_s():
    names = {"__name__": "__main__", "bh": bh}
    text = "class C:\n    def __array__(self, dtype=None, copy=None):\n        return bh.arange(3.0)"
    exec(loading.compiled(text, "program.py"), names)
    assert type(numpy.asarray(names["C"]())) is numpy.ndarray
    assert bh.asarray(names["C"]()).tolist() == numpy.add(names["C"](), 0).tolist() == [0, 1, 2]


def test_positions_are_those_of_the_source():
    source = "import m\n\n\nvalue = m.f(\n    x,\n    m.g(y)[z],\n)\n"
    tree = rewriting.rewrite(ast.parse(source))
    assert all(hasattr(node, "lineno") for node in ast.walk(tree) if isinstance(node, (ast.expr, ast.stmt)))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.lineno == 4 and node.end_lineno == 7]
    assert len(calls) == 1 and max(node.end_lineno for node in ast.walk(tree) if hasattr(node, "end_lineno")) == 7


def test_modules_begin_as_they_have_to():
    scope = {"__name__": "program"}
    source = '"""Text."""\nfrom __future__ import annotations\nimport m\ndef f(x: m.f(1)): return m.f(x)\n'
    code = loading.compiled(source.replace("import m", "import math as m"), "program.py")
    exec(code, scope)
    assert scope["__doc__"] == "Text." and scope["f"].__annotations__ == {"x": "m.f(1)"}
    exec(loading.compiled("", "program.py"), {})
    deep = "x = " + "-" * 3000 + "f(1)"
    assert loading.compiled("f = int\nx = " + "+".join(["f(1)"] * 400), "program.py")
    with pytest.raises((RecursionError, MemoryError, SyntaxError)):
        compile(deep * 2, "deep", "exec")


class Draft:
    """A random module: functions, classes, loops and calls in all forms, of names that are bound in all ways."""

    NAMES = "abcdefg"

    def __init__(self, seed):
        self.random, self.depth = random.Random(seed), 0

    def name(self):
        return self.random.choice(self.NAMES)

    def expression(self, depth=0):
        """An expression. Everything that it names can be called, looked up, and indexed, and gives the like again."""
        if depth > 3:
            return self.random.choice([self.name(), str(self.random.randrange(9)), "'t'"])
        inner = lambda: self.expression(depth + 1)
        forms = [
            lambda: self.name(), lambda: f"{self.name()}({inner()})", lambda: f"{self.name()}.go({inner()})", lambda: f"{inner()}",
            lambda: f"w({inner()}).go({inner()})", lambda: f"{self.name()}.inner.go({inner()}, key={inner()})", lambda: f"w({inner()})[{inner()}]",
            lambda: f"[{inner()} for {self.name()} in w.items({inner()})]", lambda: f"(lambda {self.name()}={inner()}: {inner()})()",
            lambda: f"sorted([{inner()}], key={self.name()})", lambda: f"list(map({self.name()}, [{inner()}]))", lambda: f"({inner()}, *w.items({inner()}))",
            lambda: f"{self.name()}(*w.items({inner()}))", lambda: f"mod.go({inner()})", lambda: f"mod.sub.go({inner()})", lambda: f"({self.name()} := w)",
            lambda: f"len([{inner()}])", lambda: f"str({inner()})", lambda: f"w({inner()})(2)({inner()})", lambda: f"{self.name()}.__call__({inner()})",
        ]  # fmt: skip
        return self.random.choice(forms)()

    def statements(self, depth=0):
        """Lines of some statements."""
        for _ in range(self.random.randrange(2, 5)):
            yield from self.statement(depth)

    def statement(self, depth):
        kind = self.random.randrange(12 if depth < 3 else 5)
        inner = ["    " + line for line in self.statements(depth + 1)] if kind >= 5 else []
        one, other = self.name(), self.name()
        if kind < 3:
            yield f"log({self.expression()})"
        elif kind == 3:
            yield f"{one} = w({self.expression()})"
        elif kind == 4:
            yield f"{self.random.choice([f'w.data[{self.expression()}]', f'{one}.held'])} = {self.expression()}"
        elif kind in (5, 6):
            # Names of the function are those of the module, as it may be bound there later only.
            yield from [f"def {one}(*args, key=None):", f"    {', '.join(self.NAMES)} = outer()", *inner, "    return w(len(args))", f"log({one}(1))"]
        elif kind == 7:
            yield from [f"class {one}(W):", *inner, "    def __init__(self, *args): super().__init__(*args)", f"log({one}({other}))"]
        elif kind == 8:
            yield from [f"for {one} in w.items(2):", *inner]
        elif kind == 9:
            yield from ["try:", *inner, f"except ValueError as {one}:", "    pass", f"{one} = w"]
        elif kind == 10:
            yield from [f"with w as {one}:", *inner]
        else:
            yield from [f"if {self.expression()}:", *inner]

    def text(self):
        return "\n".join([f"{', '.join(self.NAMES)} = outer()", "import mod, torchlike" if self.random.random() < 0.5 else "import mod", *self.statements()])


def valid(seed):
    """The first random module of some that Python compiles."""
    for number in range(1000):
        source = Draft(1000 * seed + number).text()
        try:
            compile(source, "program.py", "exec")
            return source
        except SyntaxError:
            pass


class W:
    """An object that random modules call, look up and index."""

    log = []
    data = {}

    def __init__(self, *args):
        self.depth = len(args)

    def __call__(self, *args, key=None):
        W.log.append(("call", len(args), key is None, sys._getframe(1).f_lineno))
        return W(*args)

    def go(self, *args, key=None):
        W.log.append(("go", len(args), key is None, sys._getframe(1).f_lineno))
        return self

    @property
    def inner(self):
        W.log.append("inner")
        return self

    @property
    def held(self):
        return self

    @held.setter
    def held(self, value):
        W.log.append(("held", type(value).__name__, sys._getframe(1).f_lineno))

    def items(self, *args):
        return [W(), W()]

    def __getitem__(self, key):
        W.log.append(("item", sys._getframe(1).f_lineno))
        return self

    def __lt__(self, other):
        return False

    def __enter__(self):
        return self

    def __exit__(self, *args):
        pass


@pytest.mark.parametrize("seed", range(150))
def test_random_modules_do_what_they_say(seed, monkeypatch):
    source = valid(seed)
    module = type(sys)("mod")
    module.go, module.sub = W().go, type(sys)("sub")
    module.sub.go = W().go
    monkeypatch.setitem(sys.modules, "mod", module)
    monkeypatch.setitem(sys.modules, "torchlike", module)
    found = []
    for code in (compile(source, "program.py", "exec"), loading.compiled(source, "program.py")):
        W.log, W.data = [], {}
        lines = W.log
        scope = {"__name__": "program", "W": W, "w": W(), "outer": lambda: [W() for _ in Draft.NAMES], "log": lambda value: lines.append(type(value).__name__)}
        try:
            exec(code, scope)
            lines.append("end")
        except Exception as error:
            at = error.__traceback__
            while at.tb_next is not None:
                at = at.tb_next
            lines.append((type(error).__name__, str(error).partition(" at 0x")[0], at.tb_lineno))
        found.append(lines)
    if found[0][-1][0] == found[1][-1][0] == "RecursionError":
        # How deep it is depends on the frames of property and class.
        found = [lines[:300] for lines in found]
    assert found[0] == found[1] and len(found[0]) > 1, source


PROGRAM = {
    "main.py": """
        import sys
        import numpy as np
        import helpers, package.part
        from elsewhere import kind
        if __name__ == "__main__":
            print(type(np.ones(2)).__module__, kind(np.ones(2)).__module__, helpers.asked(np), package.part.asked(np))
            print(__file__.endswith("main.py"), sys.argv[1:], __name__, __doc__, sys.modules["__main__"].kind is kind)
    """,
    "helpers.py": "import elsewhere\ndef asked(np): return elsewhere.kind(np.ones(2)).__module__",
    "package/__init__.py": "",
    "package/part.py": "from elsewhere import kind\ndef asked(np): return kind(np.ones(2)).__module__",
    "test_it.py": """
        import numpy as np, pytest
        from elsewhere import kind
        import helpers
        def test_kind():
            assert kind(np.ones(2)).__module__ == "numpy" == helpers.asked(np) and type(np.ones(2)).__module__ == "bh"
        def test_text():
            with pytest.raises(AssertionError, match="assert 1 == 2"):
                assert len([kind(1)]) == 2
        @pytest.mark.parametrize("n", [1, 2])
        def test_parameters(n, tmp_path):
            assert n < 3 and tmp_path.exists()
    """,
    "lib/python3/site-packages/elsewhere.py": """
        def kind(value): return type(value)
        def refuse(value, key=None, other=None): raise ValueError(f"{type(key).__name__} of {type(key).__module__}")
    """,
}


@pytest.fixture
def program(tmp_path):
    """A program beside an installed package, and what runs it."""
    for name, text in PROGRAM.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    installed = tmp_path / "lib/python3/site-packages"

    def run(*command, **environment):
        given = {name: value for name, value in os.environ.items() if name not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")}
        path = os.pathsep.join([str(installed), *filter(None, [given.get("PYTHONPATH"), *sys.path])])
        given.update(PYTHONPATH=path, PYTHONUSERBASE=str(tmp_path), **environment)
        return subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=tmp_path, env=given, timeout=LIMIT)

    run.folder = tmp_path
    return run


SHOWN = "bh numpy numpy numpy\n"


def test_scripts_and_modules_and_folders_run_so(program):
    for command in (["main.py", "one"], ["-m", "main", "one"]):
        ended = program("-m", "bh", *command)
        assert ended.stdout == SHOWN + "True ['one'] __main__ None True\n", ended.stderr
    (program.folder / "__main__.py").write_text("import main\nfrom elsewhere import kind\nimport numpy\nprint(kind(numpy.ones(2)).__module__)")
    assert program("-m", "bh", str(program.folder)).stdout == "numpy\n"


def test_one_variable_leaves_all_code_as_it_is(program):
    ended = program("-m", "bh", "main.py", BH_SEE="off")
    assert ended.stdout.startswith("bh bh bh bh\n"), ended.stderr


def test_code_is_kept_beside_that_of_python(program):
    cache = program.folder / "__pycache__"
    program("main.py")
    assert program("-m", "bh", "main.py").stdout.startswith(SHOWN)
    names = sorted(path.name for path in cache.iterdir())
    tag = sys.implementation.cache_tag
    assert names == [f"helpers.{tag}.opt-0bh{loading._FORM}.pyc", f"helpers.{tag}.pyc"]
    (kept,) = cache.glob("*bh*")
    before = kept.stat().st_mtime_ns
    assert program("-m", "bh", "main.py").stdout.startswith(SHOWN) and kept.stat().st_mtime_ns == before
    (program.folder / "helpers.py").write_text("def asked(np): return 'changed'")
    assert "changed" in program("-m", "bh", "main.py").stdout
    kept.write_bytes(kept.read_bytes()[:20])
    assert "changed" in program("-m", "bh", "main.py").stdout
    assert "changed" in program("main.py").stdout


def test_tests_of_pytest_are_written_so_too(program):
    for _ in range(2):
        ended = program("-m", "bh", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
        assert "4 passed" in ended.stdout, ended.stdout + ended.stderr
    names = [path.name for path in (program.folder / "__pycache__").glob("test_it*")]
    assert names and all(f"-bh{loading._FORM}" in name for name in names)
    ended = program("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    assert "1 failed" in ended.stdout and "3 passed" in ended.stdout


REFUSED = """
import bh as np
import elsewhere

def main():
    x = np.ones(3)
    return elsewhere.refuse([x, 1], key=x, other=2)

main()
"""


def test_errors_of_other_packages_name_the_line_to_write(program):
    (program.folder / "refused.py").write_text(REFUSED)
    note = "or write: elsewhere.refuse([numpy.asarray(x), 1], key=numpy.asarray(x), other=2)"
    assert program("refused.py").stderr.strip().endswith(note)
    assert program("-m", "bh", "refused.py").stderr.strip().endswith("ValueError: ndarray of numpy")
    (program.folder / "other.py").write_text("import bh, elsewhere\nx = bh.ones(3)\nelsewhere.refuse(1)")
    assert "write" not in program("other.py").stderr


CELLS = """
import bh
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
bh.load_ipython_extension(shell)
bh.load_ipython_extension(shell)
shell.user_ns.update(looked=None, seen=None)
shell.run_cell("import time, bh as np\\ndef wait(x): return time.sleep(x)")
shell.run_cell("from datetime import timedelta\\nseen = wait(np.zeros(100_000).sum()), timedelta(seconds=np.ones(60_000).sum())")
shell.run_cell_magic("bh", "", "import numpy, math\\nfrom json import dumps\\nlooked = math.sqrt(numpy.ones(4).sum()), dumps(1)")
print(shell.user_ns["looked"], shell.user_ns["seen"], len(shell.ast_transformers))
"""


def test_cells_of_ipython_are_written_so(program):
    pytest.importorskip("IPython")
    ended = program("-c", CELLS)
    assert ended.stdout == "(2.0, '1') (None, datetime.timedelta(seconds=60000)) 1\n", ended.stderr


def test_functions_that_are_packed_need_no_names_of_ours():
    from bh._cluster import functions

    scope = {"__name__": "__main__", "np": bh}
    exec(loading.compiled("from math import sqrt\ndef f(x, g=abs): return sqrt(x) + g(x) + x.__abs__() + np.abs(x)", "program.py"), scope)
    assert functions.unpack(functions.pack(scope["f"]), bh)(4) == 14


def test_jitted_functions_see_changes_and_no_sites():
    scope = {"__name__": "program", "np": bh, "bh": bh}
    exec(loading.compiled("factor = 2\ndef scaled(x): return x * factor\ndef f(x): return np.sqrt(scaled(x)).sum()\ng = bh.jit(f)", "program.py"), scope)
    x = bh.arange(9.0)
    for factor in (2, 2, 8, 8):
        scope["factor"] = factor
        assert float(scope["g"](x)) == pytest.approx(float(bh.sqrt(x * factor).sum()))
