"""Reads loops: over ranges, tuples and lists, with the most iterations that they have, as far as that is known."""

import ast

from .forms import MISSING
from .ir import Block, Const, Count, If, Leave, Loop, Unsupported
from .lists import UNROLLED, Guard
from .names import Static


class Loops:
    """The part of a reader that reads loops, and tests that say how long lists are."""

    def _guarded(self, test, work):
        """Does work where a test holds, that may say how many items a list has at most."""
        before = len(self.guards)
        tests = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
        for one in tests:
            if isinstance(one, ast.Compare) and len(one.ops) == 1:
                self._note_guard(one.left, one.ops[0], one.comparators[0])
        work()
        del self.guards[before:]

    def _note_guard(self, left, sign, right):
        if isinstance(sign, (ast.Gt, ast.GtE)):
            left, right, sign = right, left, ast.Lt() if isinstance(sign, ast.Gt) else ast.LtE()
        if not isinstance(sign, (ast.Lt, ast.LtE)) or not isinstance(left, ast.Call) or len(left.args) != 1:
            return
        function, view, most = (self.glimpse(part) for part in (left.func, left.args[0], right))
        if type(function) is Static and function.value is len and self.is_list(view) and type(most) is Const and isinstance(most.value, int):
            self.guards.append(Guard(view.place(), most.value + isinstance(sign, ast.LtE), len(self.around)))

    def looped(self, turns, line, work):
        """Does work within a loop of at most this many iterations, or of an unknown number."""
        self.around.append((turns, line))
        try:
            return work()
        finally:
            self.around.pop()

    def _read_While(self, node):
        def turn():
            condition = self.truth(self.expression(node.test), node.lineno)
            known = self.known(condition)
            if known is None:
                self.emit(If(condition, [], [Leave(ended, node.lineno)], node.lineno))
            elif not known:
                self.emit(Leave(ended, node.lineno))
                return
            self._guarded(node.test, lambda: self._body(node, broken))

        broken, ended = self.fresh("broken"), self.fresh("ended")
        loop = Block(ended, [Loop(self.captured(lambda: self.looped(None, node.lineno, turn)), node.lineno)], node.lineno)
        self._with_else(node, loop, broken)

    def _read_For(self, node):
        broken, line = self.fresh("broken"), node.lineno
        bounds = self._range(node.iter)
        if bounds is not None and all(type(bound) is Const for bound in bounds):
            numbers = range(*(bound.value for bound in bounds))
            if self.is_subscripted(node, len(numbers)):
                self._in_turn(node, list(map(Const, numbers)), broken)
                return
        if bounds is None:
            items = self.expression(node.iter)
            if self.is_list(items) and not self.present(items).form.capacity:
                # It has no items, or will have some when it is read again.
                self._in_turn(node, [], broken)
                return
            if self.is_list(items) and self.copies * (self.known_length(items) or UNROLLED + 1) > UNROLLED:
                self._with_else(node, self.for_each(node, items, broken), broken)
                return
            values = [MISSING] if items is MISSING else self.sequence(items, line)
            if values is None:
                raise Unsupported("'for' over a value that is neither a range nor a tuple or list", line)
            if self.is_list(items):
                # The loop takes what the list has at each turn.
                self.passed.append(items.place())
                self._in_turn(node, [lambda at=at: self.item(items, Const(at), line) for at in range(len(values))], broken)
                self.passed.pop()
                return
            before = len(self.frozen)
            self.frozen += [seen.place() for seen in map(self.glimpse, node.iter.args if isinstance(node.iter, ast.Call) else []) if self.is_list(seen)]
            self._in_turn(node, values, broken)
            del self.frozen[before:]
            return
        index, turns = self.fresh("i"), self._turns(bounds)
        body = self.captured(lambda: self.looped(turns[0], line, lambda: self._turn(node, self._counted(index, turns[1]), broken)))
        self._with_else(node, Count(index, *bounds, body, line), broken)

    def _in_turn(self, node, items, broken):
        """The turns of a loop over some values, one after the other."""
        before, self.copies = self.copies, self.copies * max(len(items), 1)
        turns = self.captured(lambda: [self._turn(node, item() if callable(item) else item, broken) for item in items])
        self.copies = before
        self._with_else(node, Block(self.fresh("ended"), turns, node.lineno), broken)

    def _counted(self, index, within):
        """The variable of a range, and the facts that are known of its values."""
        self.bounds[index] = within
        return self.variable(index)

    def _turns(self, bounds):
        """The most iterations of a range, None if they depend on data; the least and the greatest number in it, where they are known."""
        (low, _), (_, high), step = self.interval(bounds[0]), self.interval(bounds[1]), bounds[2]
        if type(step) is not Const:
            return None, (None, None)
        if step.value < 0:
            (_, high), (low, _) = self.interval(bounds[0]), self.interval(bounds[1])
        within = (low, None if high is None else high - 1) if step.value > 0 else (None if low is None else low + 1, high)
        if low is None or high is None:
            return None, within
        return max(0, -(-(high - low) // abs(step.value))), within

    def _turn(self, node, value, broken):
        self._assign_to(node.target, value)
        self._body(node, broken)

    def _range(self, node):
        """The bounds of a call of `range`, or None."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
            return None
        if getattr(self.expression(node.func), "value", None) is not range:
            return None
        bounds = [self._whole(self.expression(arg), node.lineno) for arg in node.args]
        if not 1 <= len(bounds) <= 3:
            raise Unsupported(f"'range' with {len(bounds)} arguments", node.lineno)
        bounds = [Const(0), *bounds] if len(bounds) == 1 else bounds
        start, stop, step = bounds if len(bounds) == 3 else (*bounds, Const(1))
        if step == Const(0):
            raise Unsupported("a range with step 0", node.lineno)
        return start, stop, step

    def _whole(self, value, line):
        if type(value) is Const and not isinstance(value.value, int):
            raise Unsupported("a range has whole numbers as bounds", line)
        return self.number(value, line)

    def _body(self, node, broken):
        """The statements of a loop."""
        again = self.fresh("again")
        self.scope.loops.append((broken, again))
        statements = self.captured(lambda: self.statements(node.body))
        self.scope.loops.pop()
        self.emit(Block(again, statements, node.lineno))

    def _with_else(self, node, loop, broken):
        """A loop, and its `else` branch, which runs unless the loop breaks."""
        orelse = self.captured(lambda: self.statements(node.orelse))
        self.emit(Block(broken, [loop, *orelse], node.lineno))
