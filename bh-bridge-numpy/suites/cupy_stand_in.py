"""The names `cupy`, `cupyx` and `cupy_backends` for CuPy's tests, with an array library in CuPy's place.

Names of both CuPy and the library are the library's. For the rest, which is about GPUs, tests get empty objects:
without truth, equal to nothing, whose attributes and results are again such objects.
"""

import importlib
import importlib.machinery
import os
import sys
import types
import warnings

import numpy

ROOTS = "cupy", "cupyx", "cupy_backends"


class Absent:
    """Something of CuPy's that no other library has."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent()

    def __call__(self, *args, **kwargs):
        return Absent()

    def __bool__(self):
        return False

    def __int__(self):
        return 0

    def __iter__(self):
        return iter(())

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def __mro_entries__(self, bases):
        return ()

    def __eq__(self, other):
        return False

    __lt__ = __le__ = __gt__ = __ge__ = __ne__ = __eq__
    __hash__ = object.__hash__


class Module(types.ModuleType):
    """A module with the attributes of one of the library's, where it has any."""

    def __init__(self, name, behind=None):
        super().__init__(name)
        self.__path__ = []
        self._behind = behind

    def __getattr__(self, name):
        if hasattr(self._behind, name):
            return getattr(self._behind, name)
        # The library's public names are all there are: tests look what is among them.
        if name.startswith("__") or self._behind is not None and not name.startswith("_"):
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        return Absent()


class Switches(Module):
    """CuPy's `cupy.fft.config`, whose one switch warns of its age wherever it is looked at."""

    _planning = True

    @property
    def enable_nd_planning(self):
        warnings.warn("enable_nd_planning is deprecated", DeprecationWarning)
        return self._planning

    @enable_nd_planning.setter
    def enable_nd_planning(self, value):
        warnings.warn("enable_nd_planning is deprecated", DeprecationWarning)
        self._planning = value


class Finder:
    """Finds all modules below CuPy's names but `cupy.testing`, which is CuPy's own."""

    def __init__(self, library):
        self.library = library

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ROOTS and not name.startswith("cupy.testing"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        if spec.name == "cupy.fft.config":
            return Switches(spec.name)
        root, *parts = spec.name.split(".")
        behind = self.library if root == "cupy" else None
        for part in parts:
            behind = None if part.startswith("_") else getattr(behind, part, None)
        return Module(spec.name, behind)

    def exec_module(self, module):
        pass


def _asnumpy(a, stream=None, order="C", out=None, *, blocking=True):
    """The array as NumPy's."""
    return numpy.asarray(a, order=order)


def install(library, checkout):
    """From now on, `import cupy` means the library; `cupy.testing` comes from a checkout of CuPy."""
    sys.meta_path.insert(0, Finder(library))
    import cupy
    import cupy._core.internal
    import cupy._util
    import cupy.cuda
    import cupy.exceptions
    import cupy.fft
    import cupy.fft.config
    import cupy.linalg
    import cupy.random
    import cupyx

    cupy.__path__ = [os.path.join(checkout, "cupy")]
    cupy.asnumpy = _asnumpy
    cupy.get_array_module = lambda *arrays: library if library.ndarray in map(type, arrays) else numpy
    cupy._util.PerformanceWarning = UserWarning
    cupy.fft.config = sys.modules["cupy.fft.config"]
    cupy._core.internal.prod = lambda numbers: numpy.prod(numbers, dtype=int).item()
    cupy.get_default_memory_pool = cupy.get_default_pinned_memory_pool = Absent()
    cupy.random.reset_states = cupy.random._generator = Absent()
    cupyx.errstate = library.errstate
    importlib.import_module("cupy.testing")
