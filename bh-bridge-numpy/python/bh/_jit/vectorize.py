"""`bh.vectorize`: functions of scalars as functions of arrays."""

import functools
import types

import numpy as np

from .. import _native
from .._array.conversion import native
from .._array.element_types import code_of
from .._numpy import fallback
from .tracing import Scalar, Untraceable, plain, traced


@functools.cache
def _reading():
    """The reader of functions and its errors, imported when the first function is vectorized."""
    from .scalar.ir import Mistyped, Unsupported
    from .scalar.program import program_of

    return types.SimpleNamespace(program_of=program_of, Mistyped=Mistyped, Unsupported=Unsupported)


class vectorize:
    """Makes a function of arrays of a function of scalars, as `numpy.vectorize`, but computes all elements at once.

    bh reads the function's source instead of calling it: arithmetic, comparisons and mathematics become array operations, branches become choices,
    and each element takes its own number of iterations of a loop. The function may have local variables, lists of a bounded length, objects with methods,
    `if`, `while`, `for` over ranges, tuples and lists, `break`, `continue`, several `return` statements, and calls of other such functions.
    `numpy.vectorize` calls other functions for each element, with a warning that gives the reason and the line.

    Examples
    --------
    >>> @bh.vectorize
    ... def steps(n):
    ...     count = 0
    ...     while n != 1:
    ...         n = n // 2 if n % 2 == 0 else 3 * n + 1
    ...         count += 1
    ...     return count
    >>> steps(bh.arange(1, 10))
    array([ 0,  1,  7,  2,  5,  8, 16,  3, 19])
    """

    def __init__(self, pyfunc=None, otypes=None, doc=None, excluded=None, cache=False, signature=None):
        # Not when the function is called: a child of a fork would wait for ever for a module that another thread was importing.
        _reading()
        self.otypes, self.doc, self.excluded, self.cache, self.signature = otypes, doc, excluded, cache, signature
        self.pyfunc = None
        if pyfunc is not None:
            if not callable(pyfunc):
                raise TypeError(f"a function is needed, not {pyfunc!r}")
            self(pyfunc)

    def __call__(self, *args, **kwargs):
        if self.pyfunc is None:
            self.pyfunc = args[0]
            self.__name__ = getattr(self.pyfunc, "__name__", "vectorize")
            self.__doc__ = self.doc or self.pyfunc.__doc__
            return self
        if self.excluded or self.signature or self.cache:
            return self._element_by_element(args, kwargs, "excluded arguments, a signature, or a number of calls that matters")
        if self.otypes and any(code_of(kind) is None for kind in self.otypes):
            return self._element_by_element(args, kwargs, "results of a type that bh lacks")
        given = (*args, *kwargs.values())
        if not self.otypes and not all(value.size if type(value) is _native.ndarray else np.size(value) for value in given):
            raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
        reading = _reading()
        try:
            return self._finished(self._at_once(args, kwargs))
        except (fallback.Fallback, reading.Mistyped) as reason:
            return self._element_by_element(args, kwargs, str(reason))
        except reading.Unsupported as reason:
            unread = str(reason)
        try:
            return self._finished((self._trace(args, kwargs),))
        except (Untraceable, TypeError, ValueError, AttributeError, fallback.Fallback):
            return self._element_by_element(args, kwargs, unread)

    def memory(self, *args, **kwargs):
        """The bytes that the lists of the function need at most for arguments like these, by the names of the lists. They are known before the function runs.

        Examples
        --------
        >>> @bh.vectorize
        ... def last(x):
        ...     powers = [x]
        ...     for _ in range(3):
        ...         powers.append(powers[-1] * x)
        ...     return powers[-1]
        >>> last.memory(bh.arange(10.0))
        {'powers': 320}
        """
        given = self._given(args, kwargs)
        count = int(np.prod(np.broadcast_shapes(*(value.shape for value in given.values())), dtype=np.int64))
        return {label: count * size for label, size in _reading().program_of(self.pyfunc, tuple(given)).memory(list(given.values())).items()}

    def _finished(self, results):
        """Results as they are returned."""
        if self.otypes:
            results = tuple(result.astype(kind) for result, kind in zip(results, self.otypes, strict=True))
        for result in results:
            result._scalar = False
        return results if len(results) > 1 else results[0]

    def _at_once(self, args, kwargs):
        """The results of the function as it is read."""
        given = self._given(args, kwargs)
        program = _reading().program_of(self.pyfunc, tuple(given))
        shapes = {value.shape for value in given.values()}
        shape = shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)
        return program(self.pyfunc, list(given.values()), shape)

    def _given(self, args, kwargs):
        """The arguments as arrays by name."""
        if not isinstance(self.pyfunc, types.FunctionType):
            raise _reading().Unsupported("it is no function written in Python")
        names = self.pyfunc.__code__.co_varnames[: self.pyfunc.__code__.co_argcount]
        if len(args) > len(names) or kwargs.keys() & {*names[: len(args)]}:
            raise _reading().Unsupported("arguments that do not fit")
        return dict(zip(names, map(native, args))) | {name: native(value) for name, value in kwargs.items()}

    def _trace(self, args, kwargs):
        """The result of the function, called with what stands for elements."""
        copy = traced(self.pyfunc)
        arrays = [native(value) for value in args]
        named = {name: native(value) for name, value in kwargs.items()}
        shape = np.broadcast_shapes(*(value.shape for value in (*arrays, *named.values())))
        result = copy(*map(Scalar, arrays), **{name: Scalar(value) for name, value in named.items()})
        if isinstance(result, tuple):
            raise Untraceable("several results")
        result = native(plain(result))
        return result if result.shape == shape else _native.cast(_native.broadcast_to(result, shape), result._code)

    def _element_by_element(self, args, kwargs, reason):
        options = {name: getattr(self, name) for name in ("otypes", "doc", "excluded", "cache", "signature")}
        slow = np.vectorize(self.pyfunc, **{name: value for name, value in options.items() if value})
        return fallback.call(slow, args, kwargs, "numpy.vectorize", reason)
