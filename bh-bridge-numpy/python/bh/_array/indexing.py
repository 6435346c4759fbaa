"""Advanced indexing: arrays of indices and masks, to read and to assign, as flat indices into a view."""

import operator
from math import prod

import numpy as np

from .. import _native
from .._numpy import fallback, immediate
from .._ufunc.axes import stand_in
from .conversion import assigned, astype, in_order, lower_nested, moved, native, store, to_write
from .element_types import BOOL, INT64, is_integer
from .layout import repeats
from .memory import apart, ranks_of

ndarray = _native.ndarray

# An index out of range becomes a flat index that no array has, so that it is an error where the flat ones are looked at. That says
# which one it was: above this bit there are four with the axis, then come as many with the extent and with the index as these. The
# native half makes NumPy's words of it.
_NOWHERE, _EXTENT_BITS = 1 << 62, 29


def _chosen(method, made, inputs):
    """Calls a method that counts first and writes then; false if no component of the stack has it."""
    try:
        _native.extension(method, [made], inputs)
    except _native.Error:
        return False
    return True


def _count(mask):
    """The number of true elements, which is waited for; None if no component of the stack counts them."""
    total = _native.empty((), INT64, _native.Stack(mask._stack))
    return _native.item_of(total) if _chosen("count_nonzero", total, [mask]) else None


def flatnonzero(mask):
    """The flat indices of true elements in C order, as i64. Waits for their number."""
    flat = _native.reshape(mask, (-1,))
    if flat.size == 0:
        return _native.empty((0,), INT64)
    count = _count(flat)
    if count is not None:
        found = _native.empty((count,), INT64, _native.Stack(flat._stack))
        if count == 0 or _chosen("flatnonzero", found, [flat]):
            return found
    places = _native.fold("add_accumulate", _native.cast(flat, INT64), 1)
    count = _native.item_of(places[-1:])
    found = _native.empty((count,), INT64)
    if count:
        numbers = _native.arange(flat.shape, INT64, 0, 1)
        _native.operate_into(found, "cond_scatter", [numbers, places - 1, flat])
    return found


def nonzero(array):
    """The indices of elements that are not zero, an array for each dimension."""
    array = native(array)
    if array.ndim == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.")
    flat = flatnonzero(astype(array, bool))
    return split_flat(flat, array.shape)


def beside(parts):
    """Arrays of one shape as views of one array that has their elements side by side, as NumPy's arrays of indices are."""
    if len(parts) == 1:
        return parts
    whole = _native.empty((*parts[0].shape, len(parts)), parts[0]._code, _native.Stack(parts[0]._stack))
    views = tuple(whole[..., place] for place in range(len(parts)))
    for view, part in zip(views, parts):
        _native.assign(view, part)
    return views


def split_flat(flat, shape):
    """Flat indices as an index array for each dimension."""
    if len(shape) == 1:
        return (flat,)
    result = []
    for extent in reversed(shape[1:]):
        result.append(flat % max(extent, 1))
        flat = flat // max(extent, 1)
    return (flat, *reversed(result))


def _index_array(part):
    """A part of a key as an index array or a mask of bh; data that the host has is kept beside it for checks."""
    if type(part) is ndarray:
        return part, None
    host = np.asarray(lower_nested(part))
    if host.size == 0 and not isinstance(part, np.ndarray):
        host = host.astype(np.int64)
    return native(host), host


