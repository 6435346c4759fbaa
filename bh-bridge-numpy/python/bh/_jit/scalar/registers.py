"""Writes programs down as the scalar programs of the stack: one operation, in which each element goes its own way."""

import re
import struct

import numpy as np

from ... import _native
from ..._array.element_types import CODE
from ..._ufunc.compositions import DIRECT
from .ir import Assign, Block, Const, Count, If, Leave, Loop, TooLarge, walk
from .kinds import BOOL, concrete
from .operations import OPERATIONS

# The most operands that an operation has, and registers of a program.
_MOST, _REGISTERS = 8, 4096
_NAMES = {
    np.dtype(bool): "bool", np.dtype(np.int8): "i8", np.dtype(np.int16): "i16", np.dtype(np.int32): "i32", np.dtype(np.int64): "i64",
    np.dtype(np.uint8): "u8", np.dtype(np.uint16): "u16", np.dtype(np.uint32): "u32", np.dtype(np.uint64): "u64",
    np.dtype(np.float32): "f32", np.dtype(np.float64): "f64", np.dtype(np.complex64): "c64", np.dtype(np.complex128): "c128",
}  # fmt: skip
_INT64, _FLOAT, _COMPLEX = np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.complex128)
_UNSIGNED = {4: ("f", "I"), 8: ("d", "Q")}
# Operations of the opcode table under the same name.
_SAME = {
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "absolute", "invert", "left_shift", "right_shift",
    "bitwise_and", "bitwise_or", "bitwise_xor", "less", "less_equal", "equal", "not_equal", "greater", "greater_equal",
}  # fmt: skip


class Unwritten(Exception):
    """Raised for operations that scalar programs lack."""


def is_worth(function):
    """Has it loops, in which elements go their own ways? Without loops its operations are recorded, and run together with those
    around."""
    return any(type(one) in (Loop, Count) for one in walk(function.body))


def written(function, inference, dtypes):
    """The text of a function of which this is known, for elements of these types, and the types of its results."""
    if not function.results or len(function.parameters) + len(function.results) + len(function.tables) > _MOST:
        raise Unwritten("as many operands")
    writer = _Writer(function, inference)
    return writer.text(dtypes), [concrete(inference.known[name].told) for name in function.results]


