"""Methods that programs call on the class of arrays, with instances of classes derived from NumPy's."""

import gc

import numpy as np

from .subclassing import ArrayClass, for_both, native_class as ndarray

# Those of native slots, whose own form refuses such instances.
_SLOT = type(ndarray.__add__)
# Others that find out about the instance natively.
_OTHERS = "__repr__ __str__ __format__ __reduce__ __reduce_ex__ __copy__ __deepcopy__ __contains__".split()


class _Unbound:
    """A method of the class: of an instance it is the one of bh, of the class one that takes instances of both."""

    def __init__(self, name, method):
        self.method, self.of_class = method, for_both(name, method)

    def __get__(self, instance, owner=None):
        return self.of_class if instance is None else self.method.__get__(instance, owner)


def _methods_of(kind):
    """The dict that holds a class's attributes; None where the interpreter shows no such dict."""
    found = gc.get_referents(vars(kind))
    if len(found) != 1 or type(found[0]) is not dict:
        return None
    mark = object()
    kind._bh_mark = mark
    try:
        return found[0] if found[0].get("_bh_mark") is mark else None
    finally:
        del kind._bh_mark


def install():
    """Puts them into the class, whose operators stay native: they go into its dict, as an assignment to the class would change those.
    Without access to the dict they are assigned, and operators are slower."""
    methods = _methods_of(ndarray)
    for name, method in list(vars(ndarray).items()):
        if not (type(method) is _SLOT or name in _OTHERS) or not hasattr(np.ndarray, name):
            continue
        if methods is not None:
            # Numbers have a hash by their slot; by the name, arrays are seen to have none.
            methods[name] = None if name == "__hash__" else _Unbound(name, method)
        elif name != "__hash__":
            setattr(ndarray, name, _Unbound(name, method))
    # An assignment tells the interpreter that the class has changed.
    ndarray.__array_priority__ = ndarray.__array_priority__


class _OfClass:
    """An attribute that the metaclass gives the class; lookup on its arrays bypasses it, and is as fast as before."""

    def __init__(self, name, value):
        self.name, self.value = name, value

    def __get__(self, cls, owner=None):
        return self.value

    def __set__(self, cls, value):
        # From now on the class has what it is given.
        delattr(ArrayClass, self.name)
        setattr(cls, self.name, value)


def _attribute(name, own):
    """An attribute of arrays of both classes, such as their shape."""
    of = lambda array: getattr(np.ndarray, name) if isinstance(array, np.ndarray) else own
    return property(lambda self: of(self).__get__(self), lambda self, value: of(self).__set__(self, value), doc=own.__doc__)


_METHOD = type(vars(ndarray)["sum"])
# Names that NumPy looks up in the class itself at each call, and names that instances have no use for.
_LEFT = "__array_ufunc__ __array_function__ __new__ __class_getitem__ __class__ __doc__ __module__ __array_priority__ __hash__".split()


def install_of_class():
    """Makes the other methods and attributes, asked for by the class, take instances of both classes."""
    for name, value in list(vars(ndarray).items()):
        # Methods that a table serves take both already.
        if name in _LEFT or type(value) in (_Unbound, _METHOD) or not hasattr(np.ndarray, name):
            continue
        made = for_both(name, value) if callable(value) else _attribute(name, value) if hasattr(value, "__set__") else None
        if made is not None:
            setattr(ArrayClass, name, _OfClass(name, made))
    # Methods of NumPy's that derived classes call on the class, such as `__array_finalize__`. A `__getattr__` would slow down each
    # attribute of the class, of which NumPy asks for several in a call.
    for name in dir(np.ndarray):
        if not hasattr(ndarray, name):
            setattr(ArrayClass, name, _OfClass(name, getattr(np.ndarray, name)))


install()
install_of_class()