class _Key:
    """A key: the view that its basic parts select, and index arrays for some of the view's dimensions."""

    def __init__(self, array, key):
        self.view, self.dims, self.axes, self.arrays, self.hosts = array, [], [], [], []
        parts = self._expanded(array, key if type(key) is tuple else (key,))
        # Whole numbers beside index arrays are index arrays.
        basic, axis = [], 0
        for dim, part in enumerate(parts):
            if isinstance(part, (slice, type(None), type(Ellipsis))):
                basic.append(part)
            else:
                # A single truth value is a mask of a new dimension of extent 1.
                basic.append(None if len(part) == 3 else slice(None))
                self.dims.append(dim)
                self.axes.append(axis)
                self.arrays.append(part[0])
                self.hosts.append(part[1])
            axis += basic[-1] is not None
        self.view = _native.basic_view(array, tuple(basic)) if basic else array
        if self.view is None:
            raise fallback.Fallback("more dimensions than bh has")
        # With an ellipsis expanded by then, dimensions of the key are those of the view.
        self._check()

    def _expanded(self, array, parts):
        """Parts of the key without `...`, with a part for each dimension that is indexed; masks as their indices."""
        made, used, ellipses = [], 0, 0
        for part in parts:
            if part is None or isinstance(part, slice):
                made.append(part)
                used += part is not None
            elif part is Ellipsis:
                made.append(part)
                ellipses += 1
            elif isinstance(part, (bool, np.bool_)):
                made.append((_native.full((), BOOL, bool(part)), np.asarray(bool(part))))
            else:
                try:
                    whole = operator.index(part) if type(part) is not ndarray or part.ndim == 0 and part.dtype.kind in "iu" else None
                except TypeError:
                    whole = None
                if whole is not None:
                    if not -(2**63) <= whole < 2**63:
                        raise IndexError("cannot fit 'int' into an index-sized integer")
                    made.append((_native.full((), INT64, whole), np.asarray(whole)))
                    used += 1
                    continue
                if isinstance(part, (str, bytes, float, complex)):
                    kinds = "integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays"
                    raise IndexError(f"only {kinds} are valid indices")
                index, host = _index_array(part)
                if index._code != BOOL and index.dtype.kind not in "iu":
                    raise IndexError("arrays used as indices must be of integer (or boolean) type")
                made.append((index, host))
                used += index.ndim if index._code == BOOL else 1
        if ellipses > 1:
            raise IndexError("an index can only have a single ellipsis ('...')")
        if used > array.ndim:
            raise IndexError(f"too many indices for array: array is {array.ndim}-dimensional, but {used} were indexed")
        rest = [slice(None)] * (array.ndim - used)
        if not ellipses:
            made.append(Ellipsis)
        place = next(number for number, part in enumerate(made) if part is Ellipsis)
        # Index arrays on both sides of an ellipsis are apart, also where it stands for no dimension.
        self.apart = all(any(type(part) is tuple for part in side) for side in (made[:place], made[place:]))
        made[place : place + 1] = rest
        return self._without_masks(array, made)

    def _without_masks(self, array, parts):
        result, axis = [], 0
        for part in parts:
            if type(part) is not tuple:
                result.append(part)
                axis += part is not None
            elif part[0]._code != BOOL:
                result.append(part)
                axis += 1
            else:
                mask = part[0]
                if mask.ndim == 0:
                    result.append((*nonzero(_native.reshape(mask, (1,))), None, True))
                    continue
                for number, extent in enumerate(mask.shape):
                    # As in NumPy, what has no elements fits axes of any size.
                    if extent not in (0, array.shape[axis + number]):
                        text = "boolean index did not match indexed array along axis {}; size of axis is {} but size of corresponding boolean axis is {}"
                        raise IndexError(text.format(axis + number, array.shape[axis + number], extent))
                result.extend((index, None) for index in nonzero(mask))
                axis += mask.ndim
        return result

    def _check(self):
        """Compares indices that the host has with the extents; the others are compared where they are used."""
        for dim, axis, host in zip(self.dims, self.axes, self.hosts):
            if host is not None:
                check_bounds(host, axis, self.view.shape[dim])

    def check_nothing(self):
        """Compares all indices with the extents, where they choose nothing that would be looked at."""
        for dim, axis, index, host in zip(self.dims, self.axes, self.arrays, self.hosts):
            if host is None:
                check_bounds(fallback.to_numpy(index), axis, self.view.shape[dim])

    def layout(self):
        """The order in memory of the chosen elements: that of the index arrays' dimensions (None for C's), that of the others, and where the
        result has each of its dimensions if those of the index arrays come first in memory, and then the rest (None for all in place)."""
        joint, shape, begin = self.shapes()
        kept = [dim for dim in range(self.view.ndim) if dim not in self.dims]
        size = prod(self.view.shape[dim] for dim in kept)
        order = _native.memory_order(self.arrays) if size == 1 else None
        rest = sorted(range(len(kept)), key=lambda place: -abs(self.view._stride[kept[place]]))
        inner = [len(joint) + place for place in np.argsort(rest).tolist()]
        outer = range(len(joint)) if order is None else np.argsort(order).tolist()
        places = [*inner[:begin], *outer, *inner[begin:]]
        return order, rest, None if places == sorted(places) else places

    def turn(self):
        """Puts dimensions into that order. Returns where the result has each of its dimensions then, or None for all in place."""
        order, rest, places = self.layout()
        if order is not None:
            rank = len(self.shapes()[0])
            wide = [_native.reshape(index, (1,) * (rank - index.ndim) + index.shape) if index.ndim else index for index in self.arrays]
            self.arrays = [_native.transpose(index, order) if index.ndim else index for index in wide]
        if rest != sorted(rest):
            kept = [dim for dim in range(self.view.ndim) if dim not in self.dims]
            self.view = _native.transpose(self.view, [*self.dims, *(kept[place] for place in rest)])
            self.dims = list(range(len(self.dims)))
        return places

    def is_in_order(self):
        """Do the chosen elements lie in C's order in NumPy's memory?"""
        _, shape, _ = self.shapes()
        places = self.layout()[2] or range(len(shape))
        kept = [place for place, extent in zip(places, shape) if extent != 1]
        return kept == sorted(kept)

    def shapes(self):
        """The shape that the index arrays broadcast to, that of the result, and where in it the former begins."""
        try:
            joint = np.broadcast_shapes(*(index.shape for index in self.arrays))
        except ValueError as error:
            if "mismatch" not in str(error):
                raise
            shown = " ".join(str(index.shape).replace(", ", ",") for index in self.arrays)
            raise IndexError(f"shape mismatch: indexing arrays could not be broadcast together with shapes {shown} ") from None
        first, last = self.dims[0], self.dims[-1]
        begin = first if last - first + 1 == len(self.dims) and not self.apart else 0
        rest = [extent for dim, extent in enumerate(self.view.shape) if dim not in self.dims]
        return joint, tuple(rest[:begin]) + joint + tuple(rest[begin:]), begin

    def flat(self, first=False):
        """The flat index into the view for each element of the result, in the result's shape; `first`: with the dimensions of
        the index arrays before all others."""
        joint, shape, begin = self.shapes()
        if first:
            begin, shape = 0, joint + shape[:begin] + shape[begin + len(joint) :]
        if self.view.ndim == 1:
            return self._wrapped(self.arrays[0], None), shape
        total, step = None, 1
        steps = {}
        for dim in reversed(range(self.view.ndim)):
            steps[dim] = step
            step *= self.view.shape[dim]
        kept = [dim for dim in range(self.view.ndim) if dim not in self.dims]
        for number, dim in enumerate(kept):
            place = number if number < begin else number + len(joint)
            extent = self.view.shape[dim]
            numbers = _native.arange((extent,), INT64, 0, steps[dim])
            numbers = _native.reshape(numbers, (extent,) + (1,) * (len(shape) - place - 1))
            total = numbers if total is None else total + numbers
        after = len(shape) - begin - len(joint)
        for dim, index, host in zip(self.dims, self.arrays, self.hosts):
            index = self._wrapped(index, self.view.shape[dim] if host is None or host.size and host.min() < 0 else None, host)
            index = _native.reshape(index, index.shape + (1,) * after) * steps[dim]
            total = index if total is None else total + index
        # Indices that only the stack knows are out of range where one of them is.
        for dim, axis, index, host in zip(self.dims, self.axes, self.arrays, self.hosts):
            if host is None:
                extent = self.view.shape[dim]
                index = _native.reshape(astype(index, np.int64), index.shape + (1,) * after)
                outside = (index < -extent) | (index >= extent)
                total = _native.operate("where", [outside, _nowhere(index, axis, extent), total])
        return _native.broadcast_to(total, shape), shape

    def _wrapped(self, index, extent, host=None):
        """Index arrays as i64; counted from the end where they are negative, if an extent is given."""
        index = astype(index, np.int64)
        if extent is not None:
            index = _native.operate("where", [index < 0, index + extent, index])
        return index


