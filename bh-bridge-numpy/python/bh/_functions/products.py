"""Products of vectors and matrices."""

import functools
import operator
from math import prod

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from .. import _native
from .._array.conversion import astype, native
from .._array.element_types import BOOL, CODE, code_of, is_complex, is_inexact
from .._array.indexing import fitted
from .._numpy import floating_point
from .._numpy.fallback import Fallback, falls_back
from .._ufunc.axes import deliver, stand_in, target_of
from .._ufunc.ufunc import UFUNCS
from .manipulation import moveaxis, reshape
from .reductions import sum as sum_

ndarray = _native.ndarray
_NO_VALUE = np._NoValue
# Dimensions of an array, at most.
_MOST = 16
_errors_asked = _native.errors_asked


def _same_type(a, b, dtype=None):
    a, b = native(a), native(b)
    if dtype is None and a._code == b._code:
        return a, b, a._code
    kind = np.result_type(a.dtype, b.dtype) if dtype is None else np.dtype(dtype)
    if kind not in CODE:
        raise Fallback(f"bh has no element type {kind}")
    return astype(a, kind), astype(b, kind), code_of(kind)


def product(a, b, code):
    """The product of two matrices, or of a matrix and a vector."""
    shape = a.shape[:-1] + b.shape[1:]
    if a.shape[-1] == 0:
        result = _native.full(shape, code, False if code == BOOL else 0)
        result._scalar = not shape
        return result
    if code == BOOL or not shape or a.ndim == 1 and b.ndim == 1:
        return _contracted(a, b)
    result = _native.empty(shape, code, _native.Stack(a._stack))
    if result.size:
        try:
            _native.extension("matmul", [result], [a, b])
        except (TypeError, ValueError, _native.Error):
            return _contracted(a, b)
    return result


def _contracted(a, b):
    """A product of vectors and matrices as a sum of products, which any stack can do."""
    inner = a.ndim - 1
    result = _native.contract((a, list(range(a.ndim))), (b, [inner, inner + 1][: b.ndim]), inner + b.ndim, 1 << inner)
    result._scalar = not result.shape
    return result


def _into(name, result, out, casting, *operands):
    """The result of one of NumPy's functions of whole axes, or the given output with it. NumPy says which shape the output lacks."""
    target = target_of(out)
    if target is not None and target.shape != result.shape:
        getattr(np, name)(*map(stand_in, operands), np.empty(target.shape, target.dtype), casting="unsafe")
    return deliver(result, out, casting, name)


@falls_back
def matmul(x1, x2, /, out=None, *, casting="same_kind", order="K", dtype=None, subok=True, axes=None, axis=_NO_VALUE, keepdims=False):
    """The product of matrices; further dimensions in front are stacks of matrices."""
    if axes is not None:
        raise Fallback("axes")
    a, b, code = _same_type(x1, x2, dtype)
    result = _into("matmul", _matmul(a, b, code), out, casting, a, b)
    if _errors_asked() and floating_point.asked_here(floating_point.PRODUCTS):
        floating_point.examine(np.matmul, (x1, x2), (result,))
    return result


def _matmul(a, b, code):
    if a.ndim == 0 or b.ndim == 0:
        which = 0 if a.ndim == 0 else 1
        raise ValueError(f"matmul: Input operand {which} does not have enough dimensions (has 0, gufunc core with signature (n?,k),(k,m?)->(n?,m?) requires 1)")
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        raise ValueError(f"matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature (n?,k),(k,m?)->(n?,m?) (size {inner} is different from {a.shape[-1]})")
    if a.ndim <= 2 and b.ndim <= 2:
        return product(a, b, code)
    if b.ndim <= 2:
        # The number of rows is no matter of the size, which may be 0.
        rows = reshape(a, (prod(a.shape[:-1]), a.shape[-1]))
        return reshape(product(rows, b, code), a.shape[:-1] + b.shape[1:])
    front = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    rows, many = min(a.ndim, 2) - 1, len(front)
    if many + rows + 2 > _MOST:
        raise Fallback(f"more than {_MOST} dimensions of two operands")
    inner = many + rows
    axes = [[*range(many - max(value.ndim - 2, 0), many)] for value in (a, b)]
    return _native.contract((a, [*axes[0], *range(many, inner + 1)]), (b, [*axes[1], inner, inner + 1]), inner + 2, 1 << inner)


def dot(a, b, out=None):
    """The product of vectors and matrices: sums over the last dimension of one and the last but one of the other."""
    made = _native.product("dot", a, b) if out is None else None
    result = _dot(a, b, out) if made is None else made
    if _errors_asked() and floating_point.asked_here(floating_point.PRODUCTS):
        floating_point.examine(np.dot, (a, b), (result,))
    return result


