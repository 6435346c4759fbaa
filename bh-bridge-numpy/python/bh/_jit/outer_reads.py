"""The values that a function reads outside of its arguments: the globals, cells, defaults and attributes that its code names, and those of
the functions that it calls."""

import builtins
import dis
import gc
import importlib.util
import sys
import types

import numpy as np

from .. import _native
from .._numpy import hidden
from .guards import PLAIN, UNCHANGING, Unseen, is_changing, is_settled, is_steady

_array = _native.ndarray


class Outside:
    """The expressions that look up what functions read outside of themselves, and what these expressions look at.

    `entries` has for each expression its name in messages, its value, and how the value is compared: by its identity (`SAME`), by
    its value (`VALUE`), or by all that can be reached from it (`STATE`). `codes` are those of all functions that were surveyed, by
    their identities.
    """

    SAME, VALUE, STATE = "same", "value", "state"

    def __init__(self, functions, static):
        self.scope = {"array": _array, "builtins": builtins, "modules": sys.modules, "lacks": _lacks}
        self.entries, self.codes = {}, {}
        self._static, self._seen = static, set()
        for function in functions:
            if is_changing(function.__module__):
                raise Unseen(f"{function.__qualname__} of {function.__module__} gives another result at each call")
            self._function(function)

    def look_up(self, text):
        try:
            return eval(text, self.scope)
        except ABSENT:
            # Not there, or not yet.
            return MISSING

    def _name(self, value):
        """A name for an object in expressions."""
        name = f"at{id(value)}"
        self.scope[name] = value
        return name

    def _function(self, function):
        """Notes what a function is made of, and what its code names."""
        if function in self._seen:
            return
        self._seen.add(function)
        mine = self._name(function)
        for part in ("__code__", "__defaults__", "__kwdefaults__"):
            self._note(function.__name__, f"{mine}.{part}", getattr(function, part), self.SAME)
        for at, value in enumerate(function.__defaults__ or ()):
            self._value("a default argument", f"{mine}.__defaults__[{at}]", value)
        for name, value in (function.__kwdefaults__ or {}).items():
            self._value("a default argument", f"{mine}.__kwdefaults__[{name!r}]", value)
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        for name, attributes in self._chains(function.__code__, cells, function):
            if not name.startswith(hidden.PREFIX):
                self._follow(name, self._root(function, cells, name), attributes)

    def _root(self, function, cells, name):
        """The expression of a cell, a global, or a module that is imported."""
        if name in cells:
            return f"{self._name(cells[name])}.cell_contents"
        table = self._name(function.__globals__)
        root = f"{table}[{name!r}]"
        return root if name in function.__globals__ else f"({root} if {name!r} in {table} else builtins.{name})"

    def _chains(self, code, cells, function):
        """Names of globals and of cells in code, each with the attributes that are looked up of it."""
        self.codes[id(code)] = code
        root, attributes, before = None, [], (0, None)
        for instruction in dis.get_instructions(code):
            if root is not None and instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                attributes.append(instruction.argval)
                continue
            if root is not None:
                yield root, tuple(attributes)
                root, attributes = None, []
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") or instruction.opname == "LOAD_DEREF" and instruction.argval in cells:
                root = instruction.argval
            elif instruction.opname == "IMPORT_NAME":
                self._import(function, instruction.argval, *before)
            before = before[1], instruction.argval
        if root is not None:
            yield root, tuple(attributes)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                yield from self._chains(constant, cells, function)

    def _import(self, function, name, level, parts):
        """Follows what an import statement in a function binds."""
        full = importlib.util.resolve_name("." * level + name, function.__globals__.get("__package__")) if level else name
        try:
            module = importlib.import_module(full)
        except ImportError:
            return
        for part in parts or ():
            if not hasattr(module, part):
                self._import(function, f"{full}.{part}", 0, None)
            self._follow(full, f"modules[{full!r}]", (part,))
        if not parts:
            self._follow(full, f"modules[{full!r}]", ())

    def _follow(self, name, root, attributes):
        """Notes what a chain of attributes ends in, as far as it is not the attribute of an array or a number."""
        value, text, path = self.look_up(root), root, name
        for attribute in attributes:
            if path in self._static or value is MISSING or _is_closed(value):
                break
            further = self.look_up(f"{text}.{attribute}")
            if _is_bound(further, value):
                # It may read all of the object.
                method = getattr(further, "__func__", None)
                if isinstance(method, types.FunctionType) and not is_settled(method.__module__):
                    self._function(method)
                if not (isinstance(value, type) and is_changing(value.__module__)):
                    break
            value, text, path = further, f"{text}.{attribute}", f"{path}.{attribute}"
        self._value(path, text, value)

    def _value(self, path, text, value):
        """Notes a value that an expression gives, and follows it if it is a function."""
        kind = type(value)
        if path in self._static or value is MISSING or isinstance(value, UNCHANGING):
            self._note(path, text, value, self.SAME)
        elif kind is _array or kind in PLAIN or isinstance(value, (np.generic, np.ndarray)):
            self._note(path, text, value, self.VALUE)
        elif (inner := _inside(value)) is not None:
            self._note(path, text, value, self.SAME)
            self._value(path, f"{text}.{inner}", getattr(value, inner))
        elif isinstance(value, types.FunctionType) and not is_changing(value.__module__):
            self._note(path, text, value, self.SAME)
            if not is_settled(value.__module__):
                self._function(value)
        elif _is_known(value):
            self._note(path, text, value, self.SAME)
        else:
            self._note(path, text, value, self.STATE)

    def _note(self, path, text, value, kind):
        self.entries.setdefault(text, (path, value, kind))