def _nowhere(index, axis, extent):
    """Flat indices that no array has, which say which index they stand for."""
    extents = 1 << _EXTENT_BITS
    if extent >= extents:
        return _native.full((), INT64, np.iinfo(np.int64).max)
    return (index & (extents - 1)) | (_NOWHERE | axis << 2 * _EXTENT_BITS | extent << _EXTENT_BITS)


def check_bounds(indices, axis, extent):
    """Fails as NumPy does if one of the indices, which the host has, is out of bounds."""
    wrong = indices[(indices < -extent) | (indices >= extent)] if indices.size else ()
    for index in wrong[:1]:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {extent}")


def flat_index(array, key):
    """Flat indices into the array for a key, the shape of what it selects, and how values are arranged for it."""
    parts = _Key(array, key)
    if not parts.dims:
        numbers = _native.reshape(_native.arange((array.size,), INT64, 0, 1), array.shape)
        view = _native.basic_view(numbers, key)
        view = view if view is not None else numbers[key]
        return _native.cast(view, INT64), view.shape, None
    flat, shape = parts.flat()
    if parts.view.shape != array.shape or parts.view._stride != array._stride:
        numbers = _native.reshape(_native.arange((array.size,), INT64, 0, 1), array.shape)
        flat = _native.operate("gather", [_Key(numbers, key).view, _native.cast(flat, INT64)])
    return flat, shape, None


