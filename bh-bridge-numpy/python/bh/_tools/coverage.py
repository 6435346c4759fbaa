"""The page of coverage: how bh provides each public name of NumPy, as the registry says."""

import types

import numpy as np

from .._numpy.registry import ADAPTED, BRACKETS, FFT, FUNCTIONS, HOST, LEFT, LINALG, NUMPYS, OWN, QUESTION, TEXT, UNIVERSAL

_NATIVE, _HOST, _LEFT, _OBJECT = "native", "on the host", "falls back", "NumPy's"

# The page's text for a kind, and a remark.
_COMPOSITION = "NumPy's composition over bh's functions"
_TEXTS = {
    OWN: (_NATIVE, ""), UNIVERSAL: (_NATIVE, ""), ADAPTED: (_NATIVE, _COMPOSITION), BRACKETS: (_NATIVE, _COMPOSITION),
    QUESTION: (_HOST, "types, shapes or options"), HOST: (_HOST, "files and the like"), TEXT: (_HOST, "text"), LEFT: (_LEFT, ""), NUMPYS: (_OBJECT, ""),
}  # fmt: skip
_ROWS = {"numpy": FUNCTIONS, "numpy.linalg": LINALG, "numpy.fft": FFT}


def kind_of(module, name):
    """How bh provides a public name of NumPy: a word, and a remark."""
    original = getattr(_module(np, module), name)
    kinds = {type: "type", types.ModuleType: "module", np.ufunc: "universal function"}
    remark = next((text for kind, text in kinds.items() if isinstance(original, kind)), "")
    if module == "numpy.random":
        is_function = callable(original) and not isinstance(original, type)
        return (_HOST, "NumPy's numbers, taken over") if is_function else (_OBJECT, remark)
    kind, told = _TEXTS[_ROWS[module][name].kind]
    return kind, told or remark


def _module(package, name):
    for part in name.split(".")[1:]:
        package = getattr(package, part)
    return package


def table():
    """The table as Markdown."""
    lines = [
        "# Coverage of NumPy's names",
        "",
        f"Made by `python -m bh._tools.coverage` from NumPy {np.__version__}; a test compares. *native*: the work is done by the stack;",
        "*on the host*: nothing to do for a stack; *NumPy's*: a type, constant or module that is NumPy's own; *falls back*: NumPy",
        "does the work, which is counted and warned of.",
    ]
    for module in (*_ROWS, "numpy.random"):
        names = [name for name in dir(_module(np, module)) if not name.startswith("_")]
        rows = [(name, *kind_of(module, name)) for name in names]
        counts = ", ".join(f"{sum(row[1] == kind for row in rows)} {kind}" for kind in (_NATIVE, _HOST, _OBJECT, _LEFT))
        lines += ["", f"## {module}", "", counts + ".", "", "| name | how | remark |", "|---|---|---|"]
        lines += [f"| `{name}` | {kind} | {remark} |" for name, kind, remark in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
