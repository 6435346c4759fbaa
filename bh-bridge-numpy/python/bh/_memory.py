"""Where the elements of arrays are."""

import functools

from . import _native

# Components whose arrays are in the memory of their process.
_OF_PROCESSES = {"filter", "fuser", "vem-node", "vem-cluster", "ve-cpu"}


@functools.cache
def in_process(name):
    """Are all arrays of the stack of this name in the memory of this process?"""
    stack = _native.Stack(name)
    return _OF_PROCESSES.issuperset(stack.components()) and int(stack.message("cluster ranks") or 1) == 1
