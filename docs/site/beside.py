"""Runs a program of the gallery on NumPy and on bh, and says how long each took and what bh made of it."""

import re
import time
from pathlib import Path

import bh
import numpy

PROGRAMS = Path(__file__).resolve().parent / "programs"

# Of a kernel: so many operations are shown.
SHOWN = 12


def _timed(program, module, sizes):
    begin = time.perf_counter()
    # Looking at the result ends what was recorded.
    result = numpy.asarray(program(module, **sizes))
    return result, time.perf_counter() - begin


def _best(program, module, sizes):
    """The faster of two runs."""
    return min((_timed(program, module, sizes) for _ in range(2)), key=lambda run: run[1])


def _fused(explanation):
    """What an explanation says in all, and its kernel of the most operations."""
    head, *kernels = re.split(r"^kernel \d+\n", explanation, flags=re.MULTILINE)
    count, operations, bytes_moved, instead = map(int, re.match(r"(\d+) kernels? for (\d+) operations?; (\d+) \w+ instead of (\d+)", head).groups())
    lines = max((re.findall(r"^  i\d+ (.*)", kernel, re.MULTILINE) for kernel in kernels), key=len)
    more = [f"  and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return "\n".join(
        [
            f"bh ran {operations} operations as {count} kernels, which move {bytes_moved / 1e6:,.0f} MB to and from memory instead of {instead / 1e6:,.0f}.",
            f"The kernel of the most operations has {len(lines)}:",
            *(f"  {line}" for line in lines[:SHOWN]),
            *more,
        ]
    )


def compare(program, tolerance=1e-9, **sizes):
    """Runs `program(np, **sizes)` on both, checks that the results agree, prints times and kernels, and returns one."""
    recorded = program(bh, **sizes)
    explanation = str(bh.explain()).replace(f"{PROGRAMS}/", "")
    del recorded
    expected, numpys = _best(program, numpy, sizes)
    result, own = _best(program, bh, sizes)
    if not numpy.allclose(result, expected, rtol=tolerance, atol=tolerance):
        raise AssertionError(f"{program.__name__}: bh and NumPy differ")
    print(f"NumPy {numpys:.3f} s, bh {own:.3f} s: {numpys / own:.1f} times as fast, the same result\n")
    # Programs that look at a result on their way have run already.
    if not explanation.startswith("0 kernels"):
        print(_fused(explanation))
    return result
