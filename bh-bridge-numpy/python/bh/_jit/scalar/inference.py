"""Facts about each variable: its type, whether it is one constant, and whether it is the same for all elements."""

from dataclasses import dataclass

import numpy as np

from . import liveness
from .flattening import flattened
from .ir import Assign, Block, Const, Count, If, Leave, Loop, Store, Unsupported, Var, escapes
from .kinds import concrete, join, kind_of, letter, pythons
from .operations import OPERATIONS
from .simplify import simplified


@dataclass(slots=True)
class Known:
    """Of a variable. `told`: its type where truth values are NumPy's, which results have. `constant`: its only value, if all that it gets is one constant. `varies`: elements may differ."""

    kind: object
    told: object
    constant: object
    varies: bool


class Inference:
    """Finds what is known of the variables of a function, whose parameters have these types."""

    def __init__(self, function, kinds):
        self.known = {name: Known(pythons(kind), kind, None, True) for name, kind in kinds.items()}
        self._function = function
        # Are there elements that do not come here?
        self._apart = False
        self._changed = True
        while self._changed:
            self._changed = False
            self._walk(function.body)

    def kind(self, value):
        """The type of a value; None while it is not known."""
        if type(value) is Const:
            return kind_of(value.value)
        found = self.known.get(value.name)
        return found and found.kind

    def told(self, value):
        """Its type where truth values are NumPy's."""
        return kind_of(value.value) if type(value) is Const else self.known[value.name].told

    def varies(self, value):
        """May elements have other values?"""
        return type(value) is Var and (value.name not in self.known or self.known[value.name].varies)

    def is_serial(self, count):
        """Is it a loop that all elements go through together, from its first number to its last one?"""
        return not escapes(count.body) and not any(map(self.varies, (count.start, count.stop, count.step)))

    def is_common(self, branch):
        """Do all elements that come to a branch take the same way, and come out of it?"""
        return not self.varies(branch.condition) and not escapes([branch])

    def _learn(self, name, kind, told, constant, varies):
        before = self.known.get(name)
        if before is None:
            self.known[name] = Known(kind, told, constant, varies)
            self._changed = True
            return
        after = (join(before.kind, kind), join(before.told, told), constant if constant == before.constant else None, before.varies or varies)
        if after != (before.kind, before.told, before.constant, before.varies):
            before.kind, before.told, before.constant, before.varies = after
            self._changed = True

    def _walk(self, statements):
        for statement in statements:
            _WALKS[type(statement)](self, statement)

    def _assign(self, statement):
        kinds = [self.kind(arg) for arg in statement.args]
        if any(kind is None for kind in kinds) or not statement.live:
            # A turn of a loop comes first; its values are known in the next round.
            return
        operation = OPERATIONS[statement.op]
        try:
            told = operation.rule(statement.op, [self.told(arg) for arg in statement.args], statement.args, statement.extra)[1]
            kind = pythons(operation.rule(statement.op, kinds, statement.args, statement.extra)[1])
        except Unsupported as reason:
            raise type(reason)(str(reason), statement.line) from None
        constant = statement.args[0] if statement.op == "copy" and type(statement.args[0]) is Const else None
        common = is_common(statement) and not any(map(self.varies, statement.args))
        self._learn(statement.target, kind, told, constant, not common or self._apart and statement.kept)

    def _if(self, statement):
        before = self._apart
        inner = before or not self.is_common(statement)
        for part in (statement.then, statement.orelse):
            self._apart = inner
            self._walk(part)
        self._apart = before or inner and bool(escapes([statement]))

    def _block(self, statement):
        before = self._apart
        self._walk(statement.body)
        self._apart = before or self._apart and bool(escapes([statement]))

    def _loop(self, statement):
        self._vary(statement)
        self._apart = True
        self._walk(statement.body)

    def _count(self, statement):
        kinds = [self.kind(bound) for bound in (statement.start, statement.stop, statement.step)]
        if any(kind is None for kind in kinds):
            return
        if any(concrete(kind).kind not in "iub" for kind in kinds):
            raise Unsupported("a range has whole numbers as bounds", statement.line)
        before, serial = self._apart, self.is_serial(statement)
        kind = join(join(kinds[0], kinds[2]), int)
        self._learn(statement.index, kind, kind, None, not serial)
        if not serial:
            self._vary(statement)
            self._apart = True
        self._walk(statement.body)
        self._apart = before or not serial

    def _store(self, statement):
        kinds = [self.kind(part) for part in (*statement.key, statement.value)]
        if any(kind is None for kind in kinds):
            return
        *places, _ = map(letter, kinds)
        if set(places) - {"i", "u"}:
            raise Unsupported("subscripts have to be whole numbers", statement.line)
        if not np.can_cast(concrete(kinds[-1]), statement.table.dtype, "same_kind"):
            raise Unsupported(f"an element of type {statement.table.dtype} does not take {concrete(kinds[-1])}", statement.line)

    def _vary(self, statement):
        """Marks the variables of a loop whose number of iterations differs between elements: their values differ too."""
        for name in statement.head:
            found = self.known.get(name)
            if found is not None and not found.varies:
                found.varies = self._changed = True


def is_common(statement):
    """Is it an operation that gives one value for all elements if its operands are such?"""
    args = statement.args
    if statement.op in ("floor_divide", "remainder"):
        return type(args[1]) is Const and bool(args[1].value)
    return statement.op == "copy" or OPERATIONS[statement.op].scalar is not None


_WALKS = {
    Assign: Inference._assign, If: Inference._if, Block: Inference._block, Loop: Inference._loop, Count: Inference._count,
    Leave: lambda self, statement: None, Store: Inference._store,
}  # fmt: skip


def infer(function, kinds, flat=True):
    """The function simplified by what is known of it, and the knowledge. `flat`: loops in loops become one where they can."""
    liveness.analyse(function, check=True)
    is_flat = not flat
    while True:
        inference = Inference(function, kinds)
        other, changed = simplified(function, inference)
        if not changed and not is_flat:
            other, changed = flattened(function, inference)
            is_flat = True
        if not changed:
            return function, inference
        function = other
        liveness.analyse(function)