def arranged(value, order):
    """A value in the order of dimensions that a flat index asks for."""
    return value if order is None else _native.transpose(value, order)


def _affine(array, key):
    """The view of an array that affine subscripts of a loop go over."""
    key = key if type(key) is tuple else (key,)
    shape = next(part.shape for part in key if hasattr(part, "factors"))
    if len(key) != array.ndim:
        raise IndexError(f"a loop needs {array.ndim} subscripts for this array, not {len(key)}")
    start, stride = array._start, [0] * len(shape)
    for part, extent, step in zip(key, array.shape, array._stride):
        affine = hasattr(part, "factors")
        factors, offset = (part.factors, part.offset) if affine else ((0,) * len(shape), part + extent * (part < 0))
        low, high = part.reach() if affine else (offset, offset)
        if 0 not in shape and not 0 <= low <= high < extent:
            raise IndexError(f"a subscript goes from {low} to {high} in an axis of size {extent}")
        start += offset * step
        stride = [have + factor * step for have, factor in zip(stride, factors)]
    return _native.window(array, start, list(shape), stride)


def _without_range(part):
    """A part of a key, with an array in the place of a range."""
    return np.arange(part.start, part.stop, part.step) if type(part) is range else part


def _chooses_nothing(array, key, value):
    """Are these an empty array of indices, and as many values of the array's type?"""
    if not type(key) is type(value) is ndarray or key.size or not is_integer(key._code) or value._code != array._code:
        return False
    return bool(array.ndim) and value.shape == key.shape + array.shape[1:]


def get(array, key, in_c=False):
    """The elements that an advanced key selects: a new array; for the indices of a loop the view that they go over. In memory, the
    dimensions of index arrays come first, unless the array is to be in C's order."""
    if any(hasattr(part, "factors") for part in (key if type(key) is tuple else (key,))):
        return _affine(array, key)
    if isinstance(key, tuple) and (type(key) is not tuple or range in map(type, key)):
        return array[tuple(map(_without_range, key))]
    if isinstance(key, (bool, np.bool_)) or type(key) is ndarray and key._code == BOOL and not key.ndim:
        return in_order(array[None], "K") if key else _native.empty((0, *array.shape), array._code)
    try:
        chosen = None if in_c else immediate.chosen(array, key)
        chosen = _compressed(array, key) if chosen is None else chosen
        if chosen is not None:
            return chosen
        parts = _Key(array, key)
        if not parts.dims:
            return parts.view
        if any(host is None and type(index) is ndarray and index._stack != array._stack for index, host in zip(parts.arrays, parts.hosts)):
            parts.arrays = [moved(index, array) for index in parts.arrays]
        in_place = in_c or ranks_of(array._stack) > 1
        places = None if in_place else parts.turn()
        flat, shape = parts.flat(not in_place)
        if 0 in shape or parts.view.size == 0:
            if 0 not in parts.shapes()[0]:
                parts.check_nothing()
            return _native.empty(shape if places is None else tuple(shape[place] for place in places), array._code)
        if in_place and not in_c and not parts.is_in_order():
            result = apart(shape, array._code, array._stack)
            _native.operate_into(result, "gather", [parts.view, _native.cast(flat, INT64)])
            return result
        result = _native.operate("gather", [parts.view, flat])
        return result if places is None else _native.transpose(result, places)
    except fallback.Fallback:
        return fallback.call(operator.getitem, (array, key), {}, "indexing")


def _depth(value):
    """How many lists or tuples are in each other, by their first elements."""
    depth = 0
    while isinstance(value, (list, tuple)):
        depth += 1
        value = value[0] if value else None
    return depth


