"""The modules of the package import each other in one direction, also within functions, and late ones when programs ask for them."""

import ast
import graphlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import bh
from conftest import LIMIT


def test_modules_have_no_circles():
    folder = Path(bh.__file__).parent
    paths = {"bh." + ".".join(path.relative_to(folder).with_suffix("").parts): path for path in folder.rglob("*.py")}
    paths = {name.removesuffix(".__init__"): path for name, path in paths.items() if name != "bh.__init__"}
    graph = {}
    for name, path in paths.items():
        room = name if path.stem == "__init__" else name.rpartition(".")[0]
        graph[name] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                source = importlib.util.resolve_name("." * node.level + (node.module or ""), room)
                parts = {f"{source}.{alias.name}" for alias in node.names}
                graph[name] |= (parts & paths.keys() or {source} & paths.keys()) - {name}
    graphlib.TopologicalSorter(graph).prepare()


def test_rooms_say_what_belongs_there():
    for path in Path(bh.__file__).parent.rglob("__init__.py"):
        assert len(ast.get_docstring(ast.parse(path.read_text()))) > 40, path


def printed(program):
    """The output of a program in a process of its own."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=LIMIT).stdout.split()


def test_an_import_brings_no_more_than_programs_need():
    late = "numpy.fft numpy.random bh.fft bh.random bh._graph.graph bh._jit.recording bh._jit.derivatives bh._jit.scalar.program dataclasses json pathlib subprocess tempfile"
    assert printed(f"import sys, numpy\nbefore = set(sys.modules)\nimport bh\nprint(*(set(sys.modules) - before) & {set(late.split())})") == []


def test_the_directories_of_libraries_are_found_without_imports():
    # An import would ask for these directories before they are known.
    program = "import sys, bh\nfrom bh._numpy import imports\nbefore = set(sys.modules)\nimports._installed()\nprint(*set(sys.modules) - before)"
    assert printed(program) == []


@pytest.mark.parametrize(
    "first",
    ["numpy.fft.fft(a)", "np.fft", "np.random", "numpy.random", "np.fft.fft(a)", "import bh.fft", "import numpy.fft", "from bh import *", "from bh import fft, random"],
)
def test_late_modules_come_in_any_order(first):
    program = f"""
import numpy, bh as np
a = np.arange(4.0)
{first}
import json
print(type(numpy.fft.fft(a)) is np.ndarray is type(np.fft.fft(a)) is type(np.random.rand(3)), json.dumps(np.arange(4.0).sum()))
"""
    assert printed(program) == ["True", "6.0"]


def test_late_names_are_like_others():
    # The oldest entry is the package's own list.
    for name, module in bh._LATE.items():
        assert name in dir(bh) and name in bh.__all__
        assert getattr(bh, name).__name__ == (name if module else f"bh.{name}")
    assert {kind.__module__ for kind in (bh.GraphError, bh.CheckpointError, bh.custom_jvp, bh.custom_vjp)} == {"bh"}


def test_modules_of_numpy_that_dir_leaves_out():
    assert "version" not in dir(numpy) and bh.version.version == numpy.__version__
    with pytest.raises(AttributeError, match="module 'bh' has no attribute 'versions'"):
        bh.versions
