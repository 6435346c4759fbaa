"""Folds as methods of universal functions: reductions, accumulations, outer products, work at indices."""

import functools

import numpy as np

from .. import _native
from .._array import indexing
from .._array.conversion import astype, lower_nested, mask_from, native, to_write
from .._array.element_types import BOOL, CODE, DTYPES, MOST_DIMENSIONS, UINT64, is_complex, is_inexact
from .._array.layout import repeats
from .._functions import sorting
from .._functions.complex_parts import complex_of, part_of
from .._functions.joining import concatenate
from .._numpy import fallback, floating_point, immediate
from .._numpy.fallback import Fallback
from .._numpy.native_calls import served
from .._numpy.registry import UFUNC_METHODS
from .axes import axes_of, deliver, mask_of, only_axis, stand_in, target_of
from .operands import overrides, wraps_own
from .ufunc import UFUNCS, ufunc

ndarray = _native.ndarray
_NO_VALUE = np._NoValue

# Functions with a reduction of their own.
REDUCTIONS = {
    name: f"{name}_reduce"
    for name in "add multiply minimum maximum logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor".split()
}
# Those that have one of the elements that a mask chooses; of none it is what changes nothing.
MASKED = {name: f"masked_{name}_reduce" for name in "add multiply minimum maximum".split()}
MASKED |= {"logical_and": "masked_multiply_reduce", "logical_or": "masked_add_reduce"}
BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm")
BOOLEAN = ("logical_and", "logical_or", "logical_xor")
ASSOCIATIVE = {*REDUCTIONS, "fmax", "fmin", "gcd", "lcm"}


def fold_type(function, dtype, wanted, target=None):
    """The type in which elements are folded. An output, if there is one, takes part in the choice."""
    if wanted is not None:
        if function.__name__ in BITWISE and np.dtype(wanted).kind not in "iub":
            raise TypeError(f"No loop matching the specified signature and casting was found for ufunc {function.__name__}")
        return np.dtype(wanted)
    given = None if target is None else target.dtype
    return function._np.resolve_dtypes((given, dtype, None), reduction=True, casting="unsafe")[1]


def entry(function, code):
    """How NumPy's function folds arrays of the type with this code without Python: the opcode, the type in which elements are folded, and
    whether no elements have a result. None if Python has to serve them, errors included."""
    mine, opcode = UFUNCS[function.__name__], REDUCTIONS.get(function.__name__)
    if opcode is None:
        return None
    try:
        kind = BOOL if mine.__name__ in BOOLEAN else CODE.get(fold_type(mine, DTYPES[code], None))
    except TypeError:
        return None
    plain = kind is not None and is_complex(code) == is_complex(kind)
    served = plain and (not is_complex(kind) or mine.__name__ in ("add", "multiply"))
    return (opcode, kind, mine.identity is not None) if served else None


def folded(function, array, dtype, target):
    """The array in the type in which its elements are folded."""
    if function.__name__ not in BOOLEAN:
        return astype(array, fold_type(function, array.dtype, dtype, target))
    if dtype is not None and np.dtype(dtype) != bool:
        raise TypeError(f"No loop matching the specified signature and casting was found for ufunc {function.__name__}")
    return truth(array)


def _check_output(function, array, axes, keepdims, target):
    """Has NumPy say what is wrong with the shape of an output."""
    if target.shape != tuple(1 if place in axes else extent for place, extent in enumerate(array.shape) if keepdims or place not in axes):
        function._np.reduce(stand_in(array), axes, None, np.empty(target.shape, target.dtype), keepdims)


def reduce(function, array, axis=0, dtype=None, out=None, keepdims=False, initial=_NO_VALUE, where=True):
    """A fold along axes; what bh cannot do is done by NumPy."""
    if wraps_own([array]):
        # An object that shows itself as an array of bh makes its own object of the result.
        made = reduce(function, array.__array__(), axis, dtype, out, keepdims, initial, where)
        return array.__array_wrap__(made, None, np.ndim(made) == 0) if out is None else made
    try:
        return _reduce(function, array, axis, dtype, out, keepdims, initial, where)
    except Fallback as reason:
        kwargs = {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims, "where": where}
        if initial is not _NO_VALUE:
            kwargs["initial"] = initial
        kwargs = {key: value for key, value in kwargs.items() if not (key == "where" and value is True or value is ...)}
        result = fallback.call(function._np.reduce, (array,), kwargs, f"numpy.{function.__name__}.reduce", str(reason))
        return fallback.from_numpy(np.asarray(result)) if out is ... and not isinstance(result, np.ndarray) else result


