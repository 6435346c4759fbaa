"""The names of the package: for each public name of NumPy a native function, NumPy's object, or a fallback."""

import functools
import sys
import types

import numpy as np

from . import _adapted, _class, _convert, _documentation, _fallback, _files, _functions, _native, _warnings
from ._at_hand import at_hand
from ._broadcast import broadcast
from ._lapack import by_lapack
from ._public import by_object, equivalent, name_of, public
from ._served import served, unbound
from ._text import of_text
from ._types import CODE
from ._ufunc import public_ufuncs

ndarray = _native.ndarray

# Functions that look at types, shapes or options, never at elements: NumPy's own code serves.
METADATA = """
can_cast min_scalar_type promote_types common_type mintypecode typename isdtype issubdtype iterable
ndim shape size iscomplexobj isrealobj broadcast_shapes ndindex
set_printoptions get_printoptions printoptions geterr seterrcall geterrcall setbufsize getbufsize
base_repr binary_repr format_float_positional format_float_scientific
show_config show_runtime get_include info test einsum_path asmatrix
matrix
""".split()

# Functions that read or write files and text: the elements have to leave the stack anyway.
HOST = """
savez savez_compressed savetxt array2string array_repr array_str
""".split()

def _result_type(*arrays_and_dtypes):
    """The type that NumPy's promotion gives."""
    lowered = (
        a.dtype if type(a) is ndarray else a for a in arrays_and_dtypes
    )
    return np.result_type(*lowered)


def _isscalar(element):
    """Is it a scalar, such as the result of a full sum?"""
    return element._scalar if type(element) is ndarray else np.isscalar(element)


def _astype(x, dtype, /, *, copy=True, device=None):
    """The elements converted to another type; without `copy`, the array itself if it has that type."""
    _convert.check_device(device)
    if type(x) is not ndarray:
        if isinstance(x, (np.ndarray, np.generic)):
            return np.astype(x, dtype, copy=copy)
        raise TypeError(f"Input should be a NumPy array. It is a {type(x)} instead.")
    return x.astype(dtype, copy=copy)


def _bmat(obj, ldict=None, gdict=None):
    """A matrix of NumPy's made of blocks, which text names as the caller sees them."""
    if gdict is None:
        frame = sys._getframe(1)
        ldict, gdict = frame.f_locals, frame.f_globals
    return np.bmat(_fallback.lower(obj), ldict, gdict)


def _shares_memory(a, b, max_work=None):
    """Have two arrays an element in common?"""
    return _overlap(np.shares_memory, a, b, max_work)


def _may_share_memory(a, b, max_work=None):
    """May two arrays have an element in common? Only bounds are looked at."""
    return _overlap(np.may_share_memory, a, b, max_work)


def _overlap(test, a, b, max_work):
    if type(a) is not ndarray and type(b) is not ndarray:
        return test(a, b, max_work)
    if type(a) is not ndarray or type(b) is not ndarray:
        one, other = (a, b) if type(a) is ndarray else (b, a)
        # Arrays of NumPy may show bh's memory.
        return getattr(other, "base", None) is not None and test(np.asarray(memoryview(one)), other, max_work)
    if a._memory != b._memory:
        return False
    # Parts of complex numbers lie elsewhere; of two types, bounds cannot be compared.
    return a.dtype != b.dtype or test(_Place(a), _Place(b), max_work)


class _Place:
    """Where an array lies, for NumPy's tests, which look at no element."""

    def __init__(self, array):
        # An address that is none, far from both ends of what addresses there are.
        address = (1 << 60) + array._start * array.itemsize
        strides = tuple(stride * array.itemsize for stride in array._stride)
        self.__array_interface__ = {
            "data": (address, True), "shape": array.shape, "strides": strides, "typestr": array.dtype.str, "version": 3,
        }  # fmt: skip


class Info(type(np.__array_namespace_info__())):
    """What the array API's `__array_namespace_info__` tells: NumPy's types, and bh's limits."""

    __module__ = "bh"

    def capabilities(self):
        """What depends on the library: index arrays of truth values, shapes that depend on data, most dimensions."""
        return {**super().capabilities(), "max dimensions": 16}