MISSING = object()
# The exceptions of expressions whose names do not exist.
ABSENT = (KeyError, AttributeError, ValueError, IndexError, TypeError)


def _lacks(look):
    try:
        look()
    except ABSENT:
        return True
    return False


def _is_closed(value):
    """Do the attributes of this value follow from its own, or matter to no call?"""
    if type(value) in PLAIN or isinstance(value, (*_CLOSED, *UNCHANGING)) or _inside(value) is not None:
        return True
    return is_settled(value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", type(value).__module__))


_CLOSED = (_array, np.generic, np.ndarray, tuple, list, dict, set, types.BuiltinFunctionType)


def _is_bound(value, owner):
    """Is this a method that is bound to its owner?"""
    bound = isinstance(value, (types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType))
    return bound and value.__self__ is owner and not isinstance(owner, types.ModuleType)


def _inside(value):
    """The attribute of a function's wrapper, of bh, NumPy or the standard library, that is the function itself."""
    if isinstance(value, types.FunctionType) or not is_settled(type(value).__module__):
        return None
    names = ("_function", "pyfunc", "__wrapped__")
    return next((name for name in names if isinstance(getattr(value, name, None), types.FunctionType)), None)


def _is_known(value):
    """Does a class, a module or a compiled function do the same as long as it is itself?"""
    if isinstance(value, types.ModuleType):
        return is_settled(value.__name__)
    if isinstance(value, type):
        return is_settled(value.__module__) or is_changing(value.__module__)
    return is_steady(value)


def _is_within_settled(frame):
    """Is this code of a settled module, or of the standard library, called by such code?"""
    while frame is not None and is_changing(frame.f_globals.get("__name__")):
        frame = frame.f_back
    return frame is None or is_settled(frame.f_globals.get("__name__"))


def _interrupts(frame, known):
    """Does Python call this code, or what calls it, between two statements: a callback of the garbage collector, or a finalizer?"""
    callbacks = {id(getattr(callback, "__code__", None)) for callback in gc.callbacks}
    while frame is not None and id(frame.f_code) not in known:
        if id(frame.f_code) in callbacks or frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


class Reached:
    """Watches which functions of Python run in this thread beside those whose code is known."""

    def __init__(self, known):
        self._known, self._codes = known, {}

    def __enter__(self):
        self._before = sys.getprofile()
        # A profiler that is no function of Python cannot be called from here, and stays.
        if self._before is None or callable(self._before):
            sys.setprofile(self._note)
        return self

    def __exit__(self, *_):
        if self._before is None or callable(self._before):
            sys.setprofile(self._before)

    def _note(self, frame, event, argument):
        code = frame.f_code
        if event == "call" and id(code) not in self._known and id(code) not in self._codes:
            if not _is_within_settled(frame) and not _interrupts(frame, self._known):
                self._codes[id(code)] = code
        if self._before is not None:
            self._before(frame, event, argument)

    def functions(self):
        """The functions that have run, all those of the same code for each."""
        if not self._codes:
            return []
        referrers = gc.get_referrers(*self._codes.values())
        return [found for found in referrers if isinstance(found, types.FunctionType) and id(found.__code__) in self._codes]