def _reduce(function, array, axis, dtype, out, keepdims, initial, where):
    name = function.__name__
    opcode = REDUCTIONS.get(name)
    if opcode is None and name not in ("fmax", "fmin"):
        raise Fallback("")
    array = native(array)
    axes, target = axes_of(axis, array.ndim), target_of(out)
    if target is not None:
        _check_output(function, array, axes, keepdims, target)
    array = folded(function, array, dtype, target)
    if not (initial is _NO_VALUE or initial is None):
        initial = np.array(fallback.lower(initial), array.dtype)
        # NumPy begins with what the output holds of it.
        initial = (initial if target is None else initial.astype(target.dtype).astype(array.dtype))[()]
    if opcode is None:
        return deliver(_without_nan(name, array, axis, keepdims, initial, where), out, "unsafe")
    if is_complex(array._code) and name not in ("add", "multiply"):
        if name not in _EXTREMES or where is not True or initial is not _NO_VALUE:
            raise Fallback("complex numbers have no order in bh")
        return deliver(_by_pairs(function, array, axes, keepdims), out, "unsafe")
    mask = None
    if where is not True:
        where = mask_from(where)
        starts = function.identity is not None or not (initial is _NO_VALUE or initial is None)
        if name in MASKED and axes and starts and where._code == BOOL and where._stack == array._stack:
            opcode, mask = MASKED[name], _native.broadcast_to(where, array.shape)
        else:
            array = select(function, array, where, initial)
    empty = any(array.shape[axis] == 0 for axis in axes)
    if empty and (initial is None or function.identity is None and initial is _NO_VALUE):
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    if not axes:
        result = _native.cast_in_order(array, array._code)
        if array.ndim == 0:
            result._scalar = True
    elif empty and (function.identity is None or not (initial is _NO_VALUE or initial is None)):
        shape = tuple(1 if axis in axes else extent for axis, extent in enumerate(array.shape) if keepdims or axis not in axes)
        result = _native.full(shape, array._code, number_like(initial))
        result._scalar = not shape
    else:
        result = _native.fold(opcode, array, mask_of(axes), bool(keepdims), mask)
    if initial is not _NO_VALUE and initial is not None and not empty:
        result = astype(function(result, initial), array.dtype)
        if name == "add" and initial == 0 and (np.signbit(initial.real) or np.signbit(initial.imag)):
            result = _with_sign(function, result, array, axes, bool(keepdims), initial, mask)
    return deliver(result, out, "unsafe")


def _by_pairs(function, array, axes, keepdims):
    """A fold by a function of two arrays, which takes neighbours together again and again."""
    for axis in axes:
        if array.shape[axis] == 0:
            raise ValueError(f"zero-size array to reduction operation {function.__name__} which has no identity")
        while array.shape[axis] > 1:
            at = lambda *bounds: (slice(None),) * axis + (slice(*bounds),)
            even = array.shape[axis] // 2 * 2
            pairs = function(array[at(0, even, 2)], array[at(1, even, 2)])
            array = pairs if even == array.shape[axis] else concatenate([pairs, array[at(even, None)]], axis)
    shape = tuple(extent for axis, extent in enumerate(array.shape) if keepdims or axis not in axes)
    kept = tuple(0 if axis in axes and not keepdims else slice(None) for axis in range(array.ndim))
    result = _native.cast_in_order(array[kept], array._code)
    result._scalar = not shape
    return result


def _with_sign(function, result, array, axes, keepdims, initial, mask):
    """Sums from -0 on, of which those without any other element than -0 are -0: sums begin with +0."""
    if is_complex(array._code):
        where = True if mask is None else mask
        parts = [reduce(function, part_of(array, part), axes, None, None, keepdims, getattr(initial, part), where) for part in ("real", "imag")]
        made = complex_of(*parts)
        made._scalar = result._scalar
        return made

    negative = UFUNCS["logical_and"](UFUNCS["signbit"](array), array == 0)
    kept = negative if mask is None else UFUNCS["logical_or"](negative, ~mask)
    all_negative = _native.fold("logical_and_reduce", kept, mask_of(axes), keepdims)
    made = _native.operate("where", [all_negative, _native.full((), array._code, -0.0), result])
    made._scalar = result._scalar
    return made


