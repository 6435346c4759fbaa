"""Where the elements of arrays are."""

import functools

from .. import _native
from .._jit.symbols import here

# Components whose arrays are in the memory of their process.
_OF_PROCESSES = {"filter", "fuser", "vem-node", "vem-cluster", "ve-cpu"}
# Engines of devices.
_DEVICES = {"opencl", "cuda"}


def in_process(name):
    """Are all arrays of the stack of this name in the memory of this process, also those of the function that is at work? While one is
    traced, its arrays have no elements, and while one is differentiated, they are not looked at."""
    return not here.records and stack_in_process(name)


@functools.cache
def stack_in_process(name):
    """Are all arrays of the stack of this name in the memory of this process, where NumPy may compute with them? Its bits depend on the
    processor."""
    return _computes_beside(name, _OF_PROCESSES)


@functools.cache
def computes_little(name):
    """May NumPy compute with arrays of the stack of this name that are at hand? Those are in the memory of this process also where large
    ones are on a device."""
    return _computes_beside(name, _OF_PROCESSES | _DEVICES)


def _computes_beside(name, components):
    stack = _native.Stack(name)
    return not stack.is_reproducible() and components.issuperset(stack.components()) and ranks_of(name) == 1


@functools.cache
def ranks_of(name):
    """How many ranks have parts of the arrays of the stack of this name."""
    return int(_native.Stack(name).message_first("cluster ranks") or 1)


@functools.cache
def device_of(name):
    """The number of the CUDA device whose memory the arrays of the stack of this name are in; `None` for other memory."""
    told = _native.Stack(name).message_first("device id") if ranks_of(name) == 1 else ""
    kind, _, number = told.partition(" ")
    return int(number) if kind == "cuda" else None


def apart(shape, code, stack):
    """A new array in C's order, but with gaps, on several ranks: the order in memory that NumPy's has would move elements between
    them. As with NumPy's, `ravel` and `reshape` copy it."""
    inner = max(place for place, extent in enumerate(shape) if extent != 1)
    roomy = _native.empty((*shape[:inner], shape[inner] + 1, *shape[inner + 1 :]), code, _native.Stack(stack))
    return roomy[(slice(None),) * inner + (slice(shape[inner]),)]
