"""Code that asks for Python's own floats, and so has to be told of results that are still pending: `json`, and pytest's `approx`."""

import functools
import sys

import numpy as np

from .. import _native
from .._numpy import after_import
from .._numpy.fallback import lower

ndarray = _native.ndarray


def _is_float(value):
    """Is it a result without dimensions that NumPy gives as a subclass of `float`?"""
    return type(value) is ndarray and value._scalar and value.dtype == np.float64


def _with_floats(value):
    """The value with all such results in it as floats."""
    if isinstance(value, dict):
        return {_with_floats(key): _with_floats(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_floats(part) for part in value]
    return float(value) if _is_float(value) else value


def _teach_json():
    """Writes such results as `json` writes numbers of NumPy's. The encoder in C asks for what it does not know."""
    kind = sys.modules["json"].JSONEncoder
    default, iterencode = kind.default, kind.iterencode

    @functools.wraps(default)
    def known(self, o):
        return float(o) if _is_float(o) else default(self, o)

    @functools.wraps(iterencode)
    def encode(self, o, _one_shot=False):
        # With an indent, the encoder is one in Python, which takes them for floats.
        if self.indent is not None or not _one_shot:
            return iterencode(self, _with_floats(o), _one_shot)
        try:
            return iterencode(self, o, _one_shot)
        except TypeError as error:
            # The encoder in C asks nobody about keys.
            if not str(error).startswith("keys must be"):
                raise
            return iterencode(self, _with_floats(o), _one_shot)

    kind.default, kind.iterencode = known, encode


def _teach_pytest():
    """Shows `approx` such results as arrays of NumPy without dimensions, where it would take them for sequences."""
    module = sys.modules.get("_pytest.python_api")
    as_array = getattr(module, "_as_numpy_array", None)
    if as_array is None:
        return

    @functools.wraps(as_array)
    def shown(obj):
        return np.asarray(lower(obj)) if type(obj) is ndarray and obj._scalar else as_array(obj)

    module._as_numpy_array = shown


def teach():
    """Once, as the package is imported."""
    after_import.add("json".__eq__, lambda name: _teach_json())
    after_import.add("_pytest.python_api".__eq__, lambda name: _teach_pytest())
