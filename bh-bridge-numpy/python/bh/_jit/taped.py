"""Calls of functions that were taped for derivatives: their values, and the way back from results to arguments."""

from typing import NamedTuple

import numpy as np

from .. import _native
from .._array.element_types import code_of, is_inexact
from .symbols import here
from .trees import LEAF, alike, as_result, fresh, full, tree_of, unflatten

_array = _native.ndarray


class MemoryPlan(NamedTuple):
    """A gradient's use of memory. The steps are those of the loops of the program, or parts of straight code."""

    steps: int
    """How many parts of the program are taken back one after the other."""
    states: int
    """How many states of the program are kept, in memory and on disk; 0 if all values fit, so that nothing runs again."""
    runs: int
    """How many steps run forward, in all, without the run of each step that its adjoint begins with."""
    peak: int
    """The bytes that the gradient takes at most."""
    least: int
    """The least bound under which there is a gradient."""
    disk: int
    """The bytes of states on disk at most."""


class Taped:
    """A call that was taped: its value, and the way back from results to arguments."""

    differentiates = True

    def __init__(self, fun, args, kwargs, numbers, has_aux, later, bound=None):
        args, self._once = list(args), not later
        # Of each differentiated argument: its form, its arrays, and what they were made of.
        self.trees, self.given, originals = [], [], []
        for number in numbers:
            if not -len(args) <= number < len(args):
                raise ValueError(f"there is no positional argument {number} to differentiate by: {len(args)} are given")
            leaves = []
            tree = tree_of(args[number], leaves)
            arrays = [_argument(leaf) for leaf in leaves]
            self.trees.append(tree)
            self.given.append(arrays)
            originals += leaves
            args[number] = unflatten(tree, iter(arrays))
        if here.give_up is not None:
            here.give_up("it takes derivatives")
        arguments = [array for arrays in self.given for array in arrays]
        self.taping, self.calls = _native.Taping(arguments, bound), []
        here.tapings = (*here.tapings, self)
        try:
            value = fun(*args, **kwargs)
            self.aux = None
            if has_aux:
                value, self.aux = value
            leaves = []
            self.result_tree = tree_of(value, leaves)
            self.results = [as_result(leaf) for leaf in leaves]
        except BaseException:
            self.taping.abandon()
            raise
        finally:
            here.tapings = here.tapings[:-1]
        self._back = self.taping.end(self.results, later)
        self.value = unflatten(self.result_tree, iter(self.results))
        self._arguments = list(zip(arguments, originals))

    def plan(self):
        """The memory plan of the way back, if its memory has a bound."""
        found = self._back.plan()
        return None if found is None else MemoryPlan(*found)

    def write_back(self):
        """Gives the caller's arrays what the function has left in them. The way back may read what was there before, unless it is
        taken later."""
        for at, (array, original) in enumerate(self._arguments):
            if self._back.has_changed(at) and isinstance(original, (_array, np.ndarray)):
                original[...] = array
        self._arguments = None

    def number(self):
        """The result, which has to be one real number."""
        if self.result_tree is not LEAF:
            raise TypeError(f"grad takes functions whose result is one real number, not {_shown(self.value)}")
        (result,) = self.results
        if result.shape != () or not np.issubdtype(result.dtype, np.floating):
            text = f"shape {result.shape} and type {result.dtype}"
            raise TypeError(f"grad takes functions whose result is one real number, not an array of {text}")
        return result

    def pull(self, cotangents):
        """The adjoints of the arguments, in their forms."""
        way = self._back.begin(cotangents, self._once)
        for call in reversed(self.calls):
            call.take_back(way)
        found = iter(way.finish())
        adjoints = []
        for tree, arrays in zip(self.trees, self.given):
            pairs = [(next(found), array) for array in arrays]
            leaves = [full(0.0, array) if adjoint is None else adjoint for adjoint, array in pairs]
            adjoints.append(unflatten(tree, iter(leaves)))
        return adjoints


def _argument(value):
    """An array of its own with the values of an argument."""
    if not isinstance(value, (_array, np.ndarray, float, complex, np.inexact)):
        raise TypeError(f"derivatives are taken by floating-point and complex numbers, and not by {_shown(value)}")
    dtype = np.result_type(value) if not isinstance(value, (_array, np.ndarray)) else value.dtype
    code = code_of(dtype)
    if code is None or not is_inexact(code):
        raise TypeError(f"derivatives are taken by floating-point and complex numbers, and not by type {dtype}")
    return fresh(value, np.shape(value) if type(value) is not _array else value.shape, code)


def _shown(value):
    return f"{type(value).__name__}"


def leaves_like(value, tree, arrays, what):
    """Cotangents or tangents as new arrays of the types and shapes of `arrays`, whose form they have to have."""
    leaves = []
    form = tree_of(value, leaves)
    if not alike(form, tree):
        raise TypeError(f"the {what} has another form than what it belongs to")
    for leaf, array in zip(leaves, arrays):
        if np.shape(leaf) != array.shape:
            raise ValueError(f"the {what} has shape {np.shape(leaf)}, but what it belongs to has shape {array.shape}")
    return [fresh(leaf, array.shape, code_of(array.dtype)) for leaf, array in zip(leaves, arrays)]


def copied(value):
    leaves = []
    tree = tree_of(value, leaves)
    return unflatten(tree, iter([leaf.copy() if hasattr(leaf, "copy") else leaf for leaf in leaves]))
