"""A program under construction: its lines, and NumPy's values of its names so far."""

import functools
import re

import numpy

from . import sizes
from .functions import scalar

NAME = re.compile(r"\b[vw]\d+\b")
# The names that a statement assigns to, wholly or in part, even if it leaves the values as they were.
WRITTEN = re.compile(r"\b([vw]\d+)\b(?:\[[^=]*\])?\s*(?:[-+*/%&|^@]|\*\*|//|<<|>>)?=(?!=)|out=\(?([vw]\d+)|\.at\(([vw]\d+)")
FLOATS = ("float64", "float32")
# By how much of the scale of its numbers rounding may change a result, in double and in single precision.
TOLERANCE = (1e-11, 3e-4)
# The largest value, by type: beyond it, rounding and overflow say nothing about a program.
LARGEST = {"float64": 1e60, "float32": 1e15, "complex128": 1e60, "complex64": 1e15}


@functools.lru_cache(256)
def _data(seed, shape, dtype):
    """Numbers of a seed. Floating-point numbers are multiples of an eighth, so that sums of them are exact."""
    random = numpy.random.default_rng(seed)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if dtype == "uint8":
        return random.integers(0, 256, shape).astype(dtype)
    numbers = random.integers(-32, 33, shape)
    if dtype.startswith("int"):
        return numbers.astype(dtype)
    if dtype.startswith("complex"):
        return ((numbers + 1j * random.integers(-32, 33, shape)) / 8).astype(dtype)
    return (numbers / 8).astype(dtype)


def data(seed, shape, dtype):
    """Numbers of a seed, which the program may change."""
    return _data(seed, shape, dtype).copy()


class Unfit(Exception):
    """A statement that says nothing here: NumPy refuses it, or its numbers are too large."""


