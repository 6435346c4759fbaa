"""Random numbers, as in `numpy.random`: the same numbers from the same seeds.

NumPy's own generators make the numbers, which bh takes over; uniform numbers of Philox and PCG64 are made on the stack.
"""

import functools
import types
import warnings

import numpy as np
from numpy.random import _pickle

from .._array import conversion
from .._jit.symbols import here, refuse_in_trace
from .._numpy import fallback, inner_parts
from .._numpy.native_calls import drawn
from . import words

_o = np.random
BitGenerator = _o.BitGenerator


class _TakesArrays(type):
    """The class of classes that make instances of NumPy's, whose arguments may be bh's arrays."""

    def __call__(cls, *args, **kwargs):
        return cls._bh_numpy(*fallback.lower(args), **fallback.lower(kwargs))

    def __instancecheck__(cls, value):
        return isinstance(value, cls._bh_numpy)


SeedSequence, PCG64, PCG64DXSM, Philox, SFC64, MT19937 = (
    _TakesArrays(kind.__name__, (), {"_bh_numpy": kind, "__doc__": kind.__doc__, "__module__": "bh.random"})
    for kind in (_o.SeedSequence, _o.PCG64, _o.PCG64DXSM, _o.Philox, _o.SFC64, _o.MT19937)
)


def _lifted(function):
    """A method that draws numbers, as bh's arrays."""

    @functools.wraps(function)
    def draw(*args, **kwargs):
        refuse_in_trace("draws random numbers")
        if here.members is not None:
            return here.members.draw(function.__name__, draw, args, kwargs)
        if not args and not kwargs:
            # One number, most often.
            return fallback.lift(function())
        given = (*args, *kwargs.values())
        if function.__name__ != "permuted":
            _check_output(kwargs.get("out"))
        outs = [value for value in given if type(value) is fallback.ndarray]
        if not outs:
            return fallback.taken(function, fallback.lower(args), fallback.lower(kwargs))
        lowered, keywords = fallback.lower(args), fallback.lower(kwargs)
        result = function(*lowered, **keywords)
        for out, used in zip(given, (*lowered, *keywords.values())):
            # Functions return the array that they were given to write into, wherever it stands among the arguments.
            if used is result and type(out) is fallback.ndarray:
                out[...] = result
                return out
        return fallback.lift(result)

    return drawn(draw, function) if function.__name__ != "permuted" else draw


def _check_output(out):
    """Numbers are drawn into elements that lie side by side only, as in NumPy."""
    if type(out) is fallback.ndarray and not ((out._contiguous or out.T._contiguous) and out._writeable):
        raise ValueError("Supplied output array must be contiguous, writable, aligned, and in machine byte-order.")


def _in_place(function):
    """A method that reorders the elements of an array."""

    @functools.wraps(function)
    def reorder(x, *args, **kwargs):
        refuse_in_trace("draws random numbers")
        if here.members is not None:
            raise here.members.refuse_draw(function.__name__)
        if type(x) is not fallback.ndarray:
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                result = function(x, *args, **kwargs)
            for one in found:
                # At the line that calls this.
                conversion.warn(str(one.message), one.category)
            return result
        copy = fallback.to_numpy(x)
        function(copy, *args, **kwargs)
        x[...] = copy
        return None

    return reorder


class _Drawers(type):
    """The class of classes of generators, which take NumPy's own for instances, such as those in pickles."""

    def __instancecheck__(cls, value):
        return type.__instancecheck__(cls, value) or type(value) is getattr(_o, cls.__name__, None)


class _Drawing(metaclass=_Drawers):
    """Generators with NumPy's methods, and bh's arrays as results; checks of instances take them for NumPy's."""

    __class__ = property(lambda self: type(self._np))

    def __getattr__(self, name):
        value = getattr(self._np, name)
        if name.startswith("_") or not callable(value) or name in ("bit_generator", "spawn", "seed", "set_state", "get_state"):
            return value
        made = _in_place(value) if name == "shuffle" else _lifted(value)
        if not hasattr(type(self), name):
            self.__dict__[name] = made
        return made

    def _drawn(self, name):
        """NumPy's method of a name that the class has a method for; made once."""
        key = f"numpy's {name}"
        made = self.__dict__.get(key)
        if made is None:
            made = self.__dict__[key] = _lifted(getattr(self._np, name))
        return made

    def __dir__(self):
        return dir(self._np)

    def __repr__(self):
        return repr(self._np).replace(f"{id(self._np):X}", f"{id(self):X}")

    def __str__(self):
        return str(self._np)


class _FewByNumpy:
    """A method of generators of which NumPy's own serves calls that draw few numbers. `place`: where the argument `size` stands."""

    def __init__(self, method, place):
        self._method, self._place = method, place

    def __get__(self, generator, owner=None):
        if generator is None:
            return self._method
        name, bound = self._method.__name__, types.MethodType(self._method, generator)
        made = generator.__dict__[name] = drawn(bound, getattr(generator._np, name), self._place, words.FEW)
        return made


def _few_by_numpy(place):
    return lambda method: _FewByNumpy(method, place)


