"""The back end `numexpr`: arithmetic is put off, and whole expressions are evaluated by the library of this name."""

import re
import weakref

import numexpr
import numpy as np

from .numpy_backend import NumPy

_ARITHMETIC = {
    "add": "({} + {})", "subtract": "({} - {})", "multiply": "({} * {})", "divide": "({} / {})", "negative": "(-{})", "absolute": "abs({})",
    **{name: f"{name}({{}})" for name in "sqrt exp expm1 log log1p log10 sin cos tan sinh cosh tanh floor ceil".split()},
    **{f"arc{name}": f"arc{name}({{}})" for name in "sin cos tan sinh cosh tanh".split()}, "arctan2": "arctan2({}, {})",
}  # fmt: skip
_COMPARISONS = {
    "less": "({} < {})", "less_equal": "({} <= {})", "equal": "({} == {})", "not_equal": "({} != {})", "greater": "({} > {})",
    "greater_equal": "({} >= {})",
}  # fmt: skip
_LOGIC = {"logical_and": "({} & {})", "logical_or": "({} | {})", "bitwise_and": "({} & {})", "bitwise_or": "({} | {})", "logical_not": "(~{})"}
_FOLDS = {"add": "sum", "multiply": "prod"}
_FLOATS = tuple(map(np.dtype, ("f4", "f8")))
_BOOL = np.dtype(bool)
_NAME = re.compile(r"\bv\w+")
# An expression has no more arrays than this, and no more text.
_LEAVES, _TEXT = 24, 2000


class _Memory:
    """Memory that arrays are views of. While an expression is put off, it has no elements."""

    __slots__ = ("size", "dtype", "data", "pending", "readers", "__weakref__")

    def __init__(self, size, dtype):
        self.size, self.dtype, self.data, self.pending, self.readers = size, dtype, None, None, weakref.WeakSet()


class _Array:
    """A view of memory: offset, shape and strides, in elements."""

    __slots__ = ("memory", "place", "whole")

    def __init__(self, memory, *place):
        self.memory, self.place = memory, place
        offset, shape, strides = place
        steps, step = [], 1
        for extent in reversed(shape):
            steps.append(step)
            step *= extent
        self.whole = offset == 0 and step == memory.size and tuple(strides) == tuple(reversed(steps))

    @property
    def shape(self):
        return self.place[1]


class _Expression:
    """Text over leaves, which are arrays of NumPy, of a shape."""

    def __init__(self, text, leaves, shape):
        self.text, self.leaves, self.shape = text, leaves, shape

    def extents(self):
        """The shape that the leaves broadcast to."""
        return np.broadcast_shapes(*(data.shape for data, _ in self.leaves.values()))