def set(array, key, value):
    """Assigns to what any key selects."""
    if isinstance(key, tuple) and (type(key) is not tuple or range in map(type, key)):
        array[tuple(map(_without_range, key))] = value
        return None
    if _chooses_nothing(array, key, value):
        return None
    view = _native.basic_view(array, key)
    if view is None and repeats(array):
        # Elements share memory: a write to one changes others.
        to_write(array)[fallback.lower(key)] = fallback.lower(value)
        return None
    if view is not None and 0 < view.ndim < _depth(value):
        text = "setting an array element with a sequence. The requested array would exceed the maximum number of dimension of"
        raise ValueError(f"{text} {view.ndim}.")
    if (view is None or view.ndim and not repeats(view)) and fallback.is_of_numbers(value):
        # The native half takes an array.
        array[key] = fallback.from_host(np.array(value, array.dtype), array._code)
        return None
    if view is not None and view.ndim == 0 and (type(value) is not ndarray or value.ndim):
        value = element_of(value, array.dtype, not any(part is Ellipsis for part in (key if type(key) is tuple else (key,))))
    try:
        value = assigned(value, array.dtype)
    except fallback.Fallback:
        return _through_numpy(array, key, value)
    if value._stack != array._stack:
        value = moved(value, array)
    if view is not None:
        return store(view, fitted(value, view.shape))
    mask = whole_mask(array, key)
    if mask is not None and mask.ndim == array.ndim and value.ndim > 1:
        text = "NumPy boolean array indexing assignment requires a 0 or 1-dimensional input, input has"
        raise TypeError(f"{text} {value.ndim} dimensions")
    if mask is not None and value.size == 1:
        value = _native.reshape(value, ())
        return _native.operate_into(array, "where", [_spread(mask, array), value, array])
    try:
        parts = _Key(array, key)
    except fallback.Fallback:
        return _through_numpy(array, key, value)
    flat, shape = parts.flat()
    value = fitted(value, shape, "shape mismatch: value array of shape {} could not be broadcast to indexing result of shape {}")
    if 0 in shape or parts.view.size == 0:
        if 0 not in parts.shapes()[0]:
            parts.check_nothing()
    else:
        _native.operate_into(parts.view, "scatter", [value, _native.cast(flat, INT64)])


def element_of(value, dtype, single=True):
    """The value of an element of an array of this type after an assignment, as in NumPy; of a single one, or of a 0-d array."""
    element = np.empty(1, dtype)
    if type(value) is ndarray:
        # Of several elements there is nothing but an error.
        value = fallback.lower(value) if value.size == 1 else stand_in(value)
    value = lower_nested(value)
    if single:
        element[0] = value
    else:
        element.reshape(())[...] = value
    return element.reshape(())


def whole_mask(array, key):
    """The mask, if the key is one for the first dimensions of the array."""
    if type(key) is tuple and len(key) == 1:
        key = key[0]
    if isinstance(key, np.ndarray) and key.dtype == bool and key.ndim:
        key = native(np.asarray(key))
    if type(key) is ndarray and key._code == BOOL and 0 < key.ndim <= array.ndim and key.shape == array.shape[: key.ndim]:
        return key
    return None


def _compressed(array, key):
    """The elements that a mask of the array's shape chooses; None if the key is none, or no component of the stack has this."""
    mask = whole_mask(array, key)
    if mask is None or mask.ndim != array.ndim or mask.size == 0 or mask._stack != array._stack:
        return None
    count = _count(mask)
    if count is None:
        return None
    made = _native.empty((count,), array._code, _native.Stack(array._stack))
    return made if count == 0 or _chosen("compress", made, [mask, array]) else None


def _spread(mask, array):
    """A mask of the first dimensions for all of them."""
    mask = _native.reshape(mask, mask.shape + (1,) * (array.ndim - mask.ndim))
    return _native.broadcast_to(mask, array.shape)


def fitted(value, shape, text="could not broadcast input array from shape {} into shape {}"):
    """The value broadcast to a shape; further dimensions of extent 1 in front are dropped, as NumPy does. `text` says what does not fit."""
    while value.ndim > len(shape) and value.shape[0] == 1:
        value = _native.reshape(value, value.shape[1:])
    try:
        return _native.broadcast_to(value, shape)
    except ValueError:
        shown = [str(s).replace(", ", ",") for s in (value.shape, shape)]
        raise ValueError(text.format(*shown)) from None


def _through_numpy(array, key, value):
    fallback.note("indexing")
    copy = fallback.to_numpy(array)
    copy[fallback.lower(key)] = fallback.lower(value)
    fallback.overwrite(array, copy)
