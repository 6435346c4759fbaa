"""The type stubs: as the package is, and of use to a type checker."""

import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import bh
from bh import _stubs

USE = """import bh as np
x = np.arange(6.0).reshape(2, 3)
y: np.ndarray = (x * 2 + 1) @ x.T
rank: int = y.ndim
total: float = float(np.sum(y))
z = np.linalg.solve(y, np.ones(2))
"""


@pytest.mark.skipif(numpy.__version__ != "2.4.6", reason="the stubs are those for NumPy 2.4.6")
def test_stubs_are_current():
    text = (Path(__file__).resolve().parents[1] / "python" / "bh" / "__init__.pyi").read_text()
    assert text == _stubs.stubs(), "run: python -m bh._stubs > bh-bridge-numpy/python/bh/__init__.pyi"
    compile(text, "__init__.pyi", "exec")


def test_a_type_checker_understands_them(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "right.py").write_text(USE)
    (tmp_path / "wrong.py").write_text(USE + "wrong: str = y.ndim\n")
    check = lambda name: subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports", "silent", "--cache-dir", tmp_path / "cache", tmp_path / name],
        capture_output=True, text=True, timeout=100, env={"PATH": "", "MYPYPATH": str(Path(bh.__file__).parents[1])},
    )  # fmt: skip
    right, wrong = check("right.py"), check("wrong.py")
    assert right.returncode == 0, right.stdout
    assert wrong.returncode == 1 and '"str"' in wrong.stdout
