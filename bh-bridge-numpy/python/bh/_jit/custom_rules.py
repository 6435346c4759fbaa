"""Functions with derivatives of their own: `custom_vjp`, `custom_jvp`."""

import functools

import numpy as np

from .. import _native
from .._array.element_types import code_of, is_inexact
from .symbols import here
from .taped import Taped, copied, leaves_like
from .trees import LEAF, fresh, full, parts_of, tree_of, unflatten

_array = _native.ndarray


class custom_vjp:
    """A function with a derivative of its own, as JAX's `custom_vjp`.

    `fwd` takes the arguments of the function, and returns its value and what `bwd` needs; there, values may be read as numbers.
    `bwd` takes that and the cotangent of the value, and returns a tuple with a cotangent for each argument, or None for zero.

    Examples
    --------
    >>> @bh.custom_vjp
    ... def clipped(x):
    ...     return x * x
    >>> clipped.defvjp(lambda x: (x * x, x), lambda x, g: (bh.clip(2 * x * g, -1, 1),))
    >>> bh.grad(lambda x: clipped(x).sum())(bh.array([0.25, 3.0]))
    array([0.5, 1. ])
    """

    __module__ = "bh"

    def __init__(self, fun):
        functools.update_wrapper(self, fun)
        self._fun, self._fwd, self._bwd = fun, None, None

    def defvjp(self, fwd, bwd):
        """Says how the function and its derivative are computed."""
        self._fwd, self._bwd = fwd, bwd

    def __call__(self, *args):
        if self._fwd is None:
            raise AttributeError(f"{self.__name__} has no derivative yet: {'defjvp' if hasattr(self, 'defjvp') else 'defvjp'} gives it one")
        # The function's own code may call the function itself.
        if self in here.customs or not any(taped.differentiates for taped in here.tapings):
            return self._fun(*args)
        if not here.tapings[-1].differentiates:
            raise _native.Error(f"{self.__name__} has a derivative of its own, which vmap inside of a derivative does not use: put the derivative inside of vmap")
        here.customs = (*here.customs, self)
        try:
            return _Call(self, args).value
        finally:
            here.customs = here.customs[:-1]

    def parts(self):
        return self._fwd, self._bwd


class custom_jvp(custom_vjp):
    """A function with a derivative of its own, as JAX's `custom_jvp`: its rule takes the arguments and their tangents, both as tuples,
    and returns the value and its tangent, which is linear in the tangents.

    In the rule, values of arguments may be read as numbers; tangents may not. Arguments that are no floating-point or complex arrays
    have None for a tangent.

    Examples
    --------
    >>> @bh.custom_jvp
    ... def cube(x):
    ...     return x * x * x
    >>> @cube.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return cube(x), 3 * x * x * t
    >>> bh.grad(cube)(2.0)
    array(12.)
    """

    __module__ = "bh"

    def defjvp(self, jvp):
        """Says how the value and its tangent are computed. Returns the rule, so that it may be a decorator."""

        def fwd(*args):
            return self._fun(*args), args

        def bwd(args, cotangent):
            leaves = []
            trees = [tree_of(arg, leaves) for arg in args]
            places = [at for at, leaf in enumerate(leaves) if _is_inexact(leaf)]

            def tangent(*given):
                all_tangents = [None] * len(leaves)
                for at, one in zip(places, given):
                    all_tangents[at] = one
                rest = iter(all_tangents)
                return jvp(args, tuple(unflatten(tree, rest) for tree in trees))[1]

            # The tangent is linear: its way back, taken at zero, takes cotangents to those of the arguments.
            zeros = [full(0.0, leaves[at]) for at in places]
            taped = Taped(tangent, zeros, {}, tuple(range(len(zeros))), False, later=False)
            found = iter(taped.pull(leaves_like(cotangent, taped.result_tree, taped.results, "cotangent")))
            rest = iter([next(found) if at in places else None for at in range(len(leaves))])
            return tuple(unflatten(tree, rest) for tree in trees)

        self.defvjp(fwd, bwd)
        return jvp


class _Call:
    """A call of a function with a derivative of its own, on the innermost tape."""

    def __init__(self, custom, args):
        fwd, self._bwd = custom.parts()
        taped = here.tapings[-1]
        given = []
        trees = [tree_of(arg, given) for arg in args]
        self._trees = trees
        # The tape sees a function of constants.
        stopped = iter([_native.constant_copy(leaf, [taped.taping]) if _is_inexact(leaf) else leaf for leaf in given])
        value, rest = fwd(*[unflatten(tree, stopped) for tree in trees])
        self._rest = copied(rest)
        results = []
        self._tree = tree_of(value, results)
        self._results = [fresh(leaf, leaf.shape, code_of(leaf.dtype)) if _is_inexact(leaf) else leaf for leaf in results]
        # Places of the arrays among the arguments, and of those among the results.
        self._inputs = [at for at, leaf in enumerate(given) if _is_inexact(leaf)]
        self._outputs = [at for at, leaf in enumerate(self._results) if _is_inexact(leaf)]
        inputs, outputs = [given[at] for at in self._inputs], [self._results[at] for at in self._outputs]
        self._known = taped.taping.call(inputs, outputs)
        self.value = unflatten(self._tree, iter(self._results))
        self._forms = [[(leaf.shape, code_of(leaf.dtype)) for leaf in leaves] for leaves in (inputs, outputs)]
        # The program may change the arrays from here on.
        self._results = [None if _is_inexact(leaf) else leaf for leaf in self._results]
        taped.calls.append(self)

    def take_back(self, way):
        """Takes the adjoints of the results back to the arguments, where the way is."""
        found = way.back_to(self._known)
        if all(adjoint is None for adjoint in found):
            return
        cotangents = list(self._results)
        for at, adjoint, (shape, code) in zip(self._outputs, found, self._forms[1]):
            cotangents[at] = _native.full(shape, code, 0.0) if adjoint is None else adjoint
        returned = self._bwd(self._rest, unflatten(self._tree, iter(cotangents)))
        if not isinstance(returned, (tuple, list)) or len(returned) != len(self._trees):
            raise TypeError(f"the derivative of a custom_vjp returns a tuple of {len(self._trees)} cotangents, one for each argument")
        leaves = []
        for tree, cotangent in zip(self._trees, returned):
            _pad(cotangent, tree, leaves)
        for number, (at, (shape, code)) in enumerate(zip(self._inputs, self._forms[0])):
            if leaves[at] is not None:
                if np.shape(leaves[at]) != shape:
                    text = f"shape {np.shape(leaves[at])}, but its argument has shape {shape}"
                    raise ValueError(f"a cotangent that a custom_vjp returns has {text}")
                way.add(self._known, number, fresh(leaves[at], shape, code))


def _is_inexact(value):
    return type(value) is _array and is_inexact(code_of(value.dtype))


def _pad(value, tree, leaves):
    """Appends the leaves of a value in the form `tree`; None stands for any part."""
    if tree is LEAF:
        leaves.append(value)
    elif value is None:
        for part in tree[1]:
            _pad(None, part, leaves)
    else:
        parts = parts_of(value)
        if parts is None or len(parts) != len(tree[1]):
            raise TypeError("a cotangent that a custom_vjp returns has another form than its argument")
        for part, form in zip(parts, tree[1]):
            _pad(part, form, leaves)
