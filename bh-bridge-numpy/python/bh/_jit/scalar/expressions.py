"""Reads expressions: each operation becomes an assignment to a variable of its own."""

import abc
import ast
import operator
import types
import typing

import numpy as np

from . import functions, listing
from .forms import MISSING, NONE, View
from .intervals import INTERVALS
from .ir import Assign, Const, If, Unsupported, Var
from .kinds import literal
from .lists import BUILTINS
from .names import Static, is_array, lifted
from .objects import UNARY, Above, Bound, named

_BINARY = {
    ast.Add: ("add", operator.add), ast.Sub: ("subtract", operator.sub), ast.Mult: ("multiply", operator.mul),
    ast.Div: ("divide", operator.truediv), ast.FloorDiv: ("floor_divide", operator.floordiv), ast.Mod: ("remainder", operator.mod),
    ast.Pow: ("power", operator.pow), ast.LShift: ("left_shift", operator.lshift), ast.RShift: ("right_shift", operator.rshift),
    ast.BitAnd: ("bitwise_and", operator.and_), ast.BitOr: ("bitwise_or", operator.or_), ast.BitXor: ("bitwise_xor", operator.xor),
}  # fmt: skip
_UNARY = {
    ast.USub: ("negative", operator.neg), ast.UAdd: ("positive", operator.pos), ast.Invert: ("invert", operator.invert),
    ast.Not: ("not", operator.not_),
}  # fmt: skip
_COMPARISONS = {
    ast.Lt: ("less", operator.lt), ast.LtE: ("less_equal", operator.le), ast.Eq: ("equal", operator.eq),
    ast.NotEq: ("not_equal", operator.ne), ast.Gt: ("greater", operator.gt), ast.GtE: ("greater_equal", operator.ge),
}  # fmt: skip
_CONTAINS = listing.contains


# Comparisons of what is known while a function is read.
_KNOWN = {ast.Is: operator.is_, ast.IsNot: operator.is_not, ast.In: lambda one, many: one in many, ast.NotIn: lambda one, many: one not in many}


