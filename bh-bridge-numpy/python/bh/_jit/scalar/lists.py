"""Reads lists of a bounded length: each item is a variable, and a computed subscript chooses among them.

The most items that a list may have are known before the function runs: each `append` counts with the iterations of the loops around it since the
list was made, unless a test of the list's length is around it.
"""

import ast
import math

import numpy as np

from . import listing
from .forms import MISSING, NOTHING, Lists, Objects, View, form_of
from .ir import Const, Count, Unsupported, Var
from .names import Static
from .places import MOST

# The most items of a loop that are read one after the other.
UNROLLED = 16
_FUNCTIONS = {"sort": listing.sort, "reverse": listing.reverse, "insert": listing.insert, "extend": listing.extend, "count": listing.count}
# An array of one number, whose subscript tells whether those of lists are in range.
ONE = np.zeros(1, np.int64)


class ListsOf:
    """The part of a reader that reads lists."""

    def is_list(self, value):
        return type(value) is View and type(value.form) is Lists

    def present(self, view):
        """A list as it is known now."""
        return View(self.form(view), view.name, view.key, view.steps, view.fresh, view.copied)

    def sequence(self, value, line):
        """The values of a sequence whose length is known while the function is read; else None."""
        if type(value) is tuple:
            return list(value)
        if type(value) is Static and type(value.value) in (list, range):
            return list(self.names.items(value.value)) if type(value.value) is list else list(map(Const, value.value))
        if self.is_object(value) and type(value) is Static and isinstance(value.value, tuple):
            return [self.names.attribute(value.value, name) for name in type(value.value)._fields]
        if self.is_list(value):
            view = self.present(value)
            if view.form.length is None or view.form.length is NOTHING:
                return None
            return [self.settled(self.value_at(self.item_place(view, at)), line) for at in range(view.form.length)]
        if type(value) is View and any(issubclass(cls, tuple) for cls in value.form.classes()):
            return self.fields(value, line) and list(self.fields(value, line))
        return None

    def known_length(self, value):
        """How many values `sequence` gives; None for none."""
        found = []
        self.captured(lambda: found.append(self.sequence(value, 0)))
        return None if found[0] is None else len(found[0])

    # Making lists

    def new_list(self, values, line):
        """A list of these values."""
        view = View(Lists(NOTHING, len(values), len(values)), self.fresh("o"), self.key("list"), fresh=True)
        form = NOTHING
        for value in values:
            self.owned(value, line)
            form = self.learn((*view.key, "item"), value, "an item", line)
        return self._filled(view, Lists(form, len(values), len(values)), values, line)

    def _filled(self, view, form, values, line, length=None):
        self.facts.least(self.facts.depths, view.key, len(self.around))
        view.form = self.facts.learn(view.key, form)
        if view.form.length is None:
            self.assign(f"{view.name}__len", length or Const(len(values)), line)
        for at in range(view.form.capacity):
            place = self.item_place(view, at)
            if at < len(values):
                self.put(place, values[at], line)
            else:
                self.blank(place, line)
        self.facts.least(self.facts.begins, view.place(), form.capacity)
        return view

    def repeated(self, values, times, line):
        """A list of values, repeated."""
        if type(times) is Const:
            return self.new_list(values * times.value, line)
        least, most = self.bounds.get(getattr(times, "name", None), (None, None))
        if most is None:
            return self.missing("a list of a length that depends on data without a bound that is known: make it longer, and count its items", line)
        self._checked(len(values) * most, "a list", line)
        place = View(form_of(values[0]), self.fresh("t"), self.key("value"))
        if len(values) != 1:
            raise Unsupported("several items, repeated as often as data say", line)
        view = View(Lists(NOTHING, max(most, 0), None), self.fresh("o"), self.key("list"), fresh=True)
        place.form = self.learn((*view.key, "item"), values[0], "an item", line)
        length = times if least is not None and least >= 0 else self.operation("max", (times, Const(0)), line)
        return self._filled(view, Lists(place.form, max(most, 0), None), [values[0]] * max(most, 0), line, length)

    def _checked(self, count, what, line):
        if count > MOST:
            raise Unsupported(f"{what} of up to {count} items: {MOST} are the most", line)
        return count

    def copy_of(self, value, line):
        """A new list of a sequence's values."""
        values = self.sequence(value, line)
        if values is not None:
            return self.new_list(values, line)
        if not self.is_list(value):
            raise Unsupported("a list of a value that is no sequence", line)
        return self.copied(self.present(value), line)

    def comprehension(self, node):
        """A list comprehension: the items of a sequence of known length, else a function that appends."""
        (part, *others), line = node.generators, node.lineno
        if not others and not part.ifs:
            seen = self.glimpse(part.iter)
            count = self.known_length(seen)
            if count is not None and count <= UNROLLED:
                values = self.sequence(self.expression(part.iter), line)
                if node not in self.comprehensions:
                    item = ast.Assign([part.target], ast.Name("item_here", ast.Load()))
                    self.comprehensions[node] = _function(node, ["item_here"], [item, ast.Return(node.elt)])
                item = self.local(self.comprehensions[node])
                return self.new_list([self.called(item, (value,), {}, line) for value in values], line)
        if node not in self.comprehensions:
            name = "items_made_here"
            body = [ast.Expr(ast.Call(ast.Attribute(ast.Name(name, ast.Load()), "append", ast.Load()), [node.elt], []))]
            for part in reversed(node.generators):
                for test in reversed(part.ifs):
                    body = [ast.If(test, body, [])]
                body = [ast.For(part.target, part.iter, body, [])]
            body = [ast.Assign([ast.Name(name, ast.Store())], ast.List([], ast.Load())), *body, ast.Return(ast.Name(name, ast.Load()))]
            self.comprehensions[node] = _function(node, [], body)
        return self.called(self.local(self.comprehensions[node]), (), {}, node.lineno)

    # Items

    def position(self, view, index, line, label="list"):
        """The place of an item of a list, within its room; a subscript out of range is an error when it is read."""
        length, index = self.length(view), self.number(index, line)
        if type(index) is Const and type(length) is Const:
            if not isinstance(index.value, int):
                raise Unsupported("subscripts have to be whole numbers", line)
            if not -length.value <= index.value < length.value:
                return self.missing("a list has no item at this place", line)
            return Const(index.value % length.value)
        least, most = self.interval(index)
        if least is not None and least >= 0 and most is not None and type(length) is Const and most < length.value:
            return index
        if type(index) is Var and (least is None or most is None):
            # An error where it is no whole number.
            index = self.operation("bitwise_and", (index, Const(-1)), line)
        if least is None or least < 0:
            below = self.operation("less", (index, Const(0)), line)
            index = self.operation("select", (below, self.operation("add", (index, length), line), index), line)
        inside = self.operation("both", (self.operation("greater_equal", (index, Const(0)), line), self.operation("less", (index, length), line)), line)
        outside = self.operation("select", (inside, Const(0), Const(1)), line)
        return self.operation("add", (index, self.failing(outside, label, line)), line)

    def failing(self, fails, label, line):
        """0, or an error when the result is read, for 1: one that names the lists for which there are such tests."""
        table = self.table(Static(ONE), (fails,), line, label)
        self.labels[label] = None
        table.label = "_or_".join(self.labels)
        self.tests.append(table)
        for other in self.tests:
            other.label = table.label
        return self.operation("load", (fails,), line, table)

    def item(self, view, index, line, label="list", checked=False):
        """An item of a list."""
        view = self.present(view)
        if view.form.item is NOTHING or not view.form.capacity:
            # Nobody comes here, or it is an error.
            self.empty = True
            return self.failing(Const(1), label, line) if self.facts.final else MISSING
        place = index if checked else self.position(view, index, line, label)
        if place is MISSING:
            return MISSING
        if type(place) is Const:
            return self.settled(self.value_at(self.item_place(view, place.value)), line)
        target = View(view.form.item, self.fresh("t"), self.key("item"))
        names = [list(self.leaves(view.form.item, self.item_place(view, at).name)) for at in range(view.form.capacity)]
        for leaf, *found in zip(self.leaves(target.form, target.name), *names):
            self.assign(leaf, self._chosen(place, list(map(Var, found)), line), line)
        return self.value_at(target, fresh=not self.facts.is_mutable(target.form), copied=True)

    def _chosen(self, place, values, line):
        """One of some values, by the bits of a place."""
        if len(values) == 1:
            # The place may be an error.
            return self.operation("select", (self.operation("equal", (place, Const(0)), line), *values, *values), line)
        bit = 1
        while len(values) > 1:
            odd = self.operation("truth", (self.operation("bitwise_and", (place, Const(bit)), line),), line)
            pairs = [self.operation("select", (odd, other, one), line) for one, other in zip(values[::2], values[1::2])]
            values = pairs + values[len(pairs) * 2 :]
            bit *= 2
        return values[0]

    def chosen_of(self, values, index, line, label):
        """One of a sequence's values, by a subscript that depends on elements."""
        if all(type(value) is Const for value in values) and len(values) > UNROLLED:
            return self._loaded(Static(np.asarray([value.value for value in values])), (index,), line)
        return self.item(self.new_list(values, line), index, line, label)

    def store_item(self, view, index, value, line, label="list"):
        """Gives an item of a list a value."""
        view = self.changing(view, line)
        place = self.position(view, index, line, label)
        self.owned(value, line)
        if place is MISSING:
            return
        item = self.item_place(view, 0)
        item.form = self.grown(item, value, "an item", line)
        view = self.present(view)
        self._set(view, place, value, line)

    def _set(self, view, place, value, line):
        if type(place) is Const:
            if place.value < view.form.capacity:
                self.put(self.item_place(view, place.value), value, line)
            return
        temporary = View(view.form.item, self.fresh("t"), self.key("stored"))
        self.put(temporary, value, line)
        self._forget(self.item_place(view, 0))
        stored = list(self.leaves(temporary.form, temporary.name))
        for at in range(view.form.capacity):
            here = self.operation("equal", (place, Const(at)), line)
            for leaf, new in zip(self.leaves(view.form.item, self.item_place(view, at).name), stored):
                self.assign(leaf, self.operation("select", (here, Var(new), Var(leaf)), line), line)

    def _forget(self, place):
        """Notes that the numbers of a place are several."""
        if place.form is None:
            self.facts.note_number(place.place(), None)
        elif type(place.form) is tuple:
            for part in self.parts(place):
                self._forget(part)
        elif type(place.form) is Objects:
            for cls, attributes in place.form.variants:
                for name, _ in attributes:
                    self._forget(self.part(place, cls, name))
        elif type(place.form) is Lists:
            self._forget(self.item_place(place, 0))

    def changing(self, view, line, grows=False):
        """A list that changes, and may grow or shrink."""
        self.effects += 1
        if view.copied:
            raise Unsupported("a change of a list that is one of several", line)
        if view.place() in self.frozen or grows and view.place() in self.passed:
            raise Unsupported("a list that changes while a loop goes through it", line)
        return self.present(view)

    # Lists that grow and shrink

    def append(self, view, value, line):
        """Puts an item at the end."""
        view = self.changing(view, line, True)
        self.owned(value, line)
        item = self.item_place(view, 0)
        item.form = self.grown(item, value, "an item", line)
        most = self._checked(self._most(view, line), "a list", line)
        self.facts.grow(view, Lists(NOTHING, most, None))
        view = self.present(view)
        length = self.length(view)
        self._set(view, length, value, line)
        if type(length) is Var:
            self.assign(length.name, self.operation("add", (length, Const(1)), line), line)

    def _most(self, view, line):
        """The most items that a list may have behind this `append`."""
        place = view.place()
        guard = next((guard for guard in reversed(self.guards) if guard.place == place and place not in self.facts.replaced), None)
        since = guard.depth if guard else self.facts.depths.get(view.key, 0)
        for turns, at in self.around[since:]:
            if turns is None:
                text = f"a list that may grow without a bound in the loop of line {at}: append where 'len(…)' is less than a constant"
                self.missing(text, line)
        times = math.prod(turns or 1 for turns, _ in self.around[since:])
        begins = self.facts.begins.get(place, 0)
        if guard:
            guard.used += times
            self.guarded[place] = max(self.guarded.get(place, 0), guard.most - 1 + guard.used)
        else:
            self.appended[place] = self.appended.get(place, 0) + times
        return max(begins, self.guarded.get(place, 0)) + self.appended.get(place, 0)

    def pop(self, view, line, label):
        """Takes the last item away."""
        view = self.changing(view, line, True)
        self.facts.grow(view, Lists(NOTHING, 0, None))
        view = self.present(view)
        if type(length := self.length(view)) is Const:
            return MISSING
        if not view.form.capacity:
            return self.item(view, Const(-1), line, label)
        # The place is an error for a list without items, also where nobody needs the item.
        place = self.position(view, Const(-1), line, label)
        value = self.item(view, place, line, checked=True)
        self.assign(length.name, place, line)
        return value

    def clear(self, view, line):
        view = self.changing(view, line, True)
        self.facts.grow(view, Lists(NOTHING, 0, None))
        self.assign(f"{view.name}__len", Const(0), line)

    def method_of_list(self, view, name, args, line, label):
        """A method of a list."""
        if name == "append" and len(args) == 1:
            self.append(view, args[0], line)
        elif name == "clear" and not args:
            self.clear(view, line)
        elif name == "pop" and (not args or args == (Const(-1),)):
            return self.pop(view, line, label)
        elif name == "pop" and len(args) == 1:
            return self.called(listing.pop, (view, *args), {}, line)
        elif name == "copy" and not args:
            return self.copy_of(view, line)
        elif name in _FUNCTIONS:
            return self.called(_FUNCTIONS[name], (view, *args), {}, line)
        else:
            raise Unsupported(f"method '{name}' of a list", line)
        return Static(None)

    def sliced(self, value, node):
        """A part of a list, between bounds that are known."""
        values = self.sequence(value, node.lineno)
        bounds = [None if part is None else self.expression(part) for part in (node.lower, node.upper, node.step)]
        if values is None or any(type(bound) not in (Const, type(None)) for bound in bounds):
            raise Unsupported("a part of a list with bounds that depend on data", node.lineno)
        return self.new_list(values[slice(*(bound and bound.value for bound in bounds))], node.lineno)

    # Loops over lists

    def for_each(self, node, view, broken):
        """A loop over a list whose length varies, or is long."""
        line, view = node.lineno, self.present(view)
        index = self.fresh("i")
        self.bounds[index] = 0, max(view.form.capacity - 1, 0)
        self.passed.append(view.place())
        stop = self.operation("copy", (self.length(view),), line)
        body = self.captured(lambda: self.looped(view.form.capacity, line, lambda: self._turn(node, self.item(view, Var(index), line, checked=True), broken)))
        self.passed.remove(view.place())
        return Count(index, Const(0), stop, Const(1), body, line)

    def is_subscripted(self, node, count):
        """Is a loop over few numbers around subscripts of lists by its variable? It is read once for each number then."""
        if self.copies * count > UNROLLED or not isinstance(node.target, ast.Name):
            return False
        for part in ast.walk(ast.Module(node.body, [])):
            if isinstance(part, ast.Subscript) and any(isinstance(one, ast.Name) and one.id == node.target.id for one in ast.walk(part.slice)):
                value = self.glimpse(part.value)
                if type(value) is tuple or self.is_list(value) or type(value) is Static and type(value.value) is list:
                    return True
        return False

    def glimpse(self, node):
        """The value of an expression that nobody computes; None where it has none."""
        before = len(self.gaps)
        found = []
        try:
            self.captured(lambda: found.append(self.expression(node)))
        except Unsupported:
            pass
        del self.gaps[before:]
        return found[0] if found else None

    # Functions of lists

    def of_lists(self, function, args, line):
        """A built-in function with a list, an iterator or a class among its arguments; None where it is another one."""
        work = BUILTINS.get(function)
        return None if work is None else work(self, args, line)


