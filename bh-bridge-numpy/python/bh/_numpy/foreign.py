"""Calls in the program's own modules, which `rewriting` writes as `see(f)(x)`: which functions belong to other packages, and so get
NumPy's arrays."""

import builtins
import functools
import importlib.machinery
import sys
import types

import numpy as np

from .._native import Function, Taught, site_functions
from .._ufunc.ufunc import ufunc
from . import imports, views

# Packages that get bh's arrays: they give bh's arrays back by NumPy's protocols, or keep and hand on what they get.
BY_PROTOCOL = {
    "array_api_compat": "finds bh as the namespace of its arrays",
    "array_api_extra": "the same",
    "array_api_strict": "the same",
    "cloudpickle": "pickles whatever it gets",
    "dask": "its chunks stay arrays of bh",
    "dill": "pickles whatever it gets",
    "hypothesis": "calls functions of the program",
    "joblib": "hands arrays to functions of the program",
    "mpi4py": "reads buffers, and pickles whatever it gets",
    "opt_einsum": "contracts by the functions of its arguments' package",
    "pint": "quantities hold arrays of bh",
    "pytest": "compares whatever it gets, and calls functions of the program",
    "_pytest": "the same",
    "tqdm": "goes through arrays for the program",
    "uncertainties": "holds whatever it gets",
    "xarray": "its variables hold arrays of bh",
}

# Modules of Python's own library whose functions in C ask for Python's numbers. The others keep objects, or call functions.
_ASKING = {
    "_ctypes", "_datetime", "_decimal", "_sqlite3", "_struct", "array", "ctypes", "datetime", "decimal", "fractions", "random", "select",
    "sqlite3", "statistics", "struct", "time",
}  # fmt: skip

# Modules of Python's own library that call the functions that they get.
_CALLING = {
    "_functools", "asyncio.threads", "concurrent.futures._base", "concurrent.futures.process", "concurrent.futures.thread", "itertools",
    "multiprocessing.context", "multiprocessing.pool", "multiprocessing.process", "threading",
}  # fmt: skip


def _is_direct(name):
    """Do functions of a module get arrays of bh?"""
    package = name.partition(".")[0]
    if package in imports.shown:
        return False
    if package in ("bh", "numpy", "builtins"):
        # NumPy's own generators, which other packages make, shuffle rows of its arrays alone.
        return not f"{name}.".startswith("numpy.random.")
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if package in sys.stdlib_module_names and not (file and _is_of_program(file)):
        return name not in _CALLING and name not in _ASKING and package not in _ASKING
    if package in BY_PROTOCOL or package in imports.named:
        return True
    if module is None:
        # Made-up names are those of functions that the program makes. Modules in C name parts that nobody can import.
        return package not in sys.modules or package == name or _is_direct(package)
    if file is None:
        return package == name or _is_direct(package)
    return _is_of_program(file) and not file.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES))


def _is_of_program(file):
    return not imports.is_installed(file)


class _Modules(dict):
    """By their names: do functions of these modules get arrays of bh?"""

    def __missing__(self, name):
        if not isinstance(name, str):
            return False
        direct = name == "__main__" or _is_direct(name)
        # A module that is not imported yet may be another one later.
        if name in sys.modules:
            self[name] = direct
        return direct


# The module of classes in C that say one that there is not, and of their functions.
_NOWHERE = "?"
_direct = _Modules({_NOWHERE: False})


def is_own_function(function):
    """Is it a function of the program?"""
    name = function.__globals__.get("__name__")
    if not isinstance(name, str) or not _direct[name]:
        return False
    package = name.partition(".")[0]
    return name == "__main__" or package not in ("bh", "numpy") and package not in BY_PROTOCOL and package not in sys.stdlib_module_names


def answering(function):
    """A function or method of the program as other packages get it: its results are NumPy's. Functions of other modules are as they are.
    The wrapper lives as long as the function, as packages refer to functions weakly."""
    if type(function) is types.MethodType:
        inner = function.__func__
        made = answering(inner) if type(inner) is types.FunctionType else inner
        return function if made is inner else types.MethodType(made, function.__self__)
    if not is_own_function(function):
        return views.seen(function)
    made = vars(function).get("_bh_answering")
    if made is None or made.__wrapped__ is not function:
        made = vars(function)["_bh_answering"] = views.Answering(function)
    return made