def _without_nan(name, array, axis, keepdims, initial, where):
    """The largest or smallest of the elements that are not NaN; NaN where there are none."""
    extreme = UFUNCS["maximum" if name == "fmax" else "minimum"]
    if is_complex(array._code):
        raise Fallback("complex numbers have no order in bh")
    if not is_inexact(array._code):
        return reduce(extreme, array, axis, None, None, keepdims, initial, where)
    nan = UFUNCS["isnan"](array)
    neutral = _native.full((), array._code, -np.inf if name == "fmax" else np.inf)
    kept = _native.operate("where", [nan, neutral, array])
    best = reduce(extreme, kept, axis, None, None, keepdims, initial, where)
    if initial is not _NO_VALUE:
        return best
    none = reduce(UFUNCS["logical_and"], nan, axis, None, None, keepdims)
    return _native.operate("where", [none, _native.full((), array._code, np.nan), best])


def number_like(value):
    """A number as Python's own."""
    return value.item() if hasattr(value, "item") else value


def truth(array):
    """Is it not zero?"""
    return astype(array, bool)


def select(function, array, where, initial):
    """The elements where a mask is true, and elsewhere what changes nothing."""
    neutral = function.identity if function.identity is not None else None
    if neutral is None:
        if initial is _NO_VALUE:
            text = f"reduction operation '{function.__name__}' does not have an identity, so to use a where mask one has to specify 'initial'"
            raise ValueError(text)
        neutral = number_like(initial)
    where = _native.broadcast_to(mask_from(where), array.shape)
    neutral = _native.full((), array._code, np.array(neutral, array.dtype).item())
    return _native.operate("where", [where, array, neutral])


def accumulate(function, array, axis=0, dtype=None, out=None):
    """The results of folding the elements up to each one along an axis."""
    try:
        if function.nin != 2 or function.nout != 1:
            raise Fallback("")
        array, target = native(array), target_of(out)
        axis = only_axis(axis, array.ndim, "accumulate")
        if target is not None and target.shape != array.shape:
            function._np.accumulate(stand_in(array), axis, None, np.empty(target.shape, target.dtype))
        array = folded(function, array, dtype, target)
        if function.__name__ in ("add", "multiply"):
            result = _native.fold(f"{function.__name__}_accumulate", array, 1 << axis)
        elif function.__name__ in ASSOCIATIVE and not is_complex(array._code):
            result = _double(function, array, axis)
        else:
            raise Fallback("")
        floating_point.after_pieces(function._np.accumulate, (array, axis), result)
        return deliver(result, out, "unsafe")
    except Fallback as reason:
        kwargs = {"axis": axis, "dtype": dtype, "out": out}
        return fallback.call(function._np.accumulate, (array,), kwargs, f"numpy.{function.__name__}.accumulate", str(reason))


def _double(function, array, axis):
    """Running folds of an associative function: each step folds in as many elements again."""
    result = _native.cast_in_order(array, array._code)
    at = lambda *bounds: (slice(None),) * axis + (slice(*bounds),)
    step = 1
    while step < array.shape[axis]:
        result[at(step, None)] = function(result[at(None, -step)], result[at(step, None)])
        step *= 2
    return result


def outer(function, A, B, /, **kwargs):
    """The function of all pairs of an element of A and one of B."""
    if function.nin != 2:
        raise ValueError("outer product only supported for binary functions")
    try:
        a, b = native(A), native(B)
        if a.ndim + b.ndim > MOST_DIMENSIONS:
            raise Fallback("more dimensions than bh has")
    except Fallback as reason:
        return fallback.call(function._np.outer, (A, B), kwargs, f"numpy.{function.__name__}.outer", str(reason))
    a = _native.reshape(a, a.shape + (1,) * b.ndim)
    result = function(a, b, **kwargs)
    if not kwargs:
        floating_point.after(function._np, (a, b), {}, result)
    return result


def _adds_within(a, value):
    """Is the sum of elements and a value, converted back, as good as that of elements and the converted value?"""
    if a._code == BOOL or is_complex(value._code) and not is_complex(a._code):
        return False
    # NumPy adds u64 and signed numbers as floats.
    return is_inexact(a._code) >= (np.result_type(a.dtype, value.dtype).kind in "fc")