class Numexpr(NumPy):
    """See `bh.backends.Backend`."""

    name = "numexpr"

    def __init__(self):
        # How many expressions were evaluated, and how many operations they had.
        self.evaluated, self.operations = 0, 0

    def empty(self, size, dtype):
        """See `Backend`."""
        return _Memory(size, np.dtype(dtype))

    def view(self, memory, offset, shape, strides):
        """See `Backend`."""
        return _Array(memory, offset, shape, strides)

    def put(self, array, data):
        """See `Backend`."""
        self._to_write(array)[...] = data

    def get(self, array):
        """See `Backend`."""
        return self._elements(array)

    def copy(self, out, array):
        """See `Backend`."""
        source = self._elements(array) if isinstance(array, _Array) else array
        super().copy(self._to_write(out), source)

    def ufunc(self, name, out, *inputs):
        """See `Backend`."""
        form = self._form(name, out, inputs)
        if form is None:
            return super().ufunc(name, self._to_write(out), *map(self._elements, inputs))
        expression = self._expression(form, [self._operand(value, inputs) for value in inputs], out.shape)
        self.operations += 1
        memory = out.memory
        if not out.whole:
            values = self._evaluate(expression)
            self._to_write(out)[...] = values
            return
        # The old elements stay with those expressions that read them; the new ones get a place of their own.
        memory.pending, memory.data = expression, None
        memory.readers.clear()
        for leaf, reader in expression.leaves.values():
            if reader is not None:
                reader.readers.add(memory)
        if len(expression.leaves) > _LEAVES or len(expression.text) > _TEXT:
            self._settle(memory)

    def reduce(self, name, out, array, axis):
        """See `Backend`."""
        pending = array.memory.pending
        foldable = pending is not None and array.whole and name in _FOLDS and array.memory.dtype in _FLOATS
        if not foldable or array.shape != pending.shape or array.shape != pending.extents():
            return super().reduce(name, self._to_write(out), self._elements(array), axis)
        folded = _Expression(f"{_FOLDS[name]}({pending.text}, axis={axis})", pending.leaves, out.shape)
        self._to_write(out)[...] = self._evaluate(folded)

    def accumulate(self, name, out, array, axis):
        """See `Backend`."""
        super().accumulate(name, self._to_write(out), self._elements(array), axis)

    def method(self, name, out, *inputs):
        """See `Backend`."""
        super().method(name, self._to_write(out), *map(self._elements, inputs))

    def _form(self, name, out, inputs):
        """How an operation is written; none if numexpr would compute with other types than NumPy."""
        kinds = {value.memory.dtype for value in inputs if isinstance(value, _Array)}
        numbers = [value for value in inputs if not isinstance(value, _Array)]
        if len(kinds) != 1 or any(isinstance(value, (complex, np.complexfloating)) for value in numbers):
            return None
        kind, result = kinds.pop(), out.memory.dtype
        if kind == _BOOL:
            return _LOGIC.get(name) if result == _BOOL and not numbers else None
        if kind not in _FLOATS:
            return None
        return _ARITHMETIC.get(name) if result == kind else _COMPARISONS.get(name) if result == _BOOL else None

    def _operand(self, value, inputs):
        """An input as an expression; numbers have the type of the arrays beside them."""
        if not isinstance(value, _Array):
            kind = next(other.memory.dtype for other in inputs if isinstance(other, _Array))
            return _Expression("{}", [(np.asarray(value, kind), None)], ())
        pending = value.memory.pending
        if pending is not None and value.whole and pending.shape == value.shape:
            return pending
        return _Expression("{}", [(self._elements(value), value.memory)], value.shape)

    def _expression(self, form, operands, shape):
        """An operation on expressions, each leaf of which has one name."""
        leaves, texts = {}, []
        for operand in operands:
            names = {}
            for old, leaf in operand.leaves.items() if isinstance(operand.leaves, dict) else [("{}", operand.leaves[0])]:
                key = self._key(*leaf)
                names[old] = f"v{key}"
                leaves[f"v{key}"] = leaf
            texts.append(names["{}"] if operand.text == "{}" else operand.text)
        return _Expression(form.format(*texts), leaves, shape)

    @staticmethod
    def _key(data, memory):
        if memory is None:
            return f"n{id(data)}"
        return f"{data.__array_interface__['data'][0]}_{'_'.join(map(str, (*data.shape, *data.strides)))}".replace("-", "m")

    def _evaluate(self, expression):
        self.evaluated += 1
        # The same names for the same expression, which numexpr then has compiled.
        short = {name: f"x{at}" for at, name in enumerate(expression.leaves)}
        text = _NAME.sub(lambda found: short[found.group()], expression.text)
        return numexpr.evaluate(text, {short[name]: data for name, (data, _) in expression.leaves.items()}, {})

    def _settle(self, memory):
        """Evaluates what is put off."""
        if memory.pending is not None:
            expression, memory.pending = memory.pending, None
            values = self._evaluate(expression)
            if values.dtype != memory.dtype or values.shape != expression.shape:
                values = np.broadcast_to(values, expression.shape).astype(memory.dtype)
            memory.data = np.ascontiguousarray(values).reshape(-1)
        elif memory.data is None:
            memory.data = np.empty(memory.size, memory.dtype)

    def _settle_readers(self, memory):
        """Evaluates what reads elements that are about to change."""
        for reader in list(memory.readers):
            self._settle(reader)
        memory.readers.clear()

    def _elements(self, array):
        """The elements of an array; numbers are their own."""
        if not isinstance(array, _Array):
            return array
        self._settle(array.memory)
        return super().view(array.memory.data, *array.place)

    def _to_write(self, array):
        self._settle_readers(array.memory)
        return self._elements(array)