class Generator(_Drawing):
    """A generator over a source of random bits, with NumPy's methods."""

    def __init__(self, bit_generator):
        self._np = bit_generator if type(bit_generator) is _o.Generator else _o.Generator(fallback.lower(bit_generator))

    def __reduce__(self):
        return _generator, (self.bit_generator,), None

    def __getstate__(self):
        return self._np.__getstate__()

    @property
    def bit_generator(self):
        """The source of random bits."""
        return self._np.bit_generator

    # NumPy's `default_rng` takes what has these for a source of random bits.
    capsule = property(lambda self: self.bit_generator.capsule)
    lock = property(lambda self: self.bit_generator.lock)

    @_few_by_numpy(0)
    def random(self, size=None, dtype=np.float64, out=None):
        """Uniform numbers in [0, 1)."""
        if size is None and out is None and dtype is np.float64:
            return self._drawn("random")()
        shape = self._native_shape(size, out)
        made = None if shape is None or np.dtype(dtype).char not in "fd" else words.uniforms(self.bit_generator, shape, dtype)
        return self._drawn("random")(size, dtype, out=out) if made is None else made

    @_few_by_numpy(2)
    def uniform(self, low=0.0, high=1.0, size=None):
        """Uniform numbers in [low, high)."""
        shape = self._native_shape(size, None)
        if shape is not None and all(isinstance(bound, (int, float)) for bound in (low, high)):
            width = float(high) - float(low)
            made = words.uniforms(self.bit_generator, shape, np.float64) if 0 <= width < np.inf else None
            if made is not None:
                return made * width + float(low)
        return self._drawn("uniform")(low, high, size)

    @_few_by_numpy(2)
    def integers(self, low, high=None, size=None, dtype=np.int64, endpoint=False):
        """Whole numbers from low (or 0) on, below high, or up to high with `endpoint`."""
        if size is None and type(low) is int and type(high) in (int, type(None)) and here.members is None:
            refuse_in_trace("draws random numbers")
            return self._np.integers(low, high, None, dtype, endpoint)
        shape = self._native_shape(size, None)
        if shape is not None and np.dtype(dtype) in (np.int64, np.uint64) and all(isinstance(b, (int, type(None))) for b in (low, high)):
            first, last = (0, low) if high is None else (low, high)
            count = last - first + bool(endpoint)
            limits = np.iinfo(dtype)
            if count > 1 and count & (count - 1) == 0 and limits.min <= first and first + count - 1 <= limits.max:
                made = words.integers(self.bit_generator, first, count.bit_length() - 1, shape, dtype)
                if made is not None:
                    return made
        return self._drawn("integers")(low, high, size, dtype, endpoint)

    def _native_shape(self, size, out):
        """The shape of numbers that may be made on the stack; None for others."""
        if size is None or out is not None or type(self.bit_generator) not in words.SOURCES or here.members is not None:
            return None
        shape = (size,) if isinstance(size, (int, np.integer)) else tuple(fallback.lower(size))
        return shape if all(isinstance(extent, (int, np.integer)) and extent >= 0 for extent in shape) else None

    def spawn(self, n_children):
        """Independent generators."""
        return [Generator(child) for child in self._np.spawn(n_children)]


class RandomState(_Drawing):
    """The legacy generator, with NumPy's methods."""

    def __init__(self, seed=None):
        self._np = seed if type(seed) is _o.RandomState else _o.RandomState(fallback.lower(seed))

    def __reduce__(self):
        return _random_state, (self._np._bit_generator,), self._np.get_state(legacy=False)

    def __getstate__(self):
        return self._np.__getstate__()


def _generator(bit_generator="MT19937"):
    """A generator of a pickle, over a source of random bits or one of this name."""
    return Generator(_pickle.__generator_ctor(bit_generator))


def _random_state(bit_generator="MT19937"):
    """A legacy generator of a pickle, whose state follows."""
    return RandomState(_pickle.__randomstate_ctor(bit_generator))


class _Seeds:
    """The state that another class makes from its seeds, as NumPy's arrays."""

    def __init__(self, given):
        self._given = given

    def generate_state(self, n_words, dtype=np.uint32):
        return fallback.lower(self._given.generate_state(n_words, dtype))


_o.bit_generator.ISeedSequence.register(_Seeds)


def default_rng(seed=None):
    """A generator over PCG64 with this seed."""
    if type(seed) is Generator:
        return seed
    if isinstance(seed, _o.bit_generator.ISeedSequence) and not isinstance(seed, _o.SeedSequence):
        seed = _Seeds(seed)
    return Generator(_o.default_rng(fallback.lower(seed)))


_global = RandomState(_o.mtrand._rand)
__all__ = list(_o.__all__)
# Functions of the legacy generator, each made when a program asks for it.
_LATE = {name for name in dir(_o) if not name.startswith("_") and name not in globals() and hasattr(_o.mtrand._rand, name)}
_LATE -= {"get_state", "set_state", "seed"}
globals().update({name: getattr(_o, name) for name in dir(_o) if not name.startswith("_") and name not in globals().keys() | _LATE})


def __getattr__(name):
    if name in _LATE:
        made = globals()[name] = getattr(_global, name)
        return made
    return inner_parts.part_of(_o, name)


def __dir__():
    return sorted({*globals(), *_LATE})
