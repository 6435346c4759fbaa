"""Makes a failing program smaller: deletes statements, and replaces what they make by plain data, while it still fails."""

import dataclasses
import re

import numpy

from .judge import on_numpy, verdict

def shrunk(program, stack):
    """The smallest program found that fails on the stack, and how it fails."""
    program, failure = _with_fewer(program, stack)
    for at in reversed(range(len(program.statements))):
        plain = _plain(program.statements, at)
        if plain and (found := _fails(program, plain, stack)):
            program, failure = _with_fewer(dataclasses.replace(program, statements=plain), stack)
            break
    return program, failure


def _plain(statements, at):
    """The statements with data in place of the array that one of them makes of others; none if it makes none."""
    name, _, value = statements[at].partition(" = ")
    if not re.fullmatch(r"v\d+", name) or not re.search(r"\bv\d+\b", value):
        return None
    made = on_numpy("\n".join(statements[: at + 1])).get(name)
    if not isinstance(made, numpy.ndarray) or not made.ndim:
        return None
    return (*statements[:at], f"{name} = (np.arange({made.size}) % 7).astype('{made.dtype}').reshape({made.shape})", *statements[at + 1 :])


def _with_fewer(program, stack):
    """The program with fewer statements that fails, and how it fails."""
    failure = verdict(program, stack)
    size, at = len(program.statements), 0
    while size:
        fewer = program.statements[:at] + program.statements[at + size :]
        found = _fails(program, fewer, stack) if at < len(program.statements) else None
        if found:
            program, failure = dataclasses.replace(program, statements=fewer), found
            # Statements that could not go before may go now.
            size, at = max(len(fewer) // 2, 1), 0
        elif at < len(program.statements):
            at += size
        else:
            size, at = size // 2, 0
    return program, failure


def _fails(program, statements, stack):
    try:
        return verdict(dataclasses.replace(program, statements=statements), stack)
    except Exception:  # A program that NumPy cannot run any more is not smaller but wrong.
        return None


def line_of(program, failure):
    """The last statement that writes the name that differs."""
    name = failure.split(":")[0]
    writes = [text for text in program.statements if re.search(rf"\b{name}\b", text.split("=")[0])]
    return writes[-1] if writes else ""
