"""The net of random programs: a sample of it, and that it finds, shrinks and places what is wrong."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import bh

sys.path.insert(0, str(Path(__file__).parent))
import soak  # noqa: E402
from soaking import judge, programs, settings, shrink  # noqa: E402

# How many programs of how many seeds; more for longer runs.
PROGRAMS = int(os.environ.get("BH_TEST_PROGRAMS", "100"))


def test_programs_are_those_of_their_seeds():
    assert programs.program(11) == programs.program(11) != programs.program(12)
    # In other processes, too, where hashes of texts are others.
    command = "from soaking import programs, settings; print(programs.program(11).text, settings.pairwise_stacks())"
    said = set()
    for seed in ("1", "2"):
        path = os.pathsep.join(map(os.path.abspath, [Path(__file__).parent, *filter(None, sys.path)]))
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
        said.add(subprocess.run([sys.executable, "-c", command], env=environment, capture_output=True, text=True, check=True).stdout)
    assert said == {f"{programs.program(11).text} {settings.pairwise_stacks()}\n"}


@pytest.mark.parametrize("names", [["default", "full", "direct", "two-threads", "small-caches", "tiles"], ["cluster-2", "cluster-3", "cluster-5"], ["compiled"]])
def test_random_programs(names, tmp_path):
    found = soak.Soak(tmp_path / "report.json")
    count = PROGRAMS if names != ["compiled"] else PROGRAMS // 10
    found.round(soak.chosen(names), {}, 1, count, 600, often=True)
    assert not found.findings
    assert found.runs == dict.fromkeys(names, count)


@pytest.mark.parametrize("names", [["tiles", "tiles-5", "cluster-tiles-2", "cluster-tiles-3"], ["opencl-tiles-4"]])
def test_recipes_beside_tiles(names, tmp_path):
    if "opencl-tiles-4" in names and not Path("/etc/OpenCL/vendors/pocl.icd").exists():
        pytest.skip("no OpenCL on processors")
    found = soak.Soak(tmp_path / "report.json")
    # Compilers of devices take long.
    count = PROGRAMS // 2 if "tiles" in names else PROGRAMS // 10
    found.round(soak.chosen(names), {"recipes": "always"}, 1, count, 600, often=True)
    assert not found.findings
    assert found.runs == dict.fromkeys(names, count)


def test_random_programs_pairwise(tmp_path):
    found, pairs = soak.Soak(tmp_path / "report.json"), settings.pairwise_stacks()
    some = {name: {**pairs[name], "ve-cpu": {**pairs[name]["ve-cpu"], "jit": "off"}} for name in list(pairs)[:8]}
    found.round(some, {"max_instructions": 40, "small_bytes": 512}, 1, PROGRAMS // 2, 600)
    assert not found.findings


def test_an_error_is_found_made_small_and_placed(monkeypatch):
    right = bh.cumsum
    monkeypatch.setattr(bh, "cumsum", lambda *arguments, **named: right(*arguments, **named) + 1)
    stack = bh.Stack().name
    wrong = [(program, failure) for program in map(programs.program, range(1, 120)) if (failure := judge.verdict(program, stack))]
    assert wrong
    for program, _ in wrong[:3]:
        small, failure = shrink.shrunk(program, stack)
        assert len(small.statements) <= 5, small.text
        assert "cumsum" in shrink.line_of(small, failure)


def test_an_exception_is_a_finding(monkeypatch):
    def refuse(*_, **__):
        raise MemoryError("no memory")

    monkeypatch.setattr(bh, "roll", refuse)
    program = programs.Program(0, ("v1 = data(1, (4,), 'float64')", "v2 = np.roll(v1, 1)"), {}, {})
    assert judge.verdict(program, bh.Stack().name) == "MemoryError: no memory"


def test_rounding_is_allowed_only_where_it_happens():
    program = programs.Program(0, (), {"v1": 1e-11}, {"v1": 100.0, "v2": 100.0})
    right = {"v1": numpy.array([100.0]), "v2": numpy.array([100.0])}
    near = {name: value * (1 + 1e-15) + 1e-13 for name, value in right.items()}
    assert judge.difference(program, {**right, "v1": near["v1"]}, right) is None
    assert judge.difference(program, {**right, "v2": near["v2"]}, right).startswith("v2: 1 of 1 differ")
    assert judge.difference(program, {**right, "v1": right["v1"] + 1e-8}, right).startswith("v1")
    assert "type" in judge.difference(program, {**right, "v2": numpy.array([100])}, right)


def test_every_value_of_a_key_meets_every_value_of_the_others():
    rows = settings.pairwise()
    for one, other in itertools.combinations(settings.KEYS, 2):
        met = {(str(row[one]), str(row[other])) for row in rows}
        assert len(met) == len(settings.KEYS[one]) * len(settings.KEYS[other])
    assert len(rows) < 60
