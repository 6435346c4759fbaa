"""Linear algebra, as in `numpy.linalg`. Products, solutions and what follows from factors are native."""

import operator

import numpy as np

from .. import _native
from .._array.conversion import astype, native
from .._array.element_types import FLOAT64, INT64, is_complex, is_inexact
from .._functions import arrangement, products, reductions
from .._functions.creation import eye
from .._functions.joining import concatenate
from .._functions.manipulation import matrix_transpose, reshape  # noqa: F401
from .._functions.reductions import sum as _sum
from .._jit.symbols import here
from .._numpy import inner_parts, namespace
from .._numpy.fallback import Fallback, falls_back
from .._numpy.lapack import by_lapack, is_little
from .._numpy.native_calls import served
from .._numpy.registry import ADAPTED, LEFT, LINALG, OWN
from .._ufunc.ufunc import UFUNCS as _u
from . import little
from .decompositions import adjoint, check_shape, eig, eigh, eigvals, eigvalsh, lstsq, matrices, method, new, qr, svd, svdvals  # noqa: F401

ndarray = _native.ndarray
LinAlgError = np.linalg.LinAlgError
_o = np.linalg


@by_lapack(_o.solve, has_little=True, finds_nan=True)
def solve(a, b):
    """The solution x of a·x = b."""
    a, b = matrices(a, square=True), native(b)
    if not b.ndim:
        raise Fallback("a right side without dimensions")
    kind = np.result_type(a.dtype, b.dtype)
    a, b = astype(a, kind), astype(b, kind)
    vector = b.ndim == 1
    right = b[:, None] if vector else b
    if a.shape[-1] != right.shape[-2]:
        raise ValueError(f"solve: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature (m,m),(m,n)->(m,n) (size {right.shape[-2]} is different from {a.shape[-1]})")
    front = np.broadcast_shapes(a.shape[:-2], right.shape[:-2])
    result = new(a, front + right.shape[-2:])
    if not result.size:
        return result[..., 0] if vector else result
    a, right = _native.broadcast_to(a, front + a.shape[-2:]), _native.broadcast_to(right, result.shape)
    if is_little(a, right):
        result = little.solve(a, right)
        return result[..., 0] if vector else result
    if here.records:
        method("solve", [result], [a, right], (2, 2, 2))
        return result[..., 0] if vector else result
    # Right sides of a singular system may have solutions, so that a further one shows how large they grow.
    rows = _largest(_u["absolute"](a), -1, True)
    sides = concatenate([right, astype(rows * native(_probe(a.shape[-1])), kind)], -1)
    solutions = new(a, sides.shape)
    # The scaled matrix is not kept: its elements are made as they are folded.
    grown = lambda: _is_regular(_u["absolute"](a / rows), _u["absolute"](solutions[..., -1]))
    method("solve", [solutions], [a, sides], (2, 2, 2), grown)
    result = solutions[..., :-1]
    return astype(result[..., 0] if vector else result, kind, True)


def _probe(count):
    """Numbers of a right side, between -1/2 and 1/2, which are unlike those of systems that have solutions."""
    return ((np.arange(1, count + 1) * ((5**0.5 - 1) / 2)) % 1 - 0.5)[:, None]


def _largest(array, axis, keep=False):
    return _u["maximum"].reduce(array, axis, keepdims=keep)


def _is_regular(scaled, x):
    """Are the absolute values x of a solution smaller than rounding errors make them, given those of a matrix whose largest ones are 1 in each
    row? If not, NumPy's LAPACK may find the matrix singular. Neither scaled rows nor scaled columns count."""
    grown = _largest(_largest(scaled, -2) * x, -1)
    limit = 0.1 / (np.finfo(scaled.dtype).eps * scaled.shape[-1])
    return _u["logical_and"].reduce(grown <= limit, None)


@by_lapack(_o.inv, has_little=True, finds_nan=True)
def inv(a):
    """The inverse of square matrices."""
    a = matrices(a, square=True)
    if is_little(a):
        return little.inv(a)
    unit = astype(eye(a.shape[-1]), a.dtype)
    return solve(a, _native.broadcast_to(unit, a.shape))


