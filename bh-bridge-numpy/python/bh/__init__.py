"""NumPy's interface on bh: array programs are recorded, fused, and run on the stack that the configuration names.

    >>> import bh as np
    >>> a = np.arange(6.0).reshape(2, 3)
    >>> (a * 2 + 1).sum(axis=0)
    array([ 8., 12., 16.])
"""

import os as _os

from . import _imports

try:
    from . import _native
except ImportError as _reason:
    from . import _plain

    globals().update(_plain.namespace(_reason))
else:
    _native.set_package(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)

    from . import _fallback, _folds, _indexing, _namespace, _operands, _products, _ufunc, _warnings  # noqa: E402

    _native.set_indexing(_indexing.get, _indexing.set)
    _native.set_warnings(_warnings.again, _warnings.met, _warnings.divided)
    _native.set_ufuncs({function._np: function for function in _ufunc.UFUNCS.values()})
    _native.set_operators(
        **{
            name: _ufunc.UFUNCS[name]
            for name in """add subtract multiply divide floor_divide remainder power left_shift right_shift bitwise_and bitwise_or
            bitwise_xor less less_equal equal not_equal greater greater_equal negative positive absolute invert sqrt
            reciprocal square""".split()
        },
        divmod=_operands.operator_of("divmod", _ufunc.UFUNCS["divmod"]),
        matmul=_operands.operator_of("matmul", _products.matmul),
        binary=_ufunc.binary,
        inplace=_ufunc.inplace,
    )

    from . import _class, _methods, _unbound  # noqa: E402,F401

    globals().update(_namespace.build())
    from ._lib import lib  # noqa: E402,F401

    from . import _numbers, fft, linalg, random  # noqa: E402
    from ._fallback import FallbackError, FallbackWarning  # noqa: E402,F401
    from ._combine import fold  # noqa: E402,F401
    from ._checkpoints import CheckpointError, checkpoint, restore  # noqa: E402,F401
    from ._doctor import doctor  # noqa: E402,F401
    from ._graph import GraphError, sink, source, task  # noqa: E402,F401
    from ._jit import jit  # noqa: E402,F401
    from ._live import live  # noqa: E402,F401
    from ._magic import load_ipython_extension  # noqa: E402,F401
    from ._native import BoundsError, Error, Stack  # noqa: E402,F401
    from ._parallel import parallel  # noqa: E402,F401
    from ._ranks import map_blocks, rank, ranks  # noqa: E402,F401
    from ._runtime import explain, fallback, flush, profile, threads, using, wait  # noqa: E402,F401
    from ._stream import stream  # noqa: E402,F401

    from . import _libraries  # noqa: E402

    _libraries.install()
    from ._installed import warn_of_newer_numpy as _warn  # noqa: E402
    from numpy import __version__ as _numpy  # noqa: E402

    _warn(_numpy)
    _numbers.teach()
    __version__ = _native.__version__
    __array_api_version__ = "2024.12"
    __array_namespace_info__ = _namespace.Info
    __all__ = [name for name in globals() if not name.startswith("_")]

    if _native.is_launched():
        from ._ranks import begin as _begin

        _begin()


def __getattr__(name):
    # Modules that NumPy loads only when somebody asks for them, and its private ones.
    import importlib

    import numpy

    if name == "polynomial" and "_native" in globals():
        return importlib.import_module("bh._polynomial").of(numpy.polynomial)
    if name == "ma" and "_native" in globals():
        _class.teach_masked()
    return importlib.import_module("bh.testing") if name == "testing" else _imports.part_of(numpy, name)


def __dir__():
    import numpy

    return sorted({*globals(), *(name for name in dir(numpy) if not name.startswith("_"))})
