"""Arrays of NumPy's interface over a back end's primitives.

An array has memory of the back end, and a *form*: an empty array of NumPy with its shape, strides and type, whose elements are never
looked at. Views are taken of forms by NumPy. Functions of NumPy reach arrays by its two protocols; what primitives cannot do goes
to NumPy and back, which is counted.
"""

import collections
import os
import sys
import warnings

import numpy as np

# Functions that give views, or only look at the form.
_VIEWS = {
    getattr(np, name)
    for name in """transpose swapaxes moveaxis rollaxis expand_dims squeeze broadcast_to broadcast_arrays diagonal flip fliplr flipud rot90 split
    array_split hsplit vsplit dsplit atleast_1d atleast_2d atleast_3d permute_dims matrix_transpose real_if_close""".split()
}  # fmt: skip
_SHAPES = {getattr(np, name) for name in "shape ndim size iscomplexobj isrealobj result_type can_cast common_type min_scalar_type".split()}
# Functions that write into their first argument.
_WRITES = {getattr(np, name) for name in "put place putmask copyto fill_diagonal put_along_axis".split()}
_FOLDS = {
    np.sum: np.add, np.prod: np.multiply, np.min: np.minimum, np.max: np.maximum, np.amin: np.minimum, np.amax: np.maximum,
    np.all: np.logical_and, np.any: np.logical_or,
}  # fmt: skip
_RUNS = {np.cumsum: np.add, np.cumprod: np.multiply}


class Work:
    """A back end at work: its primitives, and what was counted."""

    def __init__(self, backend):
        self.backend = backend
        self.counts, self.fallbacks = collections.Counter(), collections.Counter()
        self._mode, self._warned = os.environ.get("BH_FALLBACK", "warn"), set()

    def does(self, primitive, *args):
        """Calls a primitive; says whether the back end has done it."""
        try:
            getattr(self.backend, primitive)(*args)
        except NotImplementedError:
            return False
        self.counts[primitive] += 1
        return True

    def falls_back(self, name):
        """Counts and tells of work that NumPy does."""
        self.fallbacks[name] += 1
        if self._mode == "error":
            raise NotImplementedError(f"the back end {self.backend.name} leaves {name} to NumPy")
        frame = sys._getframe(1)
        while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == os.path.dirname(__file__):
            frame = frame.f_back
        place = frame.f_code.co_filename, frame.f_lineno
        if self._mode == "warn" and place not in self._warned:
            self._warned.add(place)
            warnings.warn_explicit(f"{name} is done by NumPy", UserWarning, *place)

    def report(self):
        """The counters, as text."""
        lines = [f"{name:14} {count}" for name, count in sorted(self.counts.items())]
        return "\n".join([*lines, *(f"by NumPy: {name:14} {count}" for name, count in self.fallbacks.most_common())])


def fresh(work, shape, dtype):
    """A new array with undefined elements."""
    form = np.empty(shape, dtype)
    return Array(work, work.backend.empty(form.size, form.dtype), form, form.__array_interface__["data"][0])


def lifted(work, value):
    """Arrays of NumPy, also those in tuples and lists, as arrays of the back end; other objects as they are."""
    if type(value) in (tuple, list):
        return type(value)(lifted(work, part) for part in value)
    if type(value) is not np.ndarray or value.dtype.kind not in "biufc":
        return value
    result = fresh(work, value.shape, value.dtype)
    if result.size:
        work.does("put", result._operand(), value)
    return result


def lowered(value):
    """Arrays of the back end, also those in tuples, lists and dictionaries, as NumPy's."""
    if type(value) in (tuple, list):
        return type(value)(map(lowered, value))
    if type(value) is dict:
        return {name: lowered(part) for name, part in value.items()}
    return value._host() if type(value) is Array else value


