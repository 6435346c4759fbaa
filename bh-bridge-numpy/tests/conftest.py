"""Shared by the tests: NumPy is the reference, and work that falls back to NumPy is an error unless a test allows it."""

import hypothesis
import numpy
import pytest

import bh
from bh import _native
from bh._numpy import fallback

# The longest, in seconds, that a process of a test may take: against hangs only, as much else may run on the machine.
LIMIT = 600

# Has PoCL build kernels without optimisation, in a third of the time: for tests of what surrounds the kernels, not of their numbers.
BUILD_QUICKLY = {"POCL_EXTRA_BUILD_FLAGS": "-cl-opt-disable"}

# The same examples in every run, and no files of them.
hypothesis.settings.register_profile("bh", database=None, derandomize=True)
hypothesis.settings.load_profile("bh")


# Tests of what NumPy's versions do differently: the versions of NumPy that do as bh does, from one to before another.
OLDEST, NEWEST = (2, 2), (99,)
VERSIONS = {
    "test_arguments_that_are_taken[np.linalg.norm(np.zeros(0), np.inf)]": ((2, 3), NEWEST),
    "test_arguments_that_are_taken[np.divmod(np.asarray(7), 2, out=...)[0]]": ((2, 3), NEWEST),
    "test_arguments_that_are_taken[inspect.signature(np.matmul) == inspect.signature(numpy.matmul)]": ((2, 4), NEWEST),
    "test_arguments_that_are_taken[inspect.signature(np.where) == inspect.signature(numpy.where)]": ((2, 4), NEWEST),
    "test_arguments_that_are_taken[np.frombuffer.__text_signature__ == numpy.frombuffer.__text_signature__]": ((2, 4), NEWEST),
    "test_arguments_that_numpy_deals_with[np.array([[1, 2], [3, 4]], dtype=object, ndmax=1).shape]": ((2, 4), NEWEST),
    "test_arguments_that_are_refused[np.empty(None)]": ((2, 3), NEWEST),
    "test_arguments_that_are_refused[np.take(np.arange(3), [1], out=np.zeros(1))]": (OLDEST, (2, 5)),
    "test_universal_functions_are_pickled_and_have_one_conjugate": ((2, 4), NEWEST),
    "test_what_else_methods_and_functions_take": ((2, 3), NEWEST),
    "test_each_function_is_native[take_along_axis]": ((2, 3), NEWEST),
    "test_parameters_of_methods_are_numpys": ((2, 4), NEWEST),
    # Names of parameters that older versions do not tell, names and methods that they have, and checks that they lack.
    "test_arrays_are_arguments_and_results_are_numpys[copyto]": ((2, 4), NEWEST),
    "test_arrays_are_arguments_and_results_are_numpys[putmask]": ((2, 4), NEWEST),
    "test_methods_are_numpys": ((2, 3), NEWEST),
    "test_the_page_of_coverage_follows": ((2, 4), NEWEST),
    "test_index_errors_are_numpys[at once]": ((2, 3), NEWEST),
    "test_index_errors_are_numpys[recorded]": ((2, 3), NEWEST),
    "test_index_errors_are_numpys[on ranks]": ((2, 3), NEWEST),
    "test_values[a mean of nothing]": ((2, 4), NEWEST),
    "test_values[a mask without an output]": ((2, 4), NEWEST),
    "test_values[flat by nothing]": ((2, 4), NEWEST),
    "test_errors[flat with a long mask]": ((2, 4), NEWEST),
    "test_errors[flat with a list of truth values]": ((2, 4), NEWEST),
    # NumPy's own crashes.
    "test_errors[flat assigned to nothing]": ((2, 4), NEWEST),
    "test_warnings[<lambda>1]": ((2, 4), NEWEST),
    "test_warnings_are_numpys[ np.mean([]) ]": ((2, 4), NEWEST),
    "test_warnings_are_numpys[np.isclose(a, a, rtol=np.inf) ]": ((2, 3), NEWEST),
    "test_warnings_are_numpys[ np.mean(a, where=a > 5) ]": ((2, 4), NEWEST),
}


def pytest_collection_modifyitems(items):
    """Leaves out tests that do not hold for this version of NumPy."""
    here = tuple(map(int, numpy.__version__.split(".")[:2]))
    known = {"".join(name.split()): versions for name, versions in VERSIONS.items()}
    for item in items:
        first, end = known.get("".join(item.name.split()), (OLDEST, NEWEST))
        if not first <= here < end:
            item.add_marker(pytest.mark.skip(reason=f"NumPy {numpy.__version__} does this otherwise than NumPy 2.4"))


@pytest.fixture(autouse=True)
def native_only(request):
    """Fallbacks are errors, except in tests marked `falls_back`; libraries that ask for the array API do so for one test."""
    mode = "silent" if request.node.get_closest_marker("falls_back") else "error"
    before, followed = fallback.mode(mode), _native.follows_array_api()
    yield
    fallback.mode(before)
    _native.follow_array_api(followed)
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
    before = fallback.mode("error")
    try:
        bh.linalg.svdvals(bh.ones((1, 1)))
    except bh.FallbackError:
        return False
    finally:
        fallback.mode(before)
    return True