def _fold(name, varying):
    def work(reader, args, line):
        from . import functions

        if not args or type(args[0]) not in (View, Static) or type(args[0]) is Static and type(args[0].value) is not list:
            return None
        values = reader.sequence(args[0], line)
        if values is None or len(values) < 2 or View in map(type, values):
            return reader.called(varying, args, {}, line)
        return functions.of(name)(reader, (tuple(values), *args[1:]), line)

    return work


def _length(reader, args, line):
    return reader.length(reader.present(args[0])) if len(args) == 1 and reader.is_list(args[0]) else _known_length(reader, args, line)


def _known_length(reader, args, line):
    if len(args) == 1 and reader.has_method(args[0], "__len__"):
        return reader.method(args[0], "__len__", (), {}, line)
    values = reader.sequence(args[0], line) if len(args) == 1 and type(args[0]) is not tuple else None
    return None if values is None else Const(len(values))


def _zip(reader, args, line):
    parts = [reader.sequence(arg, line) for arg in args]
    if None in parts:
        raise Unsupported("'zip' of a value without a known length", line)
    return tuple(zip(*parts))


def _enumerate(reader, args, line):
    values = reader.sequence(args[0], line)
    if values is None or len(args) > 2 or len(args) == 2 and type(args[1]) is not Const:
        raise Unsupported("'enumerate' of a value without a known length", line)
    first = args[1].value if len(args) == 2 else 0
    return tuple((Const(first + at), value) for at, value in enumerate(values))


