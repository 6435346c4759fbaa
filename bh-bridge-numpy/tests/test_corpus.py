"""The programs of benches/corpus, small, give on bh what they give on NumPy: as users run them, and with everything recorded and planned."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from conftest import LIMIT

CORPUS = Path(__file__).resolve().parents[2] / "benches" / "corpus"
sys.path.insert(0, str(CORPUS))

import programs

# Fallbacks of some functions to NumPy are no error here: the corpus names them in its table.
pytestmark = pytest.mark.falls_back

# Prints what differs, by program, in a process whose settings do not allow operations at once nor batches that are not planned.
RECORDED = f"""
import json, sys
sys.path.insert(0, {str(CORPUS)!r})
import programs
print(json.dumps({{name: programs.compared(name) for name in programs.names()}}))
"""


@pytest.mark.parametrize("name", programs.names())
def test_results_are_numpys(name):
    assert programs.compared(name) is None


@pytest.fixture(scope="module")
def recorded():
    """The differences, by program, where everything is recorded and planned."""
    settings = {"BH_RECORDER_IMMEDIATE_BYTES": "0", "BH_VE_CPU_PLANNING": "full", "BH_FALLBACK": "silent"}
    done = subprocess.run([sys.executable, "-c", RECORDED], env=os.environ | settings, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", programs.names())
def test_recorded_results_are_numpys(name, recorded):
    assert recorded[name] is None


@pytest.mark.parametrize("name", programs.names())
def test_programs_are_documented(name):
    """Each says what it does and where it is from, has both sizes, and knows nothing of bh."""
    text = programs.path(name, "numpy").read_text()
    documentation = text.partition('"""')[2].partition('"""')[0]
    assert "\n\nSource: " in documentation
    assert set(programs.Program(name, "numpy").sizes) == set(programs.SIZES)
    assert "import bh" not in text


def test_there_are_many_programs_and_rivals():
    assert len(programs.names()) >= 80
    assert sum(programs.path(name, form).exists() for name in programs.names() for form in programs.OWN) >= 15


def test_differences_are_found():
    one = [numpy.array([1.0, 2.0]), numpy.array(3)]
    near = [numpy.array([1.0, 2.0 + 1e-8]), numpy.array(3)]
    assert programs.difference(one, one) is None
    assert programs.difference(near, one, 1e-7) is None
    wrong = [near, [numpy.array([1.0, numpy.nan]), one[1]], [one[0].astype(numpy.float32), one[1]], [one[0], numpy.array(4)], one[:1]]
    assert all(programs.difference(results, one) for results in wrong)