def at(function, a, indices, b=None, /):
    """Applies the function in place at indices, once for each, also where they repeat."""
    name = function.__name__
    if type(a) is ndarray and a._writeable and a._code != BOOL and name in ("add", "subtract"):
        is_number = type(b) is float or type(b) is int and a._code != UINT64 and abs(b) < 1 << 63
        # Adding -b gives other signs of zeros and NaN if b is zero or NaN.
        is_number = is_number and (name == "add" or abs(b) > 0)
        value = -b if is_number and name == "subtract" else b
        are_plain = is_number or name == "add" and type(b) is ndarray and a._code == b._code
        if are_plain and _native.add_at(a, indices, value):
            return None
    if (b is None) == (function.nin == 2):
        raise ValueError("second operand needed for ufunc" if b is None else "second operand provided when ufunc is unary")
    if type(a) is not ndarray:
        return function._np.at(a, fallback.lower(indices), *(() if b is None else (fallback.lower(b),)))
    if not a._writeable:
        raise ValueError("assignment destination is read-only")
    b = np.asarray(lower_nested(b)) if isinstance(b, (list, tuple)) else b
    if repeats(a):
        return function._np.at(to_write(a), fallback.lower(indices), *(() if b is None else (fallback.lower(b),)))
    sums = name in ("add", "subtract") and (b.dtype if hasattr(b, "dtype") else np.asarray(b).dtype) in CODE
    value = native(b) if sums else None
    if value is not None and _adds_within(a, value):
        value = astype(value, a.dtype)
        if name == "subtract":
            value = -value
        if _native.add_at(a, indices, value):
            return None
        flat, shape, order = indexing.flat_index(a, indices)
        value = _native.broadcast_to(indexing.arranged(value, order), shape)
        return _native.operate_into(a, "scatter_add", [value, flat])
    if name in _EXTREMES and _extreme_at(function, a, indices, b):
        return None
    fallback.note(f"numpy.{name}.at")
    copy = fallback.to_numpy(a)
    function._np.at(copy, fallback.lower(indices), *(() if b is None else (fallback.lower(b),)))
    fallback.overwrite(a, copy)


# Functions that give one of their operands: the largest, or the smallest.
_EXTREMES = ("maximum", "minimum")


def _extreme_at(function, a, indices, b):
    """Does a function of these at indices, unless the values are of a type that the array's does not hold."""
    host = b if type(b) is ndarray else np.asarray(fallback.lower(b))
    if type(b) in (int, float) and np.can_cast(host.dtype, a.dtype, "same_kind"):
        converted = host.astype(a.dtype)
        host = converted if converted == host else host
    if is_complex(a._code) or host.dtype not in CODE or not np.can_cast(host.dtype, a.dtype, "safe"):
        return False
    flat, shape, order = indexing.flat_index(a, indices)
    value = astype(native(host), a.dtype)
    if value.size != 1:
        # In ascending order, the last one of equal indices is the one to store; NaN is above all.
        value = _native.reshape(_native.broadcast_to(indexing.arranged(value, order), shape), (-1,))
        flat = _native.reshape(_native.broadcast_to(flat, shape), (-1,))
        turned = function.__name__ == "minimum" and is_inexact(a._code)
        places = sorting.argsort(-value if turned else value)
        if function.__name__ == "minimum" and not turned:
            places = places[::-1]
        flat, value = (_native.operate("gather", [array, places]) for array in (flat, value))
    _native.operate_into(a, "scatter", [_native.broadcast_to(function(_native.operate("gather", [a, flat]), value), flat.shape), flat])
    return True


def reduceat(function, array, indices, axis=0, dtype=None, out=None):
    """Folds of the slices between indices."""
    try:
        return _reduceat(function, array, indices, axis, dtype, out)
    except Fallback as reason:
        kwargs = {"axis": axis, "dtype": dtype, "out": out}
        return fallback.call(function._np.reduceat, (array, indices), kwargs, f"numpy.{function.__name__}.reduceat", str(reason))


