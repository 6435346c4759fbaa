"""The forms of values while a function is read: numbers, tuples, objects of some classes, lists of a bounded length, and known values.

A form is None for numbers, a tuple of forms, a `Static`, `Objects`, `Lists`, or NOTHING while no value was seen. Forms of the same place are
joined; a function is read again and again until they no longer grow.
"""

import dataclasses
import enum
import inspect
import types

import numpy as np

from ... import _native
from .ir import Unsupported
from .names import Static, lifted

NONE = type(None)


class Number:
    """The class of numbers where there may be None instead; a number is the attribute `value`."""



# Modules whose objects are none of the program's.
_LIBRARIES = {"bh", "numpy", "functools", "operator", "_operator", "typing", "re", "random"}


class _Nothing:
    def __repr__(self):
        return "NOTHING"


# The form of a place without a value so far, and of attributes of which different things are known.
NOTHING, LOST = _Nothing(), _Nothing()


# A value of a place that has none so far.
MISSING = Static(NOTHING)


class Conflict(Exception):
    """Values of two forms that have nothing in common."""


@dataclasses.dataclass(frozen=True)
class Objects:
    """Objects of some classes, each with its attributes and their forms. None is an object of its class."""

    variants: tuple

    def classes(self):
        return [cls for cls, _ in self.variants]

    def attributes(self, cls):
        """The forms of a class's attributes by name."""
        return next((dict(found) for one, found in self.variants if one is cls), {})

    def of(self, classes):
        """The part with these classes."""
        return Objects(tuple(variant for variant in self.variants if variant[0] in classes))


@dataclasses.dataclass(frozen=True)
class Lists:
    """Lists of at most `capacity` items. `length`: the number of items, None if it varies, NOTHING if nothing is said of it."""

    item: object
    capacity: int
    length: object


class View:
    """An object or a list: its form, the stem of its variables, and the place whose form grows with it: a key, and the steps from there.
    `fresh`: no name has it yet. `copied`: it is a copy of one that has other names."""

    __slots__ = ("form", "name", "key", "steps", "fresh", "copied")

    def __init__(self, form, name, key, steps=(), fresh=False, copied=False):
        self.form, self.name, self.key, self.steps, self.fresh, self.copied = form, name, key, steps, fresh, copied

    def place(self):
        """A key that distinguishes it from others."""
        return self.key, self.steps


def join(one, other):
    """The form of a place that has values of both forms."""
    if one == other or other is NOTHING:
        return one
    if one is NOTHING:
        return other
    if one is LOST or other is LOST:
        return LOST
    if type(one) is tuple and type(other) is tuple and len(one) == len(other):
        return tuple(map(join, one, other))
    if type(one) is Lists and type(other) is Lists:
        same = one.length == other.length or other.length is NOTHING
        length = one.length if same else other.length if one.length is NOTHING else None
        return Lists(join(one.item, other.item), max(one.capacity, other.capacity), length)
    one, other = as_objects(one, other), as_objects(other, one)
    if type(one) is Objects and type(other) is Objects:
        found = {cls: dict(attributes) for cls, attributes in one.variants}
        for cls, attributes in other.variants:
            mine = found.setdefault(cls, {})
            for name, form in attributes:
                mine[name] = _joined_attribute(mine.get(name, NOTHING), form)
        return Objects(tuple((cls, tuple(attributes.items())) for cls, attributes in found.items()))
    raise Conflict


def _joined_attribute(one, other):
    try:
        return join(one, other)
    except Conflict:
        return LOST


def as_objects(form, beside=None):
    """The form of a known value as one of objects, if it is one: None, or an instance of a class of the program; and that of numbers beside None."""
    if form is None and (beside == Static(None) or type(beside) is Objects and {*beside.classes()} <= {NONE, Number}):
        return Objects(((Number, (("value", None),)),))
    if type(form) is not Static:
        return form
    if form.value is None:
        return Objects(((NONE, ()),))
    if not is_instance(form.value):
        return form
    return Objects(((type(form.value), tuple((name, form_of(lifted(value))) for name, value in attributes_of(form.value).items())),))


def is_instance(value):
    """Is it an object of a class that a program wrote in Python?"""
    cls = type(value)
    others = (enum.Enum, type, types.FunctionType, types.MethodType, types.ModuleType, np.ndarray, np.generic, np.ufunc, _native.ndarray, list, dict, set, str, bytes)
    if isinstance(value, others) or not cls.__flags__ & (1 << 9) or cls.__module__.partition(".")[0] in _LIBRARIES:
        # Classes written in Python are allocated on the heap.
        return False
    if isinstance(value, tuple):
        return hasattr(cls, "_fields")
    return any("__init__" in vars(base) or dataclasses.is_dataclass(base) or "__dict__" in vars(base) for base in cls.__mro__[:-1])


