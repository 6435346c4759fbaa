"""The form into which functions of scalars are read: variables, constants, and six kinds of statements."""

from dataclasses import dataclass, field


class Unsupported(Exception):
    """Raised for code that cannot run for all elements at once, with its line."""

    def __init__(self, text, line=None):
        super().__init__(text if line is None else f"line {line}: {text}")


class Mistyped(Unsupported):
    """Raised for operations that Python or NumPy refuses for numbers of these types."""


class TooLarge(Unsupported):
    """A function that has too many operations."""


@dataclass(frozen=True, slots=True)
class Var:
    """A variable; its name is one of Python's."""

    name: str


class Const:
    """A number. Numbers of other types, and zeros of other signs, are others."""

    __slots__ = ("value", "_key")

    def __init__(self, value):
        self.value, self._key = value, (type(value), repr(value))

    def __eq__(self, other):
        return type(other) is Const and self._key == other._key

    def __hash__(self):
        return hash(self._key)


@dataclass(slots=True, eq=False)
class Assign:
    """A variable gets what an operation makes of values. `kept`: elements that do not come here still need its old value."""

    target: str
    op: str
    args: tuple
    line: int
    extra: object = None
    live: bool = True
    kept: bool = False


@dataclass(slots=True, eq=False)
class Store:
    """An element of an array gets a value, or, with `adds`, what it has and the value."""

    table: object
    key: tuple
    value: object
    adds: bool
    line: int


@dataclass(slots=True, eq=False)
class If:
    """Two branches. `after`: what is needed behind them; `other`: what the second one needs."""

    condition: object
    then: list
    orelse: list
    line: int
    after: frozenset = frozenset()
    other: frozenset = frozenset()


@dataclass(slots=True, eq=False)
class Block:
    """Statements that may be left for what follows them."""

    label: str
    body: list
    line: int
    after: frozenset = frozenset()


@dataclass(slots=True, eq=False)
class Leave:
    """Goes on behind the block of this label."""

    label: str
    line: int


@dataclass(slots=True, eq=False)
class Loop:
    """Statements that are repeated until they are left. `head`: what a turn needs; `needed`: what elements need that do not come
    here, or have left."""

    body: list
    line: int
    head: frozenset = frozenset()
    needed: frozenset = frozenset()


@dataclass(slots=True, eq=False)
class Count:
    """Statements that are repeated for each number of a range, which a variable holds."""

    index: str
    start: object
    stop: object
    step: object
    body: list
    line: int
    head: frozenset = frozenset()
    after: frozenset = frozenset()
    needed: frozenset = frozenset()

    def numbers(self):
        """The range, where its bounds are constants; else None."""
        bounds = (self.start, self.stop, self.step)
        if all(type(bound) is Const for bound in bounds) and self.step.value:
            return range(*(bound.value for bound in bounds))
        return None


@dataclass(slots=True, eq=False)
class Function:
    """A whole function: its results are the values of variables at its end. Parameters may be the indices of a loop over them.
    `tables`: the arrays that are subscripted, or the places where they are looked up. `rooms`: the variables of lists by name."""

    name: str
    parameters: list
    body: list
    results: list
    single: bool
    tables: dict
    line: int
    indices: bool = False
    rooms: dict = field(default_factory=dict)


def parts(statement):
    """The lists of statements in a statement."""
    if type(statement) is If:
        return statement.then, statement.orelse
    return (statement.body,) if type(statement) in (Block, Loop, Count) else ()


def walk(statements):
    """All statements, also those in others."""
    for statement in statements:
        yield statement
        for part in parts(statement):
            yield from walk(part)


def values(statement):
    """The values that a statement itself reads."""
    kind = type(statement)
    if kind is Assign:
        return statement.args
    if kind is Store:
        return (*statement.key, statement.value)
    if kind is If:
        return (statement.condition,)
    return (statement.start, statement.stop, statement.step) if kind is Count else ()


def assigned(statements):
    """The variables that statements change."""
    found = set()
    for statement in walk(statements):
        if type(statement) is Assign:
            found.add(statement.target)
        elif type(statement) is Count:
            found.add(statement.index)
    return found


def used(statements):
    """The variables that statements read."""
    return {value.name for statement in walk(statements) for value in values(statement) if type(value) is Var}


def escapes(statements):
    """The labels outside of statements that these may go to."""
    within = {statement.label for statement in walk(statements) if type(statement) is Block}
    return {statement.label for statement in walk(statements) if type(statement) is Leave} - within


def goes_on(statements):
    """May what follows the statements be reached?"""
    for statement in statements:
        kind = type(statement)
        if kind is Leave or kind is Loop:
            return False
        if kind is If and not (goes_on(statement.then) or goes_on(statement.orelse)):
            return False
        if kind is Block and not goes_on(statement.body) and statement.label not in escapes(statement.body):
            return False
        if kind is Count and statement.numbers() and not goes_on(statement.body):
            return False
    return True
