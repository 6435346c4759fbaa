"""The ranks of a cluster, as the program sees them: its process is the first, and the others serve it."""

import atexit
import struct
import sys

import numpy as np

from .. import _native  # noqa: F401 - the last one for ranks that serve
from .._array.element_types import INT64, code_of
from .._numpy import fallback  # noqa: F401 - the last one for ranks that serve
from . import dataset_handles, functions  # noqa: F401 - the last one for ranks that serve

ndarray = _native.ndarray


def begin():
    """Makes the stack, from which ranks but the first never come back: they serve, and end with the first one."""
    _native.Stack()
    atexit.register(_end)


def _end():
    if isinstance(getattr(sys, "last_value", None), KeyboardInterrupt):
        # Python would have the signal kill the process without the end that the ranks have together. It notes for each text
        # that runs whether an interrupt ended it.
        exec("")
        _native.Stack().message("cluster interrupted")


def brought():
    """Operations that one rank ran alone, to which their arrays were sent: how often, the operation, line and file."""
    lines = _native.Stack().message("cluster brought").splitlines()
    return [(int(count), name, int(line), file) for count, name, line, file in (text.split("\t") for text in lines)]


def rank():
    """Returns the number of this rank: 0 in the program, and in functions of `map_blocks` that of the rank that runs the function.

    Examples
    --------
    >>> bh.rank()
    0
    """
    return 0


def ranks():
    """Returns how many ranks share the arrays: 1, except on stacks with a cluster.

    Examples
    --------
    >>> bh.ranks()
    1
    """
    return int(_native.Stack().message_first("cluster ranks") or 1)


def map_blocks(function, *arrays, halo=0, dtype=None):
    """Calls a function with each rank's own rows of arrays, in the rank's process, and returns the array of its results.

    In the function, the package `bh` is NumPy with `rank` and `ranks`.

    Parameters
    ----------
    function : callable
        It gets NumPy arrays, and returns an array of the shape of its first argument.
    *arrays : array_like
        Arrays with equally many rows.
    halo : int
        How many rows of the neighbours the function gets on either side; bh cuts them off the result.
    dtype : dtype, optional
        The type of the results; by default that of the first array.

    Raises
    ------
    ValueError
        If the arrays have no rows, or differ in their number.

    Examples
    --------
    >>> bh.map_blocks(lambda rows: rows * 2, bh.arange(4.0))
    array([0., 2., 4., 6.])
    """
    arrays = [_whole(array) for array in arrays]
    if not arrays or arrays[0].ndim == 0 or any(array.shape[:1] != arrays[0].shape[:1] for array in arrays):
        raise ValueError("map_blocks takes arrays with as many rows")
    first = arrays[0]
    dtype = np.dtype(first.dtype if dtype is None else dtype)
    count = ranks()
    packed = _packed(count, dtype, None, function)
    if count == 1 or not first.size:
        blocks = [fallback.to_numpy(array) for array in arrays]
        return fallback.from_numpy(_call(packed, 0, blocks, None))
    out = _empty(first.shape, dtype)
    _native.call_blocks(packed.hex(), halo, out, arrays)
    return out


def rows_of(function, shape, dtype):
    """An array of the rows that a function of this package makes of their numbers, in each rank's process its own ones."""
    out = _empty(shape, dtype)
    if out.size:
        _native.call_blocks(_packed(ranks(), dtype, shape[1:], function).hex(), 0, out, [_numbers(shape[0])])
    return out


def note_of(function, array, halo):
    """Calls a function of this package on the numbers of each rank's rows and on the rows, with some of its neighbours'."""
    array = _whole(array)
    # As large as to be cut as the array is.
    out, packed = _empty(array.shape, np.dtype("u1")), _packed(ranks(), np.dtype("u1"), array.shape[1:], function)
    _native.call_blocks(packed.hex(), halo, out, [_numbers(array.shape[0]), array])


def _packed(count, dtype, tail, function):
    """A function on its way: the number of ranks, the type of the result, its shape behind the rows if that is not the first
    block's, and the function."""
    return struct.pack("<Q", count) + functions.pack((dtype.str, tail, function))


def _whole(array):
    """An array in one piece, of which there is nothing else."""
    array = array if type(array) is ndarray else fallback.from_numpy(np.asarray(array))
    return array if array.base is None and array.flags.c_contiguous else array.copy()


def _numbers(count):
    """The numbers of rows."""
    return _native.arange((count,), INT64, 0, 1)


def _empty(shape, dtype):
    code = code_of(dtype)
    if code is None:
        raise TypeError(f"bh has no element type {dtype}")
    return _native.empty(shape, code)


def _call(packed, rank, blocks, own):
    """The function's result for some blocks, checked. `own`: which of the rows are not neighbours'."""
    (count,) = struct.unpack_from("<Q", packed)
    dtype, tail, function = functions.unpack(packed[8:], functions.Stand(rank, count))
    made = function(*blocks) if tail is None else function(*blocks, own=own)
    result = np.ascontiguousarray(made, dtype)
    if result.shape != (blocks[0].shape if tail is None else (len(blocks[0]), *tail)):
        raise ValueError(f"the function made an array of shape {result.shape} of blocks of shape {blocks[0].shape}")
    return result


def called(request):
    """A rank's result for its blocks, as bytes; the request is the cluster manager's."""
    place = 0

    def number():
        nonlocal place
        place += 8
        return struct.unpack_from("<Q", request, place - 8)[0]

    def data():
        nonlocal place
        size = number()
        place += size
        return request[place - size : place]

    rank, packed, above, own, blocks = number(), bytes.fromhex(data().decode()), number(), number(), []
    for _ in range(number()):
        dtype = np.dtype(data().decode())
        shape = [number() for _ in range(number())]
        # A copy of its own, which the function may change and keep.
        blocks.append(np.frombuffer(data(), dtype).reshape(shape).copy())
    return _call(packed, rank, blocks, (above, above + own))[above : above + own].tobytes()