def _dot(a, b, out):
    a, b, code = _same_type(a, b)
    if a.ndim == 0 or b.ndim == 0:
        if not is_inexact(code):
            # NumPy calls the universal function, which takes other outputs, too.
            made = UFUNCS["multiply"](a, b, out=out)
            return made if made.ndim else made[()]
        return _product_into(_scaled(a, b), out)
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        text = f"shapes {a.shape} and {b.shape} not aligned: {a.shape[-1]} (dim {a.ndim - 1}) != {inner} (dim {max(b.ndim - 2, 0)})"
        raise ValueError(text.replace(", ", ","))
    if a.ndim <= 2 and b.ndim <= 2:
        return _product_into(product(a, b, code), out)
    return _product_into(tensordot(a, b, ((a.ndim - 1,), (max(b.ndim - 2, 0),))), out)


def _scaled(a, b):
    """A number times an array, which is in C's order where BLAS takes it for NumPy."""
    result = UFUNCS["multiply"](a, b)
    by_blas = result.ndim <= 2 and is_inexact(result._code)
    return _native.cast(result, result._code) if by_blas and not result._contiguous else result


def _product_into(result, out):
    """The result, or the given output with it, which has to be just such an array."""
    target = target_of(out)
    if target is not None and not (target._code == result._code and target.ndim == result.ndim and target._contiguous):
        text = "output array is not acceptable (must have the right datatype, number of dimensions, and be a C-Array)"
        raise ValueError(text)
    if target is not None and target.shape != result.shape:
        raise ValueError("output array has wrong dimensions")
    delivered = deliver(result, out)
    # Of a product without dimensions NumPy gives the number.
    return result if delivered.ndim == 0 else delivered


_dot = falls_back(_dot, np.dot)


@falls_back
def vdot(a, b, /):
    """The scalar product of all elements, the first conjugated."""
    if type(a) is type(b) is ndarray and a.ndim == b.ndim == 1 and a.size == b.size and a._code == b._code and not is_complex(a._code):
        return dot(a, b)
    a, b, code = _same_type(a, b)
    if a.size != b.size:
        raise ValueError(f"cannot reshape array of size {b.size} into shape ({a.size},)")
    a = UFUNCS["conjugate"](a) if is_complex(code) else a
    return product(reshape(a, (-1,)), reshape(b, (-1,)), code)


@falls_back
def inner(a, b, /):
    """The sums of products over last dimensions."""
    a, b, code = _same_type(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return _scaled(a, b)
    if a.shape[-1] != b.shape[-1]:
        text = f"shapes {a.shape} and {b.shape} not aligned: {a.shape[-1]} (dim {a.ndim - 1}) != {b.shape[-1]} (dim {b.ndim - 1})"
        raise ValueError(text.replace(", ", ","))
    if a.ndim == 1 and b.ndim == 1:
        return dot(a, b)
    return tensordot(a, b, (-1, -1))


@falls_back
def outer(a, b, out=None):
    """The products of all pairs of elements."""
    a, b, code = _same_type(a, b)
    return UFUNCS["multiply"](reshape(a, (-1, 1)), reshape(b, (1, -1)), **({} if out is None else {"out": out}))


class Matrices:
    """How operands of certain shapes become matrices whose product is their sum of products over some dimensions of each."""

    def __init__(self, a_shape, b_shape, first, second):
        if len(first) != len(second) or any(a_shape[i] != b_shape[j] for i, j in zip(first, second)):
            raise ValueError("shape-mismatch for sum")
        rest_a, rest_b = ([axis for axis in range(len(shape)) if axis not in gone] for shape, gone in ((a_shape, first), (b_shape, second)))
        self.axes = permutation([*rest_a, *first]), permutation([*second, *rest_b])
        rows, inner, columns = (prod(shape[axis] for axis in axes) for shape, axes in ((a_shape, rest_a), (a_shape, first), (b_shape, rest_b)))
        self.forms = (rows, inner), (inner, columns)
        self.shape = (*(a_shape[axis] for axis in rest_a), *(b_shape[axis] for axis in rest_b))

    def product(self, a, b):
        """The sum of products of operands of one type."""
        a, b = (shaped(value, axes, form) for value, axes, form in zip((a, b), self.axes, self.forms))
        made = _native.product("dot", a, b)
        return _native.reshape(product(a, b, a._code) if made is None else made, self.shape)


def permutation(axes):
    """An order of dimensions; None for their own."""
    return None if axes == list(range(len(axes))) else axes


def turned(value, axes):
    """An operand with its dimensions in an order."""
    return value if axes is None else _native.transpose(value, axes)


def shaped(value, axes, shape):
    """An operand with its dimensions in an order, and then a shape."""
    value = turned(value, axes)
    return value if value.shape == shape else _native.reshape(value, shape)


@functools.lru_cache(maxsize=1024)
def _matrices(a_shape, b_shape, axes):
    try:
        first, second = axes
    except TypeError:
        first, second = range(len(a_shape) - axes, len(a_shape)), range(axes)
    return Matrices(a_shape, b_shape, normalize_axis_tuple(first, len(a_shape)), normalize_axis_tuple(second, len(b_shape)))


def _hashable(axes):
    """Axes in tuples, of lists and arrays too."""
    axes = axes.tolist() if hasattr(axes, "tolist") else axes
    return tuple(map(_hashable, axes)) if isinstance(axes, (list, tuple)) else axes


@falls_back
def tensordot(a, b, axes=2):
    """Sums of products over several dimensions of each."""
    a, b, _ = _same_type(a, b)
    return _matrices(a.shape, b.shape, _hashable(axes)).product(a, b)


@falls_back
def vecdot(x1, x2, /, out=None, *, axis=-1, **kwargs):
    """The scalar products of vectors along an axis, the first conjugated."""
    if "axes" in kwargs and axis != -1:
        raise TypeError("cannot specify both 'axis' and 'axes'")
    if kwargs:
        raise Fallback("arguments of universal functions")
    a, b, code = _same_type(x1, x2)
    axis = operator.index(axis)
    a, b = (moveaxis(value, axis, -1) for value in (a, b))
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"vecdot: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature (n),(n)->() (size {b.shape[-1]} is different from {a.shape[-1]})")
    result = sum_(UFUNCS["conjugate"](a) * b, -1, a.dtype)
    return deliver(result if type(out) is not ndarray else fitted(result, out.shape), out, function="vecdot")