def _with_views(function):
    """A function of another package, called from the program's own code: it gets NumPy's arrays, results that are views of an
    argument's memory are arrays of bh, and the program's functions among the arguments answer with NumPy's arrays."""
    return Taught(function, _exchange, views.LOOKED_FOR)


_exchange = functools.partial(views.exchange, lambda function: answering(function), True)


_Method, _Function, _BuiltIn, _Module = types.MethodType, types.FunctionType, types.BuiltinFunctionType, types.ModuleType
# The classes of objects of Python's own, whose methods keep whatever they get.
_PLAIN = frozenset({list, dict, str, set, tuple, bytes, bytearray, frozenset, int, float, complex})


# Answers about functions and classes that are called themselves, which the native half asks before it calls `_see`: those that are
# found by their names, and classes whose instances are (`True`), or are if they say no other module.
_called, _callable = set(), {Function: True, ufunc: True, np.ufunc: True}


def _see(function, sites=None, site=0):
    """The function that the program's own modules call for a function: itself if it is of the program or of bh, otherwise one that
    gets NumPy's arrays. A function that is called itself is noted at its site, if it lives as long as its module or keeps nothing alive."""
    kind = type(function)
    found = _found(function, kind)
    if found is not function or kind is _Method:
        return found
    if kind not in _HASHED and kind not in _SEEN_THROUGH and type(call := getattr(kind, "__call__", None)) is _Function:
        home = call.__globals__.get("__name__")
        if isinstance(home, str) and _direct[home] and _is_lasting(kind):
            _callable[kind] = False
    elif (sites is not None or kind in _HASHED) and _is_lasting(function):
        if kind in _HASHED and kind is not _Function:
            _called.add(function)
        if sites is not None:
            sites[site] = function
    return found


def _is_lasting(value):
    """Is it a function, class or module that is found by its name, and so lives on?"""
    if isinstance(value, _Module):
        return sys.modules.get(value.__name__) is value
    if hasattr(value, "__objclass__"):
        return True
    found = sys.modules.get(getattr(value, "__module__", None))
    for name in getattr(value, "__qualname__", "<locals>").split("."):
        found = getattr(found, name, None)
    return found is value


# Wrappers of other packages' functions, which live as long as their modules.
_given = {}


def _found(function, kind):
    """The wrapper of a callable, or the callable itself if it takes arrays of bh."""
    if kind in _HASHED and (made := _given.get(function)) is not None:
        return made
    if kind is _Method:
        inner = function.__func__
        made = see(inner)
        return function if made is inner else _bound(made, function.__self__)
    if kind is _BuiltIn and not isinstance(function.__self__, (_Module, type, types.NoneType)):
        method = getattr(type(function.__self__), function.__name__, None)
        if type(method) is types.MethodDescriptorType:
            made = see(method)
            return function if made is method else _bound(made, function.__self__)
    if kind is functools.partial:
        inner = see(function.func)
        return function if inner is function.func else functools.partial(inner, *function.args, **function.keywords)
    if kind is views.Answering:
        return function
    module = module_of(function)
    if not isinstance(module, str) or _direct[module]:
        return function
    made = functools.partial(_hand_on, function) if module in _CALLING else _with_views(function)
    if kind in _HASHED and _is_lasting(function):
        _given[function] = made
    return made


# The classes of objects that stand for the functions in them.
_SEEN_THROUGH = {functools.partial, views.Answering}
# The classes of functions that live as long as their modules may.
_HASHED = {type, _Function, _BuiltIn, types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType}


def _bound(made, owner):
    return made.__get__(owner) if hasattr(made, "__get__") else functools.partial(made, owner)


