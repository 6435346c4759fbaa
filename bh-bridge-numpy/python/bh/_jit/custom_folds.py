"""Folds with a function of the program's own, as trees of whole-array operations."""

import types

import numpy as np

from .. import _native
from .._array.conversion import astype, native
from .._ufunc.axes import axes_of
from .._ufunc.folds import REDUCTIONS
from .._ufunc.ufunc import UFUNCS
from . import tracing

# Neighbours that one kernel combines: fewer where a state has several values, which are inputs of the kernel each.
_WIDE, _NARROW = 16, 8
# Operations whose own folds take the place of functions that are one of them.
_FOLDS = {"add", "multiply", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"}


def fold(function, initial, *arrays, axis=None, keepdims=False):
    """Combines all elements along axes, or of whole arrays, by an associative function.

    A state is one element of each array. From left to right, the elements are cut into blocks of 2ᵏ, at most one of each size, the largest first. Within a block, neighbours are
    combined, then neighbours of the results, and so on. The result combines `initial` with the first block, then with the second, and so on. The order depends
    on the number of elements alone, so results have the same bits for any number of threads. A function of one sum, product, maximum or minimum, or of one operation on
    bits, is folded in the order of `sum`.

    Parameters
    ----------
    function : callable
        It gets two neighbouring states, numbers for one array and tuples for several, and returns one. It may use what
        functions for `bh.vectorize` may, such as branches, and need not commute.
    initial : number or tuple of numbers
        The first state.
    *arrays : array_like
        The arrays, which broadcast.
    axis : int or tuple of ints, optional
        The axes to fold; by default all.
    keepdims : bool
        Keep the folded axes with extent 1.

    Examples
    --------
    The value and the position of a maximum:

    >>> later = lambda one, other: tuple(bh.where(other[0] > one[0], new, old) for old, new in zip(one, other))
    >>> value, place = bh.fold(later, (-bh.inf, -1), bh.asarray([3.0, 8.0, 5.0]), bh.arange(3))
    >>> float(value), int(place)
    (8.0, 1)
    """
    if not arrays:
        raise TypeError("fold needs an array at least")
    single = len(arrays) == 1
    starts = (initial,) if single else tuple(initial)
    if len(starts) != len(arrays):
        raise ValueError(f"a state of {len(arrays)} values needs as many initial ones, not {len(starts)}")
    if single and isinstance(function, (np.ufunc, type(UFUNCS["add"]))) and function.__name__ in REDUCTIONS:
        return UFUNCS[function.__name__].reduce(native(arrays[0]), axis=axis, initial=initial, keepdims=keepdims)
    if single and (name := _operation(function)) is not None:
        kind = _common(native(arrays[0]), initial)
        return UFUNCS[name].reduce(astype(native(arrays[0]), kind), axis=axis, dtype=kind, initial=initial, keepdims=keepdims)
    arrays, kept = _in_lines(arrays, starts, axis)
    combine = _Combination(function, [array.dtype for array in arrays])
    results = _folded(combine, starts, arrays)
    if keepdims:
        results = [_native.reshape(result, kept) for result in results]
    return results[0] if single else tuple(results)


def _in_lines(arrays, starts, axis):
    """The arrays with one shape, their folded axes as one at the end; and the shape that a result has with `keepdims`."""
    arrays = [native(array) for array in arrays]
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    folded = axes_of(axis, len(shape))
    others = [at for at in range(len(shape)) if at not in folded]
    count = int(np.prod([shape[at] for at in folded], dtype=np.int64))
    lines = []
    for array, start in zip(arrays, starts):
        array = _native.transpose(_native.broadcast_to(astype(array, _common(array, start)), shape), [*others, *folded])
        lines.append(_native.reshape(array, [*(shape[at] for at in others), count]))
    return lines, [1 if at in folded else extent for at, extent in enumerate(shape)]


def _common(array, start):
    """The type that holds an array's elements and the first state."""
    return np.result_type(array.dtype, start if isinstance(start, (bool, int, float, complex)) else np.asarray(start))


def _operation(function):
    """The name of the one operation that a function of two numbers is, if bh has a fold of it."""
    from .scalar.ir import Assign, Unsupported, Var, walk
    from .scalar.program import program_of

    if not isinstance(function, types.FunctionType):
        return None
    try:
        read = program_of(function, function.__code__.co_varnames[: function.__code__.co_argcount])._function
    except Unsupported:
        return None
    first, *others = [one for one in walk(read.body) if type(one) is Assign] or [None]
    given = tuple(map(Var, read.parameters))
    if first is None or len(given) != 2 or first.args != given or any(one.op != "copy" or one.args != (Var(first.target),) for one in others):
        return None
    name = first.extra if first.op == "function" else first.op
    return name if name in _FOLDS else None


def _named(function):
    """A built-in function, such as `max`, as one that can be read."""
    return lambda one, other: function(one, other)


class _Combination:
    """The function on states, which are lists of arrays."""

    def __init__(self, function, kinds):
        self._function = function if isinstance(function, types.FunctionType) else _named(function)
        self._name = getattr(function, "__name__", repr(function))
        self._traced, self._kinds = tracing.traced(self._function), kinds

    def __call__(self, one, other):
        single, shape = len(one) == 1, np.broadcast_shapes(one[0].shape, other[0].shape)
        result = self._recorded(one, other) if self._traced else None
        if result is None:
            # It has branches or loops.
            self._traced, result = None, self._read(one, other, shape)
        results = (result,) if single else result
        if not isinstance(results, (tuple, list)) or len(results) != len(one):
            raise TypeError(f"'{self._name}' takes states of {len(one)} values and has to return such")
        return [self._fitted(value, kind, shape) for value, kind in zip(results, self._kinds)]

    def _recorded(self, one, other):
        """The function's result for a call; None if it cannot be called with the symbols that replace elements."""
        states = [tuple(map(tracing.Scalar, state)) for state in (one, other)]
        try:
            return self._traced(*(state[0] if len(one) == 1 else state for state in states))
        except (tracing.Untraceable, TypeError, AttributeError):
            return None

    def _read(self, one, other, shape):
        """The function's result, read from its source."""
        from .scalar.ir import Unsupported
        from .scalar.program import program_of

        names = self._function.__code__.co_varnames[: self._function.__code__.co_argcount][:2]
        given = names if len(one) == 1 else tuple((name, len(one)) for name in names)
        try:
            program = program_of(self._function, given)
            results = program(self._function, [*one, *other], shape)
        except Unsupported as reason:
            raise TypeError(f"fold cannot read '{self._name}': {reason}") from None
        return results[0] if program.single else results

    def _fitted(self, value, kind, shape):
        value = native(tracing.plain(value))
        if not np.can_cast(value.dtype, kind, "same_kind"):
            raise TypeError(f"'{self._name}' takes {kind} and returns {value.dtype}")
        value = astype(value, kind)
        return value if value.shape == shape else _native.cast(_native.broadcast_to(value, shape), value._code)


def _folded(combine, starts, arrays):
    """The fold of the last axis."""
    count = arrays[0].shape[-1]
    state = [_native.full(array.shape[:-1], array._code, np.asarray(start, array.dtype)[()]) for array, start in zip(arrays, starts)]
    if not count:
        return state
    at = lambda arrays, *bounds: [array[(..., slice(*bounds))] for array in arrays]
    width = _WIDE if len(arrays) == 1 else _NARROW
    # The rest of the blocks at each level; it comes last.
    left = []
    while count >= width:
        whole = count // width * width
        left.append(_blocks(combine, at(arrays, whole, count), count - whole))
        arrays = _pairwise(combine, [at(arrays, first, whole, width) for first in range(width)])
        count //= width
    left.append(_blocks(combine, arrays, count))
    for blocks in reversed(left):
        for block in blocks:
            state = combine(state, [array[..., 0] for array in block])
    return state


def _blocks(combine, arrays, count):
    """Few elements as blocks of powers of two, each combined to one element, the largest first."""
    found, begin = [], 0
    while begin < count:
        size = 1 << (count - begin).bit_length() - 1
        parts = [[array[..., first : first + 1] for array in arrays] for first in range(begin, begin + size)]
        found.append(_pairwise(combine, parts))
        begin += size
    return found


def _pairwise(combine, states):
    """Neighbours combined again and again, of 2ᵏ states."""
    while len(states) > 1:
        states = [combine(one, other) for one, other in zip(states[::2], states[1::2])]
    return states[0]
