"""Loops in loops as one loop: a turn of it is one of the inner loop, and each element goes on with its own outer turn.

Otherwise all elements wait, in each outer turn, for the one with the most inner turns.
"""

import dataclasses

from .ir import Assign, Block, Const, Count, If, Leave, Loop, Store, Var, parts, walk
from .sinking import cost

# How many times as much as an inner turn the rest of an outer turn may cost.
_REST = 3


def flattened(function, inference):
    """The function, and whether it is another one now."""
    if function.indices:
        # Subscripts of indices are views in loops of Python only.
        return function, False
    work = _Flattening(inference)
    return dataclasses.replace(function, body=work.statements(function.body)), work.changed


class _Flattening:
    def __init__(self, inference):
        self._inference, self.changed, self._serial = inference, False, 0

    def _fresh(self, stem):
        self._serial += 1
        return f"{stem}_{self._serial}"

    def statements(self, statements):
        """The statements with their loops merged, the innermost ones first."""
        done = []
        for statement in statements:
            if type(statement) is If:
                statement = dataclasses.replace(statement, then=self.statements(statement.then), orelse=self.statements(statement.orelse))
            elif parts(statement):
                statement = dataclasses.replace(statement, body=self.statements(statement.body))
            done += self._merged(statement) if type(statement) in (Loop, Count) else [statement]
        return done

    def _merged(self, loop):
        """A loop and those in it as one, where that can be done and is worth it."""
        if not self._is_worth(loop):
            return [loop]
        self.changed = True
        before, loop, ended = self._with_counter(loop)
        while (inner := self._first(loop.body)) is not None:
            again, inside = self._fresh("next"), self._fresh("inside")
            before.append(Assign(inside, "copy", (Const(False),), loop.line))
            loop = Loop([Block(again, self._opened(loop.body, inner, inside, again), loop.line)], loop.line)
        return [*before, loop if ended is None else Block(ended, [loop], loop.line)]

    def _is_worth(self, loop):
        inner = self._first(loop.body)
        if inner is None or any(type(one) is Store or type(one) is Count and one.numbers() is None for one in walk([loop])):
            return False
        return cost(loop.body) - cost(inner.body) <= _REST * cost(inner.body)

    def _first(self, statements):
        """The first loop that elements leave one by one, if nothing but blocks and branches is around it."""
        for statement in statements:
            if type(statement) is Loop or type(statement) is Count and not self._inference.is_serial(statement):
                return statement
            if type(statement) is Count and any(type(one) is Loop for one in walk(statement.body)):
                return None
            found = next(filter(None, (self._first(part) for part in parts(statement) if type(statement) is not Count)), None)
            if found is not None:
                return found
        return None

    def _opened(self, statements, inner, inside, again):
        """The statements of an outer turn as those of one inner turn: what is before the inner loop is for elements outside of it."""
        place, holder = next((place, one) for place, one in enumerate(statements) if one is inner or inner in walk(_inner(one)))
        before, after, line = statements[:place], statements[place + 1 :], holder.line
        if holder is inner:
            first, loop, ended = self._with_counter(inner)
            if ended is not None:
                block = Block(ended, [loop], line)
                return self._opened([*before, *first, block, *after], loop, inside, again)
            return [*_unless(inside, [*before, *first], line), Assign(inside, "copy", (Const(True),), line), *loop.body, Leave(again, line)]
        if type(holder) is Block:
            body = self._opened(holder.body, inner, inside, again)
            out = Assign(inside, "copy", (Const(False),), line)
            return [*_unless(inside, before, line), Block(holder.label, body, line), out, *after]
        return [*_unless(inside, before, line), *self._opened_branch(holder, inner, inside, again), *after]

    def _opened_branch(self, branch, inner, inside, again):
        """A branch that elements within the inner loop take as they took it before."""
        condition, line = self._fresh("taken"), branch.line
        if inner in walk(branch.then):
            then, orelse = self._opened(branch.then, inner, inside, again), branch.orelse
            return [Assign(condition, "either", (Var(inside), branch.condition), line), If(Var(condition), then, orelse, line)]
        then, orelse = branch.then, self._opened(branch.orelse, inner, inside, again)
        outside = self._fresh("outside")
        taken = [Assign(outside, "not", (Var(inside),), line), Assign(condition, "both", (Var(outside), branch.condition), line)]
        return [*taken, If(Var(condition), then, orelse, line)]

    def _with_counter(self, loop):
        """A loop as one without an end that counts for each element: what comes before it, the loop, and the label of its end, which only
        loops over ranges have. Those are of constants: others are not merged, as their bounds may come to differ."""
        line = loop.line
        if type(loop) is Loop:
            turns = [one for one in loop.body if type(one) is Assign and one.op == "iteration"]
            if not turns:
                return [], loop, None
            number = self._fresh("number")
            counted = [Assign(turns[0].target, "copy", (Var(number),), line), Assign(number, "add", (Var(number), Const(1)), line)]
            body = [part for one in loop.body for part in (counted if one is turns[0] else [one])]
            return [Assign(number, "copy", (Const(0),), line)], Loop(body, line), None
        ended, number, ahead = self._fresh("ended"), self._fresh("number"), self._fresh("ahead")
        count = len(loop.numbers())
        head = [
            Assign(ahead, "less", (Var(number), Const(count)), line), If(Var(ahead), [], [Leave(ended, line)], line),
            *self._index(loop, number), Assign(number, "add", (Var(number), Const(1)), line),
        ]  # fmt: skip
        return [Assign(number, "copy", (Const(0),), line)], Loop([*head, *loop.body], line), ended

    def _index(self, count, number):
        scaled = self._fresh("scaled")
        return [
            Assign(scaled, "multiply", (Var(number), count.step), count.line),
            Assign(count.index, "add", (Var(scaled), count.start), count.line),
        ]


def _inner(statement):
    return [one for part in parts(statement) for one in part]


def _unless(inside, statements, line):
    return [If(Var(inside), [], statements, line)] if statements else []