class Expressions:
    """The part of a reader that reads expressions."""

    def variable(self, name):
        return Var(name)

    def expression(self, node):
        """The value of an expression: a variable, a constant, a tuple of values, or what is known."""
        read = getattr(self, f"_of_{type(node).__name__}", None)
        if read is None:
            raise Unsupported(f"'{ast.unparse(node)}' is not understood", node.lineno)
        before, self.at = self.at, (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
        try:
            return read(node)
        finally:
            self.at = before

    def operation(self, op, args, line, extra=None, fold=None):
        """The number that an operation gives; `fold` computes it from constants."""
        args = tuple(self.number(arg, line) for arg in args)
        if fold is not None and all(type(arg) is Const for arg in args):
            try:
                return literal(fold(*(arg.value for arg in args)))
            except (ArithmeticError, ValueError, TypeError):
                # It fails for elements that come here, if any do.
                pass
        target = self.fresh("t")
        self.emit(Assign(target, op, args, line, extra))
        if (known := INTERVALS.get(op)) is not None:
            self.bounds[target] = known(*map(self.interval, args))
        return Var(target)

    def interval(self, value):
        """The least and the greatest number that a value may be, None where they are not known."""
        if type(value) is Const:
            return (value.value, value.value) if type(value.value) is int else (None, None)
        return self.bounds.get(value.name, (None, None))

    def number(self, value, line):
        """The value, if it is a number."""
        if value is MISSING:
            return Const(False)
        value = self.plain(value)
        if type(value) not in (Var, Const):
            raise Unsupported(f"{named(value) if type(value) is not Static else repr(value.value)} where a number is needed", line)
        return value

    def truth(self, value, line):
        """The value as a truth value."""
        if type(value) is tuple:
            return Const(bool(value))
        if value is MISSING:
            # It is known to be false no more than to be true.
            unknown = self.fresh("t")
            self.assign(unknown, Const(False), line)
            return Var(unknown)
        if self.is_list(value):
            return self.operation("greater", (self.length(self.present(value)), Const(0)), line, None, operator.gt)
        if self.is_object(value):
            return self.object_truth(value, line)
        if type(value) is Static:
            if is_array(value):
                raise Unsupported("an array where a number is needed", line)
            return Const(bool(value.value))
        return self.operation("truth", (value,), line, None, bool)

    def known(self, condition):
        """The truth value that a condition always has; None where it depends on elements."""
        return bool(condition.value) if type(condition) is Const else None

    def _eagerly(self, work):
        """The value of an expression, and the statements for it, if they have to wait until they are needed; else these are written."""
        found, before = [], self.effects
        statements = self.captured(lambda: found.append(work()))
        if self.effects == before and all(type(statement) is Assign and statement.op != "load" for statement in statements):
            self.out += statements
            return found[0], None
        return found[0], statements

    def choose(self, condition, then, orelse, line):
        """One of two values, by a condition."""
        if type(then) is tuple and type(orelse) is tuple and len(then) == len(orelse):
            return tuple(self.choose(condition, one, other, line) for one, other in zip(then, orelse))
        if not all(type(value) in (Var, Const) for value in (then, orelse)):
            return self.one_of([lambda: condition], [(then, []), (orelse, [])], line)
        return self.operation("select", (condition, then, orelse), line)

    # Expressions

    def _of_Constant(self, node):
        return lifted(node.value)

    def _of_Name(self, node):
        scope = self.scope
        while node.id not in scope.own and scope.around is not None:
            scope = scope.around
        if node.id in scope.own:
            if node.id not in scope.forms:
                raise Unsupported(f"'{node.id}' may have no value", node.lineno)
            if node.id in scope.same:
                return scope.same[node.id]
            key = (*scope.path, node.id)
            return self.made(self.facts.forms.get(key, scope.forms[node.id]), f"{scope.prefix}{node.id}", key)
        try:
            return self.names.look_up(scope.function, node.id)
        except (AttributeError, ValueError):
            raise Unsupported(f"'{node.id}' is not defined", node.lineno) from None

    def _of_Attribute(self, node):
        return self.attribute_of(self.expression(node.value), node.attr, node.lineno)

    def attribute_of(self, value, name, line):
        """An attribute of any value."""
        if value is MISSING:
            return MISSING
        if type(value) in (Var, Const) and name in ("real", "imag"):
            return self.operation(name, (value,), line)
        if is_array(value):
            if name not in ("shape", "size", "ndim"):
                raise Unsupported(f"attribute '{name}' of an array", line)
            return lifted(getattr(value.value, name))
        if self.is_object(value):
            return self.attribute(value, name, line)
        if type(value) is Static and type(value.value) is Above:
            return self.of_above(value.value, name, line)
        if type(value) is Static and value.value is None:
            return self.missing(f"None has no attribute '{name}'", line)
        if type(value) is not Static or not hasattr(value.value, name):
            raise Unsupported(f"attribute '{name}'", line)
        return self.names.attribute(value.value, name)

    def _of_List(self, node):
        return self.new_list(list(self._parts(node.elts)), node.lineno)

    def _of_ListComp(self, node):
        return self.comprehension(node)

    _of_GeneratorExp = _of_ListComp

    def _of_Tuple(self, node):
        return tuple(self._parts(node.elts))

    def _parts(self, nodes):
        for node in nodes:
            if not isinstance(node, ast.Starred):
                yield self.expression(node)
                continue
            values = self.sequence(self.expression(node.value), node.lineno)
            if values is None:
                raise Unsupported("'*' of a value without a known length", node.lineno)
            yield from values

    def _of_BinOp(self, node):
        return self.binary(node.op, self.expression(node.left), self.expression(node.right), node.lineno)

    def binary(self, sign, left, right, line):
        """An operator between two values."""
        left, right = self.plain(left), self.plain(right)
        if type(left) is tuple and type(right) is tuple and isinstance(sign, ast.Add):
            return left + right
        if isinstance(sign, ast.Mult) and self.is_list(right):
            left, right = right, left
        if self.is_list(left) and isinstance(sign, (ast.Add, ast.Mult)):
            return self._lists(sign, left, right, line)
        if self.is_object(left) or self.is_object(right):
            return self.object_binary(sign, left, right, line)
        if type(left) is tuple and type(right) is Const and isinstance(sign, ast.Mult):
            return left * right.value
        if type(sign) not in _BINARY:
            raise Unsupported(f"operator '{type(sign).__name__}'", line)
        op, fold = _BINARY[type(sign)]
        return self.operation(op, (left, right), line, None, fold)

    def _lists(self, sign, left, right, line):
        """Two lists one after the other, or one repeated."""
        values = self.sequence(left, line)
        if isinstance(sign, ast.Mult) and values is not None:
            return self.repeated(values, self.number(right, line), line)
        if isinstance(sign, ast.Add) and self.is_list(right):
            others = self.sequence(right, line)
            if values is not None and others is not None:
                return self.new_list(values + others, line)
            made = self.copy_of(left, line)
            self.method_of_list(made, "extend", (right,), line, "list")
            return self.present(made)
        raise Unsupported(f"operator '{type(sign).__name__}' of a list of a length that depends on data", line)

    def _of_UnaryOp(self, node):
        value = self.expression(node.operand)
        value = value if isinstance(node.op, ast.Not) else self.plain(value)
        if self.is_object(value) and type(node.op) in UNARY:
            return self.method(value, UNARY[type(node.op)], (), {}, node.lineno)
        op, fold = _UNARY[type(node.op)]
        if op == "not":
            value = self.truth(value, node.lineno)
        return self.operation(op, (value,), node.lineno, None, fold)

    def _of_Compare(self, node):
        left, line = self.expression(node.left), node.lineno
        return self._compared(left, list(zip(node.ops, node.comparators)), line)

    def _compared(self, left, rest, line):
        (sign, node), *rest = rest
        right = self.expression(node)
        result = self._comparison(sign, left, right, line)
        if not rest:
            return result
        return self._and(result, lambda: self._compared(right, rest, line), line)

    def _comparison(self, sign, left, right, line):
        if MISSING in (left, right):
            return self.truth(MISSING, line)
        if isinstance(sign, (ast.In, ast.NotIn)) and (self.is_list(right) or type(left) is Var and (type(right) is tuple or type(right) is Static and type(right.value) is list)):
            found = self.result(Static(_CONTAINS), (right, left), {}, line)
            return found if isinstance(sign, ast.In) else self.operation("not", (found,), line, None, operator.not_)
        if isinstance(sign, (ast.Is, ast.IsNot)) and type(left) is View and type(right) is Static and right.value is None:
            found = self.is_one_of(left, [cls for cls in self.form(left).classes() if cls is NONE], line) if self.is_object(left) else Const(False)
            return found if isinstance(sign, ast.Is) else self.operation("not", (found,), line, None, operator.not_)
        if type(sign) in _COMPARISONS:
            left, right = self.plain(left), self.plain(right)
        if (self.is_object(left) or self.is_object(right)) and (type(sign) in _COMPARISONS and View in (type(left), type(right))):
            return self.object_compared(sign, left, right, line)
        if type(left) is tuple and type(right) is tuple and isinstance(sign, (ast.Eq, ast.NotEq)):
            return self._tuples_compared(sign, left, right, line)
        is_known = type(left) in (Static, Const) and type(right) in (Static, Const, tuple) and Static in (type(left), type(right))
        if is_known or type(sign) in _KNOWN and type(left) in (Static, Const):
            work = _KNOWN.get(type(sign)) or _COMPARISONS[type(sign)][1]
            return Const(bool(work(_plain(left, line), _plain(right, line))))
        if type(sign) not in _COMPARISONS:
            if type(right) is Static and right.value is None:
                return Const(isinstance(sign, ast.IsNot))
            raise Unsupported(f"'{type(sign).__name__.lower()}' of elements", line)
        op, fold = _COMPARISONS[type(sign)]
        return self.operation(op, (left, right), line, None, fold)

    def _tuples_compared(self, sign, left, right, line):
        equal = Const(len(left) == len(right))
        for one, other in zip(left, right):
            equal = self._and(equal, lambda one=one, other=other: self._comparison(ast.Eq(), one, other, line), line)
        return equal if isinstance(sign, ast.Eq) else self.operation("not", (equal,), line, None, operator.not_)

    def _of_BoolOp(self, node):
        join = self._and if isinstance(node.op, ast.And) else self._or
        result = self.expression(node.values[0])
        for value in node.values[1:]:
            result = join(result, lambda value=value: self.expression(value), node.lineno)
        return result

    def _and(self, left, right, line):
        return self._in_short(left, right, line, "both")

    def _or(self, left, right, line):
        return self._in_short(left, right, line, "either")

    def _in_short(self, left, right, line, op):
        """The first value, or the second one where the first one does not decide."""
        first = self.truth(left, line)
        known = self.known(first)
        if known is not None:
            return right() if known == (op == "both") else left
        value, statements = self._eagerly(right)
        if not {type(left), type(value)} <= {Var, Const}:
            return self._objects_in_short(first, (left, value), statements or [], op, line)
        if statements is None:
            return self.operation(op, (left, value), line)
        target = self.fresh("t")
        self.assign(target, left, line)
        statements.append(Assign(target, "copy", (self.number(value, line),), line))
        self.emit(If(first, statements, [], line) if op == "both" else If(first, [], statements, line))
        return Var(target)

    def _objects_in_short(self, first, values, statements, op, line):
        """`and`, `or` with objects: one of them where both are such, else a truth value."""
        left, right = values
        if not (type(left) is View and type(right) in (View, Static)):
            left, truth = first, []
            statements += self.captured(lambda: truth.append(self.truth(right, line)))
            right = truth[0]
        pieces = [(right, statements), (left, [])]
        return self.one_of([lambda: first], pieces if op == "both" else pieces[::-1], line)

    def _of_IfExp(self, node):
        line = node.lineno
        condition = self.truth(self.expression(node.test), line)
        known = self.known(condition)
        if known is not None:
            return self.expression(node.body if known else node.orelse)
        def body():
            found = []
            self._guarded(node.test, lambda: found.append(self.expression(node.body)))
            return found[0]

        (then, first), (orelse, second) = self._eagerly(body), self._eagerly(lambda: self.expression(node.orelse))
        if first is None and second is None:
            return self.choose(condition, then, orelse, line)
        return self.one_of([lambda: condition], [(then, first or []), (orelse, second or [])], line)

    def _of_Subscript(self, node):
        owner = self.expression(node.value)
        if isinstance(node.slice, ast.Slice):
            return self._slice_of(owner, node.slice, node.lineno)
        return self.subscripted(owner, self.expression(node.slice), node)

    def _slice_of(self, value, node, line):
        if self.is_list(value):
            return self.sliced(value, ast.copy_location(node, node))
        values = self.sequence(value, line)
        if values is None:
            raise Unsupported("a slice of a value that is neither a tuple nor a list", line)
        bounds = [None if part is None else _plain(self.expression(part), line) for part in (node.lower, node.upper, node.step)]
        return tuple(values[slice(*bounds)])

    def subscripted(self, value, key, node):
        """The value of a subscript of any value."""
        line = node.lineno
        if value is MISSING or key is MISSING:
            return MISSING
        label = node.value.id if isinstance(node.value, ast.Name) else node.value.attr if isinstance(node.value, ast.Attribute) else "list"
        if self.is_list(value):
            return self.item(value, key, line, label)
        if self.has_method(value, "__getitem__"):
            return self.method(value, "__getitem__", (key,), {}, line)
        values = self.sequence(value, line)
        if values is not None and type(key) is Var:
            return self.chosen_of(values, key, line, label)
        if values is not None:
            try:
                return values[_plain(key, line)]
            except (IndexError, TypeError) as reason:
                raise Unsupported(str(reason), line) from None
        if is_array(value):
            return self._loaded(value, key if type(key) is tuple else (key,), line)
        raise Unsupported("a subscript of a value that is neither an array nor a tuple or list", line)

    def _loaded(self, array, key, line):
        """An element of an array."""
        return self.operation("load", key, line, self.table(array, key, line))

    def table(self, array, key, line, label=None):
        """An array that is subscripted with this key; `label`: what people call it, if it has no name."""
        if len(key) != array.value.ndim:
            raise Unsupported(f"{len(key)} subscripts of an array of {array.value.ndim} dimensions", line)
        name = next((name for name, known in self.arrays.items() if known is array.value), None)
        if name is None:
            name = self.fresh("a")
            self.arrays[name], self.tables[name] = array.value, array if array.place is None else array.place
        return Table(name, array.value, (label or name) if array.place is None else self.names.name_at(array.place))

    def _of_Lambda(self, node):
        return Static(self.local(node))

    def _of_Call(self, node):
        line = node.lineno
        owner = self.expression(node.func.value) if isinstance(node.func, ast.Attribute) else None
        if owner is None:
            callee = self.expression(node.func)
        args = tuple(self._parts(node.args))
        keywords = {keyword.arg: self.expression(keyword.value) for keyword in node.keywords}
        if None in keywords:
            raise Unsupported(f"the call '{ast.unparse(node)}' is not understood", line)
        if owner is not None:
            name = node.func.attr
            if type(owner) in (Var, Const) and name == "conjugate" and not args:
                return self.operation("function", (owner,), line, "conjugate")
            if self.is_list(owner) and not keywords:
                label = node.func.value.id if isinstance(node.func.value, ast.Name) else "list"
                return self.method_of_list(owner, name, args, line, label)
            if self.is_object(owner):
                return self.method(owner, name, args, keywords, line)
            callee = self.attribute_of(owner, name, line)
        return self.result(callee, args, keywords, line, node)

    def result(self, callee, args, keywords, line, node=None):
        """The value of a call of a value."""
        if callee is MISSING:
            return MISSING
        if self.is_object(callee):
            return self.method(callee, "__call__", args, keywords, line)
        refused = Unsupported(f"the call '{ast.unparse(node) if node else callee}' is not understood", line)
        if type(callee) is not Static:
            raise refused
        value = callee.value
        if type(value) is Bound:
            return self.called(value.function, (value.value, *args), keywords, line)
        if type(value) is types.MethodType:
            return self.called(value.__func__, (lifted(value.__self__), *args), keywords, line)
        if value is super and not args:
            return self.above(line)
        if not keywords and (found := self._built_in(value, args, line)) is not None:
            return found
        if functions.of(value) is None and _is_class(value):
            return self.construct(value, args, keywords, line)
        function = getattr(value, "pyfunc", None) or value
        if not isinstance(function, types.FunctionType) and not hasattr(function, "scope") or functions.of(value) is not None:
            raise refused
        return self.called(function, args, keywords, line)

    def _built_in(self, value, args, line):
        """The value of a call of a function of Python or NumPy; None for other functions."""
        if MISSING in args and (functions.of(value) is not None or _hashable(value) and value in BUILTINS):
            return MISSING
        if _hashable(value) and value in BUILTINS and (found := self.of_lists(value, args, line)) is not None:
            return found
        if value is abs and len(args) == 1 and self.has_method(args[0], "__abs__"):
            return self.method(args[0], "__abs__", (), {}, line)
        written = functions.of(value)
        return None if written is None else written(self, args, line)


def _hashable(value):
    return isinstance(value, (type, types.BuiltinFunctionType))


def _is_class(value):
    """Is it a class of the program, whose objects are made here?"""
    if not isinstance(value, type) or issubclass(value, (BaseException, np.generic, np.ndarray)) or not value.__flags__ & (1 << 9):
        return False
    bases = [base for base in value.__mro__ if base not in (object, typing.Generic, abc.ABC)]
    if issubclass(value, tuple):
        return hasattr(value, "_fields")
    return all(base.__flags__ & (1 << 9) for base in bases) and type(value) in (type, abc.ABCMeta)


class Table:
    """An array that is subscripted: its name in the program, its form, and what people call it."""

    __slots__ = ("name", "dtype", "shape", "label")

    def __init__(self, name, array, label):
        self.name, self.dtype, self.shape, self.label = name, array.dtype, array.shape, label


def _plain(value, line):
    """A known value, as Python's."""
    if type(value) is tuple:
        return tuple(_plain(part, line) for part in value)
    if type(value) not in (Const, Static):
        raise Unsupported("what differs from element to element, where one value is needed", line)
    return value.value
