"""The note under an error of another package that got an array of bh: the line to write. Scripts that import bh themselves are compiled
before `rewriting` can have their calls pass NumPy's arrays."""

import ast
import linecache

from .._native import Function
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
    """What a name, or a chain of attributes, means in a frame; None for other trees."""
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


# What makes of an array what a package's functions take, where these refuse NumPy's arrays, too.
_MAKERS = {
    "jax": "jax.numpy.asarray", "jaxlib": "jax.numpy.asarray", "torch": "torch.as_tensor",
    "pyarrow.compute": "pyarrow.array", "pyarrow._compute": "pyarrow.array",
}  # fmt: skip


def _maker(module):
    """What makes of an array of bh what functions of a module take."""
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


def advise(error):
    """Adds the note to an error that nothing has caught, if the program's own line called another package with an array of bh."""
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
