"""The type stubs: as the package is, and of use to a type checker."""

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import bh
from bh._tools import stubs
from conftest import LIMIT

RIGHT = """import bh as np
from numpy.typing import NDArray

def heat(size: int, steps: int) -> np.ndarray:
    grid = np.zeros((size, size))
    grid[0] = 40.0
    for _ in range(steps):
        grid[1:-1, 1:-1] = 0.25 * (grid[:-2, 1:-1] + grid[2:, 1:-1])
    return grid

def price(spot: NDArray[np.float64], strike: float) -> float:
    d = np.log(spot / strike)
    return float(np.sum(spot * np.where(d < 0, np.exp(-d), 1 - d))) / spot.size

x = np.arange(6.0).reshape(2, 3)
y: np.ndarray = (x * 2 + 1) @ x.T
rank: int = y.ndim
rows, columns = heat(10, 2).shape
z = np.linalg.solve(y, np.ones(2))
drawn = np.random.default_rng(3).normal(size=100)
drawn += 1
print(drawn[drawn > 0], np.fft.fft(z).real, -y, 2**y, ~(y > 0), np.concatenate([z, z]).astype(np.float32).dtype)
with np.using("cpu"):
    print(price(np.linspace(50.0, 70.0, 10), 60.0), np.explain(), np.newaxis, np.pi)
for row in y:
    print(len(row), int(row[0]), bool(row[0] > 1), abs(row), row.mean(axis=0))

@np.jit(traced="dt")
def step(u: NDArray[np.float64], dt: float) -> NDArray[np.float64]:
    return u + dt

@np.jit
def square(u: NDArray[np.float64]) -> NDArray[np.float64]:
    return u * u

def loss(w: NDArray[np.float64]) -> np.float64:
    return np.float64(w @ w)

more: NDArray[np.float64] = step(np.ones(3), 0.5)
slope = np.grad(loss)(np.ones(3))
value, slope = np.value_and_grad(loss)(np.ones(3))
many = np.vmap(square)(np.ones((2, 3)))
graph = np.source([np.ones(3)]) >> np.task(np.mean) >> np.sink(print)
graph.run()
print(step.traces, np.threads(), np.doctor(), np.stacks(), [part for part in np.stream(np.sum, [np.ones(2)])], np.info())
"""

# Mistakes in calls of NumPy's functions, of which a type checker finds all or all but one with NumPy's stubs, and in calls of what only bh has.
WRONG = """import bh as np
from numpy.typing import NDArray
x = np.arange(6.0).reshape(2, 3)
y: NDArray[np.float64] = np.ones((2, 2))
a: str = y.ndim
b: NDArray[np.float64] = np.zeros(3, dtype=np.int64)
c = np.zeroes(3)
d = np.sum(x, axes=0)
e = np.add(x)
f = x.reshap(3)
g = np.linalg.solve(y)
h = np.random.default_rng(1).normal(sise=3)
i: int = np.linspace(0, 1, 5)
j = np.sqrt(x, 1, 2, 3)
k = np.fft.fft(x, norm="orthogonal")
l = np.concatenate(3)
"""
OWN = """import bh as np
from numpy.typing import NDArray
@np.jit
def square(u: NDArray[np.float64]) -> NDArray[np.float64]:
    return u * u
square("text")
square(np.ones(3), 2)
np.doctor("xml")
np.threads("four")
np.wiat(np.ones(3))
"""
MISTAKES, OWN_MISTAKES = 12, [6, 7, 8, 9, 10]


@pytest.mark.skipif(numpy.__version__ != "2.4.6", reason="the stubs name what NumPy 2.4.6 has")
def test_stubs_are_current():
    package = Path(__file__).resolve().parents[1] / "python" / "bh"
    for name, text in stubs.files().items():
        assert text == (package / name).read_text(), "run: python -m bh._tools.stubs bh-bridge-numpy/python/bh"
        compile(text, name, "exec")


def test_stubs_have_what_only_bh_has():
    nodes = [node for node in ast.parse(stubs.stubs()).body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")]
    assert {node.name for node in nodes} == stubs.public() | {"info"}
    for node in nodes:
        value = getattr(bh, node.name)
        if isinstance(node, ast.FunctionDef):
            names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, node.args.vararg, *node.args.kwonlyargs, node.args.kwarg) if one]
            assert names == list(inspect.signature(value).parameters), node.name
        else:
            bases = {ast.unparse(base).partition("[")[0] for base in node.bases} & {*dir(bh), "RuntimeError", "UserWarning"}
            assert bases <= {base.__name__ for base in value.__mro__}
            assert all(hasattr(value, one.name) for one in node.body if isinstance(one, ast.FunctionDef)), node.name


def findings(command, folder, text, **environment):
    """The lines of a program in which a type checker finds mistakes, and what it says."""
    (folder / "program.py").write_text(text)
    command = [sys.executable, "-m", *command, "program.py"]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT, env=environment)
    lines = re.findall(r"program\.py:(\d+):(?:\d+)?(?: -)? error", said.stdout)
    return sorted(set(map(int, lines))), said.stdout + said.stderr


def judge(command, folder, **environment):
    """Has a type checker look at the programs."""
    found, said = findings(command, folder, RIGHT, **environment)
    assert not found and "error:" not in said, said
    with_numpy, _ = findings(command, folder, WRONG.replace("bh", "numpy"), **environment)
    found, said = findings(command, folder, WRONG, **environment)
    assert found == with_numpy and len(found) >= MISTAKES - 1, said
    found, said = findings(command, folder, OWN, **environment)
    assert found == OWN_MISTAKES, said


def test_mypy_understands_them(tmp_path):
    pytest.importorskip("mypy")
    command = ["mypy", "--strict", "--follow-imports", "silent", "--cache-dir", tmp_path / "cache"]
    judge(command, tmp_path, PATH="", MYPYPATH=str(Path(bh.__file__).parents[1]))


def test_pyright_understands_them(tmp_path):
    pytest.importorskip("pyright")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(Path(module.__file__).parents[1]) for module in (bh, numpy)]}))
    found, said = findings(["pyright"], tmp_path, WRONG, **os.environ)
    if not found:
        pytest.skip("pyright cannot be fetched: " + said)
    judge(["pyright"], tmp_path, **os.environ)


# Files of NumPy's own tests of its stubs that are about modules which bh has not, and `info`, which is another function.
OTHERS = {"modules", "lib_utils"}


def test_numpys_own_tests_of_stubs_find_nothing_more(tmp_path):
    pytest.importorskip("mypy")
    data = Path(numpy.__file__).parent / "typing/tests/data"
    if not data.is_dir():
        pytest.skip("this NumPy has no tests of its stubs")
    found = []
    for name in ("numpy", "bh"):
        (tmp_path / name).mkdir()
        for kind in ("pass", "fail", "reveal"):
            for file in sorted((data / kind).glob("*.py*")):
                if file.stem not in OTHERS:
                    text = re.sub(r"^import numpy as np$", f"import {name} as np", file.read_text(), flags=re.M)
                    (tmp_path / name / f"{kind}_{file.name}").write_text(text)
        command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports", "silent", "--cache-dir", tmp_path / "cache", "."]
        environment = {"PATH": "", "MYPYPATH": str(Path(bh.__file__).parents[1])}
        said = subprocess.run(command, cwd=tmp_path / name, capture_output=True, text=True, timeout=LIMIT, env=environment)
        assert "checked " in said.stdout, said.stderr
        found.append(set(re.findall(r"^(.*:\d+): error", said.stdout, re.M)))
    assert sorted(found[1] - found[0]) == []
