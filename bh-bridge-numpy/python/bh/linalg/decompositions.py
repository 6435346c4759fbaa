"""Factorisations of matrices by methods of the stack: QR, singular values, eigenvalues, and least squares from them."""

from functools import reduce
from math import prod

import numpy as np

from .. import _native
from .._array.conversion import astype, native
from .._array.element_types import FLOAT64, complex_code, is_complex, is_inexact, real_code
from .._functions import products
from .._functions.manipulation import matrix_transpose, reshape
from .._functions.reductions import sum as _sum
from .._jit.symbols import here
from .._numpy.fallback import Fallback
from .._numpy.lapack import by_lapack
from .._ufunc.ufunc import UFUNCS as _u

ndarray = _native.ndarray
LinAlgError = np.linalg.LinAlgError
_o = np.linalg

# Messages of methods that fail, and NumPy's messages for the same failures. Their texts name the program's files, too.
_FAILURES = {"matrix is singular": "Singular matrix", "is not positive definite": "Matrix is not positive definite"}
# Failures whose values, or errors, are NumPy's: its iterations may end where others do not, and it has results, or errors, for
# matrices with infinite elements or NaN.
_LEFT_TO_NUMPY = ("no component", "do not converge", "infinite or not a number")


def check_shape(a, square=False):
    """Fails as NumPy does for arrays that are no matrices, or not square."""
    if a.ndim < 2:
        raise LinAlgError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    if square and a.shape[-1] != a.shape[-2]:
        raise LinAlgError("Last 2 dimensions of the array must be square")


def matrices(a, square=False):
    """Matrices in a floating-point type."""
    a = native(a)
    check_shape(a, square)
    return a if is_inexact(a._code) else astype(a, np.float64)


def real_type(kind):
    """The real type of the precision of this one."""
    return kind.type(0).real.dtype


def new(like, shape, code=None):
    """A new array beside another one."""
    return _native.empty(shape, like._code if code is None else code, _native.Stack(like._stack))


def _check_finite(matrices):
    """Raises Fallback for infinite elements or NaN: NumPy may have results for such matrices."""
    if not all(bool(_u["logical_and"].reduce(_u["isfinite"](a), None)) for a in matrices):
        raise Fallback("a matrix with infinite elements or NaN")


# Matrices of a stack with fewer rows and columns are one call; of larger ones, each is a call, which ranks and devices share.
_LITTLE = 256


def method(name, outs, inputs, ranks, sound=None):
    """Calls an extension method for each matrix of stacks of them, which have the same extents in front; `ranks`: the dimensions
    that belong to one matrix, for the outputs, then for the inputs. Waits for the results, as it may fail, except in traced
    functions: reading their results raises the error. Raises Fallback for results that are NaN, and where `sound`, a function of the
    results, gives an array that is false: a single read answers that and shows whether the method failed."""
    is_sound = True
    try:
        if max(inputs[0].shape[-2:]) < _LITTLE:
            _native.extension(name, outs, inputs)
        else:
            _each(name, outs, inputs, ranks)
        if not here.records:
            is_sound = bool(_is_sound(outs, sound))
        elif not here.tracing:
            _native.Stack(outs[0]._stack).flush()
    except (_native.Error, ValueError) as error:
        text = str(error)
        if any(cause in text for cause in _LEFT_TO_NUMPY):
            raise Fallback(text) from None
        for cause, message in _FAILURES.items():
            if cause in text:
                _check_finite(inputs)
                raise LinAlgError(message) from None
        raise
    if not is_sound:
        raise Fallback("a result that is not a number, or a matrix that is singular but for rounding")


def _is_sound(outs, sound):
    """Has no result an element that is NaN, and is what `sound` gives true?"""
    numbers = [out for out in outs if is_inexact(out._code)]
    found = [_u["logical_not"](_u["logical_or"].reduce(_u["isnan"](out), None)) for out in numbers]
    return reduce(_u["logical_and"], [*found, *([sound()] if sound else [])])


