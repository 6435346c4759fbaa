"""Moves what elements do as they leave a loop behind the loop: all of them do it there once, and not some of them at each turn."""

import dataclasses

from .ir import Assign, Block, Count, If, Leave, Loop, assigned, parts, used, walk

# The costs of operations beside an addition.
_COSTS = {"function": 16, "complex_function": 32, "power": 16, "divide": 4, "floor_divide": 8, "remainder": 8, "copy": 0, "truth": 0}
# The cost of keeping a variable of elements that have left, and of noting which left there.
_KEPT, _LEFT = 2, 3


def sunk(statements):
    """The statements with loops whose exits do their work behind them."""
    done = []
    for statement in statements:
        statement = _with_parts(statement, sunk)
        done += _sunk_loop(statement) if type(statement) in (Loop, Count) else [statement]
    return done


def _with_parts(statement, work):
    """The statement with this work done on the statements in it."""
    if type(statement) is If:
        return dataclasses.replace(statement, then=work(statement.then), orelse=work(statement.orelse))
    return dataclasses.replace(statement, body=work(statement.body)) if parts(statement) else statement


def _sunk_loop(loop):
    exits, own = [], assigned([loop])
    within = {statement.label for statement in walk(loop.body) if type(statement) is Block}
    loop = dataclasses.replace(loop, body=_without_exits(loop.body, own, within, exits))
    if not exits:
        return [loop]
    line, done = loop.line, [loop]
    if type(loop) is Count:
        # Elements that come to the end of the range go past the exits.
        past = f"past_{exits[0][0]}"
        done.append(Leave(past, line))
    for label, work in exits:
        done = [Block(label, done, line), *work]
    return [Block(past, done, line)] if type(loop) is Count else done


def _without_exits(statements, own, within, exits):
    """Statements of a loop whose costly exits only leave; what these do is added to `exits`."""

    def branch(part):
        if not _is_costly_exit(part, own, within):
            return _without_exits(part, own, within, exits)
        label = f"exit{len(exits)}_{part[-1].label}_{part[-1].line}"
        exits.append((label, part))
        return [Leave(label, part[-1].line)]

    done = []
    for statement in statements:
        if type(statement) is If:
            statement = dataclasses.replace(statement, then=branch(statement.then), orelse=branch(statement.orelse))
        elif type(statement) is Block:
            statement = dataclasses.replace(statement, body=_without_exits(statement.body, own, within, exits))
        done.append(statement)
    return done


def _is_costly_exit(statements, own, within):
    """Do these statements only compute something and leave the loop, and is it more than keeping what they need?"""
    if not statements or type(statements[-1]) is not Leave or statements[-1].label in within:
        return False
    if not all(type(one) is Assign for one in statements[:-1]):
        return False
    return cost(statements[:-1]) > _LEFT + _KEPT * len(used(statements) & own - assigned(statements))


def cost(statements):
    """About what statements cost each time, beside additions."""
    return sum(_COSTS.get(one.op, 1) for one in walk(statements) if type(one) is Assign)
