"""Libraries that look at the class of arrays themselves, in Python or in C: what a program gives them are NumPy's arrays, over the
memory of bh's, and NumPy's functions.

A library is taught once it is imported, by whomever. Its functions, and the methods of its classes, look at their arguments
and go on as ever.
"""

import ctypes
import gc
import importlib
import inspect
import os
import sys
import types

from .. import _native
from . import after_import, databases
from .views import given_views, seen

# The modules whose public functions and classes a program calls, or single ones of them; a class's bases in the same library are
# taught with it. Where there are none, each module of the library is taught.
#
# Calls from the program's modules get NumPy's arrays in any case under `python -m bh` (`foreign`). A library stands here for what that does not
# reach, and each has a statement in the tests (`packages/taught.toml`) that fails without it:
#
# refuses: scripts that import bh themselves are refused with an error;
# inner: code of the library itself hands arrays on to a function that looks at their class;
# silent: it takes bh's arrays or pending numbers for something else, without an error.
LIBRARIES = {
    "astropy.table": ("astropy.table",),  # refuses keys
    "casadi": ("casadi",),  # refuses
    "catboost": ("catboost",),  # refuses
    "cv2": ("cv2",),  # refuses
    "cvxpy": ("cvxpy:Variable",),  # refuses values; the base of `Variable` and `Parameter`
    "gensim.matutils": ("gensim.matutils",),  # refuses
    "librosa": (),  # inner: each module checks
    "lightgbm": ("lightgbm",),  # refuses labels
    "matplotlib.cbook": ("matplotlib.cbook:_unpack_to_numpy",),  # silent: rows of lists are drawn one by one, but columns of arrays
    "mne.filter": ("mne.filter",),  # refuses
    "msgpack": ("msgpack",),  # refuses pending numbers
    "netCDF4": ("netCDF4",),  # refuses
    # silent: rows are exchanged through views of each other; refuses outputs
    "numpy.random": tuple(f"numpy.random:{name}" for name in ("RandomState.shuffle", "Generator.shuffle", "Generator.permuted", "shuffle")),
    # refuses: compiled code reads globals and closures, and takes arguments of parallel functions, universal functions and stencils by class
    "numba": ("numba.core.dispatcher", "numba.np.ufunc.dufunc", "numba.stencils.stencil", "numba.core.ir:Global", "numba.core.ir:FreeVar"),
    "orjson": ("orjson:dumps",),  # refuses
    "osqp": ("osqp",),  # refuses
    "pandas": ("pandas", "pandas.core.indexing"),  # silent: masks are taken for names of columns
    "polars": ("polars",),  # refuses
    "scipy.ndimage": ("scipy.ndimage:label",),  # silent: it fills a copy of the output
    "skimage.feature.haar": ("skimage.feature.haar",),  # inner
    "skimage.measure._marching_cubes_lewiner": ("skimage.measure._marching_cubes_lewiner",),  # inner
    "skimage.transform.hough_transform": ("skimage.transform.hough_transform",),  # inner
    "skimage.util.shape": ("skimage.util.shape",),  # inner
    "sklearn.model_selection": ("sklearn.model_selection",),  # inner: arrays in the grids of parameters
    "soxr": ("soxr",),  # silent: all results are of single precision
    "sqlite3": ("sqlite3:connect", "sqlite3.dbapi2:connect"),  # silent: results of the program's functions become blobs
    "statistics": ("statistics",),  # inner: pending numbers in lists
    # inner: the functions that it writes join arrays in lists; operators of expressions take an array for a number
    "sympy": ("sympy:lambdify", "sympy.core.decorators:sympify", "sympy.core.numbers:_sympify"),
    "torch": ("torch:asarray", "torch:from_numpy"),  # refuses empty arrays, and all
    "torch.utils.data._utils.collate": ("torch.utils.data._utils.collate",),  # silent: arrays are sequences of numbers
    "ujson": ("ujson:dump", "ujson:dumps", "ujson:encode"),  # refuses pending numbers
    "xarray.core.dataset": ("xarray.core.dataset:Dataset._validate_interp_indexers",),  # refuses new coordinates
}

# Functions that are taught otherwise: what makes another one of each, given the module, too.
_OTHERWISE = {place: databases.connecting for place in ("sqlite3:connect", "sqlite3.dbapi2:connect")}
# The methods of NumPy's generators; the function that the module has of one is that of an object, bound again.
_OTHERWISE |= dict.fromkeys(LIBRARIES["numpy.random"], lambda module, method: given_views(method, returns=True))
_OTHERWISE["numpy.random:shuffle"] = lambda module, method: getattr(method.__self__, method.__name__)
_OTHERWISE[LIBRARIES["xarray.core.dataset"][0]] = lambda module, method: given_views(method)

# Methods in which Python itself keeps or finds what an object has, and others that are no matter of arrays.
_OWN = {
    "__setattr__", "__getattr__", "__getattribute__", "__delattr__", "__getstate__", "__setstate__", "__finalize__",
    "__init_subclass__", "__class_getitem__", "__subclasshook__", "__set_name__", "__exit__", "__format__", "__dir__", "__sizeof__",
    # These read their caller's variables.
    "eval", "query",
}  # fmt: skip


