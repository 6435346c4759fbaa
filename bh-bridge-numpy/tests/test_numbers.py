"""Results without dimensions that are still pending pass for numbers where programs take numbers."""

import datetime
import fractions
import json
import math
import numbers
import subprocess
import sys

import numpy
import pytest
from pytest import approx

import bh as np


def mean():
    """A number that waits to be computed: 49999.5."""
    result = (np.arange(100000.0) * 1.0).mean()
    assert type(result) is np.ndarray
    return result


def count():
    """A whole number that waits to be computed: 3."""
    result = np.sum(np.arange(100000) < 3)
    assert type(result) is np.ndarray
    return result


@pytest.mark.parametrize("options", [{}, {"indent": 1}, {"sort_keys": True}])
def test_json_writes_them(options, tmp_path):
    written = json.dumps({"a": mean(), "b": [1, mean(), {"c": (mean(),)}]}, **options)
    assert json.loads(written) == {"a": 49999.5, "b": [1, 49999.5, {"c": [49999.5]}]}
    with open(tmp_path / "a.json", "w") as file:
        json.dump([mean()], file, **options)
    assert json.loads((tmp_path / "a.json").read_text()) == [49999.5]


def test_json_knows_no_more_than_before():
    for value in (object(), numpy.int64(3), count(), np.ones(3), np.float32(2)):
        with pytest.raises(TypeError, match="is not JSON serializable"):
            json.dumps([value])


def test_approx_takes_them():
    assert mean() == approx(49999.5) and 49999.5 == approx(mean()) and mean() == approx(mean(), rel=1e-3)
    assert 49998 != approx(mean()) and [49999.5, 1.0] == approx([mean(), 1.0]) and {"a": mean()} == approx({"a": mean()})
    assert "49999.5" in repr(approx(mean()))


def test_what_asks_for_numbers_takes_them():
    assert isinstance(mean(), float) and isinstance(mean(), numbers.Real) and isinstance(count(), numbers.Integral)
    assert round(mean(), 1) == 49999.5 and math.trunc(mean()) == 49999 and math.fsum([mean()] * 2) == 99999.0
    assert [0] * count() == [0, 0, 0] and "ab" * count() == "ababab" and list(range(count())) == [0, 1, 2]
    assert "%d %.1f" % (mean(), mean()) == "49999 49999.5" and f"{mean():.2f} {count():d}" == "49999.50 3"
    assert numpy.float64(mean()) == 49999.5 and fractions.Fraction(count(), 2) == fractions.Fraction(3, 2)
    assert datetime.timedelta(seconds=float(mean())) == datetime.timedelta(seconds=1) * mean()


@pytest.mark.parametrize("order", ["import bh, pytest", "import pytest, bh"])
def test_approx_knows_pending_results_whoever_is_imported_first(order):
    lines = f"{order}; s = bh.ones(100000).sum(); assert 1e5 == pytest.approx(s); assert s == pytest.approx(1e5); print('fine')"
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True)
    assert done.stdout == "fine\n", done.stderr
