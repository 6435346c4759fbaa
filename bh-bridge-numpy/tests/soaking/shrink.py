"""Makes a failing program smaller: deletes statements while it still fails."""

import dataclasses
import re

from .judge import verdict



def shrunk(program, stack):
    """The smallest program found that fails on the stack, and how it fails."""
    failure = verdict(program, stack)
    size, at = len(program.statements), 0
    while size:
        fewer = program.statements[:at] + program.statements[at + size :]
        found = _fails(program, fewer, stack) if at < len(program.statements) else None
        if found:
            program, failure = dataclasses.replace(program, statements=fewer), found
            # What could not go before may go now.
            size, at = max(len(fewer) // 2, 1), 0
        elif at < len(program.statements):
            at += size
        else:
            size, at = size // 2, 0
    return program, failure


def _fails(program, statements, stack):
    try:
        return verdict(dataclasses.replace(program, statements=statements), stack)
    except Exception:  # What NumPy cannot run any more is not smaller but wrong.
        return None


def line_of(program, failure):
    """The last statement that writes the name that differs."""
    name = failure.split(":")[0]
    writes = [text for text in program.statements if re.search(rf"\b{name}\b", text.split("=")[0])]
    return writes[-1] if writes else ""