def _each(name, outs, inputs, ranks):
    """Calls a method once for each matrix."""
    arrays = [*outs, *inputs]
    splits = [array.ndim - rank for array, rank in zip(arrays, ranks)]
    flat = [reshape(array, (prod(array.shape[:split]), *array.shape[split:])) for array, split in zip(arrays, splits)]
    for number in range(flat[0].shape[0]):
        each = [array[number] for array in flat]
        _native.extension(name, each[: len(outs)], each[len(outs) :])


def adjoint(a):
    """The conjugate transposes of matrices."""
    turned = matrix_transpose(a)
    return _u["conjugate"](turned) if is_complex(a._code) else turned


def _unit(like, rows, columns):
    """Stacks of the first columns (or rows) of unit matrices."""
    result = new(like, (*like.shape[:-2], rows, columns))
    result[...] = astype(native(np.eye(rows, columns)), like.dtype)
    return result


@by_lapack(_o.qr, has_little=True, finds_nan=True)
def qr(a, mode="reduced"):
    """Q with orthonormal columns and R with zeros below its diagonal, whose product is `a`."""
    a = matrices(a)
    if mode not in ("reduced", "complete", "r"):
        if mode == "raw" or mode in ("f", "full", "e", "economic"):
            raise Fallback(f"the mode {mode}")
        raise ValueError(f"Unrecognized mode '{mode}'")
    rows, columns = a.shape[-2:]
    inner = rows if mode == "complete" else min(rows, columns)
    q, r = new(a, (*a.shape[:-1], inner)), new(a, (*a.shape[:-2], inner, columns))
    if a.size:
        method("qr", [q, r], [a], (2, 2, 2))
        if is_complex(a._code):
            _make_diagonal_real(q, r)
    else:
        q[...] = _unit(a, rows, inner)
        r[...] = 0
    return r if mode == "r" else _o._linalg.QRResult(q, r)


def _make_diagonal_real(q, r):
    """Gives complex factors phases with which the diagonal of R is real, as LAPACK's is; signs may differ from its."""
    where = lambda mask, x, y: _native.operate("where", [mask, x, y])
    diagonal = _native.diagonal(r, 0, r.ndim - 2, r.ndim - 1)
    size, count = _u["absolute"](diagonal), diagonal.shape[-1]
    is_zero, is_negative = size == 0, _native.operate("real", [diagonal]) < 0
    unit = where(is_zero, astype(_native.full((), FLOAT64, 1.0), diagonal.dtype), diagonal / where(is_zero, 1.0, size))
    phases = where(is_negative, -unit, unit)
    q[..., :count] *= phases[..., None, :]
    r[..., :count, :] *= _u["conjugate"](phases)[..., None]
    diagonal[...] = where(is_negative, -size, size)


@by_lapack(_o.svd, has_little=True, finds_nan=True)
def svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    """U, the singular values s in falling order, and Vᴴ, where U·diag(s)·Vᴴ is `a`; or the values alone."""
    return _svd(a, full_matrices, compute_uv)


def _svd(a, full_matrices=True, compute_uv=True):
    a = matrices(a)
    rows, columns = a.shape[-2:]
    short = min(rows, columns)
    values = new(a, (*a.shape[:-2], short), real_code(a._code))
    if not compute_uv:
        if values.size:
            method("svd", [values], [a], (1, 2))
        return values
    left, right = (rows, columns) if full_matrices else (short, short)
    u, vh = new(a, (*a.shape[:-1], left)), new(a, (*a.shape[:-2], right, columns))
    if a.size:
        method("svd", [u, values, vh], [a], (2, 1, 2, 2))
    else:
        u[...], vh[...] = _unit(a, rows, left), _unit(a, right, columns)
    return _o._linalg.SVDResult(u, values, vh)


@by_lapack(_o.svdvals, has_little=True, finds_nan=True)
def svdvals(x, /):
    """The singular values in falling order."""
    return _svd(x, compute_uv=False)


def _hermitian(a, UPLO):
    """Matrices of which the triangle that is read is the lower one."""
    a, UPLO = matrices(a, square=True), UPLO.upper()
    if UPLO not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return adjoint(a) if UPLO == "U" else a


