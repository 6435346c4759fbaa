"""Sums of products described by subscripts."""

import functools
from math import prod

import numpy as np

from .. import _native
from .._array.conversion import astype, in_order, native, order_of
from .._array.element_types import CODE
from .._array.memory import in_process, ranks_of
from .._numpy.fallback import Fallback, falls_back, lower, stack_of, taken
from .._numpy.registry import FUNCTIONS
from .._ufunc.axes import deliver
from .products import Matrices, permutation, shaped, turned
from .reductions import sum as sum_

ndarray = _native.ndarray

# Subscripts given as numbers, in this order.
_SYMBOLS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# The castings of `np.can_cast` that sums of products have.
_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")
# Sums of this many products, at most, are NumPy's: they take less time than what is recorded for them.
_LITTLE = FUNCTIONS["einsum"].products
# The most orders in memory that a plan keeps.
_ORDERS = 64
# In the place of an order that is not known.
_UNKNOWN = object()
# Dimensions of an array, at most.
_MOST = 16


@falls_back
def einsum(*operands, out=None, dtype=None, order="K", casting="safe", optimize=False):
    """Sums of products, described by subscripts."""
    letter = order_of(order)
    if casting not in _CASTINGS:
        raise ValueError(f"casting must be one of {', '.join(_CASTINGS)}, not {casting!r}")
    if out is None and _are_little(operands[1:]) and (len(operands) > 2 or not _is_view(operands)):
        options = {"dtype": dtype, "order": order, "casting": casting, "optimize": optimize}
        return taken(np.einsum, lower(operands), options, stack_of(operands))
    subscripts, operands = _as_text(operands)
    arrays = [native(value) for value in operands]
    plan = _plan(subscripts, tuple([value.shape for value in arrays]))
    _check_path(optimize, len(arrays))
    # An output takes part in the choice of the type.
    kinds = {value.dtype for value in arrays} | ({out.dtype} if type(out) is ndarray else set())
    kind = np.dtype(dtype) if dtype is not None else kinds.pop() if len(kinds) == 1 else np.result_type(*kinds)
    casts = all(value.dtype == kind or np.can_cast(value.dtype, kind, casting) for value in arrays)
    if kind not in CODE or not casts or type(out) is ndarray and not np.can_cast(kind, out.dtype, casting):
        raise Fallback(f"results of type {kind}")
    if plan.is_view and out is None:
        # As in NumPy, what is only moved is a view, of whatever type.
        value = _native.transpose(_diagonal(arrays[0], plan.diagonals[0]), plan.last or list(range(len(plan.shape))))
        value._scalar = not plan.shape
        return value
    value = _summed(plan, [astype(value, kind) for value in arrays])
    # On several ranks, another order in memory would move elements.
    if letter == "K" and not optimize and value.shape == plan.shape and ranks_of(value._stack) == 1:
        axes = plan.order(arrays)
        if axes is not None or not value._contiguous:
            value = _arranged(value, axes)
    elif letter != "K" or value.shape != plan.shape or len(arrays) == 1 and not plan.gone:
        in_fortran = letter == "A" and all(array.T._contiguous for array in arrays)
        value = in_order(_native.broadcast_to(value, plan.shape), "F" if in_fortran else letter if letter == "F" else "C")
    value._scalar = not plan.shape
    return deliver(value, out, "unsafe")


def _arranged(value, axes):
    """A copy with its dimensions in this order in memory, or in C's for None."""
    made = _native.empty(value.shape, value._code, _native.Stack(value._stack), axes)
    _native.assign(made, value)
    return made


def _are_little(arrays):
    """Are these arrays, in the memory of this process, with few products of their elements?"""
    if not arrays or not all(type(array) is ndarray for array in arrays):
        return False
    return prod(array.size for array in arrays) <= _LITTLE and all(in_process(array._stack) for array in arrays)


def _is_view(operands):
    """Is an array only moved?"""
    subscripts, (array,) = _as_text(operands)
    return _plan(subscripts, (array.shape,)).is_view


