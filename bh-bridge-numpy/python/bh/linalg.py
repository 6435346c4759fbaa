"""Linear algebra, as in `numpy.linalg`. Products, solutions and what follows from factors are native."""

import numpy as np

from . import _fallback, _namespace, _native, _products
from ._convert import astype, native
from ._fallback import Fallback, falls_back
from ._functions import cross as _cross
from ._functions import diagonal as _diagonal
from ._functions import eye, matrix_transpose, outer as _outer, reshape, trace as _trace
from ._reductions import sum as _sum
from ._types import CODE, FLOAT64, INT64, is_complex, is_inexact
from ._ufunc import UFUNCS as _u

ndarray = _native.ndarray
LinAlgError = np.linalg.LinAlgError
_o = np.linalg


def _matrices(a, square=True):
    """Matrices in a floating-point type, and the type of results."""
    a = native(a)
    if a.ndim < 2:
        raise LinAlgError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    if square and a.shape[-1] != a.shape[-2]:
        raise LinAlgError("Last 2 dimensions of the array must be square")
    return a if is_inexact(a._code) else astype(a, np.float64)


def _method(name, outs, inputs):
    """Calls an extension method whose failures are those of linear algebra; it is awaited, as it may fail."""
    try:
        _native.extension(name, outs, inputs)
        _native.Stack(outs[0]._stack).flush()
    except _native.Error as error:
        text = str(error)
        if "no component" in text:
            raise Fallback(text) from None
        if "singular" in text:
            raise LinAlgError("Singular matrix") from None
        if "definite" in text:
            raise LinAlgError("Matrix is not positive definite") from None
        raise
    except ValueError as error:
        if "singular" in str(error):
            raise LinAlgError("Singular matrix") from None
        if "definite" in str(error):
            raise LinAlgError("Matrix is not positive definite") from None
        raise


@lambda f: falls_back(f, _o.solve)
def solve(a, b):
    """The solution x of a·x = b."""
    a, b = _matrices(a), native(b)
    kind = np.result_type(a.dtype, b.dtype)
    a, b = astype(a, kind), astype(b, kind)
    vector = b.ndim == 1
    right = b[:, None] if vector else b
    if a.shape[-1] != right.shape[-2]:
        raise ValueError(f"solve: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature (m,m),(m,n)->(m,n) (size {right.shape[-2]} is different from {a.shape[-1]})")
    front = np.broadcast_shapes(a.shape[:-2], right.shape[:-2])
    result = _native.empty(front + right.shape[-2:], CODE[kind], _native.Stack(a._stack))
    if not result.size:
        return result[..., 0] if vector else result
    if not front:
        _method("solve", [result], [a, right])
    else:
        a = reshape(_native.broadcast_to(a, front + a.shape[-2:]), (-1, *a.shape[-2:]))
        right = reshape(_native.broadcast_to(right, result.shape), (-1, *right.shape[-2:]))
        flat = reshape(result, right.shape)
        for number in range(a.shape[0]):
            _method("solve", [flat[number]], [a[number], right[number]])
    return result[..., 0] if vector else result


@lambda f: falls_back(f, _o.inv)
def inv(a):
    """The inverse of square matrices."""
    a = _matrices(a)
    unit = astype(eye(a.shape[-1]), a.dtype)
    return solve(a, _native.broadcast_to(unit, a.shape))


@lambda f: falls_back(f, _o.cholesky)
def cholesky(a, /, *, upper=False):
    """The lower triangular L whose product with its conjugate transpose is `a` (or the upper one)."""
    a = _matrices(a)
    result = _native.empty(a.shape, a._code, _native.Stack(a._stack))
    source = matrix_transpose(a) if upper else a
    source = _u["conjugate"](source) if upper and is_complex(a._code) else source
    if a.size:
        _each_pair("cholesky", source, result)
    if upper:
        result = matrix_transpose(result)
        result = _u["conjugate"](result) if is_complex(a._code) else result
    return result


