"""Programs without what is known beforehand: constants, branches that are never taken, values that nobody needs."""

import dataclasses
import operator

from .ir import Assign, Block, Const, Count, If, Leave, Loop, Store, Unsupported, Var, goes_on, values
from .kinds import letter, literal

_FOLDS = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "negative": operator.neg, "truth": bool,
    "not": operator.not_, "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
    "equal": operator.eq, "not_equal": operator.ne, "divide": operator.truediv, "floor_divide": operator.floordiv,
    "remainder": operator.mod, "both": lambda one, other: one and other, "either": lambda one, other: one or other,
}  # fmt: skip
_BITS = {
    "floor_divide": ("right_shift", lambda divisor: divisor.bit_length() - 1), "remainder": ("bitwise_and", lambda divisor: divisor - 1),
}  # fmt: skip


def simplified(function, inference):
    """The function, and whether it is another one now."""
    work = _Simplification(inference)
    return dataclasses.replace(function, body=work.statements(function.body)), work.changed


class _Simplification:
    def __init__(self, inference):
        self._inference, self.changed, self._serial = inference, False, 0

    def statements(self, statements):
        done = []
        for statement in statements:
            if self._is_never_reached(statement):
                self.changed = True
                continue
            done += _SIMPLER[type(statement)](self, statement)
            if done and not goes_on(done[-1:]):
                # Nothing comes to what follows.
                break
        return done

    def value(self, value):
        known = self._inference.known.get(value.name) if type(value) is Var else None
        if known is None or known.constant is None:
            return value
        self.changed = True
        return known.constant

    def _assign(self, statement):
        if not statement.live:
            self.changed = True
            return []
        args = tuple(map(self.value, statement.args))
        made = Assign(statement.target, statement.op, args, statement.line, statement.extra)
        fold = _FOLDS.get(statement.op)
        if fold is not None and args and all(type(arg) is Const for arg in args):
            try:
                made.op, made.args = "copy", (literal(fold(*(arg.value for arg in args))),)
                self.changed = True
            except (ArithmeticError, ValueError, TypeError, Unsupported):
                made.op, made.args = statement.op, args
        return [self._by_bits(made)]

    def _store(self, statement):
        key = tuple(map(self.value, statement.key))
        return [Store(statement.table, key, self.value(statement.value), statement.adds, statement.line)]

    def _by_bits(self, statement):
        """Whole numbers divided by a power of two, which processors do faster by bits."""
        if statement.op not in _BITS or type(statement.args[1]) is not Const or type(statement.args[0]) is Const:
            return statement
        divisor, kind = statement.args[1].value, self._inference.kind(statement.args[0])
        if type(divisor) is int and divisor > 0 and not divisor & (divisor - 1) and letter(kind) in "iu":
            op, other = _BITS[statement.op]
            self.changed = True
            return Assign(statement.target, op, (statement.args[0], Const(other(divisor))), statement.line)
        return statement

    def _is_never_reached(self, statement):
        """Does it read a variable that no statement gives a value that comes here?"""
        return any(self._inference.kind(value) is None for value in values(statement))

    def _if(self, statement):
        condition = self.value(statement.condition)
        if type(condition) is Const:
            self.changed = True
            return self.statements(statement.then if condition.value else statement.orelse)
        then, orelse = self.statements(statement.then), self.statements(statement.orelse)
        if not then and not orelse:
            self.changed = True
            return []
        return [If(condition, then, orelse, statement.line)]

    def _block(self, statement):
        body = self.statements(statement.body)
        if not body:
            self.changed = True
        return [Block(statement.label, body, statement.line)] if body else []

    def _loop(self, statement):
        return [Loop(self.statements(statement.body), statement.line)]

    def _count(self, statement):
        bounds = [self.value(bound) for bound in (statement.start, statement.stop, statement.step)]
        made = Count(statement.index, *bounds, self.statements(statement.body), statement.line)
        numbers = made.numbers()
        if not made.body or numbers is not None and not numbers:
            self.changed = True
            return []
        if any(map(self._inference.varies, bounds)):
            self.changed = True
            return self._as_loop(made)
        return [made]

    def _as_loop(self, count):
        """A loop whose number of turns differs from element to element."""
        self._serial += 1
        line, ended = count.line, f"ended_{count.index}_{self._serial}"
        name = lambda stem: f"{stem}_{count.index}_{self._serial}"
        step = lambda stem, op, *args: (Assign(name(stem), op, args, line), Var(name(stem)))
        before, variables = [], []
        for stem, bound in zip(("start", "stop", "step"), (count.start, count.stop, count.step)):
            # The bounds are those that the loop began with.
            statement, variable = step(stem, "copy", bound)
            before += [] if type(bound) is Const else [statement]
            variables.append(bound if type(bound) is Const else variable)
        start, stop, stride = variables
        turn, done = [Assign(name("turn"), "iteration", (), line)], Var(name("turn"))
        if stride != Const(1):
            statement, done = step("moved", "multiply", done, stride)
            turn.append(statement)
        turn.append(Assign(count.index, "add", (done, start), line))
        turn += self._ahead(count, name, stop, stride)
        turn.append(If(Var(name("ahead")), [], [Leave(ended, line)], line))
        return [*before, Block(ended, [Loop([*turn, *count.body], line)], line)]

    def _ahead(self, count, name, stop, stride):
        """Is the number still within the range?"""
        index, line = Var(count.index), count.line
        if type(stride) is Const:
            return [Assign(name("ahead"), "less" if stride.value > 0 else "greater", (index, stop), line)]
        below, above, up, down = (name(stem) for stem in ("below", "above", "up", "down"))
        return [
            Assign(below, "less", (index, stop), line), Assign(above, "greater", (index, stop), line),
            Assign(up, "greater", (stride, Const(0)), line), Assign(down, "less", (stride, Const(0)), line),
            Assign(name("up"), "both", (Var(up), Var(below)), line), Assign(name("down"), "both", (Var(down), Var(above)), line),
            Assign(name("ahead"), "either", (Var(up), Var(down)), line),
        ]  # fmt: skip


_SIMPLER = {
    Assign: _Simplification._assign, If: _Simplification._if, Block: _Simplification._block, Loop: _Simplification._loop,
    Count: _Simplification._count, Leave: lambda self, statement: [statement],
    Store: _Simplification._store,
}  # fmt: skip
