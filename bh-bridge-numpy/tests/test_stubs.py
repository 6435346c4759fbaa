"""The type stubs: as the package is, and of use to a type checker."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import bh
from bh._tools import stubs
from conftest import LIMIT

USE = """import bh as np

def heat(size: int, steps: int) -> np.ndarray:
    grid = np.zeros((size, size))
    grid[0] = 40.0
    for _ in range(steps):
        grid[1:-1, 1:-1] = 0.25 * (grid[:-2, 1:-1] + grid[2:, 1:-1])
    return grid

def price(spot: np.ndarray, strike: float) -> float:
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
"""
WRONG = """
wrong: str = y.ndim
worse: int = heat(3, 4)
heat("a", 2)
"""


@pytest.mark.skipif(numpy.__version__ != "2.4.6", reason="the stubs are those for NumPy 2.4.6")
def test_stubs_are_current():
    package = Path(__file__).resolve().parents[1] / "python" / "bh"
    for name, text in stubs.files().items():
        assert text == (package / name).read_text(), "run: python -m bh._tools.stubs bh-bridge-numpy/python/bh"
        compile(text, name, "exec")


def judged(command, folder, **environment):
    """What a type checker finds in the right program and in the wrong one."""
    (folder / "right.py").write_text(USE)
    (folder / "wrong.py").write_text(USE + WRONG)
    check = lambda name: subprocess.run([sys.executable, "-m", *command, name], cwd=folder, capture_output=True, text=True, timeout=LIMIT, env=environment)
    return check("right.py"), check("wrong.py")


def test_mypy_understands_them(tmp_path):
    pytest.importorskip("mypy")
    options = ["mypy", "--strict", "--follow-imports", "silent", "--cache-dir", tmp_path / "cache"]
    right, wrong = judged(options, tmp_path, PATH="", MYPYPATH=str(Path(bh.__file__).parents[1]))
    assert right.returncode == 0, right.stdout
    assert wrong.returncode == 1 and wrong.stdout.count(": error:") == 3, wrong.stdout


def test_pyright_understands_them(tmp_path):
    pytest.importorskip("pyright")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(Path(bh.__file__).parents[1])]}))
    right, wrong = judged(["pyright"], tmp_path, **os.environ)
    if "rror" not in wrong.stdout:
        pytest.skip("pyright cannot be fetched: " + wrong.stderr)
    assert right.returncode == 0, right.stdout
    assert wrong.returncode == 1 and "3 errors" in wrong.stdout, wrong.stdout
