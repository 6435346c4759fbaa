"""Writes programs down as functions of Python that do with whole arrays what the program does with each element.

Statements become operations under a mask of the elements that come there. A loop that ends for each element at another time
becomes a function for some turns of it, which `loops.run` calls until no element is left.
"""

import collections

import numpy as np

from .ir import Assign, Block, Const, Count, If, Leave, Loop, Store, Var, assigned, escapes, used, walk
from .kinds import BOOL, concrete, letter
from .operations import OPERATIONS

# The mask of all elements, and that of none.
ALL, NONE = None, False


class Emitter:
    """Writes the functions for a program of which this is known."""

    def __init__(self, function, inference):
        self._function, self._known = function, inference
        self.constants, self.plans, self.functions = {}, [], []
        self._lines, self._depth, self._serial = [], 1, 0
        self._mask, self._left, self._tracked = ALL, {}, set()
        self._bound = set(function.parameters)
        # Variables that are sums of multiples of indices, beside which there is another one that tells these; which may be such.
        self._sums, self._once = set(), _assigned_once(function.body)
        self._stored = {one.table.name for one in walk(function.body) if type(one) is Store}
        self._has_loops = self._has_iteration = False

    def write(self):
        """The text of all functions; the last one gets the shape, the parameters and the tables, and returns the results."""
        for axis, name in enumerate(self._function.parameters if self._function.indices else ()):
            self._line(f"sum_{name} = index(shape, {axis})")
            self._sums.add(name)
        self._statements(self._function.body)
        results = "".join(f"fresh({self._value(Var(name))}, {concrete(self._known.known[name].told).name}, shape), " for name in self._function.results)
        self._line(f"return ({results})")
        arguments = ", ".join(["shape", *self._function.parameters, *self._function.tables])
        self._finish("whole", arguments)
        return "\n".join(self.functions)

    # Text

    def _line(self, text):
        self._lines.append("    " * self._depth + text)

    def _finish(self, name, arguments):
        self.functions.append("\n".join([f"def {name}({arguments}):", *self._lines]) + "\n")

    def _fresh(self, stem):
        self._serial += 1
        return f"{stem}{self._serial}"

    def _dtype(self, name):
        return concrete(self._known.known[name].kind).name

    def _value(self, value):
        if type(value) is Var:
            return value.name
        number = value.value
        if type(number) in (int, bool) or type(number) is float and number - number == 0:
            return repr(number)
        self.constants.setdefault(value, f"c{len(self.constants)}")
        return self.constants[value]

    def _operand(self, value, dtype):
        """A value as an element of this type."""
        if type(value) is Const:
            return self._value(Const(dtype.type(value.value).item()))
        given = concrete(self._known.kind(value))
        return value.name if given == dtype else f"cast({value.name}, {dtype.name})"

    # Masks

    def _and(self, mask, condition):
        if mask is ALL or mask is NONE:
            return condition if mask is ALL else NONE
        return self._named(f"logical_and({mask}, {condition})")

    def _or(self, one, other):
        if one is NONE or other is NONE:
            return other if one is NONE else one
        if one is ALL or other is ALL:
            return ALL
        return one if one == other else self._named(f"logical_or({one}, {other})")

    def _named(self, text):
        name = self._fresh("m")
        self._line(f"{name} = {text}")
        return name

    # Statements

    def _statements(self, statements):
        for statement in statements:
            if self._mask is NONE:
                return
            _WRITERS[type(statement)](self, statement)

    def _assign(self, statement):
        if statement.op == "iteration":
            self._has_iteration = True
        known, target = self._known, statement.target
        kinds = [known.kind(arg) for arg in statement.args]
        inner, result = OPERATIONS[statement.op].rule(statement.op, kinds, statement.args, statement.extra)
        own = known.known[target]
        if not own.varies:
            self._line(f"{target} = {self._common(statement)}")
        else:
            text = self._operation(statement, inner)
            if concrete(result) != concrete(own.kind):
                text = f"cast({text}, {concrete(own.kind).name})"
            if self._mask is not ALL and statement.kept and target in self._bound:
                text = f"where({self._mask}, {text}, {target})"
            self._line(f"{target} = {text}")
            self._note_sum(statement)
        self._bound.add(target)

    def _note_sum(self, statement):
        """Notes a sum of multiples of indices."""
        texts = [self._sum(arg) for arg in statement.args]
        sign = _SUMS.get(statement.op)
        indices = sum(text is not None and text.startswith("sum_") for text in texts)
        if sign is None or None in texts or statement.target not in self._once or not indices or sign == "*" and indices > 1:
            return
        self._line(f"sum_{statement.target} = {sign.join(texts) if len(texts) > 1 else sign + texts[0]}")
        self._sums.add(statement.target)

    def _sum(self, value):
        """A value as a sum of multiples of indices, or None."""
        if type(value) is Const:
            return self._value(value) if type(value.value) is int else None
        if letter(self._known.kind(value)) not in "iu":
            return None
        if not self._known.varies(value):
            return value.name
        return f"sum_{value.name}" if value.name in self._sums else None

    def _places(self, key):
        """Subscripts as sums of multiples of indices, if all are such."""
        texts = [self._sum(part) for part in key]
        return f"({', '.join(texts)},)" if None not in texts and any(text.startswith("sum_") for text in texts) else "None"

    def _store(self, statement):
        mask = "None" if self._mask is ALL else self._mask
        key = ", ".join(self._operand(part, _INT64) for part in statement.key)
        value = self._operand(statement.value, statement.table.dtype)
        self._line(f"save({statement.table.name}, {mask}, shape, {self._places(statement.key)}, ({key},), {value}, {statement.adds})")
        self._has_loops = True

    def _operation(self, statement, inner):
        """An operation on arrays."""
        operands = [self._operand(arg, dtype) for arg, dtype in zip(statement.args, inner)]
        if statement.op == "load":
            mask = "None" if self._mask is ALL else self._mask
            text = f"load({statement.extra.name}, {mask}, {self._places(statement.args)}, {', '.join(operands)})"
            # The loaded value is kept when the array changes.
            return f"copied({text}, {statement.extra.name}, [{', '.join(sorted(self._stored))}])" if self._stored else text
        return OPERATIONS[statement.op].text(operands, inner, statement.extra)

    def _common(self, statement):
        """An operation on numbers that are the same for all elements."""
        operands = [self._value(arg) for arg in statement.args]
        sign = OPERATIONS[statement.op].scalar
        if statement.op == "copy":
            return operands[0]
        return f"{sign} {operands[0]}" if len(operands) == 1 else f"{operands[0]} {sign} {operands[1]}"

    def _bind(self, names):
        """Gives variables a value that nobody looks at, where they may have none yet."""
        for name in sorted(names - self._bound):
            self._line(f"{name} = {self._value(Const(concrete(self._known.known[name].kind).type(0).item()))}")
            self._bound.add(name)

    def _if(self, statement):
        if self._known.is_common(statement):
            self._common_branch(statement)
            return
        condition = self._value(statement.condition)
        if not self._known.varies(statement.condition):
            condition = f"as_mask({condition})"
        entry, out = self._mask, escapes([statement])
        first, second = self._branch_masks(entry, condition, statement, out)
        self._mask = first
        self._statements(statement.then)
        first = self._mask
        self._mask = second
        self._statements(statement.orelse)
        self._mask = self._or(first, self._mask) if out else entry

    def _branch_masks(self, entry, condition, statement, out):
        """The masks of both branches, as far as they are needed."""
        first = second = NONE
        if statement.then or out:
            # The first branch may change the condition.
            first = self._branch_mask(entry, condition, statement.then)
        if statement.orelse or out:
            second = self._branch_mask(entry, f"inverse({condition})", statement.orelse)
        return first, second

    def _branch_mask(self, entry, condition, statements):
        if statements and type(statements[0]) is Leave and statements[0].label not in self._tracked:
            return _ELSEWHERE
        return self._and(entry, condition) if entry is not ALL else self._named(condition)

    def _common_branch(self, statement):
        self._bind(assigned([statement]) & statement.after)
        bound = set(self._bound)
        for text, part in ((f"if {self._value(statement.condition)}:", statement.then), ("else:", statement.orelse)):
            self._line(text)
            self._depth += 1
            self._line("pass")
            self._bound = set(bound)
            self._statements(part)
            self._depth -= 1
        self._bound = bound

    def _block(self, statement):
        entry, out = self._mask, escapes([statement])
        if out:
            self._tracked.add(statement.label)
        self._left[statement.label] = NONE
        self._statements(statement.body)
        self._mask = self._or(self._mask, self._left.pop(statement.label)) if out else entry
        self._tracked.discard(statement.label)

    def _leave(self, statement):
        if statement.label in self._tracked:
            self._left[statement.label] = self._or(self._left[statement.label], self._mask)
        self._mask = NONE

    # Loops

    def _count(self, statement):
        if not self._known.is_serial(statement):
            self._run(statement)
            return
        needed = statement.head | statement.after
        self._bind(assigned(statement.body) & needed)
        bounds = ", ".join(self._value(bound) for bound in (statement.start, statement.stop, statement.step))
        self._line(f"for {statement.index} in range({bounds}):")
        bound, entry = set(self._bound), self._mask
        self._depth += 1
        self._line("pass")
        self._bound.add(statement.index)
        self._statements(statement.body)
        self._depth -= 1
        self._bound, self._mask = bound, entry

    def _run(self, statement):
        """A loop that elements leave one by one."""
        counts = type(statement) is Count
        state = sorted(assigned(statement.body) & (statement.head | statement.needed))
        reads = sorted((used([statement]) - assigned([statement])) & self._bound)
        labels = sorted(escapes(statement.body) & self._tracked)
        self._bind(set(state))
        trips = "None"
        if counts:
            trips = f"len(range({', '.join(self._value(bound) for bound in (statement.start, statement.stop, statement.step))}))"
        plan = self._turns(statement, state, reads, labels)
        masks = [_MASKS.get(self._left[label], self._left[label]) for label in labels]
        targets = [*state, *(f"p_{label}" for label in labels), end := self._fresh("m")]
        given = ", ".join([*state, *masks])
        tables = ", ".join(self._tables(statement))
        self._line(f"{', '.join(targets)} = run({plan}, {_MASKS.get(self._mask, self._mask)}, shape, [{given}], [{', '.join(reads)}], [{tables}], {trips})")
        self._left.update((label, f"p_{label}") for label in labels)
        self._mask = end if counts else NONE
        self._has_loops = True

    def _turns(self, statement, state, reads, labels):
        """Writes the function for some turns of a loop, and returns the name of its plan."""
        outer = self._lines, self._depth, self._mask, self._left, self._bound, self._has_loops, self._has_iteration, self._sums
        self._lines, self._depth, self._mask, self._has_loops, self._has_iteration = [], 2, "act", False, False
        self._left = self._left | {label: f"p_{label}" for label in labels}
        # Elements that are left may have been moved together.
        self._bound, self._sums = {*state, *reads}, set()
        masks = [f"p_{label}" for label in labels]
        if type(statement) is Count:
            self._index(statement)
        self._statements(statement.body)
        self._line(f"act = {'none(act)' if self._mask is NONE else self._mask}")
        for label, mask in zip(labels, masks):
            if self._left[label] != mask:
                self._line(f"{mask} = {_MASKS.get(self._left[label], self._left[label])}")
        body, has_loops, has_iteration = self._lines, self._has_loops, self._has_iteration
        self._lines, self._depth = [], 1
        self._line("shape = act.shape")
        if has_iteration:
            self._line("first = spread_view(base, shape)")
        self._line("for turn in range(turns):")
        if has_iteration:
            self._line("    iteration = add(first, turn)")
        self._lines += body
        results = [f"spread({name}, {self._dtype(name)}, shape)" for name in state] + [f"spread({mask}, bool, shape)" for mask in masks]
        self._line(f"return {', '.join([*results, 'act', 'number(act)'])}")
        name = f"turns{len(self.plans)}"
        self._finish(name, ", ".join(["turns", "base", "act", *state, *masks, *reads, *self._tables(statement)]))
        dtypes = [concrete(self._known.known[one].kind) for one in state] + [BOOL] * len(masks)
        self.plans.append((name, dtypes, _work(statement.body), has_loops, has_iteration))
        self._lines, self._depth, self._mask, self._left, self._bound, self._has_loops, self._has_iteration, self._sums = outer
        return f"plan{len(self.plans) - 1}"

    def _tables(self, statement):
        """The names of the arrays that a loop needs."""
        tables = {one.extra.name for one in walk([statement]) if type(one) is Assign and one.op == "load"}
        return sorted(tables | self._stored)

    def _index(self, count):
        """The number of a turn of a loop over a range."""
        self._has_iteration = True
        text = "iteration"
        if count.step != Const(1):
            text = f"multiply({text}, {self._value(count.step)})"
        if count.start != Const(0):
            text = f"add({text}, {self._value(count.start)})"
        self._line(f"{count.index} = cast({text}, {self._dtype(count.index)})")
        self._bound.add(count.index)


# The mask of elements that leave for where all are expected, so that nobody needs to know which ones.
_ELSEWHERE = "elsewhere"
_MASKS = {ALL: "None", NONE: "False"}

# Operations that make sums of multiples of sums.
_SUMS = {"add": " + ", "subtract": " - ", "multiply": "*", "negative": "-", "copy": ""}
_INT64 = np.dtype(np.int64)


def _assigned_once(statements):
    """The variables that one statement alone changes."""
    counts = collections.Counter(one.target for one in walk(statements) if type(one) is Assign)
    return {name for name, count in counts.items() if count == 1}


def _work(statements):
    """About how many operations a turn has."""
    total = 0
    for statement in statements:
        if type(statement) is Assign:
            total += statement.op != "copy"
        elif type(statement) is If:
            total += 2 + _work(statement.then) + _work(statement.orelse)
        elif type(statement) is Count:
            total += _work(statement.body) * len(statement.numbers() or range(8))
        elif type(statement) in (Block, Loop):
            total += _work(statement.body)
    return total


_WRITERS = {
    Assign: Emitter._assign, If: Emitter._if, Block: Emitter._block, Loop: Emitter._run, Count: Emitter._count,
    Leave: Emitter._leave, Store: Emitter._store,
}  # fmt: skip
