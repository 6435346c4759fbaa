"""`import numpy` that means bh in a program's own modules, and NumPy everywhere else."""

import builtins
import importlib
import site
import sysconfig

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
_PARTS = ("linalg", "fft", "random")


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
    if below and below[0] not in _PARTS:
        # Modules that bh lacks: the import binds `numpy`, or takes names from the module.
        module = importlib.import_module(name)
        return module if fromlist else bh
    module = bh
    for part in below:
        module = getattr(module, part)
    return module if fromlist else bh


def install():
    """Makes `import numpy` in the program's own modules mean bh."""
    builtins.__import__ = _import


def remove():
    """Gives `import numpy` its plain meaning back."""
    if builtins.__import__ is _import:
        builtins.__import__ = _plain
