"""Reads expressions: each operation becomes an assignment to a variable of its own."""

import ast
import operator
import types

from . import functions
from .ir import Assign, Const, If, Unsupported, Var
from .kinds import literal
from .names import Static, is_array, lifted

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
        return read(node)

    def operation(self, op, args, line, extra=None, fold=None):
        """What an operation makes of numbers; `fold` makes it of constants."""
        args = tuple(self.number(arg, line) for arg in args)
        if fold is not None and all(type(arg) is Const for arg in args):
            try:
                return literal(fold(*(arg.value for arg in args)))
            except (ArithmeticError, ValueError, TypeError):
                # It fails for elements that come here, if any do.
                pass
        target = self.fresh("t")
        self.emit(Assign(target, op, args, line, extra))
        return Var(target)

    def number(self, value, line):
        """The value, if it is a number."""
        if type(value) not in (Var, Const):
            what = "a tuple" if type(value) is tuple else f"{value.value!r}"
            raise Unsupported(f"{what} where a number is needed", line)
        return value

    def truth(self, value, line):
        """The value as a truth value."""
        if type(value) is tuple:
            return Const(bool(value))
        if type(value) is Static:
            if is_array(value):
                raise Unsupported("an array where a number is needed", line)
            return Const(bool(value.value))
        return self.operation("truth", (value,), line, None, bool)

    def known(self, condition):
        """The truth value that a condition always has; None where it depends on elements."""
        return bool(condition.value) if type(condition) is Const else None

    def _named(self, form, name):
        """The variables that hold a value of this form."""
        if form is None:
            return Var(name)
        return form if type(form) is Static else tuple(self._named(part, f"{name}_{place}") for place, part in enumerate(form))

    def _eagerly(self, work):
        """What an expression gives, and the statements for it, if they have to wait until they are needed; else these are written."""
        found = []
        statements = self.captured(lambda: found.append(work()))
        if all(type(statement) is Assign and statement.op != "load" for statement in statements):
            self.out += statements
            return found[0], None
        return found[0], statements

    def choose(self, condition, then, orelse, line):
        """One of two values, by a condition."""
        if type(then) is tuple and type(orelse) is tuple and len(then) == len(orelse):
            return tuple(self.choose(condition, one, other, line) for one, other in zip(then, orelse))
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
            return self._named(scope.forms[node.id], f"{scope.prefix}{node.id}")
        try:
            return self.names.look_up(scope.function, node.id)
        except (AttributeError, ValueError):
            raise Unsupported(f"'{node.id}' is not defined", node.lineno) from None

    def _of_Attribute(self, node):
        value = self.expression(node.value)
        if type(value) in (Var, Const) and node.attr in ("real", "imag"):
            return self.operation(node.attr, (value,), node.lineno)
        if is_array(value):
            if node.attr not in ("shape", "size", "ndim"):
                raise Unsupported(f"attribute '{node.attr}' of an array", node.lineno)
            return lifted(getattr(value.value, node.attr))
        if type(value) is not Static or not hasattr(value.value, node.attr):
            raise Unsupported(f"attribute '{node.attr}'", node.lineno)
        return self.names.attribute(value.value, node.attr)

    def _of_Tuple(self, node):
        return tuple(self._parts(node.elts))

    def _parts(self, nodes):
        for node in nodes:
            if not isinstance(node, ast.Starred):
                yield self.expression(node)
                continue
            value = self.expression(node.value)
            if type(value) is not tuple:
                raise Unsupported("'*' of what is no tuple", node.lineno)
            yield from value

    def _of_BinOp(self, node):
        return self.binary(node.op, self.expression(node.left), self.expression(node.right), node.lineno)

    def binary(self, sign, left, right, line):
        """An operator between two values."""
        if type(left) is tuple and type(right) is tuple and isinstance(sign, ast.Add):
            return left + right
        if type(sign) not in _BINARY:
            raise Unsupported(f"operator '{type(sign).__name__}'", line)
        op, fold = _BINARY[type(sign)]
        return self.operation(op, (left, right), line, None, fold)

    def _of_UnaryOp(self, node):
        value = self.expression(node.operand)
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
        if type(left) is tuple and type(right) is tuple and isinstance(sign, (ast.Eq, ast.NotEq)):
            return self._tuples_compared(sign, left, right, line)
        is_known = type(left) in (Static, Const) and type(right) in (Static, Const, tuple) and Static in (type(left), type(right))
        if is_known or type(sign) in _KNOWN and type(left) is not Var:
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
        if statements is None:
            return self.operation(op, (left, value), line)
        target = self.fresh("t")
        self.assign(target, left, line)
        statements.append(Assign(target, "copy", (self.number(value, line),), line))
        self.emit(If(first, statements, [], line) if op == "both" else If(first, [], statements, line))
        return Var(target)

    def _of_IfExp(self, node):
        line = node.lineno
        condition = self.truth(self.expression(node.test), line)
        known = self.known(condition)
        if known is not None:
            return self.expression(node.body if known else node.orelse)
        (then, first), (orelse, second) = (self._eagerly(lambda part=part: self.expression(part)) for part in (node.body, node.orelse))
        if first is None and second is None:
            return self.choose(condition, then, orelse, line)
        return self._branches(condition, (then, first or []), (orelse, second or []), line)

    def _branches(self, condition, first, second, line):
        """A choice of values with statements of their own."""
        target = self.fresh("t")
        for value, statements in (first, second):
            statements += self.captured(lambda value=value: self._store(target, value, line))
        forms = [_form_of(value) for value, _ in (first, second)]
        if forms[0] != forms[1]:
            raise Unsupported("a choice of values of different kinds", line)
        self.emit(If(condition, first[1], second[1], line))
        return self._named(forms[0], target)

    def _of_Subscript(self, node):
        value, line = self.expression(node.value), node.lineno
        if type(value) is tuple and isinstance(node.slice, ast.Slice):
            bounds = [None if part is None else _plain(self.expression(part), line) for part in (node.slice.lower, node.slice.upper, node.slice.step)]
            return value[slice(*bounds)]
        key = self.expression(node.slice)
        if type(value) is tuple:
            try:
                return value[_plain(key, line)]
            except (IndexError, TypeError) as reason:
                raise Unsupported(str(reason), line) from None
        if is_array(value):
            return self._loaded(value, key if type(key) is tuple else (key,), line)
        raise Unsupported("a subscript of what is neither an array nor a tuple", line)

    def _loaded(self, array, key, line):
        """An element of an array."""
        return self.operation("load", key, line, self.table(array, key, line))

    def table(self, array, key, line):
        """An array that is subscripted with this key."""
        if len(key) != array.value.ndim:
            raise Unsupported(f"{len(key)} subscripts of an array of {array.value.ndim} dimensions", line)
        name = next((name for name, known in self.arrays.items() if known is array.value), None)
        if name is None:
            name = self.fresh("a")
            self.arrays[name], self.tables[name] = array.value, array if array.place is None else array.place
        return Table(name, array.value, name if array.place is None else self.names.name_at(array.place))

    def _of_Lambda(self, node):
        return Static(self.local(node))

    def _of_Call(self, node):
        line = node.lineno
        if isinstance(node.func, ast.Attribute) and node.func.attr == "conjugate" and not node.args:
            value = self.expression(node.func.value)
            if type(value) in (Var, Const):
                return self.operation("function", (value,), line, "conjugate")
        callee = self.expression(node.func)
        args = tuple(self._parts(node.args))
        keywords = {keyword.arg: self.expression(keyword.value) for keyword in node.keywords}
        if None in keywords or type(callee) is not Static:
            raise Unsupported(f"the call '{ast.unparse(node)}' is not understood", line)
        written = functions.of(callee.value)
        if written is not None and not keywords:
            return written(self, args, line)
        function = getattr(callee.value, "pyfunc", None) or callee.value
        if not isinstance(function, types.FunctionType) and not hasattr(function, "scope") or written is not None:
            raise Unsupported(f"the call '{ast.unparse(node)}' is not understood", line)
        return self.called(function, args, keywords, line)


class Table:
    """An array that is subscripted: its name in the program, its form, and what people call it."""

    __slots__ = ("name", "dtype", "shape", "label")

    def __init__(self, name, array, label):
        self.name, self.dtype, self.shape, self.label = name, array.dtype, array.shape, label


def _plain(value, line):
    """What is known, as Python's."""
    if type(value) is tuple:
        return tuple(_plain(part, line) for part in value)
    if type(value) is Var:
        raise Unsupported("what differs from element to element, where one value is needed", line)
    return value.value


def _form_of(value):
    return tuple(map(_form_of, value)) if type(value) is tuple else value if type(value) is Static else None
