"""A sample of random programs with jitted functions whose surroundings change; more of them: `python -m soaking.jitted`."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from soaking import jitted  # noqa: E402

# How many programs; more for longer runs.
PROGRAMS = int(os.environ.get("BH_TEST_PROGRAMS", "100"))


@pytest.mark.falls_back
def test_random_jitted_programs():
    assert not list(jitted.differences(1, PROGRAMS))


@pytest.mark.falls_back
def test_what_a_guard_misses_is_found(monkeypatch):
    monkeypatch.setattr("bh._jit.outer_reads.Outside._value", lambda self, path, text, value: self._note(path, text, len(path), self.SAME))
    assert list(jitted.differences(1, 30))
