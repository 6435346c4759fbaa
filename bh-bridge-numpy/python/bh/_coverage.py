"""The table of what is native: every public name of NumPy, found by looking at both."""

import types

import numpy as np

# Functions that reach the stack as they are written, or through functions that do.
NATIVE, HOST, LEFT, OBJECT = "native", "on the host", "falls back", "NumPy's"

_MODULES = ("numpy", "numpy.linalg", "numpy.fft", "numpy.random")

# Universal functions of which only some types, or none, are native.
_LEFT_UFUNCS = {"frexp", "isnat", "ldexp"}


def kind_of(module, name):
    """How bh does what a public name of NumPy names: a kind, and a remark."""
    import bh

    original = getattr(_module(np, module), name)
    if not hasattr(_module(bh, module), name):
        return "missing", ""
    mine = getattr(_module(bh, module), name)
    if isinstance(original, types.ModuleType):
        return OBJECT, "module"
    if module == "numpy.random":
        return (HOST, "NumPy's numbers, taken over") if callable(original) and not isinstance(original, type) else (OBJECT, "")
    if getattr(mine, "_bh_kind", None) == "falls back":
        return LEFT, ""
    if isinstance(original, np.ufunc):
        return (LEFT, "") if original.__name__ in _LEFT_UFUNCS else (NATIVE, "universal function")
    if getattr(mine, "_bh_kind", None) == "adapted":
        return NATIVE, "NumPy's composition over bh's functions"
    if mine is original or isinstance(original, type) and name != "ndarray" or not callable(original):
        return OBJECT, "type" if isinstance(original, type) else ""
    if getattr(mine, "__module__", "").startswith("bh") and not hasattr(mine, "_bh_numpy"):
        return NATIVE, ""
    return HOST, "types, shapes, options or files"


def _module(package, name):
    for part in name.split(".")[1:]:
        package = getattr(package, part)
    return package


def table():
    """The table as Markdown."""
    lines = [
        "# Coverage of NumPy's names",
        "",
        f"Made by `python -m bh._coverage` from NumPy {np.__version__}; a test compares. *native*: the work is done by the stack;",
        "*on the host*: nothing to do for a stack; *NumPy's*: a type, constant or module that is NumPy's own; *falls back*: NumPy",
        "does the work, which is counted and warned of.",
    ]
    for module in _MODULES:
        names = [name for name in dir(_module(np, module)) if not name.startswith("_")]
        rows = [(name, *kind_of(module, name)) for name in names]
        counts = ", ".join(f"{sum(row[1] == kind for row in rows)} {kind}" for kind in (NATIVE, HOST, OBJECT, LEFT, "missing"))
        lines += ["", f"## {module}", "", counts + ".", "", "| name | how | remark |", "|---|---|---|"]
        lines += [f"| `{name}` | {kind} | {remark} |" for name, kind, remark in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
