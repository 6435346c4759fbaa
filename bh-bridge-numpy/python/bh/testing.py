"""`numpy.testing`, whose comparisons take bh's arrays."""

import functools
import types

import numpy.testing
from numpy.testing import *  # noqa: F401,F403

from ._array.conversion import lower_nested
from ._numpy import fallback

__all__ = list(numpy.testing.__all__)

_COMPARISONS = """
assert_allclose assert_almost_equal assert_approx_equal assert_array_almost_equal assert_array_almost_equal_nulp
assert_array_compare assert_array_equal assert_array_less assert_array_max_ulp assert_equal print_assert_equal
""".split()


def _comparing(function):
    @functools.wraps(function)
    def compare(*arguments, **keywords):
        __tracebackhide__ = True
        arguments = tuple(map(lower_nested, arguments))
        return fallback.lift(function(*fallback.lower(arguments), **fallback.lower(keywords)))

    return compare


for _name in _COMPARISONS:
    if hasattr(numpy.testing, _name):
        globals()[_name] = _comparing(getattr(numpy.testing, _name))


@functools.cache
def of_masked():
    """`numpy.ma.testutils`, whose comparisons take bh's arrays."""
    import numpy.ma.testutils as original

    made = types.ModuleType(original.__name__, original.__doc__)
    made.__dict__.update(vars(original))
    for name in ("almost", "approx", "fail_if_equal", *(name for name in vars(original) if name.startswith("assert_"))):
        setattr(made, name, _comparing(getattr(original, name)))
    return made


def __getattr__(name):
    return getattr(numpy.testing, name)
