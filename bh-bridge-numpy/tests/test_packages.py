"""Packages with compiled code: statements of programs that use them give with bh what they give with NumPy."""

import importlib.metadata
import importlib.util
import math
import os
import pickle
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from bh._numpy import libraries
from conftest import LIMIT

FOLDER = Path(__file__).parent / "packages"
PACKAGES = tomllib.loads((FOLDER / "statements.toml").read_text())
TAUGHT = tomllib.loads((FOLDER / "taught.toml").read_text())

# Variables of the caller that DuckDB finds itself cannot be shown to it in another way.
UNSEEN = {("duckdb", 4)}


def values(command, package, file, *options):
    """The values of the package's statements, or their errors."""
    environment = {**os.environ, "BH_FALLBACK": "silent", "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, *command, str(FOLDER / "run.py"), package, str(file), *options]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=LIMIT)
    assert not ended.returncode, ended.stderr
    return pickle.loads(file.read_bytes())


def agree(one, other):
    """Are two values equal, but for rounding?"""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(agree(one[name], other[name]) for name in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(agree, one, other))
    if isinstance(one, float) or isinstance(other, float):
        numbers = isinstance(one, (int, float)) and isinstance(other, (int, float))
        return numbers and (math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9) or one != one and other != other)
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def is_here(name):
    """Is a package installed?"""
    names = [name] if "version" in PACKAGES[name] else []
    try:
        return all(map(importlib.metadata.version, names + [one.partition("==")[0] for one in PACKAGES[name].get("needs", [])]))
    except importlib.metadata.PackageNotFoundError:
        return False


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_do_with_bh_what_they_do_with_numpy(package, tmp_path):
    if not is_here(package):
        pytest.skip("it is not installed")
    expected = values([], package, tmp_path / "numpy")
    found = values(["-m", "bh"], package, tmp_path / "bh")
    wrong = []
    for at, (statement, (kind, one), (mine, other)) in enumerate(zip(PACKAGES[package]["statements"], expected, found, strict=True)):
        assert kind == "value", f"with NumPy: {statement}: {one}"
        if (package, at) not in UNSEEN and (mine != "value" or not agree(one, other)):
            wrong.append(f"{statement}\n    NumPy: {one}\n    bh: {other}")
    assert not wrong, "\n".join(wrong)


def test_packages_have_five_statements_each():
    assert all(len(package["statements"]) == 5 for package in PACKAGES.values()) and len(PACKAGES) >= 40
    assert sum(package.get("often", False) for package in PACKAGES.values()) >= 10


@pytest.mark.parametrize("library", libraries.LIBRARIES)
def test_scripts_that_import_bh_need_each_row_of_the_table(library, tmp_path):
    if importlib.util.find_spec(library.partition(".")[0]) is None:
        pytest.skip("it is not installed")
    ((kind, expected),) = values([], library, tmp_path / "numpy", "numpy")
    assert kind == "value", expected
    ((kind, found),) = values([], library, tmp_path / "bh", "bh")
    assert kind == "value" and agree(expected, found), found
    ((kind, found),) = values([], library, tmp_path / "without", "bh", library)
    assert kind == "error" or not agree(expected, found), "it works without its row"


def test_each_row_of_the_table_has_a_statement():
    assert list(libraries.LIBRARIES) == list(TAUGHT)
