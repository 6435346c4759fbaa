"""Methods that programs call on the class of arrays, with instances of classes derived from NumPy's."""

import gc

import numpy as np

from ._class import for_both, native_class as ndarray

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


def install():
    """Puts them into the class, whose operators stay native: they are assigned past the class, as an assignment would change those."""
    methods = gc.get_referents(vars(ndarray))[0]
    for name, method in list(methods.items()):
        if (type(method) is _SLOT or name in _OTHERS) and hasattr(np.ndarray, name):
            methods[name] = _Unbound(name, method)
    # An assignment tells the interpreter that the class has changed.
    ndarray.__array_priority__ = ndarray.__array_priority__


install()
