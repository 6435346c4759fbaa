"""`import numpy` that means bh in a program's own modules, and NumPy everywhere else."""

import builtins
import functools
import os
import sys

import numpy

_plain = builtins.__import__


@functools.cache
def _installed():
    """The directories whose modules are installed libraries, which keep NumPy."""
    # Here, as plain programs do without it. The paths of `sysconfig` would import modules, which ask for these directories.
    import site

    version = "python{}.{}".format(*sys.version_info)
    return tuple(
        {
            os.path.dirname(os.__file__),
            os.path.join(sys.base_exec_prefix, sys.platlibdir, version),
            *site.getsitepackages(),
            site.getusersitepackages(),
            # Wherever NumPy lies, other installed libraries lie.
            os.path.dirname(os.path.dirname(os.path.abspath(numpy.__file__))),
        }
    )


# Parts of NumPy that bh has; the others stay NumPy's.
_PARTS = ("linalg", "fft", "random", "testing")


# The module that `import numpy` gives in the place of bh: NumPy's names on a back end.
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
    return file.startswith(_installed()) or f"{os.sep}site-packages{os.sep}" in file


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
