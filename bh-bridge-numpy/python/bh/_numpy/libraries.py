"""Libraries that look at the class of arrays themselves, in Python or in C: what a program gives them are NumPy's arrays, over the
memory of bh's, and NumPy's functions.

A library is taught once it is imported, by whomever. Its functions, and the methods of its classes, look at their arguments
and go on as ever.
"""

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
# Calls from the program's modules get NumPy's arrays in any case under `python -m bh` (`foreign`). A library stands here for one of
# three reasons. Scripts that import bh themselves use it, and it refuses bh's arrays: CatBoost, CasADi, OpenCV, CVXPY, LightGBM, mne,
# netCDF4, OSQP, pandas, polars, soxr, Numba, msgpack, orjson, ujson, gensim, librosa, astropy.table. Its own code hands arrays on to a function
# that looks at the class: matplotlib.cbook, skimage, sklearn.model_selection, torch.utils.data, pytest.approx, sympy.lambdify. Or it takes
# bh's arrays and numbers for something else, without an error: scipy.ndimage.label, sqlite3, statistics, torch.tensor.
LIBRARIES = {
    "astropy.table": ("astropy.table",),
    "casadi": ("casadi",),
    "catboost": ("catboost",),
    "cv2": ("cv2",),
    "cvxpy": ("cvxpy:Parameter", "cvxpy:Variable"),
    "gensim.matutils": ("gensim.matutils",),
    "librosa": (),
    "lightgbm": ("lightgbm",),
    # Rows of lists are drawn one by one, but columns of arrays.
    "matplotlib.cbook": ("matplotlib.cbook:_reshape_2D", "matplotlib.cbook:_unpack_to_numpy"),
    "mne.filter": ("mne.filter",),
    "msgpack": ("msgpack",),
    "netCDF4": ("netCDF4",),
    "numba": (
        "numba.core.dispatcher", "numba.np.ufunc.dufunc", "numba.np.ufunc.gufunc", "numba.stencils.stencil",
        "numba.core.ir:Global", "numba.core.ir:FreeVar",
    ),  # fmt: skip
    "orjson": ("orjson:dumps",),
    "osqp": ("osqp",),
    "pandas": ("pandas", "pandas.api.types", "pandas.api.typing", "pandas.core.indexing", "pandas.plotting", "pandas.testing"),
    "polars": ("polars",),
    "pytest": ("pytest:approx",),
    "scipy.ndimage": ("scipy.ndimage:label",),
    "skimage.feature.haar": ("skimage.feature.haar",),
    "skimage.measure._marching_cubes_lewiner": ("skimage.measure._marching_cubes_lewiner",),
    "skimage.transform.hough_transform": ("skimage.transform.hough_transform",),
    "skimage.util.shape": ("skimage.util.shape",),
    "sklearn.model_selection": ("sklearn.model_selection",),
    "soxr": ("soxr",),
    "sqlite3": ("sqlite3:connect",),
    "sqlite3.dbapi2": ("sqlite3.dbapi2:connect",),
    "statistics": ("statistics",),
    "sympy": ("sympy:lambdify",),
    # By its class it knows an array of NumPy; of other memory it reads the bytes, and of sequences element by element.
    "torch": ("torch:asarray", "torch:as_tensor", "torch:tensor", "torch:from_numpy"),
    "torch.utils.data._utils.collate": ("torch.utils.data._utils.collate",),
    "ujson": ("ujson:dump", "ujson:dumps", "ujson:encode"),
}

# Functions that are taught otherwise: what makes another one of each, given the module, too.
_OTHERWISE = {place: databases.connecting for place in ("sqlite3:connect", "sqlite3.dbapi2:connect")}

# Methods in which Python itself keeps or finds what an object has, and others that are no matter of arrays.
_OWN = {
    "__setattr__", "__getattr__", "__getattribute__", "__delattr__", "__getstate__", "__setstate__", "__finalize__",
    "__init_subclass__", "__class_getitem__", "__subclasshook__", "__set_name__", "__exit__", "__format__", "__dir__", "__sizeof__",
    # These read the variables of whoever calls them.
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


def _attribute(own):
    """An attribute of such a class, given what the library sees."""
    return property(own.__get__, lambda self, value: own.__set__(self, seen(value)), own.__delete__, own.__doc__)


def _is_of(value, library):
    """Belongs a class or a function to the library? Those of a module in C may not tell."""
    module = getattr(value, "__module__", None) or ""
    return module.partition(".")[0] == library.partition(".")[0] or isinstance(value, types.BuiltinFunctionType) and not module


_TAUGHT = type, types.FunctionType, types.BuiltinFunctionType


def _places(name):
    """What is taught with a module of this name."""
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
            setattr(module, only, _OTHERWISE[place](module, getattr(module, only)))
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