def falling_back(function, name=None):
    """A function that runs in NumPy."""
    name = name or name_of(function)

    def wrapper(*args, **kwargs):
        return _fallback.call_on_memory(function, args, kwargs, name)

    functools.update_wrapper(wrapper, function, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    wrapper._bh_numpy = function
    wrapper._bh_kind = "falls back"
    return wrapper


def on_host(function):
    """A function that reads or writes outside of the stack."""

    def wrapper(*args, **kwargs):
        return _fallback.lift(function(*_fallback.lower(args), **_fallback.lower(kwargs)))

    functools.update_wrapper(wrapper, function, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    wrapper._bh_numpy = function
    return wrapper


# Functions that change their first argument, and those that never raise `Fallback`, or deal with it themselves.
IN_PLACE = "copyto fill_diagonal place put putmask put_along_axis".split()
DIRECT = """
array asarray asanyarray ascontiguousarray asfortranarray copy empty zeros ones full empty_like zeros_like ones_like full_like
arange eye identity sum prod max min amax amin all any
""".split()


# Those of them that NumPy leaves to the class of their first argument.
LIKE = "copy empty_like zeros_like ones_like full_like".split()


def _left_to_class(function, original):
    """The function, but of an object whose class has functions of its own NumPy's, which asks the class."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if args and type(args[0]) is not ndarray and _fallback.decided(args[:1]):
            return _fallback.lift(original(*args, **kwargs))
        return function(*args, **kwargs)

    return wrapper


def native_functions():
    """The functions written in this package, by name."""
    own = {}
    for name, value in {**vars(_convert), **vars(_functions), **vars(_files)}.items():
        if hasattr(np, name) and callable(value) and getattr(value, "__module__", "").startswith("bh."):
            if name in IN_PLACE:
                value = _fallback.falls_back_in_place(value)
            elif name not in DIRECT and not hasattr(value, "__wrapped__"):
                value = _fallback.falls_back(value, getattr(np, name))
            elif name in LIKE:
                value = _left_to_class(value, getattr(np, name))
            own[name] = at_hand(value, getattr(np, name))
    own["result_type"] = _result_type
    own["isscalar"] = _isscalar
    own["astype"] = _astype
    own["bmat"] = _bmat
    own["errstate"], own["seterr"] = _warnings.errstate, _warnings.seterr
    own["shares_memory"], own["may_share_memory"] = _shares_memory, _may_share_memory
    return own


def build():
    """All names of the package that come from NumPy's."""
    native = native_functions()
    ufuncs = public_ufuncs()
    for name in dir(np):
        # Modules that NumPy loads when they are asked for stay unloaded: see `__getattr__` of the package.
        if name.startswith("_") or name in ("fft", "linalg", "random", "testing") or name not in vars(np):
            continue
        original = getattr(np, name)
        if name in native:
            public[name] = _described(native[name], original) if isinstance(original, np.ufunc) else native[name]
        elif name in ufuncs:
            public[name] = ufuncs[name]
        elif isinstance(original, (type, types.ModuleType)) or not callable(original):
            public[name] = original
        elif name in METADATA:
            public[name] = _plainly(original)
        elif name in HOST:
            public[name] = of_text(on_host(original)) if name.startswith("array") else on_host(original)
        else:
            public[name] = falling_back(original)
        if callable(original) and not isinstance(original, type):
            _register(original, public[name])
    _register(np.lib.stride_tricks.sliding_window_view, _functions.sliding_window_view)
    _register(np.lib.stride_tricks.as_strided, _class.as_strided)
    _register(np.lib._nanfunctions_impl._nanmedian, _functions.median_without_nan)
    public["ndarray"], public["broadcast"] = ndarray, broadcast
    for name in _native.served_functions():
        public[name] = served(name, public[name])
    first = {}
    for name in (*_native.served_functions(), *public):
        # Two names of one function are that here, too.
        public[name] = public[first.setdefault(id(getattr(np, name, name)), name)]
    public.update({name: unbound(name, value) for name, value in public.items()})
    by_object[np.ndarray] = ndarray
    for name in _adapted.NAMES:
        original = getattr(np, name, None)
        made = original is not None and _adapted.adapt(original, public, equivalent)
        if made:
            made = guarded(made, original)
            made = by_lapack(original)(made) if name in _adapted.OF_LAPACK else at_hand(made, original)
            made._bh_numpy = original
            made._bh_kind = "adapted"
            public[name] = made
            _register(original, made)
    for name in ("mgrid", "ogrid", "r_", "c_"):
        public[name] = _adapted.adapt_brackets(getattr(np, name), public, equivalent)
    for name, mine in public.items():
        # What the program sees under a name, which may be more than what is registered.
        if callable(mine) and mine is not (original := getattr(np, name, None)) and not isinstance(original, (type, np.ufunc)):
            _class.named[original], _class.originals[mine] = mine, original
    return public


def _plainly(function):
    """A function of NumPy without its dispatcher, with its signature."""
    inner = getattr(function, "_implementation", function)
    if inner is function:
        return inner

    def plain(*args, **kwargs):
        if (len(args) > 1 or args and type(args[0]) is not ndarray) and _fallback.decided(args):
            # The class of an argument says what it is.
            return function(*_fallback.lower(args), **kwargs)
        return inner(*args, **kwargs)

    functools.update_wrapper(plain, function, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=())
    _documentation.show_parameters(plain, function)
    return plain


def _described(function, original):
    """A function of whole axes with the attributes of NumPy's universal function."""
    names = "nin nout nargs ntypes types identity signature reduce accumulate reduceat outer at resolve_dtypes __signature__"
    # Versions of NumPy before 2.4 have no signatures.
    for name in filter(lambda name: hasattr(original, name), names.split()):
        setattr(function, name, getattr(original, name))
    return function


def guarded(adapted, original):
    """An adapted function that leaves to NumPy what bh's functions cannot do, and arrays that decide what functions do."""
    in_place, makes = adapted.__name__ in IN_PLACE, adapted.__name__ in _adapted.MAKERS
    wrapped = _fallback.falls_back_in_place(adapted) if in_place else _fallback.falls_back(adapted, original)

    @functools.wraps(adapted)
    def wrapper(*args, **kwargs):
        if not makes and args and type(args[0]) is not ndarray and isinstance(args[0], (int, float, complex, np.generic)):
            if not (_fallback.holds_array(args) or _fallback.holds_array(kwargs)):
                # Of numbers NumPy makes numbers.
                return _fallback.lift(original(*args, **kwargs))
        if any(map(_dispatches, (*args, *kwargs.values()))):
            return original(*args, **kwargs)
        if _fallback.decided(args) or _fallback.decided(kwargs.values()):
            return _fallback.lift(original(*args, **kwargs))
        if any(map(_convert.decides, args)) or args and type(args[0]) is np.ndarray and args[0].dtype not in CODE:
            return _fallback.call(original, args, kwargs)
        return _fallback.given(wrapped(*args, **kwargs))

    return wrapper


def _dispatches(value):
    """Has a value, or one in a list, functions of NumPy's own, without being an array?"""
    kind = type(value)
    if kind is list:
        return any(map(_dispatches, value))
    return hasattr(kind, "__array_function__") and kind is not ndarray and not isinstance(value, np.ndarray)


def _without_classes(function):
    """NumPy's function as classes with functions of their own call it: they do not decide again."""

    def shared(value):
        if type(value) in (list, tuple):
            return type(value)(map(shared, value))
        return np.asarray(value) if type(value) is ndarray else value

    def implementation(*args, **kwargs):
        return function._implementation(*map(shared, args), **{name: shared(value) for name, value in kwargs.items()})

    return functools.update_wrapper(implementation, function, updated=())


def _register(original, mine):
    _documentation.inherit(mine, original)
    _documentation.show_parameters(mine, original)
    if callable(mine) and not isinstance(original, (type, np.ufunc)):
        _class.originals[mine] = original
    # NumPy's own code also calls what is behind its public functions.
    if isinstance(mine, types.FunctionType) and hasattr(original, "_implementation"):
        mine._implementation = _without_classes(original)
    for function in (original, getattr(original, "_implementation", original), getattr(original, "__wrapped__", original)):
        try:
            by_object[function] = mine
        except TypeError:
            pass