class _Plan:
    """How a sum of products of operands with certain shapes is found: what follows from subscripts and shapes alone."""

    def __init__(self, text, shapes):
        inputs, output = _letters(text, [len(shape) for shape in shapes])
        extents = _extents(inputs, shapes)
        if any(letter not in extents for letter in output) or len(set(output)) != len(output):
            raise Fallback("a result with unknown subscripts")
        # The pairs of dimensions that each operand's diagonals are taken of.
        self.diagonals, parts = [], []
        for own, shape in zip(inputs, shapes):
            pairs, letters = _pairs(own)
            self.diagonals.append(pairs)
            parts.append((letters, [shape[own.index(letter)] for letter in letters]))
        self.is_view = len(shapes) == 1 and set(inputs[0]) == set(output)
        self.output, self.letters = output, [letters for letters, _ in parts]
        self.extents = [extents[letter] for letter in self._all()]
        letters, extent = parts[0]
        self.steps = []
        for number, part in enumerate(parts[1:], 1):
            later = set(output).union(*(set(rest[0]) for rest in parts[number + 1 :]))
            step = _Product(letters, extent, *part, later)
            self.steps.append(step)
            letters, extent = step.letters, step.shape
        # The dimensions that are summed over at the end, and where the others go.
        self.gone = tuple(place for place, letter in enumerate(letters) if letter not in output)
        letters = [letter for letter in letters if letter in output]
        self.last = permutation([letters.index(letter) for letter in output])
        self.shape = tuple(extents[letter] for letter in output)
        # The orders in memory of results, by the strides of the operands.
        self._orders = {}

    def _all(self):
        """The subscripts of the result, then the others."""
        return list(dict.fromkeys([*self.output, *(letter for letters in self.letters for letter in letters)]))

    def order(self, arrays):
        """The dimensions of the result from the outermost in memory on, as operands have them; None for C's order."""
        strides = tuple([array._stride for array in arrays])
        # Another thread may empty the table meanwhile.
        found = self._orders.get(strides, _UNKNOWN)
        if found is _UNKNOWN:
            if len(self._orders) >= _ORDERS:
                self._orders.clear()
            found = self._orders[strides] = self._found(arrays)
        return found

    def _found(self, arrays):
        seen = []
        for array, pairs, letters in zip(arrays, self.diagonals, self.letters):
            array = _diagonal(array, pairs)
            steps = {letter: step for letter, extent, step in zip(letters, array.shape, array._stride) if extent > 1}
            seen.append(_native.window(array, array._start, self.extents, [steps.get(letter, 0) for letter in self._all()]))
        axes = [axis for axis in _native.memory_order(seen) or () if axis < len(self.output)]
        return None if axes == sorted(axes) else axes


_plan = functools.lru_cache(maxsize=1024)(_Plan)


class _Product:
    """The product of two operands, summed over subscripts that come nowhere else."""

    def __init__(self, a_letters, a_shape, b_letters, b_shape, later):
        a, b = dict(zip(a_letters, a_shape)), dict(zip(b_letters, b_shape))
        joint = [letter for letter in a if letter in b and letter not in later]
        batch = [letter for letter in a if letter in b and letter in later]
        self.is_matrix = bool(joint) and not batch and all(a[letter] == b[letter] for letter in joint)
        if self.is_matrix:
            places = [a_letters.index(letter) for letter in joint], [b_letters.index(letter) for letter in joint]
            self.matrices = Matrices(a_shape, b_shape, *places)
            self.letters, self.shape = [x for x in [*a_letters, *b_letters] if x not in joint], self.matrices.shape
            return
        # The axes of the stack, of rows, of the sum, and of columns.
        box = [*batch, *(x for x in a if x not in b), *joint, *(x for x in b if x not in a)]
        self.letters = [letter for letter in box if letter not in joint]
        self.shape = [a.get(letter, 1) if b.get(letter, 1) == 1 else b[letter] for letter in self.letters]
        self.is_sum = bool(joint)
        if self.is_sum:
            if len(box) > _MOST:
                raise Fallback(f"more than {_MOST} subscripts of two operands")
            self.axes = tuple([box.index(letter) for letter in own] for own in (a_letters, b_letters))
            self.rank, self.summed = len(box), sum(1 << box.index(letter) for letter in joint)
        else:
            orders = ([own.index(x) for x in box if x in own] for own in (a_letters, b_letters))
            self.axes = tuple(map(permutation, orders))
            self.forms = tuple(tuple(of.get(letter, 1) for letter in box) for of in (a, b))

    def of(self, a, b):
        if self.is_matrix:
            return self.matrices.product(a, b)
        if self.is_sum:
            return _native.contract((a, self.axes[0]), (b, self.axes[1]), self.rank, self.summed)
        a, b = (shaped(value, axes, form) for value, axes, form in zip((a, b), self.axes, self.forms))
        return a * b


