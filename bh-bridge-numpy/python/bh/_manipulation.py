"""Shapes and the order of elements: views where that is possible, else copies that the stack makes."""

import builtins
import operator

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from . import _indexing, _native
from ._convert import asarray, astype, native
from ._fallback import Fallback, falls_back
from ._types import BOOL, INT64, code_of
from ._ufunc import moved

ndarray = _native.ndarray


@falls_back
def reshape(a, /, shape=None, order="C", *, copy=None):
    """The elements in another shape, of which one extent may be -1."""
    a = native(a)
    if shape is None:
        raise TypeError("reshape() missing 1 required positional argument: 'shape'")
    if order == "F":
        shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        shape = np.empty(a.shape, np.int8).reshape(shape).shape
        return _reversed(_native.reshape(_reversed(a), shape[::-1]))
    result = _native.reshape(a, shape)
    if copy is False and result.base is None:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return _native.cast(result, result._code) if copy and result.base is not None else result


def _reversed(a):
    return _native.transpose(a, tuple(range(a.ndim))[::-1])


@falls_back
def ravel(a, order="C"):
    """The elements with one dimension, without a copy where that is possible."""
    return reshape(a, (-1,), order=order)


@falls_back
def transpose(a, axes=None):
    """The dimensions in another order; reversed without one."""
    a = native(a)
    if axes is None:
        return _reversed(a)
    axes = tuple(axes) if not isinstance(axes, int) else (axes,)
    if len(axes) != a.ndim:
        raise ValueError("axes don't match array")
    return _native.transpose(a, normalize_axis_tuple(axes, a.ndim))


permute_dims = transpose


@falls_back
def matrix_transpose(x, /):
    """The last two dimensions exchanged."""
    x = native(x)
    if x.ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {x.ndim}")
    return swapaxes(x, -1, -2)


@falls_back
def swapaxes(a, axis1, axis2):
    """Two dimensions exchanged."""
    a = native(a)
    axes = list(range(a.ndim))
    one, two = normalize_axis_index(axis1, a.ndim), normalize_axis_index(axis2, a.ndim)
    axes[one], axes[two] = axes[two], axes[one]
    return _native.transpose(a, axes)


@falls_back
def moveaxis(a, source, destination):
    """Some dimensions at other places."""
    a = native(a)
    source = normalize_axis_tuple(source, a.ndim, "source")
    destination = normalize_axis_tuple(destination, a.ndim, "destination")
    if len(source) != len(destination):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [axis for axis in range(a.ndim) if axis not in source]
    for place, axis in sorted(zip(destination, source)):
        order.insert(place, axis)
    return _native.transpose(a, order)


@falls_back
def rollaxis(a, axis, start=0):
    """One dimension before another one."""
    a = native(a)
    axis = normalize_axis_index(axis, a.ndim)
    start = start + a.ndim if start < 0 else start
    if not 0 <= start <= a.ndim:
        raise np.exceptions.AxisError(f"'start' arg requires {-a.ndim} <= start < {a.ndim + 1}, but {start} was passed in")
    order = [other for other in range(a.ndim) if other != axis]
    order.insert(start - (axis < start), axis)
    return _native.transpose(a, order)


@falls_back
def expand_dims(a, axis):
    """New dimensions of extent 1."""
    a = native(a)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = a.ndim + len(axes)
    axes = normalize_axis_tuple(axes, rank)
    return a[tuple(None if place in axes else slice(None) for place in range(rank))]


@falls_back
def squeeze(a, axis=None):
    """Without dimensions of extent 1."""
    a = native(a)
    if axis is None:
        axes = tuple(place for place, extent in enumerate(a.shape) if extent == 1)
    else:
        axes = normalize_axis_tuple(axis, a.ndim)
        if any(a.shape[place] != 1 for place in axes):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    kept = [place for place in range(a.ndim) if place not in axes]
    shape, stride = zip(*((a.shape[p], a._stride[p]) for p in kept)) if kept else ((), ())
    return _native.window(a, a._start, list(shape), list(stride))


@falls_back
def broadcast_to(array, shape, subok=False):
    """A read-only view with another shape, as in broadcasting."""
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    return _native.broadcast_to(native(array), shape)