def attributes_of(value):
    """An object's attributes and their values."""
    slots = [name for cls in type(value).__mro__ for name in _slots(cls)]
    found = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    if isinstance(value, tuple):
        return dict(zip(type(value)._fields, value))
    return found | getattr(value, "__dict__", {})


def _slots(cls):
    slots = vars(cls).get("__slots__", ())
    return [name for name in ((slots,) if isinstance(slots, str) else slots) if not name.startswith("__")]


def form_of(value):
    """The form of a value."""
    if type(value) is tuple:
        return tuple(map(form_of, value))
    if value is MISSING:
        return NOTHING
    return value.form if type(value) is View else value if type(value) is Static else None


class Facts:
    """Facts about a function's places, which grow while it is read: forms by key, the classes whose objects change, for each list
    the most items that it begins with, the loops around statements with lists, and the parts of objects that are always the same number."""

    def __init__(self):
        self.forms, self.mutable, self.begins, self.depths, self.numbers, self.constants = {}, set(), {}, {}, {}, {}
        # Places that get another list where a test of the length of the one before holds.
        self.replaced = set()
        # `final`: no form grows any more, and lists without items are empty.
        self.changed = self.final = False

    def learn(self, key, form):
        """The form of a place that gets values of this form, too."""
        before = self.forms.get(key, NOTHING)
        after = join(before, form)
        if after != before:
            # A place without a value so far was not read before either.
            self.forms[key], self.changed = after, self.changed or before is not NOTHING
        return after

    def grow(self, view, form):
        """Lets the place of an object or list have values of this form, too."""
        for kind, *step in reversed(view.steps):
            if kind == "attribute":
                cls, name = step
                form = Objects(((cls, ((name, form),)),))
            elif kind == "part":
                place, count = step
                form = tuple(form if at == place else NOTHING for at in range(count))
            else:
                form = Lists(form, 0, NOTHING)
        self.learn(view.key, form)

    def form(self, view):
        """The present form of an object or list."""
        form = self.forms.get(view.key, NOTHING)
        for kind, *step in view.steps:
            if form is NOTHING:
                return view.form
            form = form.attributes(step[0]).get(step[1], NOTHING) if kind == "attribute" else form[step[0]] if kind == "part" else form.item
        return view.form if form is NOTHING else form

    def note_number(self, place, value):
        """Notes that a part of an object or list gets a number; None for several."""
        before = self.constants.get(place, value)
        if place not in self.constants or before is not None and before != value:
            self.constants[place], self.changed = (value if before == value else None), True

    def replaces(self, place):
        """Notes that a place gets another list under a test of its length, which says nothing then."""
        if place not in self.replaced:
            self.replaced.add(place)
            self.changed = True

    def changes(self, cls):
        """Notes that objects of a class change after they are made."""
        if cls not in self.mutable:
            self.mutable.add(cls)
            self.changed = True

    def is_mutable(self, form):
        """May a value of this form change while it has a name?"""
        if type(form) is tuple:
            return any(map(self.is_mutable, form))
        if type(form) is Objects:
            return any(cls in self.mutable or any(self.is_mutable(one) for _, one in attributes) for cls, attributes in form.variants)
        return type(form) is Lists

    def least(self, store, key, value):
        """Keeps the least of the values of a key; of `begins`, the greatest."""
        known = store.get(key)
        better = known is None or (value > known if store is self.begins else value < known)
        if better:
            store[key], self.changed = value, self.changed or known is not None
        return store[key]

    def number(self, cls):
        """The number that stands for a class."""
        return self.numbers.setdefault(cls, len(self.numbers))


def method_of(cls, name):
    """The attribute of a class, as it is written: a function, a property, a method of the class; None if it has nothing."""
    return inspect.getattr_static(cls, name, None)


def described(form):
    """A form in the words of messages."""
    if form is None:
        return "a number"
    if type(form) is tuple:
        return "a tuple"
    if type(form) is Lists:
        return "a list"
    if type(form) is Objects:
        names = {NONE: "None", Number: "a number"}
        return " or ".join(names.get(cls, cls.__name__) for cls in form.classes())
    return repr(form.value) if type(form) is Static else "nothing"


def unsupported(one, other, what, line):
    return Unsupported(f"{what} is {described(one)} here and {described(other)} elsewhere", line)