class Array(np.lib.mixins.NDArrayOperatorsMixin):
    """NumPy's array, whose elements a back end has."""

    __slots__ = ("_work", "_memory", "_form", "_begin", "_made")
    __hash__ = None

    def __init__(self, work, memory, form, begin):
        self._work, self._memory, self._form, self._begin, self._made = work, memory, form, begin, None

    def _operand(self):
        """The back end's operand for it."""
        if self._made is None:
            form, size = self._form, self._form.itemsize
            offset = (form.__array_interface__["data"][0] - self._begin) // size
            self._made = self._work.backend.view(self._memory, offset, form.shape, tuple(stride // size for stride in form.strides))
        return self._made

    def _viewed(self, form):
        return Array(self._work, self._memory, form, self._begin)

    def _host(self):
        """The elements, to be read only."""
        if not self.size:
            return np.empty(self.shape, self.dtype)
        self._work.counts["get"] += 1
        return self._work.backend.get(self._operand())

    def _put(self, data):
        """Overwrites all elements with those of an array of NumPy."""
        if self.size:
            self._work.does("put", self._operand(), np.broadcast_to(np.asarray(data, self.dtype), self.shape))

    def _is(self, other):
        """Is another array this view of this memory?"""
        mine, its = self._form.__array_interface__, other._form.__array_interface__
        same_place = other._memory is self._memory and mine["data"] == its["data"]
        return same_place and self._form.shape == other._form.shape and self._form.strides == other._form.strides

    def _touches(self, other):
        """Has another array some of this memory, seen in another way?"""
        return other._memory is self._memory and not self._is(other) and np.may_share_memory(self._form, other._form)

    def _assign(self, value):
        """Overwrites all elements with those of something that broadcasts."""
        if not self.size:
            return
        if not isinstance(value, (Array, int, float, complex, np.number, np.bool_)):
            return self._put(value)
        if type(value) is Array:
            value = value._viewed(np.broadcast_to(value._form, self.shape))
            if self._is(value):
                return
            if self._touches(value):
                value = value.copy()
            value = value._operand()
        if not self._work.does("copy", self._operand(), value):
            self._work.falls_back("assignment")
            self._put(lowered(value))

    def __array__(self, dtype=None, copy=None):
        return np.array(self._host(), dtype)

    def __array_ufunc__(self, function, method, *inputs, **options):
        out = options.get("out", (None,))[0]
        result = NotImplemented
        if method == "__call__" and options.keys() <= {"out"} and function.nout == 1:
            result = self._elementwise(function, inputs, out)
        elif method in ("reduce", "accumulate") and type(inputs[0]) is Array:
            result = getattr(self, f"_{method}")(function, inputs[0], **options)
        if result is NotImplemented:
            name = function.__name__ if method == "__call__" else f"{function.__name__}.{method}"
            written = (*options.get("out", ()), *(inputs[:1] if method == "at" else ()))
            return self._by_numpy(name, getattr(function, method), inputs, options, written)
        return result

    def _elementwise(self, function, inputs, out):
        plain = (bool, int, float, complex, np.number, np.bool_)
        if not all(isinstance(value, (Array, np.ndarray, list, *plain)) for value in inputs) or not isinstance(out, (Array, type(None))):
            return NotImplemented
        inputs = [value if isinstance(value, (Array, *plain)) else lifted(self._work, np.asarray(value)) for value in inputs]
        kinds = [value.dtype if hasattr(value, "dtype") else type(value) for value in inputs]
        try:
            # Python's truth values are bools; its numbers give way to the types of arrays.
            result = function.resolve_dtypes((*(np.dtype(bool) if kind is bool else kind for kind in kinds), None))[-1]
        except TypeError:
            return NotImplemented
        if function is np.matmul:
            return self._product(result, inputs) if out is None and all(type(value) is Array for value in inputs) else NotImplemented
        shape = np.broadcast_shapes(*(np.shape(value) if type(value) is not Array else value.shape for value in inputs))
        arrays = [value for value in inputs if type(value) is Array]
        direct = out is not None and out.dtype == result and out.shape == shape and not any(out._touches(value) for value in arrays)
        target = out if direct else fresh(self._work, shape, result)
        operands = [value._operand() if type(value) is Array else value for value in inputs]
        if target.size and not self._work.does("ufunc", function.__name__, target._operand(), *operands):
            return NotImplemented
        if out is None:
            return target if shape else target._host()[()]
        if target is not out:
            if not np.can_cast(result, out.dtype, "same_kind"):
                rule = "with casting rule 'same_kind'"
                raise TypeError(f"Cannot cast ufunc '{function.__name__}' output from {result!r} to {out.dtype!r} {rule}")
            out._assign(target)
        return out

    def _product(self, dtype, inputs):
        """The product of matrices."""
        # Of the same shapes, with all that is not multiplied together; it has nothing to add up.
        one, other = (np.broadcast_to(np.int8(0), value.shape) for value in inputs)
        if not one.ndim or not other.ndim or one.shape[-1] != other.shape[max(other.ndim - 2, 0)] or not inputs[0].size or not inputs[1].size:
            return NotImplemented
        shape = np.matmul(one[..., :0], other[:0] if other.ndim == 1 else other[..., :0, :]).shape
        result = fresh(self._work, shape, dtype)
        if not self._work.does("method", "matmul", result._operand(), *(value._operand() for value in inputs)):
            return NotImplemented
        return result if shape else result._host()[()]

    def _reduce(self, function, array, axis=0, dtype=None, out=None, keepdims=False, **others):
        if others or out not in (None, (None,)) or not array.size:
            return NotImplemented
        axes = sorted(np.lib.array_utils.normalize_axis_tuple(range(array.ndim) if axis is None else axis, array.ndim), reverse=True)
        kind = function.reduce(np.ones((1,), array.dtype), dtype=dtype).dtype
        if dtype is not None and kind != array.dtype or not axes:
            return NotImplemented
        result, kept = array, list(array.shape)
        for at in axes:
            kept[at] = 1
            folded = fresh(self._work, result.shape[:at] + result.shape[at + 1 :], kind)
            if not self._work.does("reduce", function.__name__, folded._operand(), result._operand(), at):
                return NotImplemented
            result = folded
        if keepdims:
            return result.reshape(kept)
        return result if result.ndim else result._host()[()]

    def _accumulate(self, function, array, axis=0, dtype=None, out=None):
        if dtype is not None or out not in (None, (None,)) or not array.size:
            return NotImplemented
        result = fresh(self._work, array.shape, function.accumulate(np.ones((1,), array.dtype)).dtype)
        done = self._work.does("accumulate", function.__name__, result._operand(), array._operand(), axis % array.ndim)
        return result if done else NotImplemented

    def __array_function__(self, function, types, args, kwargs):
        first = args[0] if args else None
        if function in _SHAPES:
            return function(*_forms(args), **kwargs)
        if function in _VIEWS and (type(first) is Array or len(args) == 1):
            made = function(*_forms(args), **kwargs)
            return self._of_forms(made, first)
        if function in _FOLDS and type(first) is Array and kwargs.keys() <= {"axis", "keepdims"} and len(args) <= 2:
            return _FOLDS[function].reduce(first, axis=args[1] if len(args) == 2 else kwargs.pop("axis", None), **kwargs)
        if function in _RUNS and type(first) is Array and kwargs.keys() <= {"axis"} and len(args) == 1 and (first.ndim == 1 or kwargs):
            return _RUNS[function].accumulate(first, **kwargs or {"axis": 0})
        special = getattr(self, f"_np_{function.__name__}", None)
        result = special(*args, **kwargs) if special else NotImplemented
        if result is not NotImplemented:
            return result
        written = (*((first,) if function in _WRITES else ()), kwargs.get("out"))
        return self._by_numpy(function.__name__, function, args, kwargs, written)

    def _of_forms(self, made, first):
        if isinstance(made, (tuple, list)):
            sources = first if type(first) in (tuple, list) else [first] * len(made)
            return type(made)(source._viewed(form) for source, form in zip(sources, made))
        return first._viewed(made)

    def _by_numpy(self, name, function, args, kwargs, written=()):
        """NumPy's own work on the elements; arrays that it writes get theirs back."""
        self._work.falls_back(name)
        hosts = {id(array): np.array(array._host()) for array in written if type(array) is Array}
        lower = lambda value: hosts[id(value)] if id(value) in hosts else type(value)(map(lower, value)) if type(value) is tuple else lowered(value)
        result = function(*map(lower, args), **{option: lower(value) for option, value in kwargs.items()})
        for array in written:
            if type(array) is Array:
                array._put(hosts[id(array)])
                result = array if result is hosts[id(array)] else result
        return lifted(self._work, result)

    def _np_mean(self, a, axis=None, **others):
        if others or type(a) is not Array or a.dtype.kind not in "fc":
            return NotImplemented
        total = np.sum(a, axis=axis)
        return total / a.dtype.type(a.size // max(getattr(total, "size", 1), 1))

    def _np_where(self, *args):
        taken = len(args) == 3 and type(args[0]) is Array and all(isinstance(value, (Array, int, float)) for value in args)
        if not taken:
            return NotImplemented
        shape = np.broadcast_shapes(*map(np.shape, _forms(args)))
        result = fresh(self._work, shape, np.result_type(*_forms(args[1:])))
        if not result.size:
            return result
        done = self._work.does("method", "where", result._operand(), *(value._operand() if type(value) is Array else value for value in args))
        return result if done else NotImplemented

    def _np_dot(self, a, b, **others):
        if others or not type(a) is type(b) is Array or not a.ndim or not 0 < b.ndim <= 2:
            return NotImplemented
        return np.matmul(a, b)

    def _np_reshape(self, a, /, *shape, order="C", copy=None, **others):
        if type(a) is not Array or order != "C" or others:
            return NotImplemented
        try:
            return a._viewed(np.reshape(a._form, *shape, copy=False))
        except ValueError:
            target = fresh(self._work, a.shape, a.dtype)
            target._assign(a)
            return target._viewed(np.reshape(target._form, *shape))

    def _np_ravel(self, a, order="C"):
        return self._np_reshape(a, -1, order=order)

    def _np_copy(self, a, **others):
        result = fresh(self._work, a.shape, a.dtype)
        result._assign(a)
        return result

    def _np_concatenate(self, arrays, axis=0, **others):
        if others or axis is None or any(type(array) is not Array for array in arrays):
            return NotImplemented
        form = np.concatenate([np.broadcast_to(np.zeros((), array.dtype), array.shape) for array in arrays], axis)
        result, at = fresh(self._work, form.shape, form.dtype), 0
        for array in arrays:
            key = [slice(None)] * array.ndim
            key[axis] = slice(at, at := at + array.shape[axis])
            result[tuple(key)] = array
        return result

    def _like(self, value):
        def made(prototype, dtype=None, **others):
            result = fresh(self._work, prototype.shape, prototype.dtype if dtype is None else dtype)
            if value is not None:
                result._assign(value)
            return NotImplemented if others else result

        return made

    _np_empty_like, _np_zeros_like, _np_ones_like = (property(lambda self, value=value: self._like(value)) for value in (None, 0, 1))

    def __getattr__(self, name):
        # Methods are NumPy's functions of the same name, or NumPy's work.
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"'ndarray' object has no attribute '{name}'")
        function = getattr(np, name, None)
        if callable(getattr(np.ndarray, name)) and callable(function):
            return lambda *args, **kwargs: function(self, *args, **kwargs)
        if callable(getattr(np.ndarray, name)):
            return lambda *args, **kwargs: self._by_numpy(name, getattr(np.ndarray, name), (self, *args), kwargs, (self,))
        return lifted(self._work, getattr(self._host(), name))

    shape, dtype, ndim, size, itemsize, nbytes, strides = (
        property(lambda self, name=name: getattr(self._form, name)) for name in "shape dtype ndim size itemsize nbytes strides".split()
    )
    T = property(lambda self: self._viewed(self._form.T))
    flat = property(lambda self: self.reshape(-1))

    def reshape(self, *shape, order="C", copy=None):
        """As NumPy's."""
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, order=order)

    def transpose(self, *axes):
        """As NumPy's."""
        return self._viewed(self._form.transpose(*axes))

    def astype(self, dtype, copy=True, **others):
        """As NumPy's."""
        if not copy and self.dtype == dtype:
            return self
        result = fresh(self._work, self.shape, dtype)
        result._assign(self)
        return result

    def copy(self, order="C"):
        """As NumPy's."""
        return self._np_copy(self)

    def flatten(self, order="C"):
        """As NumPy's."""
        return self.copy().reshape(-1) if order == "C" else self._by_numpy("flatten", np.ndarray.flatten, (self, order), {})

    def fill(self, value):
        """As NumPy's."""
        self._assign(value)

    def item(self, *key):
        """As NumPy's."""
        return self._host().item(*key)

    def tolist(self):
        """As NumPy's."""
        return self._host().tolist()

    def sort(self, axis=-1, **others):
        """As NumPy's."""
        self._by_numpy("sort", np.ndarray.sort, (self, axis), others, (self,))

    def __getitem__(self, key):
        if not _is_basic(key):
            self._work.falls_back("indexing")
            return lifted(self._work, self._host()[lowered(key)])
        form = self._form[key]
        if not isinstance(form, np.ndarray):
            # An element: of a view without dimensions.
            key = key if type(key) is tuple else (key,)
            return self._viewed(self._form[(*key, ...)])._host()[()]
        return self._viewed(form)

    def __setitem__(self, key, value):
        if _is_basic(key):
            self._viewed(self._part(key))._assign(value)
            return
        self._work.falls_back("indexed assignment")
        host = np.array(self._host())
        host[lowered(key)] = lowered(value)
        self._put(host)

    def _part(self, key):
        form = self._form[key]
        return form if isinstance(form, np.ndarray) else self._form[(*(key if type(key) is tuple else (key,)), ...)]

    def __len__(self):
        return len(self._form)

    def __iter__(self):
        return (self[at] for at in range(len(self)))

    def __bool__(self):
        return bool(self._host())

    def __float__(self):
        return float(self._host())

    def __int__(self):
        return int(self._host())

    def __complex__(self):
        return complex(self._host())

    def __index__(self):
        return self._host().__index__()

    def __contains__(self, value):
        return value in self._host()

    def __repr__(self):
        return repr(np.asarray(self._host()))

    def __str__(self):
        return str(np.asarray(self._host()))

    def __format__(self, text):
        return format(self._host()[()], text)


def _forms(args):
    return [value._form if type(value) is Array else _forms(value) if type(value) in (tuple, list) else value for value in args]


def _is_basic(key):
    parts = key if type(key) is tuple else (key,)
    whole = lambda part: isinstance(part, (int, np.integer)) and not isinstance(part, bool)
    return all(part is None or part is Ellipsis or isinstance(part, slice) or whole(part) for part in parts)
