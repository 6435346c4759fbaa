"""The note under an error of another package that got an array of bh: the line to write. Scripts that import bh themselves are compiled
before `rewriting` can have their calls pass NumPy's arrays."""

import ast
import linecache
import sys

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


class _Converting(ast.NodeTransformer):
    """Writes arguments that are arrays of bh as NumPy's."""

    def __init__(self, frame):
        self._frame, self.found = frame, False

    def visit_Call(self, node):
        node.args = list(map(self._converted, node.args))
        for keyword in node.keywords:
            keyword.value = self._converted(keyword.value)
        return node

    def _converted(self, tree):
        if isinstance(tree, (ast.List, ast.Tuple)):
            tree.elts = list(map(self._converted, tree.elts))
        if type(_value(tree, self._frame)) is not ndarray:
            return tree
        self.found = True
        return ast.Call(ast.Attribute(ast.Name("numpy"), "asarray"), [tree], [])


def advise(error):
    """Adds the note to an error that nothing has caught, if the program's own line called another package with an array of bh."""
    place, at = None, error.__traceback__
    while at is not None:
        place, at = at if imports.is_own(at.tb_frame.f_globals) else place, at.tb_next
    if place is None or any(name.startswith(hidden.PREFIX) for name in place.tb_frame.f_code.co_names):
        return
    call = _call_at(place)
    function = call and _value(call.func, place.tb_frame)
    if function is None or foreign.see(function) is function:
        return
    converting = _Converting(place.tb_frame)
    written = ast.unparse(ast.fix_missing_locations(converting.visit(call)))
    if converting.found:
        error.add_note(f"bh: this function got an array of bh. Run the script with `python -m bh`, or write: {written}")


def install():
    """Has errors that end the program say so."""
    before = sys.excepthook

    def hook(kind, error, traceback):
        try:
            advise(error)
        except Exception:
            # The program's own error counts.
            pass
        before(kind, error, traceback)

    sys.excepthook = hook