def _check_rank(name, place, operand, rank, signature):
    """Fails as NumPy's functions of whole axes do where an operand has too few dimensions."""
    if operand.ndim < rank:
        text = f"has {operand.ndim}, gufunc core with signature {signature} requires {rank}"
        raise ValueError(f"{name}: Input operand {place} does not have enough dimensions ({text})")


@falls_back
def matvec(x1, x2, /, out=None, **kwargs):
    """The products of matrices and vectors."""
    if kwargs:
        raise Fallback("arguments of universal functions")
    x1, x2 = native(x1), native(x2)
    _check_rank("matvec", 0, x1, 2, "(m,n),(n)->(m)")
    _check_rank("matvec", 1, x2, 1, "(m,n),(n)->(m)")
    result = matmul(x1, x2[..., None])
    return _into("matvec", reshape(result, np.broadcast_shapes(x1.shape[:-2], x2.shape[:-1]) + x1.shape[-2:-1]), out, "same_kind", x1, x2)


@falls_back
def vecmat(x1, x2, /, out=None, **kwargs):
    """The products of conjugated vectors and matrices."""
    if kwargs:
        raise Fallback("arguments of universal functions")
    x1, x2 = native(x1), native(x2)
    _check_rank("vecmat", 0, x1, 1, "(n),(n,m)->(m)")
    _check_rank("vecmat", 1, x2, 2, "(n),(n,m)->(m)")
    x1 = UFUNCS["conjugate"](x1) if is_complex(x1._code) else x1
    result = matmul(x1[..., None, :], x2)
    return _into("vecmat", reshape(result, result.shape[:-2] + result.shape[-1:]), out, "same_kind", x1, x2)


@falls_back
def kron(a, b):
    """The product of all pairs of elements, as blocks."""
    a, b, code = _same_type(a, b)
    rank = max(a.ndim, b.ndim)
    one, two = (1,) * (rank - a.ndim) + a.shape, (1,) * (rank - b.ndim) + b.shape
    if rank == 0:
        return a * b
    a = reshape(a, tuple(part for extent in one for part in (extent, 1)))
    b = reshape(b, tuple(part for extent in two for part in (1, extent)))
    return reshape(a * b, tuple(x * y for x, y in zip(one, two)))


@falls_back
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """The vector products of vectors of three elements."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b, code = _same_type(a, b)
    if a.ndim < 1 or b.ndim < 1:
        raise ValueError("At least one array has zero dimension")
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise Fallback("vectors of two elements")
    shape = np.broadcast_shapes(a.shape, b.shape)
    result = _native.empty(shape, code)
    for place in range(3):
        one, two = (place + 1) % 3, (place + 2) % 3
        result[..., place] = a[..., one] * b[..., two] - a[..., two] * b[..., one]
    return moveaxis(result, -1, normalize_axis_index(axisc, len(shape)))