def _reduceat(function, array, indices, axis, dtype, out):
    bounds = np.asarray(fallback.lower(indices))
    array, target = native(array), target_of(out)
    axis = only_axis(axis, array.ndim, "reduceat")
    extent = array.shape[axis]
    few = bounds.ndim == 1 and 0 < bounds.size <= 64 and function.__name__ in REDUCTIONS
    if not few or array._code not in CODE.values() or bounds.min() < 0 or bounds.max() >= extent:
        raise Fallback("")
    shape = array.shape[:axis] + bounds.shape + array.shape[axis + 1 :]
    if target is not None and target.shape != shape:
        function._np.reduceat(stand_in(array), bounds, axis, None, np.empty(target.shape, target.dtype))
    array, rows = folded(function, array, dtype, target), []
    for begin, end in zip(bounds.tolist(), [*bounds.tolist()[1:], extent]):
        part = array[(slice(None),) * axis + (slice(begin, max(end, begin + 1)),)]
        rows.append(reduce(function, part, axis, part.dtype, keepdims=True))
    result = concatenate(rows, axis)
    # The places of the slices say nothing about an order in memory.
    steps = [0 if place == axis else step for place, step in enumerate(array._stride)]
    axes = _native.memory_order([_native.window(array, array._start, list(array.shape), steps)])
    if axes is not None:
        result, rows = _native.empty(result.shape, result._code, _native.Stack(result._stack), axes), result
        _native.assign(result, rows)
    floating_point.after_pieces(function._np.reduceat, (array, bounds, axis), result)
    return deliver(result, out, "unsafe")


def _any_reduce(function, array, axis=0, dtype=None, out=None, keepdims=False, initial=_NO_VALUE, where=True):
    """Any reduction that the table of known folds does not serve."""
    has_options = dtype is not None or out is not None or keepdims is not False or initial is not _NO_VALUE or where is not True
    if type(array) in (list, tuple) and axis == 0 and type(axis) is int and not has_options and _are_alike(function, array):
        # One after the other, without a copy of all.
        return functools.reduce(function, _of_one_type(array))
    given = {"dtype": dtype, "out": out, "keepdims": keepdims, "initial": initial, "where": where}
    options = {name: value for name, value in given.items() if value is not _USUAL[name]}
    (kept,) = floating_point.kept((array,), out)
    result = reduce(function, array, axis, **given)
    floating_point.after_fold(function._np, kept, axis, options, result)
    # The frame between is that of `_left_to_operands`.
    return fallback.given(result, 2)


# Functions that select elements or bits of their operands.
_SELECTIVE = {"maximum", "minimum", "fmax", "fmin", "bitwise_and", "bitwise_or", "bitwise_xor"}
# Of more arrays, a copy and one fold are recorded faster.
_FEW_ARRAYS = 16


def _of_one_type(arrays):
    """The arrays in the type that an array of all of them has."""
    if all(one._code == arrays[0]._code for one in arrays):
        return arrays
    # `result_type` of more than two types may be narrower.
    common = functools.reduce(np.promote_types, [one.dtype for one in arrays])
    return [astype(one, common) for one in arrays]


def _are_alike(function, arrays):
    """Are these a few arrays of one shape, for which calls of the function for pairs give what its fold gives?"""
    if not 1 < len(arrays) <= _FEW_ARRAYS or function.__name__ not in _SELECTIVE:
        return False
    first = arrays[0]
    # Operations on bits refuse floats, and the error names the operands.
    is_mixed = "bitwise" not in function.__name__
    return all(type(one) is ndarray and one.ndim and one.shape == first.shape and (is_mixed or one._code == first._code) for one in arrays)


# The defaults of reductions' options.
_USUAL = {"dtype": None, "out": None, "keepdims": False, "initial": _NO_VALUE, "where": True}


def _left_to_operands(method, name):
    """A method of universal functions that leaves calls to operands with universal functions of their own, as they are."""

    @functools.wraps(method)
    def call(function, *args, **kwargs):
        if any(type(value) is not ndarray and overrides(value) for value in args):
            return getattr(function._np, name)(*args, **kwargs)
        if name.startswith(("reduce", "accumulate")) and any(value is ... for value in args):
            raise TypeError("out=... is only allowed as a keyword argument.")
        return method(function, *args, **kwargs)

    return call


ufunc._reduce = _left_to_operands(_any_reduce, "reduce")
for _method in (accumulate, outer, at, reduceat):
    _name, _made = _method.__name__, _left_to_operands(_method, _method.__name__)
    if _name in UFUNC_METHODS:
        _original, _row = getattr(np.ufunc, _name), UFUNC_METHODS[_name]
        _made = served(_name, immediate.at_hand(_made, _original, _row), _row, _original, method=True, home="bh.ufunc")
    setattr(ufunc, _name, _made)
