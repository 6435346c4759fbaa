"""Pieces of data between the stages of a task graph: what they are, how they get to another stack, and when they are there."""

import contextlib

import numpy as np

try:
    from .. import _native
    from .._numpy.fallback import from_host
    from .._array.element_types import CODE
except ImportError:
    # Without the native library there is no stack but NumPy.
    _native = None

# The name under which a stage asks for NumPy's arrays.
HOST = "numpy"


def each(change, piece):
    """A piece with each array in it changed; pieces are arrays, other objects, or tuples and dictionaries of pieces."""
    if type(piece) is tuple:
        return tuple(each(change, part) for part in piece)
    if type(piece) is dict:
        return {name: each(change, part) for name, part in piece.items()}
    return change(piece)


def present_stack():
    """The stack that new arrays belong to."""
    return HOST if _native is None else _native.Stack().name


def moved(piece, stack, count=lambda nbytes: None):
    """A piece whose arrays are on the present stack, or NumPy's; `count` is called with the bytes of each array that has to move."""

    def move(part):
        of_bh = _native is not None and type(part) is _native.ndarray
        if stack == HOST or _native is None:
            if not of_bh:
                return part
            count(part.nbytes)
            return np.array(part)
        if of_bh and part._stack == stack or not of_bh and (type(part) is not np.ndarray or part.dtype not in CODE):
            return part
        count(part.nbytes)
        host = np.asarray(part)
        return from_host(host, CODE[host.dtype], _native.Stack(stack))

    return each(move, piece)


def hand_over():
    """Lets the stack begin with the recorded operations. Reads of failed arrays raise."""
    if _native is not None:
        with contextlib.suppress(Exception):
            _native.Stack().flush(False)


def settle(piece):
    """Waits for the arrays of a piece; what went wrong with them is raised."""

    def wait(part):
        if _native is not None and type(part) is _native.ndarray and part.size:
            _native.item_of(part[(slice(0, 1),) * part.ndim])

    each(wait, piece)


class Kind:
    """The declared kind of a stage's pieces: "float64[:, 3]" or an element type for arrays, a class, or a tuple of such."""

    def __init__(self, said):
        self.said, self.dtype, self.shape, self.type, self.parts = said, None, None, None, None
        if said is None:
            return
        if isinstance(said, tuple):
            self.parts = tuple(map(Kind, said))
        elif isinstance(said, type) and not issubclass(said, np.generic):
            self.type = said
        else:
            self._array(said)

    def _array(self, said):
        name, bracket, extents = said.partition("[") if isinstance(said, str) else (said, "", "")
        self.dtype = np.dtype(name.strip() if isinstance(name, str) else name)
        if bracket:
            words = [word.strip() for word in extents.rstrip().removesuffix("]").split(",") if word.strip()]
            self.shape = tuple(None if word == ":" else int(word) for word in words)

    def __str__(self):
        if self.parts is not None:
            return f"({', '.join(map(str, self.parts))})"
        if self.dtype is not None:
            return f"{self.dtype}" + ("" if self.shape is None else f"[{', '.join(':' if n is None else str(n) for n in self.shape)}]")
        return "anything" if self.type is None else self.type.__name__

    def _fits(self, dtype, shape):
        if dtype != self.dtype:
            return False
        if self.shape is None or shape is None:
            return True
        return len(shape) == len(self.shape) and all(None in (one, other) or one == other for one, other in zip(shape, self.shape))

    def meets(self, other):
        """May a piece of this kind be one of the other kind?"""
        if self.said is None or other.said is None:
            return True
        if self.parts is not None and other.parts is not None:
            return len(self.parts) == len(other.parts) and all(one.meets(two) for one, two in zip(self.parts, other.parts))
        if self.dtype is not None and other.dtype is not None:
            return self._fits(other.dtype, other.shape)
        return self.type is not None and other.type is not None and issubclass(self.type, other.type)

    def check(self, piece, what):
        """Raises `TypeError` if a piece is of another kind."""
        if self.said is None:
            return
        if self.parts is not None and type(piece) is tuple and len(piece) == len(self.parts):
            for kind, part in zip(self.parts, piece):
                kind.check(part, what)
            return
        if self.dtype is not None and hasattr(piece, "dtype") and self._fits(piece.dtype, piece.shape):
            return
        if self.type is not None and isinstance(piece, self.type):
            return
        found = Kind(f"{piece.dtype}{list(piece.shape)}") if hasattr(piece, "dtype") else Kind(type(piece))
        raise TypeError(f"{what} is {found}, not {self}")
