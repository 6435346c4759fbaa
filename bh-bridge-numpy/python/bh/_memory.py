"""Where the elements of arrays are."""

import functools

from . import _native
from ._symbols import here

# Components whose arrays are in the memory of their process.
_OF_PROCESSES = {"filter", "fuser", "vem-node", "vem-cluster", "ve-cpu"}


def in_process(name):
    """Are all arrays of the stack of this name in the memory of this process, also those of the function that is at work? While one is
    traced, its arrays have no elements."""
    return not here.tracing and _in_process(name)


@functools.cache
def _in_process(name):
    stack = _native.Stack(name)
    return _OF_PROCESSES.issuperset(stack.components()) and int(stack.message("cluster ranks") or 1) == 1
