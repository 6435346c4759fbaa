"""The notes on the page of a program of the gallery: its time on NumPy and on bh, and bh's plan of it."""

import re
import time
from pathlib import Path

import bh
import numpy

PROGRAMS = Path(__file__).resolve().parent / "programs"

# How far results may differ, as parts and absolutely: by default, and for programs whose steps enlarge differences.
TOLERANCE = 1e-9
TOLERANCES = {"lattice_boltzmann": 1e-7, "ocean_channel": 1e-7, "principal_components": 1e-7}

# The number of operations of a kernel that are shown.
SHOWN = 12


def program(name, module):
    """The last function in the first cell of a program, with `module` in the place of bh."""
    path = PROGRAMS / f"{name}.py"
    text, _, _ = path.read_text().partition("\n# %%")
    # Lines stay where they are, as explanations name them.
    text = text.replace("import bh as np\n", "\n").replace("import matplotlib.pyplot as plt\n", "\n")
    names = {"np": module}
    exec(compile(text, str(path), "exec"), names)
    return [value for value in names.values() if callable(value)][-1]


def _timed(function):
    begin = time.perf_counter()
    # Looking at the result ends what was recorded.
    result = numpy.asarray(function())
    return result, time.perf_counter() - begin


def _best(function):
    """The faster of two runs."""
    return min((_timed(function) for _ in range(2)), key=lambda run: run[1])


def _largest(explanation):
    """Of an explanation the kernel of the most operations, as lines; none if nothing was left to explain."""
    kernels = re.split(r"^kernel \d+\n", explanation.replace(f"{PROGRAMS}/", ""), flags=re.MULTILINE)[1:]
    lines = max((re.findall(r"^  i\d+ (.*)", kernel, re.MULTILINE) for kernel in kernels), key=len, default=[])
    more = [f"  and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return [f"A kernel of {len(lines)} of them:", *(f"  {line}" for line in lines[:SHOWN]), *more] if len(lines) > 1 else []


def _fused(function):
    """bh's plan of a program: counts of a whole run, and the largest kernel of what it recorded last."""
    before = bh.profile()
    recorded = function()
    kernel = _largest(str(bh.explain()))
    del recorded
    after = bh.profile()
    count = lambda name: after.get(name, 0) - before.get(name, 0)
    moved, instead = (count(f"fuser.{name}_bytes") / 1e6 for name in ("fused", "unfused"))
    head = f"bh ran {count('recorded')} operations as {count('fuser.kernels')} kernels, which move {moved:,.0f} MB to and from memory instead of {instead:,.0f}."
    return "\n".join([head, *kernel])


def compare(name):
    """Runs a program on both, checks that the results agree, and returns a text of times and kernels."""
    fused = _fused(program(name, bh))
    expected, numpys = _best(program(name, numpy))
    result, own = _best(program(name, bh))
    tolerance = TOLERANCES.get(name, TOLERANCE)
    if not numpy.allclose(result, expected, rtol=tolerance, atol=tolerance):
        raise AssertionError(f"{name}: bh and NumPy differ")
    return f"NumPy {numpys:.3f} s, bh {own:.3f} s: {numpys / own:.1f} times as fast, the same result\n\n{fused}"