@by_lapack(_o.cholesky, has_little=True, finds_nan=True)
def cholesky(a, /, *, upper=False):
    """The lower triangular L whose product with its conjugate transpose is `a` (or the upper one)."""
    a = matrices(a, square=True)
    result = new(a, a.shape)
    if a.size:
        method("cholesky", [result], [adjoint(a) if upper else a], (2, 2))
        if is_complex(a._code):
            # Its diagonal is real, whatever rounding makes of it.
            diagonal = _native.diagonal(result, 0, a.ndim - 2, a.ndim - 1)
            diagonal[...] = _native.operate("real", [diagonal])
    return adjoint(result) if upper else result


def _factors(a):
    """The diagonals of U and the signs of the row permutations."""
    lu, order = new(a, a.shape), new(a, a.shape[:-1], INT64)
    method("lu", [lu, order], [a], (2, 1, 2))
    # A permutation is even if the number of pairs out of order is.
    numbers = order[..., :, None] > order[..., None, :]
    size = a.shape[-1]
    later = np.arange(size)[:, None] < np.arange(size)
    swapped = _sum(numbers & native(later), (-2, -1))
    return arrangement.diagonal(lu, 0, -2, -1), 1 - 2 * (swapped % 2)


def _sign_and_logarithm(a):
    """The signs and logarithms of determinants; a singular matrix has 0 and -inf."""
    diagonal, sign = _factors(a)
    size = _u["absolute"](diagonal)
    where = lambda mask, x, y: _native.operate("where", [mask, x, y])
    is_zero = size == 0
    singular, size = _u["logical_or"].reduce(is_zero, -1), where(is_zero, 1.0, size)
    # NaN counts as positive among real numbers.
    units = diagonal / size if is_complex(a._code) else 1 - 2 * (diagonal < 0)
    signs = astype(_u["multiply"].reduce(units, -1) * sign, a.dtype)
    parts = where(singular, 0.0, signs), where(singular, -np.inf, _sum(_u["log"](size), -1))
    for part in parts:
        part._scalar = not part.ndim
    return parts


@by_lapack(_o.det, has_little=True)
def det(a):
    """The determinants of square matrices."""
    a = matrices(a, square=True)
    if not a.size:
        return _of_nothing(a)
    if is_little(a):
        return little.det(a)
    sign, logarithm = _sign_and_logarithm(a)
    return sign * astype(_u["exp"](logarithm), a.dtype)


def _of_nothing(a):
    """The determinants of matrices without elements."""
    ones = astype(_native.full(a.shape[:-2], FLOAT64, 1.0), a.dtype)
    ones._scalar = not ones.ndim
    return ones


@by_lapack(_o.slogdet)
def slogdet(a):
    """The signs and logarithms of determinants."""
    a = matrices(a, square=True)
    if not a.size:
        ones = _of_nothing(a)
        return _o._linalg.SlogdetResult(ones, _u["log"](_u["absolute"](ones)))
    parts = _sign_and_logarithm(a)
    return _o._linalg.SlogdetResult(*(_native.scalar_at_hand(part) if part._scalar else part for part in parts))


