"""Places of values that are more than a number: variables for each part of an object, a tuple or a list."""

from .forms import LOST, MISSING, NONE, NOTHING, Conflict, Lists, Number, Objects, View, attributes_of, form_of, join, unsupported
from .ir import Const, If, Unsupported, Var
from .names import Static

# The most items of a list.
MOST = 256


class Places:
    """The part of a reader that gives values their variables."""

    def key(self, *more):
        """The key of a place that belongs to the function that is being read."""
        return (*self.scope.path, self.at, *more)

    def learn(self, key, value, what, line):
        """The form of a place that gets this value, too."""
        try:
            return self.facts.learn(key, form_of(value))
        except Conflict:
            raise unsupported(form_of(value), self.facts.forms[key], what, line) from None

    def missing(self, text, line):
        """Stands for a value that is not there as long as the form of its place may grow."""
        self.gaps.append(Unsupported(text, line))
        return MISSING

    def form(self, view):
        """The form of an object or list as it is known now."""
        found = self.facts.form(view)
        if type(found) is Objects:
            found = found.of(view.form.classes())
        return join(view.form, found)

    def made(self, form, name, key=None, steps=(), fresh=False, copied=False):
        """The value whose variables have this stem."""
        if form is None:
            return (steps and self.facts.constants.get((key, steps))) or Var(name)
        if form is NOTHING:
            return MISSING
        if type(form) is tuple:
            return tuple(self.made(part, f"{name}_{at}", key, (*steps, ("part", at, len(form))), fresh, copied) for at, part in enumerate(form))
        return form if type(form) is Static else View(form, name, key, steps, fresh, copied)

    def part(self, view, cls, name):
        """The place of an attribute."""
        form = view.form.attributes(cls).get(name, NOTHING)
        return View(form, f"{view.name}__{self.facts.number(cls)}__{name}", view.key, (*view.steps, ("attribute", cls, name)))

    def item_place(self, view, at):
        """The place of an item."""
        return View(view.form.item, f"{view.name}__{at}", view.key, (*view.steps, ("item",)))

    def parts(self, place):
        """The places of a tuple's values."""
        return [View(form, f"{place.name}_{at}", place.key, (*place.steps, ("part", at, len(place.form)))) for at, form in enumerate(place.form)]

    def value_at(self, place, fresh=False, copied=False):
        """The value of a place."""
        return self.made(place.form, place.name, place.key, place.steps, fresh, copied)

    def tag(self, view):
        """The number of an object's class."""
        classes = view.form.classes()
        return Const(self.facts.number(classes[0])) if len(classes) == 1 else Var(f"{view.name}__class")

    def leaves(self, form, name):
        """The variables of a value of this form."""
        if form is None:
            yield name
        elif type(form) is tuple:
            for at, part in enumerate(form):
                yield from self.leaves(part, f"{name}_{at}")
        elif type(form) is Objects:
            if len(form.variants) > 1:
                yield f"{name}__class"
            for cls, attributes in form.variants:
                for attribute, part in attributes:
                    yield from self.leaves(part, f"{name}__{self.facts.number(cls)}__{attribute}")
        elif type(form) is Lists:
            if form.length is None:
                yield f"{name}__len"
            for at in range(form.capacity):
                yield from self.leaves(form.item, f"{name}__{at}")

    def blank(self, place, line):
        """Gives variables that nobody reads a value, so that all have one."""
        for leaf in self.leaves(place.form, place.name):
            self.assign(leaf, Const(False), line)

    def put(self, place, value, line):
        """Gives a place a value, whose form the place's has."""
        form = place.form
        if value is MISSING:
            self.blank(place, line)
        elif form is None:
            number = self.number(value, line)
            if place.steps:
                self.facts.note_number(place.place(), number if type(number) is Const else None)
            self.assign(place.name, number, line)
        elif type(form) is tuple:
            for part, one in zip(self.parts(place), value):
                self.put(part, one, line)
        elif type(form) is Objects:
            self._put_object(place, value, line)
        elif type(form) is Lists:
            self._put_list(place, value, line)

    def _put_object(self, place, value, line):
        parts = self._attributes(value, line)
        if len(place.form.variants) > 1:
            known = type(value) is View and len(value.form.variants) > 1
            self.assign(f"{place.name}__class", self.tag(value) if known else Const(self.facts.number(next(iter(parts)))), line)
        for cls, attributes in place.form.variants:
            for name, form in attributes:
                part = self.part(place, cls, name)
                if form is not LOST and name in parts.get(cls, ()):
                    self.put(part, parts[cls][name], line)
                elif form is not LOST:
                    self.blank(part, line)

    def _attributes(self, value, line):
        """The attributes of an object by class."""
        if type(value) is View:
            return {cls: {name: self.value_at(self.part(value, cls, name)) for name, _ in attributes} for cls, attributes in value.form.variants}
        if type(value) in (Var, Const):
            return {Number: {"value": value}}
        if value.value is None:
            return {NONE: {}}
        if type(value.value) in self.facts.mutable:
            raise Unsupported("another name for an object from outside of the function, and one that changes", line)
        return {type(value.value): {name: self.names.attribute(value.value, name) for name in attributes_of(value.value)}}

    def _put_list(self, place, value, line):
        form = value.form
        if place.place() in (*self.passed, *self.frozen):
            raise Unsupported("another list for a name, or attribute, whose list a loop goes through", line)
        self.facts.least(self.facts.begins, place.place(), form.capacity)
        if any(guard.place == place.place() for guard in self.guards):
            self.facts.replaces(place.place())
        if isinstance(label := place.steps[-1][-1] if place.steps else place.key[-1], str):
            self.rooms.setdefault(label, set()).update(leaf for at in range(place.form.capacity) for leaf in self.leaves(place.form.item, f"{place.name}__{at}"))
        if place.form.length is None:
            self.assign(f"{place.name}__len", self.length(value), line)
        for at in range(place.form.capacity):
            part = self.item_place(place, at)
            if at < form.capacity:
                self.put(part, self.value_at(self.item_place(value, at)), line)
            else:
                self.blank(part, line)

    def length(self, view):
        """The number of a list's items."""
        if view.form.length is not None:
            return Const(view.form.length)
        length = Var(f"{view.name}__len")
        self.bounds[length.name] = 0, view.form.capacity
        return length

    def plain(self, value):
        """A number that may be None as one that is none; other values as they are."""
        if type(value) is View and type(value.form) is Objects and Number in value.form.classes():
            return self.value_at(self.part(value, Number, "value"))
        return value

    def owned(self, value, line, taken=None):
        """The value, if a place may have it: none that changes may have two names."""
        taken = set() if taken is None else taken
        if type(value) is tuple:
            for part in value:
                self.owned(part, line, taken)
        elif type(value) is View and self.facts.is_mutable(value.form):
            if not value.fresh or value.place() in taken:
                what = "list: copy it by 'list(…)'" if type(value.form) is Lists else "object that changes"
                raise Unsupported(f"another name for a {what}" if type(value.form) is Lists else f"another name for an {what}", line)
            taken.add(value.place())
        return value

    def settled(self, value, line):
        """The value as it is now, whatever is assigned later on; lists and objects that change stay themselves."""
        if type(value) is tuple:
            return tuple(self.settled(part, line) for part in value)
        if type(value) is View:
            return value if value.fresh or self.facts.is_mutable(value.form) else self.copied(value, line)
        return value if type(value) in (Static, Const) else self.operation("copy", (value,), line)

    def copied(self, value, line):
        """A copy of an object or a list."""
        place = View(value.form, self.fresh("o"), self.key("copy"))
        place.form = self.learn(place.key, value, "a copy", line)
        self.facts.least(self.facts.depths, place.key, len(self.around))
        self.put(place, value, line)
        return self.value_at(place, fresh=True)

    def one_of(self, tests, pieces, line):
        """One of several values, each with statements of its own: the first one whose test holds, or the last one."""
        key = self.key("one of")
        for value, _ in pieces:
            form = self.learn(key, value, "a choice", line)
        place = View(form, self.fresh("t"), key)
        self.facts.least(self.facts.depths, key, len(self.around))
        copied = any(self.facts.is_mutable(form_of(value)) and not _is_fresh(value) for value, _ in pieces)
        done = [statements + self.captured(lambda value=value: self.put(place, value, line)) for value, statements in pieces]
        rest = done.pop()
        for test, statements in zip(reversed(tests), reversed(done)):
            before = []
            condition = self.captured(lambda test=test: before.append(test()))
            known = self.known(before[0])
            rest = [*condition, If(before[0], statements, rest, line)] if known is None else statements if known else rest
        self.out += rest
        return self.value_at(place, fresh=not copied, copied=copied)

    def by_class(self, view, classes, work, line):
        """The result of this work for an object of one of these classes."""
        narrowed = lambda cls: View(view.form.of([cls]), view.name, view.key, view.steps, view.fresh, view.copied)
        if len(classes) == 1:
            return work(narrowed(classes[0]), classes[0])
        pieces = []
        for cls in classes:
            found = []
            statements = self.captured(lambda cls=cls: found.append(work(narrowed(cls), cls)))
            pieces.append((found[0], statements))
        test = lambda cls: lambda: self.operation("equal", (self.tag(view), Const(self.facts.number(cls))), line)
        return self.one_of([test(cls) for cls in classes[:-1]], pieces, line)


def _is_fresh(value):
    if type(value) is tuple:
        return all(map(_is_fresh, value))
    return type(value) is not View or value.fresh
