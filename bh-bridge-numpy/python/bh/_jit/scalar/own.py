"""Writes of a function to arrays become results. Elements that each index of a loop has for itself become variables, whose last values are
written; values for other subscripts are written after the loop over all indices."""

import dataclasses

import numpy as np

from ..indices import Index
from .ir import Assign, Block, Const, Count, If, Loop, Store, Unsupported, Var, assigned, escapes, parts, walk
from .kinds import BOOL
from .runtime import are_apart

# The operations of sums of multiples of indices.
_SUMS = {"add", "subtract", "multiply", "negative", "copy", "positive"}


@dataclasses.dataclass(slots=True)
class Own:
    """An array's elements: its name and type, and subscripts as multiples of the indices and a number. `reads`: are they needed
    as they were?"""

    table: str
    dtype: object
    key: tuple
    reads: bool

    def places(self, shape):
        """The subscripts for a loop over a shape."""
        return tuple(Index(shape, factors, offset) if any(factors) else offset for factors, offset in self.key)

    def view(self, array, shape):
        """The elements in an array, if each index has one of its own."""
        places = self.places(shape)
        if not are_apart(places, shape):
            return None
        try:
            return array[places]
        except IndexError:
            return None


@dataclasses.dataclass(slots=True)
class Put:
    """Values for elements of an array at computed subscripts, or to be added to these, one for each index, or for those of a mask: the variables
    that hold them."""

    table: str
    adds: bool
    key: list
    value: str
    mask: str

    def names(self):
        """All variables."""
        return [*self.key, self.value, *([self.mask] if self.mask else [])]


def with_own(function):
    """The function without statements that write to arrays; the elements that indices have for themselves, whose new values are results
    behind its own; and what it puts elsewhere, whose variables are the last results. Elements that are read as they were are its last
    parameters."""
    stores = [one for one in walk(function.body) if type(one) is Store]
    if not stores:
        return function, [], []
    sums, owns, elsewhere = _sums(function), {}, set()
    for store in stores:
        key = tuple(_sum(part, sums, function) for part in store.key)
        own = owns.setdefault(store.table.name, Own(store.table.name, store.table.dtype, key, False))
        if None in key or own.key != key:
            elsewhere.add(store.table.name)
    owns = {name: own for name, own in owns.items() if name not in elsewhere}
    _note_reads(function, owns, sums)
    puts = _Puts(function, elsewhere)
    body = [*puts.begin, *_without_stores(function.body, owns, puts)]
    parameters = [*function.parameters, *(variable(own.table) for own in owns.values() if own.reads)]
    results = [*function.results, *map(variable, owns), *(name for put in puts.all for name in put.names())]
    tables = {name: table for name, table in function.tables.items() if name not in owns and name not in elsewhere}
    return dataclasses.replace(function, parameters=parameters, body=body, results=results, tables=tables), list(owns.values()), puts.all


class _Puts:
    """Values written at computed subscripts, in the order of the statements: each has variables, which hold nothing at the beginning."""

    def __init__(self, function, tables):
        loops = [one for one in walk(function.body) if type(one) in (Loop, Count)]
        if any(type(one) is Store and one.table.name in tables for loop in loops for one in walk(loop.body)):
            raise Unsupported("an array that a loop writes to at computed subscripts")
        if any(type(one) is Assign and one.op == "load" and one.extra.name in tables for one in walk(function.body)):
            raise Unsupported("elements of an array at other subscripts than those that are written")
        sure = [*map(id, _sure(function.body))]
        self.all, self.begin, self._of = [], [], {}
        for number, store in enumerate(one for one in walk(function.body) if type(one) is Store and one.table.name in tables):
            name = f"put{number}"
            key = [f"{name}_{axis}" for axis in range(len(store.key))]
            put = Put(store.table.name, store.adds, key, f"{name}_value", "" if id(store) in sure else f"{name}_on")
            self.all.append(put)
            self._of[id(store)] = put
            if put.mask:
                starts = [*((part, 0) for part in key), (put.value, store.table.dtype.type(0).item()), (put.mask, False)]
                self.begin += [Assign(target, "copy", (Const(value),), store.line) for target, value in starts]

    def written(self, store):
        """The statements in place of one that writes; None if it writes to an element that its index has for itself."""
        put = self._of.get(id(store))
        if put is None:
            return None
        done = [Assign(target, "cast", (part,), store.line, np.dtype(np.int64)) for target, part in zip(put.key, store.key)]
        done.append(_converted(put.value, store))
        return done + ([Assign(put.mask, "copy", (Const(True),), store.line)] if put.mask else [])