def _each_pair(name, source, result):
    if source.ndim == 2:
        return _method(name, [result], [source])
    flat, target = (reshape(x, (-1, *x.shape[-2:])) for x in (source, result))
    for number in range(flat.shape[0]):
        _method(name, [target[number]], [flat[number]])


def _factors(a):
    """The diagonals of U and the signs of the row permutations."""
    lu = _native.empty(a.shape, a._code, _native.Stack(a._stack))
    order = _native.empty(a.shape[:-1], INT64, _native.Stack(a._stack))
    if a.ndim == 2:
        _method("lu", [lu, order], [a])
    else:
        flat, factors, orders = reshape(a, (-1, *a.shape[-2:])), reshape(lu, (-1, *a.shape[-2:])), reshape(order, (-1, a.shape[-1]))
        for number in range(flat.shape[0]):
            _method("lu", [factors[number], orders[number]], [flat[number]])
    # A permutation is even if the number of pairs out of order is.
    numbers = order[..., :, None] > order[..., None, :]
    size = a.shape[-1]
    later = np.arange(size)[:, None] < np.arange(size)
    swapped = _sum(numbers & native(later), (-2, -1))
    return _diagonal(lu, 0, -2, -1), 1 - 2 * (swapped % 2)


@lambda f: falls_back(f, _o.det)
def det(a):
    """The determinants of square matrices."""
    a = _matrices(a)
    if not a.size:
        return astype(_native.full(a.shape[:-2], FLOAT64, 1.0), a.dtype)
    try:
        diagonal, sign = _factors(a)
    except LinAlgError:
        return det_by_numpy(a)
    return astype(_u["multiply"].reduce(diagonal, -1) * sign, a.dtype)


def det_by_numpy(a):
    """Determinants of matrices of which some are singular."""
    return _fallback.call(_o.det, (a,), {}, "numpy.linalg.det", "a singular matrix")


@lambda f: falls_back(f, _o.slogdet)
def slogdet(a):
    """The signs and logarithms of determinants."""
    a = _matrices(a)
    if not a.size:
        raise Fallback("empty matrices")
    try:
        diagonal, sign = _factors(a)
    except LinAlgError:
        raise Fallback("a singular matrix") from None
    size = _u["absolute"](diagonal)
    signs = _u["multiply"].reduce(diagonal / size, -1) * astype(sign, a.dtype)
    return _o._linalg.SlogdetResult(signs, _sum(_u["log"](size), -1))


@lambda f: falls_back(f, _o.norm)
def norm(x, ord=None, axis=None, keepdims=False):
    """Norms of vectors and matrices."""
    x = native(x)
    x = x if is_inexact(x._code) else astype(x, np.float64)
    if axis is None:
        if ord is None or ord in ("f", "fro") and x.ndim == 2 or ord == 2 and x.ndim == 1:
            result = _u["sqrt"](_square_sum(x, tuple(range(x.ndim))))
            return reshape(result, (1,) * x.ndim) if keepdims else result
        axis = tuple(range(x.ndim))
    axis = axis if isinstance(axis, tuple) else (axis,)
    if len(axis) == 1:
        return _vector_norm(x, ord, axis, keepdims)
    if len(axis) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    return _matrix_norm(x, ord, axis, keepdims)


def _square_sum(x, axis, keepdims=False):
    if is_complex(x._code):
        real, imag = _native.operate("real", [x]), _native.operate("imag", [x])
        return _sum(real * real + imag * imag, axis, keepdims=keepdims)
    return _sum(x * x, axis, keepdims=keepdims)


