"""The programs of `examples/python` run by themselves, on the default stack, on ranks and with devices where there are some; what they assert holds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LIMIT

FOLDER = Path(__file__).resolve().parents[2] / "examples/python"
# Sizes that take a moment.
SIZES = {
    "conductivity": 20, "drum": 40, "ensemble": 50, "gpu_galaxy": 150, "heat_on_ranks": 60, "kdv": 128, "larger_than_memory": 2000,
    "newton_fractal": 60, "two_spirals": 60,
}  # fmt: skip

# A substitute for Matplotlib, with which programs draw.
DRAWING = "from unittest.mock import MagicMock\n\n\ndef subplots():\n    return MagicMock(), MagicMock()\n"


def run(name, folder, **environment):
    (folder / "matplotlib").mkdir()
    (folder / "matplotlib/__init__.py").write_text("")
    (folder / "matplotlib/pyplot.py").write_text(DRAWING)
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    command = [sys.executable, "-W", "error::UserWarning", FOLDER / f"{name}.py", str(SIZES[name])]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env={**os.environ, "PYTHONPATH": path, **environment})


def test_each_program_has_a_size():
    assert sorted(SIZES) == sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("name", SIZES)
def test_programs_run_by_themselves(name, tmp_path):
    ended = run(name, tmp_path, BH_FALLBACK="error")
    assert ended.returncode == 0 and ended.stdout, ended.stderr


@pytest.mark.parametrize("name", ["conductivity", "heat_on_ranks", "two_spirals"])
def test_programs_run_on_ranks(name, tmp_path):
    (tmp_path / "ranks.toml").write_text('[stacks]\ndefault = "ranks"\nranks = ["filter", "cluster", "fuser", "node", "ve-cpu"]\n[components.cluster]\nranks = 3\nsmall_bytes = 0\n')
    ended = run(name, tmp_path, BH_CONFIG=str(tmp_path / "ranks.toml"))
    assert ended.returncode == 0 and ended.stdout, ended.stderr
