"""The programs of benches/functional, small, give on bh what they give on NumPy: as users run them, and with everything recorded."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import bh
import numpy
import pytest
from conftest import LIMIT

PLACE = Path(__file__).resolve().parents[2] / "benches" / "functional" / "programs.py"

# Fallbacks of some functions to NumPy are no error here.
pytestmark = pytest.mark.falls_back


def load():
    """The programs' module, whose name other benches use, too."""
    spec = importlib.util.spec_from_file_location("functional_programs", PLACE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PROGRAMS


PROGRAMS = load()


def after(np, asarray, program, steps=3):
    """The state after some steps, as NumPy's arrays."""
    state = tuple(asarray(array) for array in program.start(numpy.random.default_rng(5), program.little))
    for _ in range(steps):
        state = program.step(np, *state)
    return [numpy.asarray(array) for array in state]


def differing():
    """The programs that give other values than on NumPy."""
    names = []
    for name, program in PROGRAMS.items():
        own, theirs = after(bh, bh.array, program), after(numpy, numpy.array, program)
        if not all(a.dtype == b.dtype and a.shape == b.shape and numpy.allclose(a, b, 1e-5 if a.dtype == "f4" else 1e-9, 1e-9) for a, b in zip(own, theirs, strict=True)):
            names.append(name)
    return names


def test_results_are_numpys():
    assert differing() == []


def test_results_are_numpys_where_everything_is_recorded_and_planned():
    settings = {"BH_RECORDER_IMMEDIATE_BYTES": "0", "BH_VE_CPU_PLANNING": "full", "BH_FALLBACK": "silent"}
    program = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\nimport json, test_functional\nprint(json.dumps(test_functional.differing()))"
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | settings, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == []
