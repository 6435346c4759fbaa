"""Runs a program of the gallery on NumPy and on bh, and says how long each took and what bh made of it."""

import time
from pathlib import Path

import bh
import numpy

PROGRAMS = Path(__file__).resolve().parent / "programs"

# Of an explanation: the summary and the first kernels.
LINES = 14


def _timed(program, module, sizes):
    begin = time.perf_counter()
    # Looking at the result ends what was recorded.
    result = numpy.asarray(program(module, **sizes))
    return result, time.perf_counter() - begin


def _best(program, module, sizes):
    """The faster of two runs."""
    return min((_timed(program, module, sizes) for _ in range(2)), key=lambda run: run[1])


def compare(program, tolerance=1e-9, **sizes):
    """Runs `program(np, **sizes)` on both, checks that the results agree, prints times and kernels, and returns one."""
    recorded = program(bh, **sizes)
    explanation = str(bh.explain()).replace(f"{PROGRAMS}/", "").splitlines()
    del recorded
    expected, numpys = _best(program, numpy, sizes)
    result, own = _best(program, bh, sizes)
    if not numpy.allclose(result, expected, rtol=tolerance, atol=tolerance):
        raise AssertionError(f"{program.__name__}: bh and NumPy differ")
    print(f"NumPy {numpys:.3f} s, bh {own:.3f} s: {numpys / own:.1f} times as fast, the same result\n")
    # Programs that look at a result on their way have run already.
    if not explanation[0].startswith("0 kernels"):
        print("\n".join(explanation[:LINES] + (["..."] if len(explanation) > LINES else [])))
    return result
