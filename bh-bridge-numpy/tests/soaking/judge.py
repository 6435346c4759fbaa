"""Runs programs on NumPy and on stacks of bh, and compares what is in their names at the end."""

import numpy

import bh

from .draft import NAME, data
from .functions import scalar


def _moved(seed, shape, dtype):
    return bh.asarray(data(seed, shape, dtype))


def on_numpy(code):
    """The names after a run on NumPy."""
    names = {"np": numpy, "data": data, "scalar": scalar}
    with numpy.errstate(all="ignore"):
        exec(code, names)
    return names


def on_stack(code, stack):
    """The names after a run on a stack of bh."""
    names = {"np": bh, "data": _moved, "scalar": scalar}
    before = bh.Stack(stack).activate()
    try:
        with bh.fallback("silent"), numpy.errstate(all="ignore"):
            exec(code, names)
    finally:
        if before is not None:
            before.activate()
    return names


def difference(program, mine, reference):
    """The difference of the first name that differs, in the order of their statements; none if all are right."""
    for name, right in reference.items():
        if not NAME.fullmatch(name):
            continue
        if name not in mine:
            return f"{name} is missing"
        found = _difference(numpy.asarray(mine[name]), numpy.asarray(right), program.allowed(name), isinstance(right, (int, float)))
        if found:
            return f"{name}: {found}"
    return None


def _difference(mine, right, allowed, is_number):
    if mine.shape != right.shape:
        return f"shape {mine.shape}, not {right.shape}"
    if mine.dtype != right.dtype and not is_number:
        return f"type {mine.dtype}, not {right.dtype}"
    if right.dtype.kind not in "fc":
        wrong = mine != right if not allowed else numpy.zeros(right.shape, bool)
    else:
        with numpy.errstate(all="ignore"):
            near = numpy.abs(mine - right) <= allowed if allowed else numpy.zeros(right.shape, bool)
            wrong = ~(near | (mine == right) | (numpy.isnan(mine) & numpy.isnan(right)))
    if not wrong.any():
        return None
    place = tuple(int(one) for one in numpy.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {right.size} differ; at {place} {mine[place]!r}, not {right[place]!r}"


def verdict(program, stack):
    """The error of a program on a stack, as text; none if it is right. NumPy must be able to run it."""
    code = compile(program.text, "<program>", "exec")
    return checked(program, code, on_numpy(code), stack)


def checked(program, code, reference, stack):
    """As `verdict`, with the compiled code and NumPy's names given."""
    try:
        return difference(program, on_stack(code, stack), reference)
    except Exception as error:  # An exception of bh where NumPy raises none is a finding.
        return f"{type(error).__name__}: {error}"