@lambda f: falls_back(f, _o.norm)
def norm(x, ord=None, axis=None, keepdims=False):
    """Norms of vectors and matrices."""
    x = native(x)
    x = x if is_inexact(x._code) else astype(x, np.float64)
    if axis is None:
        if ord is None or ord in ("f", "fro") and x.ndim == 2 or ord == 2 and x.ndim == 1:
            result = _u["sqrt"](_square_sum(x, tuple(range(x.ndim))))
            return reshape(result, (1,) * x.ndim) if keepdims and x.ndim else result
        axis = tuple(range(x.ndim))
    axis = axis if isinstance(axis, tuple) else (axis,)
    if len(axis) == 1:
        return _vector_norm(x, ord, axis, keepdims)
    if len(axis) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    if axis[0] % x.ndim == axis[1] % x.ndim:
        raise ValueError("Duplicate axes given.")
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
        return _u["maximum"].reduce(size(x), axis, keepdims=keepdims, **({} if x.size else {"initial": 0}))
    if ord == -np.inf:
        return _u["minimum"].reduce(size(x), axis, keepdims=keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    if ord == 0:
        return astype(_sum(x != 0, axis, keepdims=keepdims), size(x).dtype)
    if ord == 1:
        return _sum(size(x), axis, keepdims=keepdims)
    return _sum(size(x) ** ord, axis, keepdims=keepdims) ** (1 / ord)


def _last(axis, rank):
    """The order of dimensions with these at the end."""
    axis = [place % rank for place in axis]
    return [*(place for place in range(rank) if place not in axis), *axis]


def _matrix_norm(x, ord, axis, keepdims):
    if ord is None or ord in ("f", "fro"):
        return _u["sqrt"](_square_sum(x, axis, keepdims))
    if ord in (2, -2, "nuc"):
        values = svd(_native.transpose(x, _last(axis, x.ndim)), compute_uv=False)
        fold = _u["add" if ord == "nuc" else "maximum" if ord == 2 else "minimum"]
        result = fold.reduce(values, -1, **({"initial": 0} if ord == 2 and not values.size else {}))
        kept = tuple(1 if place in _last(axis, x.ndim)[-2:] else extent for place, extent in enumerate(x.shape))
        return reshape(result, kept) if keepdims else result
    if ord not in (1, -1, np.inf, -np.inf):
        raise ValueError("Invalid norm order for matrices.")
    row, column = (place % x.ndim for place in axis)
    first, second = (row, column) if ord in (1, -1) else (column, row)
    sums = _sum(_u["absolute"](x), first, keepdims=True)
    fold = _u["maximum"] if ord > 0 else _u["minimum"]
    result = fold.reduce(sums, second, keepdims=True, **({"initial": 0} if ord > 0 and not x.size else {}))
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
    check_shape(a, square=True)
    try:
        n = operator.index(n)
    except TypeError as error:
        raise TypeError("exponent must be an integer") from error
    if n < 0:
        a, n = inv(a), -n
    if n == 0:
        result = _native.empty(a.shape, a._code)
        result[...] = astype(eye(a.shape[-1]), a.dtype)
        return result
    result = None
    while n:
        if n & 1:
            result = a if result is None else products.matmul(result, a)
        n >>= 1
        a = products.matmul(a, a) if n else a
    return result


@lambda f: falls_back(f, _o.multi_dot)
def multi_dot(arrays, *, out=None):
    """The product of several matrices."""
    if len(arrays) < 2:
        raise ValueError("Expecting at least two arrays.")
    result = arrays[0]
    for other in arrays[1:]:
        result = products.dot(result, other)
    if out is not None:
        raise Fallback("an output")
    return result


@lambda f: falls_back(f, _o.diagonal)
def diagonal(x, /, *, offset=0):
    """The diagonals of the last two dimensions."""
    return arrangement.diagonal(x, offset, -2, -1)


@lambda f: falls_back(f, _o.trace)
def trace(x, /, *, offset=0, dtype=None):
    """The sums of the diagonals of the last two dimensions."""
    return reductions.trace(x, offset, -2, -1, dtype)


@lambda f: falls_back(f, _o.outer)
def outer(x1, x2, /):
    """The products of all pairs of elements of two vectors."""
    x1, x2 = native(x1), native(x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are {x1.ndim=} and {x2.ndim=}.")
    return products.outer(x1, x2)


@lambda f: falls_back(f, _o.cross)
def cross(x1, x2, /, *, axis=-1):
    """The vector products of vectors of three elements."""
    x1, x2 = native(x1), native(x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"Both input arrays must be (arrays of) 3-dimensional vectors, but they are {x1.shape[axis]} and {x2.shape[axis]} dimensional instead.")
    return products.cross(x1, x2, axis=axis)


matmul, tensordot, vecdot = products.matmul, products.tensordot, products.vecdot

_rows = {name: namespace.row_of(name, getattr(_o, name), LINALG) for name in dir(_o) if not name.startswith("_")}
for _name, _row in sorted(_rows.items(), key=lambda item: item[1].kind == ADAPTED):
    _original = getattr(_o, _name)
    if _row.kind == ADAPTED:
        globals()[_name] = namespace.adapt(_original, _row)
    elif _row.kind != OWN:
        globals()[_name] = namespace.falling_back(_original, f"numpy.linalg.{_name}") if _row.kind == LEFT else _original
    if _row.kind in (OWN, LEFT):
        namespace.register(_original, globals()[_name])
    if _row.lapack or _row.native:
        globals()[_name] = served(_name, globals()[_name], _row, _original, home="bh.linalg")
        namespace.name_publicly(_original, globals()[_name])
del _name, _original, _row, _rows


def __getattr__(name):
    return inner_parts.part_of(_o, name)