def module_of(function):
    """The name of the module that decides what a function gets; None if nobody knows."""
    kind = type(function)
    if kind is _Function:
        # The module that it says may be that of a function that it wraps.
        return function.__globals__.get("__name__")
    if isinstance(function, type):
        return _module_of_class(function)
    owner = getattr(function, "__objclass__", None)
    if owner is not None:
        return _home_of(owner)
    if kind is _BuiltIn or kind is types.MethodWrapperType:
        owner, said = function.__self__, getattr(function, "__module__", None)
        if said is not None or owner is None or isinstance(owner, _Module):
            return said or getattr(owner, "__name__", None)
        return _module_of_attribute(owner if isinstance(owner, type) else type(owner), function.__name__)
    if isinstance(function, np.ufunc):
        # Universal functions, also of other packages, find bh's by NumPy's protocol.
        return "numpy"
    # An object whose class says what a call is, or a function of a kind of its own, as Cython's.
    call = getattr(kind, "__call__", None)
    home = call.__globals__.get("__name__") if type(call) is _Function else _home_of(kind)
    modules = home, getattr(function, "__module__", None)
    return next((name for name in modules if isinstance(name, str) and not _direct[name]), modules[0])


def _module_of_attribute(kind, name):
    """The module of the class that has an attribute, or of the function that it is."""
    owner = next((one for one in kind.__mro__ if name in vars(one)), kind)
    value = vars(owner).get(name)
    value = getattr(value, "__func__", value)
    return value.__globals__.get("__name__") if type(value) is _Function else _home_of(owner)


# Python's own classes that say no module.
_CORE = {value for module in (builtins, types) for value in vars(module).values() if isinstance(value, type)}


def _home_of(kind):
    """The module of a class. Some classes in C say one that there is not, or none."""
    name = kind.__module__
    if name == "builtins":
        return name if kind in _CORE else _NOWHERE
    # Classes with a dictionary for their objects are Python's, whose module may be none that is imported.
    return name if isinstance(name, str) and (name.partition(".")[0] in sys.modules or "__dict__" in vars(kind)) else _NOWHERE


def _module_of_class(kind):
    """The module of what makes the instances of a class: another package's, if an own class leaves that to it."""
    makers = (_module_of_attribute(kind, name) for name in ("__new__", "__init__"))
    return next((module for module in (kind.__module__, *makers) if isinstance(module, str) and not _direct[module]), kind.__module__)


def _hand_on(function, /, *args, **kwargs):
    """Calls a function of Python's own library that calls the functions among its arguments."""
    return function(*map(handed, args), **{name: handed(value) for name, value in kwargs.items()})


def handed(function):
    """A function that Python's own library is to call: one of another package in a form that gets NumPy's arrays, also in other
    processes."""
    if not callable(function) or see(function) is function:
        return function
    return functools.partial(_invoke, function)


def _invoke(function, /, *args, **kwargs):
    return see(function)(*args, **kwargs)


# Functions with owners of their wrappers, by module and name; wrappers of methods, by class of another package and name.
_held, _methods = {}, {}


def _hold(path, function):
    """An owner of the wrapper of a function, which takes the place of the module during a call."""
    for name in reversed(path):
        function = types.SimpleNamespace(**{name: function})
    return function


def _receiver(owner, path, sites, site):
    """The object in which the program's own modules look a function up to call it: its owner, if the function is called itself, or a
    holder of another one. `path` is the names on the way to it. An owner, or an object's class, known to be so is noted at its site."""
    kind, known = type(owner), sites[site]
    if type(known) is set and kind in known:
        return owner
    at, name = owner, path[-1]
    try:
        for step in path[:-1]:
            at = getattr(at, step)
        if len(path) == 1 and kind is not _Module and not isinstance(owner, type) and name not in getattr(owner, "__dict__", ()):
            made = _method(kind, name)
            if made is True:
                if type(known) is set and len(known) < _MOST_CLASSES:
                    known.add(kind)
                return owner
            if made is not None:
                return _hold(path, made.__get__(owner))
        function = getattr(at, name)
    except Exception:
        # The program's own line raises it.
        return owner
    if kind is _Module:
        before = _held.get((owner, path))
        if before is not None and before[0] is function:
            return before[1]
    found = see(function)
    if found is function:
        if known is None and isinstance(at, (_Module, type)) and _is_lasting(owner):
            sites[site] = owner
        # Attributes that an object stores, or finds without running code of its own, are looked up once more.
        if isinstance(at, (_Module, type, super)) or len(path) == 1 and name in getattr(owner, "__dict__", ()):
            return owner
    held = _hold(path, found)
    if kind is _Module and _is_lasting(owner) and _is_given(function, found):
        _held[owner, path] = function, held
    return held


