"""The programs of the corpus: where they are, how one is made ready for a module that stands for NumPy, and whether results agree."""

import importlib
import sys
from pathlib import Path

import numpy

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "common"))

from substitute import load

# The module that a program's NumPy is, by the form of the program. Forms with libraries of their own make their inputs by NumPy.
FORMS = {"numpy": "numpy", "bh": "bh", "numba": "numpy", "jax": "numpy"}
# Forms that have a file of their own, NAME_FORM.py, beside the program.
OWN = ("numba", "jax")
SIZES = ("small", "large")
# How far floating-point results may differ, as a part of the largest magnitude in the array, by bytes of a real number.
TOLERANCES = {2: 1e-2, 4: 1e-4, 8: 1e-9}


def names():
    """All programs as SUBJECT/NAME, in order."""
    paths = sorted(path.relative_to(HERE) for path in HERE.glob("*/*.py"))
    return [str(path.with_suffix("")) for path in paths if not path.stem.endswith(tuple(f"_{form}" for form in OWN))]


def chosen(words):
    """The programs whose names, or parts of names, are given; all if none are."""
    every = names()
    found = [name for name in every if not words or any(word in (name, *name.split("/")) for word in words)]
    unknown = [word for word in words if not any(word in (name, *name.split("/")) for name in every)]
    if unknown:
        raise SystemExit(f"no program or subject is named {', '.join(unknown)}")
    return found


def path(name, form):
    """The file of a program in one form."""
    return HERE / f"{name}{f'_{form}' if form in OWN else ''}.py"


class Program:
    """A program in one form."""

    def __init__(self, name, form):
        module = importlib.import_module(FORMS[form])
        self.name, self.path = name, path(name, form)
        common = load(path(name, "numpy"), module)
        own = common if form not in OWN else load(self.path, module)
        self.main, self.sizes, self.make = own["main"], common["sizes"], common.get("inputs")
        self.tolerance = common.get("tolerance")

    def inputs(self, size):
        """New arguments of `main`, computed."""
        arguments = dict(self.sizes[size])
        if self.make:
            arguments = self.make(**arguments)
            settled(arguments)
        return arguments


def parts(value):
    """The arrays, numbers and texts in a result."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [part for each in value for part in parts(each)]
    return [] if value is None else [value]


def settled(value):
    """The parts of a result as NumPy's arrays, which are computed."""
    return [numpy.asarray(part) for part in parts(value)]


def difference(mine, reference, tolerance=None):
    """The difference between two lists of arrays, as text; empty if they agree."""
    if len(mine) != len(reference):
        return f"{len(mine)} results instead of {len(reference)}"
    for number, (value, expected) in enumerate(zip(mine, reference)):
        if text := _difference(value, expected, tolerance):
            return f"result {number}: {text}"
    return None


def _difference(value, expected, tolerance):
    if (value.shape, value.dtype) != (expected.shape, expected.dtype):
        return f"{value.dtype}{list(value.shape)} instead of {expected.dtype}{list(expected.shape)}"
    if expected.dtype.kind not in "fc":
        wrong = numpy.count_nonzero(value != expected)
        return f"{wrong} of {expected.size} elements differ" if wrong else None
    finite = numpy.isfinite(expected)
    # Infinities and NaN must be where they are in the reference.
    if not numpy.array_equal(finite, numpy.isfinite(value)) or not numpy.array_equal(value[~finite], expected[~finite], equal_nan=True):
        return "other elements are infinite or NaN"
    if not finite.any():
        return None
    largest = float(numpy.abs(expected[finite]).max())
    apart = float(numpy.abs(value[finite] - expected[finite]).max())
    allowed = tolerance or TOLERANCES[expected.real.dtype.itemsize]
    return f"differs by {apart:.3g}, the largest element is {largest:.3g}" if apart > allowed * largest else None


def compared(name, size="small"):
    """The difference between a program's results on bh and on NumPy, as text; empty if they agree."""
    results = []
    for form in ("bh", "numpy"):
        program = Program(name, form)
        results.append(settled(program.main(**program.inputs(size))))
    return difference(*results, program.tolerance)