def _reversed(reader, args, line):
    values = reader.sequence(args[0], line)
    if values is None:
        raise Unsupported("'reversed' of a value without a known length", line)
    return tuple(values[::-1])


def _range(reader, args, line):
    if not all(type(arg) is Const for arg in args):
        raise Unsupported("a range with bounds that depend on data, outside of 'for'", line)
    return tuple(map(Const, range(*(arg.value for arg in args))))


def _tuple(reader, args, line):
    values = reader.sequence(args[0], line) if args else []
    if values is None:
        raise Unsupported("a tuple of a list whose length depends on data", line)
    return tuple(values)


BUILTINS = {
    len: _length, zip: _zip, enumerate: _enumerate, reversed: _reversed, range: _range, tuple: _tuple,
    list: lambda reader, args, line: reader.copy_of(args[0], line) if args else reader.new_list([], line),
    sorted: lambda reader, args, line: reader.called(listing.sorted_list, args, {}, line) if len(args) == 1 else None,
    sum: _fold(sum, listing.total), min: _fold(min, listing.least), max: _fold(max, listing.greatest),
    any: lambda reader, args, line: reader.called(listing.any_of, args, {}, line),
    all: lambda reader, args, line: reader.called(listing.all_of, args, {}, line),
    isinstance: lambda reader, args, line: reader.is_of(*args, line),
}  # fmt: skip


def _function(node, names, body):
    """A function with the place of an expression."""
    arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    tree = ast.FunctionDef("a comprehension", arguments, body, [])
    return ast.fix_missing_locations(ast.copy_location(tree, node))


class Guard:
    """Within a branch, a list has less than `most` items, unless some were appended."""

    def __init__(self, place, most, depth):
        self.place, self.most, self.depth, self.used = place, most, depth, 0
