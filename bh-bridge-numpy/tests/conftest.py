"""What the tests share: NumPy is the reference, and work that goes to NumPy is an error unless a test allows it."""

import hypothesis
import numpy
import pytest

import bh
from bh import _fallback

# The same examples in every run, and no files of them.
hypothesis.settings.register_profile("bh", database=None, derandomize=True)
hypothesis.settings.load_profile("bh")


@pytest.fixture(autouse=True)
def native_only(request):
    """Fallbacks are errors, except in tests marked `falls_back`."""
    mode = "silent" if request.node.get_closest_marker("falls_back") else "error"
    before = _fallback.mode(mode)
    yield
    _fallback.mode(before)
    bh.flush()


def pytest_configure(config):
    config.addinivalue_line("markers", "falls_back: the test may use NumPy's implementation")


def same(mine, reference, ulps=8, check_type=True):
    """Compares results of bh and NumPy: shapes, types and values."""
    if isinstance(reference, (tuple, list)):
        assert len(mine) == len(reference)
        for one, other in zip(mine, reference):
            same(one, other, ulps, check_type)
        return
    value = numpy.asarray(mine)
    reference = numpy.asarray(reference)
    assert value.shape == reference.shape, (value.shape, reference.shape)
    if check_type:
        assert value.dtype == reference.dtype, (value.dtype, reference.dtype)
    if reference.dtype.kind in "fc":
        scale = numpy.finfo(reference.dtype).eps * ulps
        finite = reference[numpy.isfinite(reference)]
        size = float(numpy.abs(finite).max()) if finite.size else 0.0
        numpy.testing.assert_allclose(value, reference, rtol=scale, atol=scale * size if size < 1e300 else scale, equal_nan=True)
    else:
        numpy.testing.assert_array_equal(value, reference)


def decomposes():
    """Has the stack the methods that decompose matrices?"""
    before = _fallback.mode("error")
    try:
        bh.linalg.svdvals(bh.ones((1, 1)))
    except bh.FallbackError:
        return False
    finally:
        _fallback.mode(before)
    return True