def _takes_arguments(function, of_object):
    """Has a function arguments, beside the object if it is a method?"""
    code = function.__code__
    return code.co_argcount + code.co_kwonlyargcount > of_object or bool(code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))


def _teach_class(kind):
    """Teaches the public methods of a class, calls of its instances and subscripts in C, and attributes that are set in C."""
    for name in ("__call__", "__getitem__", "__setitem__"):
        method = getattr(kind, name, None)
        if type(method) is types.WrapperDescriptorType and method.__objclass__ not in (dict, list, tuple, str):
            _exchange(kind, name, given_views(method))
    for name, value in list(vars(kind).items()):
        if name in _OWN or name.startswith("_") and not name.startswith("__"):
            continue
        wrapper = type(value) if isinstance(value, (classmethod, staticmethod)) else None
        function = value.__func__ if wrapper else value
        of_object = wrapper is not staticmethod or name == "__new__"
        if isinstance(function, types.FunctionType) and _takes_arguments(function, of_object):
            made = given_views(function)
            _exchange(kind, name, wrapper(made) if wrapper else made)
        elif name.startswith("_"):
            continue
        elif isinstance(value, property) and value.fset is not None and not isinstance(value.fset, _native.Taught):
            _exchange(kind, name, property(value.fget, given_views(value.fset), value.fdel, value.__doc__))
        elif isinstance(value, types.MethodDescriptorType):
            _exchange(kind, name, given_views(value))
        elif isinstance(value, types.GetSetDescriptorType):
            _exchange(kind, name, _attribute(value))


def _exchange(kind, name, made):
    """Puts what is taught into a class; one that takes no assignments keeps its own, so that the library is imported in any case."""
    try:
        setattr(kind, name, made)
    except (AttributeError, TypeError):
        pass


def _put(owner, name, made):
    """Puts the taught functions into a module, or into a class in C that takes no assignments."""
    if not isinstance(owner, type):
        setattr(owner, name, made)
        return
    # The view of the class's dictionary refers to nothing else.
    gc.get_referents(vars(owner))[0][name] = made
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))


def _attribute(own):
    """An attribute of such a class, given what the library sees."""
    return property(own.__get__, lambda self, value: own.__set__(self, seen(value)), own.__delete__, own.__doc__)


def _is_of(value, library):
    """Belongs a class or a function to the library? Those of a module in C may not tell."""
    module = getattr(value, "__module__", None) or ""
    return module.partition(".")[0] == library.partition(".")[0] or isinstance(value, types.BuiltinFunctionType) and not module


_TAUGHT = type, types.FunctionType, types.BuiltinFunctionType


def _places(name):
    """The places that are patched with a module of this name."""
    library = name.partition(".")[0]
    return LIBRARIES.get(name) or ((name,) if LIBRARIES.get(library) == () else ())


def _teach(library):
    """Teaches a library, or a module of one, that is imported."""
    for place in _places(library):
        name, _, only = place.partition(":")
        try:
            module = importlib.import_module(name)
        except ImportError:
            # Versions differ in their modules.
            continue
        if place in _OTHERWISE:
            owner, _, method = only.rpartition(".")
            found = vars(getattr(module, owner)) if owner else vars(module)
            if method in found:
                _put(getattr(module, owner) if owner else module, method, _OTHERWISE[place](module, found[method]))
            continue
        if only:
            _teach_one(module, only, getattr(module, only, None))
            continue
        for name, value in list(vars(module).items()):
            if isinstance(value, _TAUGHT) and _is_of(value, library) and (isinstance(value, type) or not name.startswith("_")):
                _teach_one(module, name, value)
    if library == "torch":
        _tell_scripts(sys.modules["torch"])


def _tell_scripts(torch):
    """Makes TorchScript, which finds PyTorch's functions by their identity, compile wrapped functions as the functions themselves."""
    try:
        builtins = importlib.import_module("torch.jit._builtins")
        known = builtins._get_builtin_table()
        for value in list(vars(torch).values()):
            if type(value) is _native.Taught and id(value.__wrapped__) in known:
                builtins._register_builtin(value, known[id(value.__wrapped__)])
    except (ImportError, AttributeError):
        # Versions differ in their modules.
        pass


def _teach_one(module, name, value):
    """Teaches a function, or a class and its bases, that a module has under a name."""
    if isinstance(value, type):
        for kind in value.__mro__:
            if _is_of(kind, module.__name__) and kind.__flags__ & _ON_HEAP and "_bh_taught" not in vars(kind):
                _exchange(kind, "_bh_taught", True)
                _teach_class(kind)
    elif isinstance(value, _TAUGHT) and name not in _OWN:
        setattr(module, name, given_views(value))


# The flag of classes that are made by a statement, whose methods can be exchanged.
_ON_HEAP = 1 << 9


def install():
    """Teaches the libraries that are imported, and the others when they are, unless `BH_TEACH` is `off`."""
    if os.environ.get("BH_TEACH", "on") == "off":
        return
    after_import.add(_places, _teach)
