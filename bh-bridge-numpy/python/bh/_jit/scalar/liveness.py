"""Which variables are needed where: by the element itself later on, and by elements that go another way meanwhile."""

from .ir import Assign, Block, Count, If, Leave, Loop, Store, Unsupported, Var, escapes, goes_on, values, walk


def analyse(function, check=False):
    """Notes in the statements what is needed; with `check`, fails for variables that may have no value."""
    needed = _before(function.body, frozenset(function.results), {})
    if check and (missing := needed - set(function.parameters)):
        name = min(missing)
        raise Unsupported(f"'{_shown(name)}' may have no value", _first_use(function.body, name) or function.line)
    _keep(function.body, frozenset())


def _shown(name):
    """The program's name of a variable: the last part of a name is that of an attribute."""
    return name.rpartition("__")[2].removeprefix("v_")


def _before(statements, after, labels):
    """The variables needed before statements, if `after` is needed after them and `labels` behind each label."""
    for statement in reversed(statements):
        after = _STATEMENTS[type(statement)](statement, after, labels)
    return after


def _reads(statement):
    return frozenset(value.name for value in values(statement) if type(value) is Var)


def _assign(statement, after, labels):
    statement.live = statement.target in after
    return (after - {statement.target}) | _reads(statement) if statement.live else after


def _if(statement, after, labels):
    statement.after = after
    statement.other = _before(statement.orelse, after, labels)
    return _before(statement.then, after, labels) | statement.other | _reads(statement)


def _block(statement, after, labels):
    statement.after = after
    return _before(statement.body, after, labels | {statement.label: after})


def _loop(statement, after, labels):
    head = frozenset()
    while (found := _before(statement.body, head, labels) | head) != head:
        head = found
    statement.head = head
    return head


def _count(statement, after, labels):
    head = frozenset()
    while (found := (_before(statement.body, head | after, labels) - {statement.index}) | head) != head:
        head = found
    statement.head, statement.after = head, after
    # A range that is known not to be empty comes to its statements.
    return (head if statement.numbers() else head | after) | _reads(statement)


_STATEMENTS = {
    Assign: _assign, If: _if, Block: _block, Loop: _loop, Count: _count,
    Leave: lambda statement, after, labels: labels[statement.label],
    Store: lambda statement, after, labels: after | _reads(statement),
}  # fmt: skip


def _keep(statements, needed):
    """Notes where elements that are elsewhere need a variable's old value: behind what encloses the statement, if they get there."""
    for statement in statements:
        kind = type(statement)
        if kind is Assign:
            statement.kept = statement.target in needed
        elif kind is If:
            beside = [statement.after if goes_on(part) else frozenset() for part in (statement.orelse, statement.then)]
            _keep(statement.then, needed | beside[0] | statement.other)
            _keep(statement.orelse, needed | beside[1])
        elif kind is Block:
            _keep(statement.body, needed | statement.after if statement.label in escapes(statement.body) else needed)
        elif kind is Loop:
            statement.needed = needed
            _keep(statement.body, needed)
        elif kind is Count:
            statement.needed = needed | statement.after
            _keep(statement.body, statement.needed)


def _first_use(statements, name):
    """The line where a variable is read first."""
    return next((statement.line for statement in walk(statements) if name in _reads(statement)), None)
