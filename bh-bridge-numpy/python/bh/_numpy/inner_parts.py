"""Modules of NumPy's inner parts, as the program finds them under bh's names."""

import types

from .provided import equivalent


class _Inner:
    """A module of NumPy's inner parts, whose functions in C get NumPy's arrays over the memory of bh's."""

    _made = {}

    def __new__(cls, module):
        made = cls._made.get(module.__name__)
        if made is None:
            made = cls._made[module.__name__] = super().__new__(cls)
            made.__dict__.update(_module=module)
            in_c = not (getattr(module, "__file__", None) or "").endswith(".py")
            made.__dict__.update({name: _seen(value, in_c) for name, value in vars(module).items()})
        return made

    def __setattr__(self, name, value):
        setattr(self._module, name, value)
        self.__dict__[name] = value

    def __getattr__(self, name):
        # Attributes that the module got later.
        return _seen(getattr(self._module, name))

    def __dir__(self):
        return dir(self._module)


def _seen(value, in_c=False):
    """The object that a module of NumPy's inner parts, which may be written in C, gets in the place of another one."""
    if isinstance(value, types.ModuleType) and value.__name__.startswith("numpy."):
        return _Inner(value)
    mine = equivalent(value) if callable(value) and not isinstance(value, type) else None
    if mine is not None:
        return mine
    if not in_c or not isinstance(value, types.BuiltinFunctionType):
        return value
    # Here, as the package has this module also without its native library.
    from .views import given_views

    return given_views(value)


def part_of(package, name):
    """Names that bh's package or module leaves to NumPy's of the same name: modules loaded late, and private names."""
    # `dir(numpy)` leaves out modules that programs use, as `version`.
    found = getattr(package, name, None) if name in dir(package) or name in vars(package) else None
    if found is None or name.startswith("__") and name != "__config__":
        raise AttributeError(f"module {package.__name__.replace('numpy', 'bh', 1)!r} has no attribute {name!r}")
    import bh

    return _Inner(found) if name == "_core" and hasattr(bh, "_native") else found