def _vector_norm(x, ord, axis, keepdims):
    size = _u["absolute"]
    if ord is None or ord == 2:
        return _u["sqrt"](_square_sum(x, axis, keepdims))
    if ord == np.inf:
        return _u["maximum"].reduce(size(x), axis, keepdims=keepdims)
    if ord == -np.inf:
        return _u["minimum"].reduce(size(x), axis, keepdims=keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    if ord == 0:
        return astype(_sum(x != 0, axis, keepdims=keepdims), size(x).dtype)
    if ord == 1:
        return _sum(size(x), axis, keepdims=keepdims)
    return _sum(size(x) ** ord, axis, keepdims=keepdims) ** (1 / ord)


def _matrix_norm(x, ord, axis, keepdims):
    if ord is None or ord in ("f", "fro"):
        return _u["sqrt"](_square_sum(x, axis, keepdims))
    if ord not in (1, -1, np.inf, -np.inf):
        raise Fallback("norms by singular values")
    row, column = (place % x.ndim for place in axis)
    first, second = (row, column) if ord in (1, -1) else (column, row)
    sums = _sum(_u["absolute"](x), first, keepdims=True)
    fold = _u["maximum"] if ord > 0 else _u["minimum"]
    result = fold.reduce(sums, second, keepdims=True)
    if keepdims:
        return result
    kept = tuple(extent for place, extent in enumerate(result.shape) if place not in (row, column))
    result = reshape(result, kept)
    result._scalar = not kept
    return result


@lambda f: falls_back(f, _o.vector_norm)
def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """Norms of vectors along axes (of all elements for None)."""
    x = native(x)
    x = x if is_inexact(x._code) else astype(x, np.float64)
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if axis is None and x.ndim != 1 and not keepdims:
        return _vector_norm(reshape(x, (-1,)), ord, (0,), False)
    return _vector_norm(x, ord, axes, keepdims)


@lambda f: falls_back(f, _o.matrix_norm)
def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """Norms of the matrices in the last two dimensions."""
    return norm(x, ord, (-2, -1), keepdims)


@lambda f: falls_back(f, _o.matrix_power)
def matrix_power(a, n):
    """A square matrix to a whole power."""
    a = native(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise LinAlgError("Last 2 dimensions of the array must be square")
    n = int(np.asarray(n))
    if n < 0:
        a, n = inv(a), -n
    if n == 0:
        result = _native.empty(a.shape, a._code)
        result[...] = astype(eye(a.shape[-1]), a.dtype)
        return result
    result = None
    while n:
        if n & 1:
            result = a if result is None else _products.matmul(result, a)
        n >>= 1
        a = _products.matmul(a, a) if n else a
    return result


@lambda f: falls_back(f, _o.multi_dot)
def multi_dot(arrays, *, out=None):
    """The product of several matrices."""
    result = arrays[0]
    for other in arrays[1:]:
        result = _products.dot(result, other)
    if out is not None:
        raise Fallback("an output")
    return result


@lambda f: falls_back(f, _o.diagonal)
def diagonal(x, /, *, offset=0):
    """The diagonals of the last two dimensions."""
    return _diagonal(x, offset, -2, -1)


@lambda f: falls_back(f, _o.trace)
def trace(x, /, *, offset=0, dtype=None):
    """The sums of the diagonals of the last two dimensions."""
    return _trace(x, offset, -2, -1, dtype)


@lambda f: falls_back(f, _o.outer)
def outer(x1, x2, /):
    """The products of all pairs of elements of two vectors."""
    x1, x2 = native(x1), native(x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are {x1.ndim=} and {x2.ndim=}.")
    return _outer(x1, x2)


@lambda f: falls_back(f, _o.cross)
def cross(x1, x2, /, *, axis=-1):
    """The vector products of vectors of three elements."""
    x1, x2 = native(x1), native(x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"Both input arrays must be (arrays of) 3-dimensional vectors, but they are {x1.shape[axis]} and {x2.shape[axis]} dimensional instead.")
    return _cross(x1, x2, axis=axis)


matmul, tensordot, vecdot = _products.matmul, _products.tensordot, _products.vecdot

for _name in dir(_o):
    if _name.startswith("_"):
        continue
    _original = getattr(_o, _name)
    if _name not in globals():
        is_function = callable(_original) and not isinstance(_original, type)
        globals()[_name] = _namespace.falling_back(_original, f"numpy.linalg.{_name}") if is_function else _original
    if callable(_original) and not isinstance(_original, type):
        _namespace._register(_original, globals()[_name])
