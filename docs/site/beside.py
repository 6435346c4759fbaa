"""Runs a program of the gallery on NumPy and on bh, and says how long each took and what bh made of it."""

import re
import time
from pathlib import Path

import bh
import numpy

PROGRAMS = Path(__file__).resolve().parent / "programs"

# The number of operations of a kernel that are shown.
SHOWN = 12


def _timed(program, module, sizes):
    begin = time.perf_counter()
    # Looking at the result ends what was recorded.
    result = numpy.asarray(program(module, **sizes))
    return result, time.perf_counter() - begin


def _best(program, module, sizes):
    """The faster of two runs."""
    return min((_timed(program, module, sizes) for _ in range(2)), key=lambda run: run[1])


def _largest(explanation):
    """Of an explanation the kernel of the most operations, as lines; none if nothing was left to explain."""
    kernels = re.split(r"^kernel \d+\n", explanation.replace(f"{PROGRAMS}/", ""), flags=re.MULTILINE)[1:]
    lines = max((re.findall(r"^  i\d+ (.*)", kernel, re.MULTILINE) for kernel in kernels), key=len, default=[])
    more = [f"  and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return [f"A kernel of {len(lines)} of them:", *(f"  {line}" for line in lines[:SHOWN]), *more] if len(lines) > 1 else []


def _fused(program, sizes):
    """What bh makes of a program: counts of a whole run, and the largest kernel of what it recorded last."""
    before = bh.profile()
    recorded = program(bh, **sizes)
    kernel = _largest(str(bh.explain()))
    del recorded
    after = bh.profile()
    count = lambda name: after.get(name, 0) - before.get(name, 0)
    moved, instead = (count(f"fuser.{name}_bytes") / 1e6 for name in ("fused", "unfused"))
    head = f"bh ran {count('recorded')} operations as {count('fuser.kernels')} kernels, which move {moved:,.0f} MB to and from memory instead of {instead:,.0f}."
    return "\n".join([head, *kernel])


def compare(program, tolerance=1e-9, **sizes):
    """Runs `program(np, **sizes)` on both, checks that the results agree, prints times and kernels, and returns one."""
    fused = _fused(program, sizes)
    expected, numpys = _best(program, numpy, sizes)
    result, own = _best(program, bh, sizes)
    if not numpy.allclose(result, expected, rtol=tolerance, atol=tolerance):
        raise AssertionError(f"{program.__name__}: bh and NumPy differ")
    print(f"NumPy {numpys:.3f} s, bh {own:.3f} s: {numpys / own:.1f} times as fast, the same result\n\n{fused}")
    return result