def _summed(plan, arrays):
    """The sum of products."""
    value, *others = (_diagonal(value, pairs) for value, pairs in zip(arrays, plan.diagonals))
    for step, other in zip(plan.steps, others):
        value = step.of(value, other)
    return turned(sum_(value, plan.gone, value.dtype) if plan.gone else value, plan.last)


def _as_text(operands):
    """The subscripts as text, and the operands, of a call with either text or lists of numbers."""
    if operands and isinstance(operands[0], str):
        return operands[0].replace(" ", ""), operands[1:]
    if len(operands) < 2:
        raise Fallback("operands without subscripts")
    arrays, lists = operands[0 : len(operands) // 2 * 2 : 2], operands[1::2]
    text = ",".join(map(_symbols, lists))
    return text if len(operands) % 2 == 0 else f"{text}->{_symbols(operands[-1])}", arrays


def _symbols(numbers):
    """A list of numbers, with `...` among them, as text."""
    if not isinstance(numbers, (list, tuple)):
        raise Fallback("subscripts that are no list")
    if not all(number is Ellipsis or isinstance(number, (int, np.integer)) and 0 <= number < 52 for number in numbers):
        raise Fallback("subscripts that are no numbers from 0 to 51")
    return "".join("..." if number is Ellipsis else _SYMBOLS[number] for number in numbers)


def _letters(text, ranks):
    """The subscripts of operands of certain ranks, and of the result; dimensions that an ellipsis stands for are counted from the last
    one on."""
    inputs, arrow, output = text.partition("->")
    inputs = inputs.split(",")
    named = [*inputs, output] if arrow else inputs
    if len(inputs) != len(ranks) or any(set(part.replace("...", "", 1)) - set(_SYMBOLS) for part in named):
        raise Fallback("subscripts that do not fit the operands")
    hidden = [rank - len(part.replace("...", "")) if "..." in part else 0 for part, rank in zip(inputs, ranks)]
    if min(hidden) < 0:
        raise Fallback("more subscripts than dimensions")
    if not arrow:
        joined = "".join(inputs)
        alone = sorted(letter for letter in set(joined) - {"."} if joined.count(letter) == 1)
        output = "..." * any("..." in part for part in inputs) + "".join(alone)
    elif max(hidden) and "..." not in output:
        raise Fallback("an ellipsis that the result lacks")
    made = [_spelled(part, count) for part, count in zip(inputs, hidden)]
    return made, _spelled(output, max(hidden))


def _spelled(part, hidden):
    """The subscripts one by one, an ellipsis as the numbers of the dimensions that it stands for."""
    before, dots, after = part.partition("...")
    return [*before, *(range(-hidden, 0) if dots else ()), *after]


def _extents(inputs, shapes):
    """The extent of each subscript."""
    extents = {}
    for letters, shape in zip(inputs, shapes):
        if len(letters) != len(shape):
            raise Fallback("subscripts that do not fit the operands")
        own = {}
        for letter, extent in zip(letters, shape):
            known = extents.setdefault(letter, extent)
            if own.setdefault(letter, extent) != extent or known != extent and 1 not in (extent, known):
                raise Fallback("extents that do not fit each other")
            extents[letter] = extent if known == 1 else known
    return extents


def _check_path(optimize, count):
    """An order of contractions has to leave one operand, also where the stack finds a better order itself."""
    if isinstance(optimize, (bool, str)) or optimize is None:
        if isinstance(optimize, str) and optimize not in ("greedy", "optimal"):
            raise Fallback("an unknown way to optimize")
        return
    if not isinstance(optimize, (list, tuple)) or not optimize or optimize[0] != "einsum_path":
        if isinstance(optimize, tuple) and len(optimize) == 2 and optimize[0] in ("greedy", "optimal"):
            return
        raise Fallback("an unknown way to optimize")
    for places in optimize[1:]:
        if not places or min(places) < 0 or max(places) >= count:
            raise Fallback("a path that does not fit the operands")
        count -= len(set(places)) - 1
    if count != 1:
        raise RuntimeError(f"Invalid einsum_path is specified: {count - 1} more operands has to be contracted.")


def _pairs(letters):
    """The pairs of dimensions of which diagonals are taken one by one, so that each subscript is there once, and the subscripts then."""
    pairs, letters = [], list(letters)
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            one = letters.index(letter)
            two = letters.index(letter, one + 1)
            pairs.append((one, two))
            letters = [other for place, other in enumerate(letters) if place not in (one, two)] + [letter]
    return pairs, letters


def _diagonal(value, pairs):
    """An operand with each subscript once."""
    for one, two in pairs:
        value = _native.diagonal(value, 0, one, two)
    return value
