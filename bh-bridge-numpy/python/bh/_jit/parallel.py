"""`bh.parallel`: a function of indices for all of them at once."""

import types

from .. import _native
from .._array.conversion import asarray
from .indices import Index
from .scalar.ir import Unsupported
from .scalar.program import program_of
from .tracing import Untraceable


def parallel(function, shape):
    """Returns the array of this shape whose elements a function of the indices gives, all at once.

    The function may read arrays at subscripts; sums of multiples of indices become views. It may assign to elements
    of bh's arrays: the results are those of a call for one index after the other, except that all indices execute a statement
    before any index executes the next one.

    Parameters
    ----------
    function : callable
        A function as `vectorize` takes, with branches and loops, of one number for each dimension.
    shape : int or tuple of ints
        The extents of the indices.

    Returns
    -------
    ndarray or None
        None if the function returns nothing.

    Examples
    --------
    >>> a = bh.arange(5.0)
    >>> bh.parallel(lambda i: a[i + 1] - a[i], 4)
    array([1., 1., 1., 1.])
    >>> counts = bh.zeros(3, int)
    >>> def count(i):
    ...     if a[i] > 0:
    ...         counts[int(a[i]) % 3] += 1
    >>> bh.parallel(count, 5)
    >>> counts
    array([1, 2, 1])
    """
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    indices = [Index(shape, tuple(int(axis == other) for other in range(len(shape))), 0) for axis in range(len(shape))]
    try:
        return _read(function, indices, shape)
    except Unsupported as reason:
        unread = reason
    try:
        result = function(*indices)
    except (Untraceable, TypeError, ValueError, AttributeError) as error:
        raise TypeError(f"parallel cannot do {function!r} for all indices at once: {unread}") from error
    result = asarray(result.values() if isinstance(result, Index) else result)
    return result if result.shape == shape and result.base is None else _native.cast(_native.broadcast_to(result, shape), result._code)


def _read(function, indices, shape):
    """The function's result, read from its source."""
    if not isinstance(function, types.FunctionType):
        raise Unsupported("it is no function written in Python")
    names = function.__code__.co_varnames[: function.__code__.co_argcount][: len(shape)]
    if len(names) != len(shape):
        raise Unsupported(f"it takes no {len(shape)} indices")
    program = program_of(function, names, indices=True)
    results = program(function, [index.values() for index in indices], shape)
    return (results if not program.single else results[0]) if results else None
