"""`import numpy` that means bh in a program's own modules, and NumPy everywhere else."""

import builtins
import functools
import os
import site
import sysconfig
import types

import numpy

from .provided import equivalent

_plain = builtins.__import__

# Modules of these directories are installed libraries, which keep NumPy.
_installed = tuple(
    {
        *(path for name, path in sysconfig.get_paths().items() if name in ("stdlib", "platstdlib", "purelib", "platlib")),
        *site.getsitepackages(),
        site.getusersitepackages(),
        # Wherever NumPy lies, other installed libraries lie.
        os.path.dirname(os.path.dirname(os.path.abspath(numpy.__file__))),
    }
)

# Parts of NumPy that bh has; the others stay NumPy's.
_PARTS = ("linalg", "fft", "random", "testing")


# What `import numpy` means in the place of bh: NumPy's names on a back end.
stand = None

# Installed packages whose `import numpy` means bh too, and those that have imported NumPy itself.
named, kept = set(), set()


# Packages whose functions get NumPy's arrays over the memory of bh's in any case. Their own NumPy is NumPy.
shown = set()


def is_own(scope):
    """Is this the scope of one of the program's own modules, or of a package that is named?"""
    if not scope:
        return False
    name, file = scope.get("__name__") or "", scope.get("__file__")
    if name == "bh" or name.startswith("bh.") or _package(scope) in shown:
        return False
    if file is None or not is_installed(file) or _package(scope) in named:
        return file is not None or name == "__main__"
    kept.add(_package(scope))
    return False


def is_installed(file):
    """Does a file belong to an installed library?"""
    return file.startswith(_installed)


def _package(scope):
    """The name of the package that a module belongs to, also while the module runs as the program."""
    return (scope.get("__package__") or scope.get("__name__") or "").partition(".")[0]


def report():
    """Which installed packages have kept NumPy, as text."""
    packages = sorted(kept - {"numpy", ""})
    return f"NumPy stays NumPy in {', '.join(packages)}; --with NAME changes that" if packages else ""


def _import(name, globals=None, locals=None, fromlist=(), level=0):
    # The parameters have the names of `__import__`'s own, by which some callers pass them.
    if level or name.partition(".")[0] != "numpy" or not is_own(globals):
        return _plain(name, globals, locals, fromlist, level)
    if stand is not None:
        module = functools.reduce(getattr, name.split(".")[1:], stand)
        return module if fromlist else stand
    import bh

    below = name.split(".")[1:]
    if not below or below[0] in _PARTS and len(below) == 1:
        return getattr(bh, below[0]) if below and fromlist else bh
    # Modules that bh lacks: the import binds `numpy`, or takes names from the module.
    module = _plain(name, globals, locals, fromlist, level)
    if below[0] == "_core":
        module = functools.reduce(getattr, below, bh)
    if below[0] == "lib":
        module = functools.reduce(getattr, below, bh)
    if below[0] == "ma":
        bh._array.subclassing.teach_masked()
    if name == "numpy.ma.testutils":
        module = bh.testing.of_masked()
    elif below[0] == "polynomial":
        module = functools.reduce(getattr, below, bh)
    return module if fromlist else bh


# The version of bh, while it tells NumPy's.
_own_version = ""


def install():
    """Makes `import numpy` in the program's own modules mean bh, which then tells NumPy's version: programs ask for that."""
    import bh

    global _own_version
    if builtins.__import__ is not _import:
        builtins.__import__, _own_version, bh.__version__ = _import, bh.__version__, numpy.__version__


def remove():
    """Gives `import numpy` its plain meaning back."""
    if builtins.__import__ is _import:
        import bh

        builtins.__import__, bh.__version__ = _plain, _own_version


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
        # What the module has got since.
        return _seen(getattr(self._module, name))

    def __dir__(self):
        return dir(self._module)


def _seen(value, in_c=False):
    """What stands for an object in a module of NumPy's inner parts, which may be written in C."""
    if isinstance(value, types.ModuleType) and value.__name__.startswith("numpy."):
        return _Inner(value)
    mine = equivalent(value) if callable(value) and not isinstance(value, type) else None
    if mine is not None:
        return mine
    if not in_c or not isinstance(value, types.BuiltinFunctionType):
        return value
    from .views import given_views

    return given_views(value)


def part_of(package, name):
    """What bh's package or module leaves to NumPy's of the same name: modules loaded late, and private names."""
    found = getattr(package, name, None) if name in dir(package) else None
    if found is None or name.startswith("__") and name != "__config__":
        raise AttributeError(f"module {package.__name__.replace('numpy', 'bh', 1)!r} has no attribute {name!r}")
    import bh

    return _Inner(found) if name == "_core" and hasattr(bh, "_native") else found