@by_lapack(_o.eigh, has_little=True, finds_nan=True)
def eigh(a, UPLO="L"):
    """The eigenvalues of Hermitian matrices in rising order, and the eigenvectors in columns."""
    a = _hermitian(a, UPLO)
    values, vectors = new(a, a.shape[:-1], real_code(a._code)), new(a, a.shape)
    if a.size:
        method("eigh", [values, vectors], [a], (1, 2, 2))
    return _o._linalg.EighResult(values, vectors)


@by_lapack(_o.eigvalsh, has_little=True, finds_nan=True)
def eigvalsh(a, UPLO="L"):
    """The eigenvalues of Hermitian matrices in rising order."""
    a = _hermitian(a, UPLO)
    values = new(a, a.shape[:-1], real_code(a._code))
    if a.size:
        method("eigh", [values], [a], (1, 2))
    return values


# NumPy's types of eigenvalues do not depend on their values since 2.5.
_ALWAYS_COMPLEX = np.lib.NumpyVersion(np.__version__) >= "2.5.0"


def _real_if_possible(values, vectors=None):
    """Eigenvalues of real matrices, and their vectors, as real numbers if all values are, where NumPy's types depend on them."""
    if not _ALWAYS_COMPLEX and bool((values.imag == 0).all()):
        return tuple(_native.cast(_native.operate("real", [x]), real_code(x._code)) for x in (values, vectors) if x is not None)
    return values, vectors


@by_lapack(_o.eig)
def eig(a):
    """The eigenvalues of square matrices, and the eigenvectors in columns."""
    a = matrices(a, square=True)
    code = complex_code(a._code)
    values, vectors = new(a, a.shape[:-1], code), new(a, a.shape, code)
    if a.size:
        method("eig", [values, vectors], [a], (1, 2, 2))
    if not is_complex(a._code):
        values, vectors = _real_if_possible(values, vectors)
    return _o._linalg.EigResult(values, vectors)


@by_lapack(_o.eigvals)
def eigvals(a):
    """The eigenvalues of square matrices."""
    a = matrices(a, square=True)
    values = new(a, a.shape[:-1], complex_code(a._code))
    if a.size:
        method("eig", [values], [a], (1, 2))
    return values if is_complex(a._code) else _real_if_possible(values)[0]


@by_lapack(_o.lstsq)
def lstsq(a, b, rcond=None):
    """The least x for which the length of b - a·x is least; the squares of those lengths, the rank, the singular values."""
    a, b = native(a), native(b)
    for array in (a, b if b.ndim > 1 else a):
        if array.ndim != 2:
            raise LinAlgError(f"{array.ndim}-dimensional array given. Array must be two-dimensional")
    a = matrices(a)
    kind = np.result_type(a.dtype, b.dtype, np.float32)
    # As in NumPy, whose factors have the larger types here.
    wide = np.result_type(kind, np.float64)
    a, b = astype(a, wide), astype(b, wide)
    rows, columns = a.shape
    if b.ndim and rows != b.shape[0]:
        raise LinAlgError("Incompatible dimensions")
    if not a.size or not b.size or not b.ndim:
        raise Fallback("an empty matrix, or a right side without dimensions")
    if rcond is None:
        rcond = np.finfo(kind).eps * max(rows, columns)
    sides = b[:, None] if b.ndim == 1 else b
    u, s, vh = _svd(a, full_matrices=False)
    kept = s > s[0] * (rcond if rcond >= 0 else np.finfo(wide).eps)
    inverse = _native.operate("where", [kept, 1.0 / s, _native.full(s.shape, s._code, 0.0)])
    x = products.matmul(adjoint(vh), inverse[:, None] * products.matmul(adjoint(u), sides))
    rank = np.int32(int(_sum(kept)))
    left = sides - products.matmul(a, x)
    squares = _u["square"](_u["absolute"](left))
    residuals = _sum(squares, 0) if rank == columns < rows else _native.empty((0,), real_code(a._code))
    x, residuals, s = astype(x, kind), astype(residuals, real_type(kind)), astype(s, real_type(kind))
    return x[:, 0] if b.ndim == 1 else x, residuals, rank, s
