"""`import numpy` that means bh in a program's own modules, and NumPy everywhere else."""

import builtins
import site
import sysconfig
import types

_plain = builtins.__import__

# Modules of these directories are installed libraries, which keep NumPy.
_installed = tuple(
    {
        *(path for name, path in sysconfig.get_paths().items() if name in ("stdlib", "platstdlib", "purelib", "platlib")),
        *site.getsitepackages(),
        site.getusersitepackages(),
    }
)

# Parts of NumPy that bh has; the others stay NumPy's.
_PARTS = ("linalg", "fft", "random", "testing")


def _is_own(scope):
    """Is this the scope of one of the program's own modules?"""
    if not scope:
        return False
    name, file = scope.get("__name__") or "", scope.get("__file__")
    if name == "bh" or name.startswith("bh."):
        return False
    return file is None and name == "__main__" or file is not None and not file.startswith(_installed)


def _import(name, globals=None, locals=None, fromlist=(), level=0):
    # The parameters have the names of `__import__`'s own, by which some callers pass them.
    if level or name.partition(".")[0] != "numpy" or not _is_own(globals):
        return _plain(name, globals, locals, fromlist, level)
    import bh

    below = name.split(".")[1:]
    if not below or below[0] in _PARTS and len(below) == 1:
        return getattr(bh, below[0]) if below and fromlist else bh
    # Modules that bh lacks: the import binds `numpy`, or takes names from the module.
    module = _plain(name, globals, locals, fromlist, level)
    return module if fromlist else bh


def install():
    """Makes `import numpy` in the program's own modules mean bh."""
    builtins.__import__ = _import


def remove():
    """Gives `import numpy` its plain meaning back."""
    if builtins.__import__ is _import:
        builtins.__import__ = _plain


def part_of(package, name):
    """What bh's package or module leaves to NumPy's of the same name: modules loaded late, and private ones."""
    found = getattr(package, name, None) if name in dir(package) else None
    if found is None or name.startswith("_") and not isinstance(found, types.ModuleType):
        raise AttributeError(f"module {package.__name__.replace('numpy', 'bh', 1)!r} has no attribute {name!r}")
    return found
