"""NumPy's interface on bh: array programs are recorded, fused, and run on the stack that the configuration names.

    >>> import bh as np
    >>> a = np.arange(6.0).reshape(2, 3)
    >>> (a * 2 + 1).sum(axis=0)
    array([ 8., 12., 16.])
"""

import gc as _gc
import importlib as _importlib
import os as _os

from ._numpy import inner_parts as _inner_parts

try:
    from . import _native
except ImportError as _reason:
    from ._tools import without_library as _without_library

    globals().update(_without_library.namespace(_reason))
else:
    _native.set_package(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)

    from ._numpy import native_hooks as _native_hooks  # noqa: E402

    _native_hooks.install()

    # In this order: the methods are there before the class shows them to derived classes.
    from ._array import methods as _methods  # noqa: E402,F401
    from ._array import class_methods as _class_methods, subclassing as _subclassing  # noqa: E402,F401
    from ._numpy import namespace as _namespace  # noqa: E402

    globals().update(_namespace.build())

    from . import linalg  # noqa: E402
    from ._array import pending_numbers as _pending_numbers  # noqa: E402
    from ._cluster.ranks import map_blocks, rank, ranks  # noqa: E402,F401
    from ._native import BoundsError, Error, Stack  # noqa: E402,F401
    from ._numpy import after_import as _after_import, libraries as _libraries  # noqa: E402
    from ._numpy.fallback import FallbackError, FallbackWarning  # noqa: E402,F401
    from ._numpy.lib import lib  # noqa: E402,F401
    from ._tools.installation import warn_of_newer_numpy as _warn  # noqa: E402
    from ._tools import tracebacks as _tracebacks  # noqa: E402
    from ._tools.runtime import (  # noqa: E402,F401
        check,
        devices,
        eager,
        explain,
        fallback,
        flush,
        memory_limit,
        profile,
        stacks,
        threads,
        using,
        wait,
    )
    from numpy import __version__ as _version  # noqa: E402

    # Names that are loaded when a program asks for them, and their modules; parts are modules of their own.
    _LATE = {
        **dict.fromkeys(("CheckpointError", "checkpoint", "restore"), "_cluster.checkpoints"),
        **dict.fromkeys(("GraphError", "sink", "source", "task"), "_graph.graph"),
        **dict.fromkeys(("check_grad", "grad", "hvp", "jacobian", "jvp", "stop_gradient", "value_and_grad", "vjp"), "_jit.derivatives"),
        **dict.fromkeys(("custom_jvp", "custom_vjp"), "_jit.custom_rules"),
        **{"fold": "_jit.custom_folds", "jit": "_jit.recording", "vmap": "_jit.members"},
        **{"extension_method": "_tools.extension_method", "parallel": "_jit.parallel", "stream": "_jit.stream"},
        **{"digits": "_tools.digits", "narrow": "_tools.narrow", "doctor": "_tools.doctor", "live": "_tools.live", "load_ipython_extension": "_tools.magic"},
        **{"fft": "", "random": ""},
    }
    # NumPy's functions, which this makes take bh's arrays, call the part at once.
    _after_import.add("numpy.fft".__eq__, lambda name: _importlib.import_module("bh.fft"))
    _libraries.install()
    _tracebacks.install()
    _warn(_version)
    _pending_numbers.teach()
    __version__ = _native.__version__
    __array_api_version__ = "2024.12"
    __array_namespace_info__ = _namespace.Info
    __all__ = sorted({*_LATE, *(name for name in globals() if not name.startswith("_"))})
    # Tracebacks name the class as programs do.
    Error.__name__ = Error.__qualname__ = "Error"
    for _public in map(globals().get, __all__):
        # Public classes are shown, and pickled, under their public names.
        if isinstance(_public, type) and _public.__module__.startswith("bh._") and _public.__module__ != "bh._native":
            _public.__module__ = "bh"
    if not _gc.get_freeze_count():
        # All objects loaded so far become old for the collector: its next full pass would slow a program's first lines down.
        _gc.freeze()
        _gc.unfreeze()


def __getattr__(name):
    # Modules that are loaded only when a program asks for them, as NumPy's are, and NumPy's private ones.
    import numpy

    if name in globals().get("_LATE", ()):
        module = _importlib.import_module(f"bh.{_LATE[name] or name}")
        found = globals()[name] = getattr(module, name) if _LATE[name] else module
        return found
    if name == "polynomial" and "_native" in globals():
        return _importlib.import_module("bh._functions.polynomial").of(numpy.polynomial)
    if name == "ma" and "_native" in globals():
        _subclassing.teach_masked()
    return _importlib.import_module("bh.testing") if name == "testing" else _inner_parts.part_of(numpy, name)


def __dir__():
    import numpy

    # Without names of our own, which Python would suggest for misspelled ones.
    own = (name for name in globals() if not name.startswith("_") or name.endswith("__"))
    return sorted({*own, *globals().get("_LATE", ()), *(name for name in dir(numpy) if not name.startswith("_"))})


if "_native" in globals() and _native.is_launched():
    # Ranks that serve do not get past this, and have all that functions of the program may name.
    for _name in _LATE:
        __getattr__(_name)
    from ._cluster.ranks import begin as _begin
    from ._jit.scalar import program as _program  # noqa: F401

    _begin()
