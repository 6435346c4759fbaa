"""The suite itself: no test is there that never runs, and limits of time are long."""

import ast
import collections
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(Path(__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_function_hides_another(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, (ast.Module, ast.ClassDef)):
            made = [inner for inner in node.body if isinstance(inner, (ast.FunctionDef, ast.ClassDef))]
            # The parts of a property have one name.
            setters = [inner for inner in made if any(isinstance(one, ast.Attribute) and one.attr == "setter" for one in inner.decorator_list)]
            names = collections.Counter(inner.name for inner in made if inner not in setters)
            assert not [name for name, count in names.items() if count > 1]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_tests_are_where_they_are_collected(file):
    if not file.stem.startswith("test_"):
        made = [node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)]
        assert not [name for name in made if name.startswith("test_")]


def manifests():
    """The manifests of this repository's crates."""
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    return [ROOT / crate / "Cargo.toml" for crate in (*workspace["members"], *workspace["exclude"])]


def test_crates_without_a_test_program_have_no_tests():
    for manifest in manifests():
        described = tomllib.loads(manifest.read_text())
        if described.get("lib", {}).get("test", True) and manifest.parent.name not in ("mpi", "fuzz"):
            continue
        for source in manifest.parent.rglob("*.rs"):
            assert not re.search(r"#\[(test|cfg\(test\))\]", source.read_text()), f"{source}: no test program is made of this crate"


def test_limits_of_time_are_against_hangs_only():
    for file in FILES:
        short = [limit for limit in re.findall(r"timeout=([0-9.]+)", file.read_text()) if float(limit) < 60]
        assert not short, f"{file}: take LIMIT of conftest"