# The most classes that a site notes.
_MOST_CLASSES = 16


def _method(kind, name):
    """The wrapper of a class's method; True if the method itself is called, and None if the class has no plain method of this name."""
    made = _methods.get((kind, name))
    if made is not None:
        return made
    value = next((vars(one)[name] for one in kind.__mro__ if name in vars(one)), None)
    inner = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
    if not isinstance(inner, _METHODS):
        return None
    found = see(inner)
    if found is inner:
        return True
    if inner is not value or not _is_given(inner, found) or not hasattr(found, "__get__"):
        return None
    if _is_lasting(kind):
        _methods[kind, name] = found
    return found


# The classes of what a class has for a plain method.
_METHODS = (_Function, types.MethodDescriptorType, types.ClassMethodDescriptorType, types.WrapperDescriptorType, Function)


def _is_given(function, found):
    return type(function) in _HASHED and _given.get(function) is found


class _Subscripted:
    """An object of another package while a subscript of it is read, assigned to or deleted: key and value are given as arguments are."""

    __slots__ = ("_owner",)

    def __init__(self, owner):
        self._owner = owner

    def __getitem__(self, key):
        exchange = views.Exchange()
        return exchange.back(self._owner[exchange.give(key)])

    def __setitem__(self, key, value):
        give = views.Exchange().give
        self._owner[give(key)] = give(value)

    def __delitem__(self, key):
        del self._owner[views.seen(key)]


def _subscripted(owner, sites, site):
    """The object that the program's own modules subscript: the owner itself, or the proxy of an object of another package.
    Classes of owners that stand for themselves are noted at the site."""
    kind, known = type(owner), sites[site]
    if kind in known:
        return owner
    methods = (_method(kind, name) for name in ("__getitem__", "__setitem__") if hasattr(kind, name))
    if isinstance(owner, (type, views.ndarray)) or all(made is True for made in methods):
        if len(known) < _MOST_CLASSES:
            known.add(kind)
        return owner
    return _Subscripted(owner)


# The program's modules call native functions, which answer by their notes, and otherwise call these.
see, receiver, subscripted = site_functions(
    see=_see, receiver=_receiver, subscripted=_subscripted, direct=_direct, plain=_PLAIN, called=_called, callable=_callable,
    function=_Function, method=_Method, builtin=_BuiltIn,
)  # fmt: skip


class _Assigned:
    """An object of another package while one of its attributes is assigned to: the value is given as arguments are."""

    __slots__ = ("_owner",)

    def __init__(self, owner):
        _set(self, "_owner", owner)

    def __setattr__(self, name, value):
        setattr(self._owner, name, views.Exchange().give(value))


_set = object.__setattr__


def assigned(owner, name, sites, site):
    """The object whose attribute the program's own modules assign to: the owner itself if it keeps what it gets, or the proxy of an
    object of another package whose class handles assignments. Classes of owners that keep it are noted at the site."""
    kind, known = type(owner), sites[site]
    if kind in known:
        return owner
    if _method(kind, "__setattr__") is True and not _is_set_elsewhere(kind, name):
        if len(known) < _MOST_CLASSES:
            known.add(kind)
        return owner
    return _Assigned(owner)


def _is_set_elsewhere(kind, name):
    """Does another package's code set this attribute?"""
    value = next((vars(one)[name] for one in kind.__mro__ if name in vars(one)), None)
    if isinstance(value, property):
        return value.fset is not None and see(value.fset) is not value.fset
    if isinstance(value, types.GetSetDescriptorType):
        return not _direct[_home_of(value.__objclass__)]
    return hasattr(type(value), "__set__") and _method(type(value), "__set__") is not True


def sites(kinds):
    """The places of a module's sites: of names, and of owners (`.`), whose classes are noted."""
    return [set() if kind == "." else None for kind in kinds]