class Draft:
    """The statements so far. Names that may differ from NumPy by rounding are in `rough`, with how much, relative to its `scale`."""

    def __init__(self, random):
        self.random, self.statements, self.count = random, [], 0
        self.names, self.rough, self.scale = {"np": numpy, "data": data, "scalar": scalar}, {}, {}

    def fresh(self):
        """A name that is not taken."""
        self.count += 1
        return f"v{self.count}"

    def arrays(self, suits):
        """The names of arrays that suit."""
        return [name for name in self.scale if isinstance(self.names[name], numpy.ndarray) and suits(self.names[name])]

    def pick(self, kinds="f", rank=None, shape=None, smooth=False):
        """The name of an array of these kinds of elements, made if there is none. `smooth`: nothing rough."""
        def suits(value):
            rank_suits = value.ndim >= 1 if rank is None else value.ndim == rank
            return value.dtype.kind in kinds and (value.shape == shape if shape is not None else rank_suits)

        known = [name for name in self.arrays(suits) if not (smooth and name in self.rough)]
        if known and self.random.random() < 0.85:
            return self.random.choice(known[-6:])
        shape = sizes.shape(self.random, rank) if shape is None else shape
        return self.input(shape, self.dtype(kinds))

    def dtype(self, kinds="f"):
        """An element type of one of these kinds."""
        types = {"f": ("float64",) * 4 + ("float32",), "i": ("int64", "int32"), "u": ("uint8",), "b": ("bool",), "c": ("complex128",)}
        return self.random.choice(types[self.random.choice(kinds)])

    def input(self, shape, dtype):
        """Adds an array that comes from outside, or is computed from a range; returns its name."""
        name, count = self.fresh(), int(numpy.prod(shape))
        if self.random.random() < 0.6 or dtype not in FLOATS:
            text = f"data({self.random.randrange(1000)}, {shape}, '{dtype}')"
        else:
            step, modulus = self.random.choice((3, 5, 7)), self.random.choice((11, 13, 31))
            text = f"((np.arange({count}, dtype='{dtype}') * {step}) % {modulus} / 8 - 1).reshape({shape})"
        self.add(f"{name} = {text}")
        return name

    def shape(self, name):
        """The shape of the array of this name."""
        return self.names[name].shape

    def is_rough(self, text):
        """Does the text name what may differ by rounding?"""
        return not self.rough.keys().isdisjoint(NAME.findall(text))

    def whole(self, *names):
        """Are sums of products of these numbers exact, in whatever order they are taken?"""
        for name in names:
            value = numpy.asarray(self.names[name])
            if value.dtype.kind in "biu" or not value.size:
                continue
            if name in self.rough or value.dtype.kind == "c" or not numpy.isfinite(value).all():
                return False
            largest, bits = float(numpy.abs(value).max()), 2**22 if value.dtype == "float32" else 2**50
            eighths = value * 8
            if (eighths != numpy.floor(eighths)).any() or (largest + 1) ** 2 * 64 * value.size > bits:
                return False
        return True

    def add(self, text, rough=False):
        """Adds a statement, if NumPy carries it out and its numbers are of use."""
        before = {name: value for name, value in self.names.items() if isinstance(value, (numpy.ndarray, numpy.generic, float, int))}
        mentioned = set(NAME.findall(text))
        bytes_before = {name: numpy.asarray(self.names[name]).tobytes() for name in mentioned & before.keys()}
        with numpy.errstate(all="ignore"):
            try:
                exec(compile(text, "<statement>", "exec"), self.names)
            except (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError, numpy.linalg.LinAlgError) as reason:
                self._again(before)
                raise Unfit(str(reason)) from reason
        written = {name for found in WRITTEN.findall(text) for name in found if name}

        def is_changed(name):
            if name not in before or name in written:
                return True
            return name in mentioned and numpy.asarray(self.names[name]).tobytes() != bytes_before[name]

        changed = [name for name in self.names if NAME.fullmatch(name) and is_changed(name)]
        if not all(self._fits(name) for name in changed):
            self._again(before)
            raise Unfit("large numbers")
        text += "".join(map(self._in_c_order, changed))
        self.statements.append(text)
        self._judge(text, mentioned, changed, rough)

    def _in_c_order(self, name):
        """The addition to a statement where NumPy gives a result Fortran's order: bh's results have C's, which later views show."""
        value = self.names[name]
        if not isinstance(value, numpy.ndarray) or value.base is not None or value.flags.c_contiguous:
            return ""
        self.names[name] = numpy.ascontiguousarray(value)
        return f"\n{name} = np.ascontiguousarray({name})"

    def _fits(self, name):
        value = numpy.asarray(self.names[name])
        limit = LARGEST.get(str(value.dtype))
        magnitude = numpy.abs(value) if limit is not None else None
        return value.size <= 200_000 and (limit is None or not bool(((magnitude >= limit) & numpy.isfinite(magnitude)).any()))

    def _again(self, before):
        """Makes the names what the statements so far make them."""
        self.names = {"np": numpy, "data": data, "scalar": scalar}
        with numpy.errstate(all="ignore"):
            exec(compile("\n".join(self.statements), "<program>", "exec"), self.names)

    def _judge(self, text, mentioned, changed, rough):
        known = mentioned | set(changed)
        scale = max((self.scale.get(name, 0.0) for name in mentioned), default=0.0)
        tolerance = max((self.rough.get(name, 0.0) for name in mentioned), default=0.0)
        for name in known & self.names.keys():
            value = numpy.asarray(self.names[name])
            if value.size and value.dtype.kind in "fc":
                scale = max(scale, float(numpy.abs(value[numpy.isfinite(value)]).max(initial=0.0)))
            if rough:
                tolerance = max(tolerance, TOLERANCE[str(value.dtype) in ("float32", "complex64")])
        if not self.rough.keys().isdisjoint(mentioned):
            scale = max(scale, self._spread(text, mentioned, changed) / tolerance)
        arrays = [self.names[name] for name in changed if isinstance(self.names[name], numpy.ndarray)]
        for name, value in self.names.items():
            if not NAME.fullmatch(name) or not isinstance(value, (numpy.ndarray, numpy.generic, float, int)):
                continue
            shares = isinstance(value, numpy.ndarray) and any(numpy.may_share_memory(value, other) for other in arrays)
            if name not in self.scale or name in changed or shares:
                self.scale[name] = max(scale, self.scale.get(name, 0.0))
                if tolerance:
                    self.rough[name] = max(tolerance, self.rough.get(name, 0.0))

    def _spread(self, text, mentioned, changed):
        """How far the last statement's results move if what it mentions moves by as much as it may: where large numbers have
        cancelled, a product or a power makes more of what rounding left than its own size tells."""
        names = {"np": numpy, "data": data, "scalar": scalar}
        with numpy.errstate(all="ignore"):
            exec(compile("\n".join(self.statements[:-1]), "<program>", "exec"), names)
            for name in sorted(mentioned & self.rough.keys() & names.keys()):
                names[name] = self._moved(names[name], self.rough[name] * self.scale[name])
            try:
                exec(compile(text, "<statement>", "exec"), names)
            except (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError, numpy.linalg.LinAlgError):
                return 0.0
            return max((self._distance(names.get(name), self.names[name]) for name in changed), default=0.0)

    @staticmethod
    def _moved(value, by):
        """The value with every second element more by so much, the others less; arrays are changed where they are."""
        if not isinstance(value, numpy.ndarray):
            return value + by if isinstance(value, (float, complex, numpy.inexact)) else value
        if value.dtype.kind in "fc" and value.flags.writeable:
            value += (by * (1 - 2 * (numpy.arange(value.size) % 2))).reshape(value.shape)
        return value

    @staticmethod
    def _distance(one, other):
        one, other = numpy.asarray(one), numpy.asarray(other)
        if one.shape != other.shape or other.dtype.kind not in "fc":
            return 0.0
        apart = numpy.abs(one - other)
        return float(apart[numpy.isfinite(apart)].max(initial=0.0))
