"""Elements of arrays that each index of a loop has for itself become variables: what is written there is a result."""

import dataclasses

from .._indices import Index
from .ir import Assign, Block, Const, Count, If, Loop, Store, Unsupported, Var, assigned, escapes, parts, walk
from .kinds import BOOL
from .runtime import are_apart

# What sums of multiples of indices are made of.
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


def with_own(function):
    """The function without statements that write to arrays, and the elements that it writes, whose new values are its last results;
    those that are read as they were are its last parameters."""
    stores = [one for one in walk(function.body) if type(one) is Store]
    if not stores:
        return function, []
    sums, owns = _sums(function), {}
    for store in stores:
        key = tuple(_sum(part, sums, function) for part in store.key)
        own = owns.setdefault(store.table.name, Own(store.table.name, store.table.dtype, key, False))
        if None in key or own.key != key:
            raise Unsupported("elements of an array at other subscripts than those that are written")
    _note_reads(function, owns, sums)
    body = _without_stores(function.body, owns)
    parameters = [*function.parameters, *(variable(own.table) for own in owns.values() if own.reads)]
    results = [*function.results, *map(variable, owns)]
    tables = {name: table for name, table in function.tables.items() if name not in owns}
    return dataclasses.replace(function, parameters=parameters, body=body, results=results, tables=tables), list(owns.values())


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
        if type(one) is Store and one.adds:
            owns[one.table.name].reads = True
    sure = set(_surely_written(function.body))
    for own in owns.values():
        own.reads |= own.table not in sure


def _surely_written(statements):
    """The arrays of whose elements all are written by statements that everybody comes to."""
    for one in statements:
        if type(one) is Store:
            yield one.table.name
        elif type(one) is Block:
            yield from _surely_written(one.body)
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


def _without_stores(statements, owns):
    done = []
    for one in statements:
        if type(one) is Store:
            done += _stored(one)
        elif type(one) is Assign and one.op == "load" and one.extra.name in owns:
            done.append(Assign(one.target, "copy", (Var(variable(one.extra.name)),), one.line))
        elif type(one) is If:
            done.append(dataclasses.replace(one, then=_without_stores(one.then, owns), orelse=_without_stores(one.orelse, owns)))
        elif parts(one):
            done.append(dataclasses.replace(one, body=_without_stores(one.body, owns)))
        else:
            done.append(one)
    return done


def _stored(store):
    """The variable of an element gets a value."""
    target, dtype = variable(store.table.name), store.table.dtype
    cast = ("truth", None) if dtype == BOOL else ("cast", dtype)
    if not store.adds:
        return [Assign(target, cast[0], (store.value,), store.line, cast[1])]
    value = f"{target}_added"
    return [
        Assign(value, cast[0], (store.value,), store.line, cast[1]),
        Assign(target, "either" if dtype == BOOL else "add", (Var(target), Var(value)), store.line),
    ]