def variable(table):
    """The name of the variable for an element of an array."""
    return f"own_{table}"


def _note_reads(function, owns, sums):
    """Notes which elements are needed as they were before the function: unless they are written first, and always."""
    for one in walk(function.body):
        if type(one) is Assign and one.op == "load" and one.extra.name in owns:
            own = owns[one.extra.name]
            if tuple(_sum(part, sums, function) for part in one.args) != own.key:
                raise Unsupported("elements of an array at other subscripts than those that are written")
            own.reads = True
        if type(one) is Store and one.adds and one.table.name in owns:
            owns[one.table.name].reads = True
    sure = {store.table.name for store in _sure(function.body)}
    for own in owns.values():
        own.reads |= own.table not in sure


def _sure(statements):
    """The statements that write to arrays and that everybody comes to."""
    for one in statements:
        if type(one) is Store:
            yield one
        elif type(one) is Block:
            yield from _sure(one.body)
        if escapes([one]) or type(one) in (If, Loop) and any(escapes(part) for part in parts(one)):
            return


def _sums(function):
    """The variables that are sums of multiples of the function's indices, with the multiples and a number."""
    count = len(function.parameters)
    found = {name: (tuple(int(at == axis) for at in range(count)), 0) for axis, name in enumerate(function.parameters)}
    targets = [one.target for one in walk(function.body) if type(one) is Assign]
    once = {target for target in targets if targets.count(target) == 1} - {one.index for one in walk(function.body) if type(one) is Count}
    for name in assigned(function.body) & found.keys():
        del found[name]
    for one in walk(function.body):
        if type(one) is Assign and one.target in once and one.op in _SUMS:
            value = _combined(one.op, [_sum(arg, found, function) for arg in one.args])
            if value is not None:
                found[one.target] = value
    return found


def _sum(value, sums, function):
    if type(value) is Const:
        return ((0,) * len(function.parameters), value.value) if type(value.value) is int else None
    return sums.get(value.name)


def _combined(op, values):
    if None in values:
        return None
    (factors, offset), *rest = values
    if not rest:
        sign = -1 if op == "negative" else 1
        return tuple(sign * factor for factor in factors), sign * offset
    ((others, other),) = rest
    if op != "multiply":
        sign = 1 if op == "add" else -1
        return tuple(a + sign * b for a, b in zip(factors, others)), offset + sign * other
    if any(factors) and any(others):
        return None
    factors, by = (factors, other) if any(factors) else (others, offset)
    return tuple(factor * by for factor in factors), offset * other


def _without_stores(statements, owns, puts):
    done = []
    for one in statements:
        if type(one) is Store:
            done += puts.written(one) or _stored(one)
        elif type(one) is Assign and one.op == "load" and one.extra.name in owns:
            done.append(Assign(one.target, "copy", (Var(variable(one.extra.name)),), one.line))
        elif type(one) is If:
            done.append(dataclasses.replace(one, then=_without_stores(one.then, owns, puts), orelse=_without_stores(one.orelse, owns, puts)))
        elif parts(one):
            done.append(dataclasses.replace(one, body=_without_stores(one.body, owns, puts)))
        else:
            done.append(one)
    return done


def _converted(target, store):
    """A variable gets the value that is written, in the array's type."""
    if store.table.dtype == BOOL:
        return Assign(target, "truth", (store.value,), store.line)
    return Assign(target, "cast", (store.value,), store.line, store.table.dtype)


def _stored(store):
    """The variable of an element gets a value."""
    target, dtype = variable(store.table.name), store.table.dtype
    if not store.adds:
        return [_converted(target, store)]
    value = f"{target}_added"
    return [_converted(value, store), Assign(target, "either" if dtype == BOOL else "add", (Var(target), Var(value)), store.line)]