@falls_back
def broadcast_arrays(*args, subok=False):
    """The arrays with the shape that they broadcast to."""
    args = [native(value) for value in args]
    shape = np.broadcast_shapes(*(value.shape for value in args))
    return tuple(_native.broadcast_to(value, shape) for value in args)


def _joined_type(arrays, dtype, casting):
    kind = np.result_type(*(value.dtype for value in arrays)) if dtype is None else np.dtype(dtype)
    if code_of(kind) is None:
        raise Fallback(f"bh has no element type {kind}")
    for value in arrays:
        if not np.can_cast(value.dtype, kind, casting):
            raise TypeError(f"Cannot cast array data from {value.dtype!r} to {kind!r} according to the rule '{casting}'")
    return kind


@falls_back
def concatenate(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """The arrays one after the other along a dimension that they have."""
    arrays = [native(value) for value in arrays]
    if not arrays:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        arrays, axis = [reshape(value, (-1,)) for value in arrays], 0
    if builtins.any(value.ndim == 0 for value in arrays):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    rank = arrays[0].ndim
    axis = normalize_axis_index(axis, rank)
    shape = list(arrays[0].shape)
    for number, value in enumerate(arrays):
        if value.ndim != rank:
            text = "all the input array dimensions except for the concatenation axis must match exactly, but along dimension"
            if rank != value.ndim:
                text = f"all the input arrays must have same number of dimensions, but the array at index 0 has {rank} dimension(s) and the array at index {number} has {value.ndim} dimension(s)"
            raise ValueError(text)
        for place in range(rank):
            if place != axis and value.shape[place] != shape[place]:
                text = "all the input array dimensions except for the concatenation axis must match exactly, but along dimension {}, the array at index 0 has size {} and the array at index {} has size {}"
                raise ValueError(text.format(place, shape[place], number, value.shape[place]))
    shape[axis] = sum(value.shape[axis] for value in arrays)
    kind = _joined_type(arrays, out.dtype if out is not None else dtype, casting)
    if out is None:
        result = _native.empty(tuple(shape), code_of(kind), _native.Stack(arrays[0]._stack))
    elif type(out) is not ndarray:
        raise Fallback("the output is an array of NumPy")
    elif out.shape != tuple(shape):
        raise ValueError("Output array is the wrong shape")
    else:
        result = out
    begin = 0
    for value in arrays:
        end = begin + value.shape[axis]
        if value.size:
            part = result[(slice(None),) * axis + (slice(begin, end),)]
            _native.assign(part, astype(moved(value, result), kind))
        begin = end
    return result


concat = concatenate


@falls_back
def stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """The arrays beside each other along a new dimension; for a name, the stack of components of this name for arrays made
    in a `with` statement."""
    if isinstance(arrays, str):
        from ._runtime import using

        return using(arrays)
    arrays = [native(value) for value in arrays]
    if not arrays:
        raise ValueError("need at least one array to stack")
    if len({value.shape for value in arrays}) > 1:
        raise ValueError("all input arrays must have the same shape")
    axis = normalize_axis_index(axis, arrays[0].ndim + 1)
    return concatenate([expand_dims(value, axis) for value in arrays], axis, out, dtype=dtype, casting=casting)


def atleast_1d(*arys):
    """The arrays with at least one dimension."""
    return _at_least(arys, lambda a: reshape(a, (1,)) if a.ndim == 0 else a)


def atleast_2d(*arys):
    """The arrays with at least two dimensions."""
    return _at_least(arys, lambda a: reshape(a, (1,) * (2 - a.ndim) + a.shape) if a.ndim < 2 else a)


def atleast_3d(*arys):
    """The arrays with at least three dimensions."""

    def lift(a):
        if a.ndim < 2:
            return reshape(a, (1, a.size, 1))
        return a[:, :, None] if a.ndim == 2 else a

    return _at_least(arys, lift)


def _at_least(arys, lift):
    made = tuple(lift(asarray(value)) for value in arys)
    return made[0] if len(made) == 1 else made


def vstack(tup, *, dtype=None, casting="same_kind"):
    """The arrays below each other."""
    return concatenate([atleast_2d(value) for value in tup], 0, dtype=dtype, casting=casting)


def hstack(tup, *, dtype=None, casting="same_kind"):
    """The arrays side by side."""
    arrays = [atleast_1d(value) for value in tup]
    return concatenate(arrays, 0 if arrays and arrays[0].ndim == 1 else 1, dtype=dtype, casting=casting)


def dstack(tup):
    """The arrays behind each other."""
    return concatenate([atleast_3d(value) for value in tup], 2)


def column_stack(tup):
    """Vectors as columns of a matrix."""
    arrays = [asarray(value) for value in tup]
    return concatenate([reshape(value, (-1, 1)) if value.ndim < 2 else value for value in arrays], 1)


def unstack(x, /, *, axis=0):
    """The parts along a dimension, without it."""
    x = asarray(x)
    if x.ndim == 0:
        raise ValueError("Input array must be at least 1-d.")
    return tuple(moveaxis(x, axis, 0)[number] if x.ndim > 1 else reshape(x[number : number + 1], ()) for number in range(x.shape[axis]))


@falls_back
def array_split(ary, indices_or_sections, axis=0):
    """Parts along a dimension, as equal as may be or cut at indices."""
    ary = native(ary)
    axis = normalize_axis_index(axis, ary.ndim)
    extent = ary.shape[axis]
    try:
        bounds = [0, *map(operator.index, indices_or_sections), extent]
    except TypeError:
        sections = operator.index(indices_or_sections)
        if sections <= 0:
            raise ValueError("number sections must be larger than 0.") from None
        each, more = divmod(extent, sections)
        bounds = [number * each + min(number, more) for number in range(sections + 1)]
    cut = lambda begin, end: ary[(slice(None),) * axis + (slice(begin, end),)]
    return [cut(begin, end) for begin, end in zip(bounds, bounds[1:])]


@falls_back
def split(ary, indices_or_sections, axis=0):
    """Equal parts along a dimension, or parts cut at indices."""
    ary = native(ary)
    if isinstance(indices_or_sections, (int, np.integer)) and ary.shape[axis] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return array_split(ary, indices_or_sections, axis)


def hsplit(ary, indices_or_sections):
    """Parts side by side."""
    ary = asarray(ary)
    if ary.ndim == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return split(ary, indices_or_sections, 1 if ary.ndim > 1 else 0)


def vsplit(ary, indices_or_sections):
    """Parts below each other."""
    ary = asarray(ary)
    if ary.ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(ary, indices_or_sections, 0)


def dsplit(ary, indices_or_sections):
    """Parts behind each other."""
    ary = asarray(ary)
    if ary.ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return split(ary, indices_or_sections, 2)


@falls_back
def flip(m, axis=None):
    """The elements in the other direction, as a view."""
    m = native(m)
    axes = range(m.ndim) if axis is None else normalize_axis_tuple(axis, m.ndim)
    return m[tuple(slice(None, None, -1) if place in axes else slice(None) for place in range(m.ndim))] if m.ndim else m[...]


def fliplr(m):
    """The elements of rows in the other direction."""
    if asarray(m).ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return flip(m, 1)


def flipud(m):
    """The rows in the other direction."""
    if asarray(m).ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return flip(m, 0)


@falls_back
def roll(a, shift, axis=None):
    """The elements moved along dimensions; what leaves at one end enters at the other."""
    a = native(a)
    if axis is None:
        return reshape(roll(reshape(a, (-1,)), shift, 0), a.shape)
    axes = normalize_axis_tuple(axis, a.ndim, allow_duplicate=True)
    shifts = np.broadcast_to(shift, len(axes)) if np.ndim(shift) else [int(shift)] * len(axes)
    if np.ndim(shift) and len(axes) == 1:
        axes, shifts = axes * len(shift), list(shift)
    total = [0] * a.ndim
    for place, distance in zip(axes, shifts):
        total[place] += int(distance)
    for place, distance in enumerate(total):
        extent = a.shape[place]
        distance = distance % extent if extent else 0
        if distance:
            at = lambda *bounds: (slice(None),) * place + (slice(*bounds),)
            a = concatenate([a[at(extent - distance, None)], a[at(None, extent - distance)]], place)
    return _native.cast(a, a._code)


@falls_back
def repeat(a, repeats, axis=None):
    """Each element so many times, one after the other."""
    a = native(a)
    if axis is None:
        a, axis = reshape(a, (-1,)), 0
    axis = normalize_axis_index(axis, a.ndim)
    counts = np.asarray(repeats)
    if counts.dtype.kind not in "iub":
        raise TypeError(f"Cannot cast array data from {counts.dtype!r} to dtype('int64') according to the rule 'safe'")
    if counts.size == 1:
        count = int(counts.reshape(()))
        if count < 0:
            raise ValueError("repeats may not contain negative values.")
        wide = _native.broadcast_to(expand_dims(a, axis + 1), a.shape[: axis + 1] + (count,) + a.shape[axis + 1 :])
        flat = a.shape[:axis] + (a.shape[axis] * count,) + a.shape[axis + 1 :]
        return _native.reshape(_native.cast(wide, a._code), flat)
    numbers = np.repeat(np.arange(a.shape[axis]), counts)
    return a[(slice(None),) * axis + (native(numbers),)]


@falls_back
def tile(A, reps):
    """The array so many times along each dimension."""
    A = native(A)
    reps = (int(reps),) if np.ndim(reps) == 0 else tuple(int(count) for count in reps)
    rank = max(A.ndim, len(reps))
    reps = (1,) * (rank - len(reps)) + reps
    shape = (1,) * (rank - A.ndim) + A.shape
    inner = _native.reshape(A, tuple(part for extent in shape for part in (1, extent)))
    wide = _native.broadcast_to(inner, tuple(part for pair in zip(reps, shape) for part in pair))
    return _native.reshape(_native.cast(wide, A._code), tuple(count * extent for count, extent in zip(reps, shape)))


@falls_back
def append(arr, values, axis=None):
    """The values after the elements of an array."""
    if axis is None:
        return concatenate([ravel(arr), ravel(values)])
    return concatenate([arr, values], axis)


@falls_back
def resize(a, new_shape):
    """The elements, repeated as often as another shape needs."""
    shape = (new_shape,) if isinstance(new_shape, (int, np.integer)) else tuple(new_shape)
    if builtins.any(extent < 0 for extent in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    a = ravel(native(a))
    size = int(np.prod(shape, dtype=np.int64))
    if a.size == 0 or size == 0:
        return _native.full(shape, a._code, False if a._code == BOOL else 0)
    return _native.reshape(tile(a, -(-size // a.size))[:size], shape)


@falls_back
def diagonal(a, offset=0, axis1=0, axis2=1):
    """The diagonal of two dimensions, as a read-only view with it as last dimension."""
    a = native(a)
    if a.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    one, two = normalize_axis_index(axis1, a.ndim), normalize_axis_index(axis2, a.ndim)
    if one == two:
        raise ValueError("axis1 and axis2 cannot be the same")
    result = _native.diagonal(a, offset, one, two)
    result._writeable = False
    return result


@falls_back
def diag(v, k=0):
    """The diagonal of a matrix, or a matrix with this diagonal."""
    v = native(v)
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    size = v.size + abs(k)
    result = _native.full((size, size), v._code, False if v._code == BOOL else 0)
    _native.assign(_native.diagonal(result, k, 0, 1), v)
    return result


def diagflat(v, k=0):
    """A matrix with this diagonal."""
    return diag(ravel(v), k)


def _triangle(m, k, lower):
    m = native(m)
    if m.ndim == 1:
        m = _native.broadcast_to(m, (m.size, m.size))
    rows = _native.reshape(_native.arange((m.shape[-2],), INT64, 0, 1), (-1, 1))
    below = rows >= _native.arange((m.shape[-1],), INT64, -k, 1)
    zero = _native.full((), m._code, False if m._code == BOOL else 0)
    below = _native.broadcast_to(below, m.shape)
    return _native.operate("where", [below, m, zero] if lower else [below, zero, m])


@falls_back
def tril(m, k=0):
    """The elements at and below a diagonal, others zero."""
    return _triangle(m, k, True)


@falls_back
def triu(m, k=0):
    """The elements at and above a diagonal, others zero."""
    return _triangle(m, k - 1, False)


@falls_back
def flatnonzero(a):
    """The flat indices of elements that are not zero."""
    return _indexing.flatnonzero(astype(native(a), bool))


