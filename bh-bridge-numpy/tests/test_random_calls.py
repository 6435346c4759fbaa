"""A sample of single random calls, each compared with NumPy's; more of them: `python -m soaking.calls`."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from soaking import calls  # noqa: E402

# How many calls; more for longer runs.
CALLS = 10 * int(os.environ.get("BH_TEST_PROGRAMS", "100"))


@pytest.mark.falls_back
def test_random_calls():
    assert not list(calls.differences(1, CALLS, strict=False))


@pytest.mark.falls_back
def test_differences_are_found(monkeypatch):
    right = calls.bh.clip
    monkeypatch.setattr(calls.bh, "clip", lambda a, *limits: right(a, *limits) + 0.5)
    assert any("np.clip" in text for _, _, text, _, _ in calls.differences(1, 1000))
