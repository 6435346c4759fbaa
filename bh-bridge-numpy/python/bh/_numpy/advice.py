"""Notes under errors that nothing has caught. Where another package got an array of bh, the line to write: scripts that import bh themselves
are compiled before `rewriting` can have their calls pass NumPy's arrays. Where memory is out: the bytes that were asked for, the limit, and remedies."""

import ast
import linecache
import os
import re

from .._native import Function, Stack
from . import foreign, hidden, imports
from .fallback import ndarray


def _call_at(place):
    """The syntax tree of the call in which a traceback's entry stands, or None."""
    code = place.tb_frame.f_code
    line, last, start, end = list(code.co_positions())[place.tb_lasti // 2]
    if None in (line, last, start, end):
        return None
    lines = [text.encode() for text in linecache.getlines(code.co_filename)[line - 1 : last]]
    if not lines:
        return None
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    try:
        tree = ast.parse(b"".join(lines).decode(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return tree if isinstance(tree, ast.Call) else None


def _value(tree, frame):
    """The value of a name, or of a chain of attributes, in a frame; None for other trees."""
    if isinstance(tree, ast.Attribute):
        return getattr(_value(tree.value, frame), tree.attr, None)
    if isinstance(tree, ast.Name):
        return frame.f_locals.get(tree.id, frame.f_globals.get(tree.id))
    return None


def _is_array(tree, frame):
    """Is an argument an array of bh? Operators, subscripts and calls are not evaluated again: those of arrays and of bh count as arrays."""
    if isinstance(tree, ast.BinOp):
        return _is_array(tree.left, frame) or _is_array(tree.right, frame)
    if isinstance(tree, ast.UnaryOp):
        return _is_array(tree.operand, frame)
    if isinstance(tree, ast.Subscript):
        return _is_array(tree.value, frame)
    value = _value(tree.func if isinstance(tree, ast.Call) else tree, frame)
    if not isinstance(tree, ast.Call):
        return type(value) is ndarray
    return type(getattr(value, "__self__", None)) is ndarray or isinstance(value, Function)


# Functions that convert an array for a package whose functions refuse NumPy's arrays, too.
_MAKERS = {
    "jax": "jax.numpy.asarray", "jaxlib": "jax.numpy.asarray", "torch": "torch.as_tensor",
    "pyarrow.compute": "pyarrow.array", "pyarrow._compute": "pyarrow.array",
}  # fmt: skip


def _maker(module):
    """The function that converts an array of bh for the functions of a module."""
    packages = (package for package in _MAKERS if module == package or module.startswith(package + "."))
    return next((_MAKERS[package] for package in packages), "numpy.asarray")


class _Converting(ast.NodeTransformer):
    """Writes arguments that are arrays of bh as a function takes them."""

    def __init__(self, frame, maker):
        self._frame, self._maker, self.found = frame, ast.parse(maker, mode="eval").body, False

    def visit_Call(self, node):
        node.args = list(map(self._converted, node.args))
        for keyword in node.keywords:
            keyword.value = self._converted(keyword.value)
        return node

    def _converted(self, tree):
        if isinstance(tree, (ast.List, ast.Tuple)):
            tree.elts = list(map(self._converted, tree.elts))
        if isinstance(tree, ast.Dict):
            tree.values = list(map(self._converted, tree.values))
        if not _is_array(tree, self._frame):
            return tree
        self.found = True
        return ast.Call(self._maker, [tree], [])


def _advise_of_call(error):
    """Adds the note to an error if the program's own line called another package with an array of bh."""
    place, last, at = None, None, error.__traceback__
    while at is not None:
        place, last, at = at if imports.is_own(at.tb_frame.f_globals) else place, at, at.tb_next
    if place is None or any(name.startswith(hidden.PREFIX) for name in place.tb_frame.f_code.co_names):
        return
    call = _call_at(place)
    function = call and _value(call.func, place.tb_frame)
    if call is None or function is not None and foreign.see(function) is function:
        return
    if function is None and "bh.ndarray" not in str(error):
        # Nobody knows which function it was.
        return
    module = foreign.module_of(function) if function is not None else last.tb_frame.f_globals.get("__name__")
    maker = _maker(str(module))
    converting = _Converting(place.tb_frame, maker)
    written = ast.unparse(ast.fix_missing_locations(converting.visit(call)))
    if converting.found:
        other = "Run the script with `python -m bh`, or write" if maker == "numpy.asarray" else "Write"
        error.add_note(f"bh: this function got an array of bh. {other}: {written}")


# Messages of engines that run out of memory: whose memory, and how many bytes; the array that an operation works on.
_ASKED = re.compile(r"out of (device )?memory: cannot allocate (\d+) bytes")
_ARRAY = re.compile(r"\(([a-z]+\d*)\[([\d,]+)\], (\d+) bytes\)")
_TYPES = {"f": "float", "c": "complex", "i": "int", "u": "uint"}


def _size(number):
    """A number of bytes in words."""
    units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while number >= 1024 and len(units) > 1:
        number, units = number / 1024, units[1:]
    return f"{number:.4g} {units[0]}"


def _described(kind, extents):
    """An array of an element type and extents in an engine's words, in NumPy's."""
    name = _TYPES[kind[0]] + kind[1:] if kind[0] in _TYPES else kind
    return f"an array of {name} with shape ({extents.replace(',', ', ')}{'' if ',' in extents else ','})"


def _advise_of_memory(error):
    """Adds the note to an error of memory."""
    asked = _ASKED.search(str(error))
    if asked is None:
        return
    array = next((found for found in _ARRAY.finditer(str(error)) if found[3] == asked[2]), None)
    what = f"{_described(array[1], array[2])}, {_size(int(asked[2]))}," if array else _size(int(asked[2]))
    if asked[1]:
        rest = "The device has not as much free memory"
    else:
        taken, _, _, limit = Stack().memory()
        source = "" if os.environ.get("BH_MEMORY_LIMIT") else ", as the environment does not set it"
        rest = f"Arrays take {_size(taken)} now, and may take {_size(limit)} (BH_MEMORY_LIMIT{source})"
    remedies = "Delete arrays that are not needed, take a smaller element type, or go through the data piece by piece (bh.stream)"
    error.add_note(f"bh: the operation needs {what} at once. {rest}. {remedies}{'' if asked[1] else ', or set a higher limit'}.")


def advise(error):
    """Adds notes to an error that nothing has caught."""
    if isinstance(error, MemoryError):
        _advise_of_memory(error)
    else:
        _advise_of_call(error)