class _Writer:
    def __init__(self, function, inference):
        self._function, self._known = function, inference
        self._registers, self._types, self._out, self._labels = {}, [], [], []
        # The arrays that are subscripted, in their order, and what they are called.
        self._tables = {name: at for at, name in enumerate(function.tables)}
        self._called = {}
        # The registers that count the turns of the loops around.
        self._turns = []

    def text(self, dtypes):
        function, known = self._function, self._known.known
        inputs = [self._register(dtype) for dtype in dtypes]
        targets = [self._register(concrete(known[name].told)) for name in function.results]
        count = len(self._types)
        for name, dtype, place in zip(function.parameters, dtypes, inputs):
            # A parameter that gets values of other types has theirs.
            if dtype == self._dtype(name):
                self._registers[name] = place
            else:
                self._compute(self._variable(name), "copy", place)
        self._statements(function.body)
        for target, name in zip(targets, function.results):
            self._compute(target, "copy", self._variable(name))
        if len(self._types) > _REGISTERS:
            raise TooLarge(f"{len(self._types)} values in one function: {_REGISTERS} are the most")
        name = re.sub(r"\W", "_", function.name, flags=re.ASCII)
        given, made, others = (" ".join(part) for part in (self._types[: len(inputs)], self._types[len(inputs) : count], self._types[count:]))
        reads = f"reads ({' '.join(map(self._table, function.tables))}) " if function.tables else ""
        return f"program {name} ({given}) -> ({made}) with ({others}) {reads}{{ {' '.join(self._out)} }}"

    def _table(self, name):
        table = self._called.get(name)
        if table is None or not table.shape:
            # Nobody comes to where it is read.
            raise Unwritten("an array that is not read")
        label = re.sub(r"\W", "_", table.label, flags=re.ASCII)
        return f"{label}:{self._type(table.dtype)}:{len(table.shape)}"

    # Registers and operands

    def _type(self, dtype):
        if dtype not in _NAMES:
            raise Unwritten(f"elements of type {dtype}")
        return _NAMES[dtype]

    def _register(self, dtype):
        self._types.append(self._type(dtype))
        return f"r{len(self._types) - 1}"

    def _dtype(self, name):
        return concrete(self._known.known[name].kind)

    def _variable(self, name):
        if name not in self._registers:
            if name not in self._known.known:
                raise Unwritten("a variable without a value")
            self._registers[name] = self._register(self._dtype(name))
        return self._registers[name]

    def _constant(self, value, dtype):
        """A number as an element of this type."""
        try:
            element = dtype.type(value).item()
        except OverflowError:
            raise Unwritten("numbers beyond the types") from None
        if dtype.kind == "f" and element != element:
            float_, whole = _UNSIGNED[dtype.itemsize]
            return f"{_NAMES[dtype]}:#{struct.unpack(whole, struct.pack(float_, element))[0]:x}"
        if dtype.kind == "c":
            part = np.empty(0, dtype).real.dtype
            texts = [self._constant(value, part).partition(":")[2] for value in (element.real, element.imag)]
            return f"{self._type(dtype)}:{','.join(texts)}"
        return f"{self._type(dtype)}:{int(element) if dtype.kind in 'biu' else repr(element)}"

    def _operand(self, value, dtype):
        if type(value) is Const:
            return self._constant(value.value, dtype)
        register, given = self._variable(value.name), self._dtype(value.name)
        return register if given == dtype else self._made(dtype, "copy", register)

    # Operations

    def _compute(self, target, opcode, *operands):
        self._out.append(f"{target} = {opcode} {' '.join(operands)};")

    def _made(self, dtype, opcode, *operands):
        target = self._register(dtype)
        self._compute(target, opcode, *operands)
        return target

    def _statements(self, statements):
        for statement in statements:
            _WRITERS[type(statement)](self, statement)

    def _assign(self, statement):
        if not statement.live:
            return
        target = self._variable(statement.target)
        if statement.op == "iteration":
            turn = self._turns[-1]
            self._compute(target, "copy", turn)
            self._compute(turn, "add", turn, "i64:1")
            return
        kinds = [self._known.kind(arg) for arg in statement.args]
        inner, result = OPERATIONS[statement.op].rule(statement.op, kinds, statement.args, statement.extra)
        operands = [self._operand(arg, dtype) for arg, dtype in zip(statement.args, inner)]
        given, wanted = concrete(result), self._dtype(statement.target)
        place = target if given == wanted else self._register(given)
        self._operation(statement, place, given, operands, inner)
        if place != target:
            self._compute(target, "copy", place)

    def _operation(self, statement, target, dtype, operands, inner):
        op, own = statement.op, inner[0]
        if op in _SAME or op == "copy":
            self._compute(target, op, *operands)
        elif op == "positive":
            self._compute(target, "copy", *operands)
        elif op == "negative":
            # As it is recorded: -0.0 - x is -x for zeros of both signs.
            zero = {"f": -0.0, "c": complex(-0.0, -0.0)}.get(own.kind, 0)
            self._compute(target, "subtract", self._constant(zero, own), *operands)
        elif op in ("truth", "not"):
            self._truth(op, target, operands[0], own)
        elif op == "select":
            self._compute(target, "where", *operands)
        elif op in ("both", "either"):
            holds = operands[0] if own == BOOL else self._made(BOOL, "not_equal", operands[0], self._constant(0, own))
            self._compute(target, "where", holds, *(reversed(operands) if op == "both" else operands))
        elif op in ("min", "max"):
            other = self._made(BOOL, "less" if op == "min" else "greater", operands[1], operands[0])
            self._compute(target, "where", other, operands[1], operands[0])
        elif op == "load":
            self._called[statement.extra.name] = statement.extra
            self._compute(target, f"t{self._tables[statement.extra.name]}", *operands)
        elif op in ("real", "imag"):
            part = (op, *operands) if own.kind == "c" else ("copy", *operands) if op == "real" else ("copy", self._constant(0, own))
            self._compute(target, *part)
        elif op == "complex":
            self._complex(target, operands)
        elif op in ("int", "float", "cast", "to_complex"):
            self._compute(target, "copy", *operands)
        elif op in ("floor", "ceil", "trunc", "rint"):
            whole = self._made(own, op, *operands) if own.kind == "f" else operands[0]
            self._compute(target, "copy", whole)
        elif op in ("power", "function", "complex_function"):
            self._function_of(statement, target, dtype, operands, inner)
        else:
            raise Unwritten(f"the operation '{op}'")

    def _complex(self, target, operands):
        """A number with exactly these parts, as `_compositions.complex_of` makes it."""
        re, im = operands
        number = lambda one, other: self._constant(complex(one, other), _COMPLEX)
        of = lambda op, *args: self._made(_COMPLEX, op, *args)
        test = lambda op, *args: self._made(BOOL, op, *args)
        size = self._made(_FLOAT, "absolute", im)
        below = of("multiply", of("copy", self._made(_FLOAT, "subtract", "f64:-0.0", size)), number(0, 1))
        positive, negative = test("greater_equal", im, "f64:0.0"), test("less", im, "f64:0.0")
        added = of("where", positive, of("conj", below), below)
        infinite = of("where", negative, number(-0.0, -np.inf), number(-0.0, np.nan))
        infinite = of("where", positive, number(-0.0, np.inf), infinite)
        added = of("where", test("isfinite", im), added, infinite)
        start = of("copy", re)
        signed = test("less", self._made(_FLOAT, "divide", "f64:1.0", im), "f64:0.0")
        self._compute(target, "add", of("where", signed, of("conj", start), start), added)

    def _truth(self, op, target, operand, dtype):
        if dtype == BOOL:
            self._compute(target, "copy" if op == "truth" else "logical_not", operand)
        else:
            self._compute(target, "not_equal" if op == "truth" else "equal", operand, self._constant(0, dtype))

    def _function_of(self, statement, target, dtype, operands, inner):
        name = "power" if statement.op == "power" else statement.extra
        if name == "conjugate" and dtype.kind != "c":
            self._compute(target, "copy", operands[0])
            return
        exponent = statement.args[-1]
        if name == "power" and type(exponent) is Const and exponent.value in (2, 3, 4, 5):
            self._compute(target, f"powi.{int(exponent.value)}", operands[0])
            return
        opcode = DIRECT.get(name)
        codes = [CODE[one] for one in (*inner, dtype)]
        if opcode is None or len(set(inner)) > 1 or not _native.is_legal(opcode, codes[0], codes[-1], len(inner)):
            raise Unwritten(f"the function '{name}'")
        self._compute(target, opcode, *operands)

    # Branches and loops

    def _if(self, statement):
        condition = self._operand(statement.condition, BOOL)
        if type(statement.condition) is Const:
            condition = self._made(BOOL, "copy", condition)
        self._out.append(f"if {condition} {{")
        self._statements(statement.then)
        self._out.append("} else {")
        self._statements(statement.orelse)
        self._out.append("}")

    def _block(self, statement):
        self._labels.append(statement.label)
        self._out.append("block {")
        self._statements(statement.body)
        self._out.append("}")
        self._labels.pop()

    def _leave(self, statement):
        self._out.append(f"leave {self._labels[::-1].index(statement.label)}")

    def _loop(self, statement):
        counts = any(type(one) is Assign and one.op == "iteration" for one in statement.body)
        if counts:
            self._turns.append(self._made(_INT64, "copy", "i64:0"))
        self._out.append("loop {")
        self._statements(statement.body)
        self._out.append("}")
        if counts:
            self._turns.pop()

    def _count(self, statement):
        start, stop, step = (self._kept(bound) for bound in (statement.start, statement.stop, statement.step))
        number, ahead = self._made(_INT64, "copy", start), self._register(BOOL)
        self._out.append("block { loop {")
        self._labels.append(None)
        self._ahead(statement.step, ahead, number, stop, step)
        self._out.append(f"if {ahead} {{ }} else {{ leave 0 }}")
        index, dtype = self._variable(statement.index), self._dtype(statement.index)
        self._compute(index, "copy", number if dtype == _INT64 else self._made(dtype, "copy", number))
        self._statements(statement.body)
        self._compute(number, "add", number, step)
        self._out.append("} }")
        self._labels.pop()

    def _kept(self, bound):
        """A bound as it is when the loop begins."""
        operand = self._operand(bound, _INT64)
        return operand if type(bound) is Const else self._made(_INT64, "copy", operand)

    def _ahead(self, step, ahead, number, stop, stride):
        """Is the number still within the range?"""
        if type(step) is Const:
            self._compute(ahead, "less" if step.value > 0 else "greater", number, stop)
            return
        below, above = (self._made(BOOL, op, number, stop) for op in ("less", "greater"))
        up = self._made(BOOL, "greater", stride, "i64:0")
        self._compute(ahead, "where", up, below, above)


_WRITERS = {
    Assign: _Writer._assign, If: _Writer._if, Block: _Writer._block, Loop: _Writer._loop, Count: _Writer._count, Leave: _Writer._leave,
}  # fmt: skip
