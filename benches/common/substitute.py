"""Programs from their unmodified sources, with another module as their NumPy."""

import builtins
import importlib

# The parts of NumPy that programs import.
PARTS = ("numpy", "numpy.random", "numpy.linalg", "numpy.fft")


def load(path, module):
    """The names of a source file in which `numpy`, with its parts, is another module."""

    def find(name, globals=None, locals=None, fromlist=(), level=0):
        # NumPy's own code, called from there, looks for its inner parts.
        if level or name not in PARTS:
            return builtins.__import__(name, globals, locals, fromlist, level)
        part = importlib.import_module(module.__name__ + name.removeprefix("numpy"))
        return part if fromlist else module

    names = {"__name__": path.stem, "__file__": str(path), "__builtins__": {**vars(builtins), "__import__": find}}
    exec(compile(path.read_text(), path, "exec"), names)
    return names
