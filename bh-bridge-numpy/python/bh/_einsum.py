"""Sums of products described by subscripts."""

import string
from math import prod

import numpy as np

from . import _native
from ._axes import deliver
from ._convert import astype, in_order, native, order_of
from ._fallback import Fallback, falls_back, lower, taken
from ._manipulation import transpose
from ._memory import in_process
from ._products import tensordot
from ._reductions import sum as sum_
from ._types import CODE

ndarray = _native.ndarray

# Subscripts given as numbers, in this order.
_SYMBOLS = string.ascii_uppercase + string.ascii_lowercase
# Sums of this many products, at most, are NumPy's: they take less time than what is recorded for them.
_LITTLE = 1 << 16


@falls_back
def einsum(*operands, out=None, dtype=None, order="K", casting="safe", optimize=False):
    """Sums of products, described by subscripts."""
    order_of(order)
    if out is None and _are_little(operands[1:]):
        return taken(np.einsum, lower(operands), {"dtype": dtype, "order": order, "casting": casting, "optimize": optimize})
    subscripts, operands = _as_text(operands)
    arrays = [native(value) for value in operands]
    inputs, output = _letters(subscripts, arrays)
    _check_path(optimize, len(arrays))
    kind = np.result_type(*(value.dtype for value in arrays)) if dtype is None else np.dtype(dtype)
    casts = [np.can_cast(value.dtype, kind, casting) for value in arrays]
    if kind not in CODE or not all(casts) or type(out) is ndarray and not np.can_cast(kind, out.dtype, casting):
        raise Fallback(f"results of type {kind}")
    extents = _extents(inputs, arrays)
    if any(letter not in extents for letter in output) or len(set(output)) != len(output):
        raise Fallback("a result with unknown subscripts")
    if len(arrays) == 1 and out is None and set(inputs[0]) == set(output):
        # As in NumPy, what is only moved is a view, of whatever type.
        value, letters = _diagonals(arrays[0], inputs[0])
        value = transpose(value, [letters.index(letter) for letter in output])
        value._scalar = not output
        return value
    value, letters, gone = _summed(inputs, [astype(value, kind) for value in arrays], output)
    value = transpose(value, [letters.index(letter) for letter in output])
    shape, letter = tuple(extents[letter] for letter in output), order_of(order)
    if letter != "K" or value.shape != shape or len(arrays) == 1 and not gone:
        in_fortran = letter == "A" and all(array.T._contiguous for array in arrays)
        value = in_order(_native.broadcast_to(value, shape), "F" if in_fortran else letter if letter == "F" else "C")
    value._scalar = not output
    return deliver(value, out, "unsafe")


def _are_little(arrays):
    """Are these several arrays, in the memory of this process, with few pairs of elements? Of one array there are views."""
    if len(arrays) < 2 or not all(type(array) is ndarray for array in arrays):
        return False
    return prod(array.size for array in arrays) <= _LITTLE and all(in_process(array._stack) for array in arrays)


def _summed(inputs, arrays, output):
    """The sum of products, its subscripts, and whether anything was summed over at the end."""
    parts = [_diagonals(value, letters) for letters, value in zip(inputs, arrays)]
    value, letters = parts[0]
    for number, (other, more) in enumerate(parts[1:], 1):
        later = set(output).union(*(set(part[1]) for part in parts[number + 1 :]))
        value, letters = _contracted(value, letters, other, more, later)
    gone = tuple(place for place, letter in enumerate(letters) if letter not in output)
    if gone:
        value = sum_(value, gone, value.dtype)
        letters = [letter for letter in letters if letter in output]
    return value, letters, bool(gone)


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


def _letters(text, arrays):
    """The subscripts of operands and result; dimensions that an ellipsis stands for are counted from the last one on."""
    inputs, arrow, output = text.partition("->")
    inputs = inputs.split(",")
    named = [*inputs, output] if arrow else inputs
    if len(inputs) != len(arrays) or any(set(part.replace("...", "", 1)) - set(string.ascii_letters) for part in named):
        raise Fallback("subscripts that do not fit the operands")
    hidden = [array.ndim - len(part.replace("...", "")) if "..." in part else 0 for part, array in zip(inputs, arrays)]
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


def _extents(inputs, arrays):
    """The extent of each subscript."""
    extents = {}
    for letters, value in zip(inputs, arrays):
        if len(letters) != value.ndim:
            raise Fallback("subscripts that do not fit the operands")
        own = {}
        for letter, extent in zip(letters, value.shape):
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


def _diagonals(value, letters):
    """An operand with each subscript once."""
    letters = list(letters)
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            one = letters.index(letter)
            two = letters.index(letter, one + 1)
            value = _native.diagonal(value, 0, one, two)
            letters = [other for place, other in enumerate(letters) if place not in (one, two)] + [letter]
    return value, letters


def _contracted(a, a_letters, b, b_letters, later):
    """The product of two operands, summed over subscripts that come nowhere else."""
    joint = [letter for letter in a_letters if letter in b_letters and letter not in later]
    batch = [letter for letter in a_letters if letter in b_letters and letter in later]
    same = all(a.shape[a_letters.index(x)] == b.shape[b_letters.index(x)] for x in joint)
    if joint and not batch and same:
        axes = [a_letters.index(letter) for letter in joint], [b_letters.index(letter) for letter in joint]
        rest = [x for x in a_letters if x not in joint] + [x for x in b_letters if x not in joint]
        return tensordot(a, b, axes), rest
    letters = list(dict.fromkeys([*a_letters, *b_letters]))
    place = lambda value, own: transpose(value, [own.index(x) for x in letters if x in own])[
        tuple(slice(None) if x in own else None for x in letters)
    ]
    product = place(a, a_letters) * place(b, b_letters)
    gone = tuple(number for number, letter in enumerate(letters) if letter in joint)
    if gone:
        product = sum_(product, gone, product.dtype)
    return product, [letter for letter in letters if letter not in joint]
