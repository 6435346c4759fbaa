"""The functions of the array API standard 2024.12: each one by name, on the stack, with NumPy's results."""

import inspect

import numpy
import pytest

import bh
from conftest import decomposes, same

A = numpy.random.default_rng(5).normal(size=(4, 3))
S = A.T @ A + numpy.eye(3)
V = numpy.array([5, 3, 8, 1, 3])
B = numpy.array([True, False, True])

# One use of each function; `api` is the library.
USES = """
abs(A) acos(A/9) acosh(A*A+1) add(A,1) asin(A/9) asinh(A) atan(A) atan2(A,A+1) atanh(A/9) bitwise_and(V,3)
bitwise_left_shift(V,2) bitwise_invert(V) bitwise_or(V,4) bitwise_right_shift(V,1) bitwise_xor(V,5) ceil(A) clip(A,-1,1)
conj(A+1j) copysign(A,-1.0) cos(A) cosh(A) divide(A,2) equal(V,3) exp(A) expm1(A) floor(A) floor_divide(V,2) greater(A,0)
greater_equal(A,0) hypot(A,A+1) imag(A*1j) isfinite(A) isinf(A) isnan(A) less(A,0) less_equal(A,0) log(A*A) log1p(A*A)
log2(A*A) log10(A*A) logaddexp(A,A+1) logical_and(B,B) logical_not(B) logical_or(B,B) logical_xor(B,B) maximum(A,0)
minimum(A,0) multiply(A,A) negative(A) nextafter(A,A+1) not_equal(V,3) positive(A) pow(A*A,1.5) real(A*1j) reciprocal(A)
remainder(V,3) round(A) sign(A) signbit(A) sin(A) sinh(A) square(A) sqrt(A*A) subtract(A,1) tan(A) tanh(A) trunc(A)
cumulative_prod(V) cumulative_sum(V) max(A) mean(A,axis=0) min(A) prod(A) std(A,axis=1) sum(A) var(A)
take(V,V%5) take_along_axis(V,V%5) broadcast_arrays(A,A[0]) broadcast_to(A[0],(2,3)) concat((A,A)) expand_dims(A,axis=1)
flip(A) moveaxis(A,0,1) permute_dims(A,(1,0)) repeat(V,2) reshape(A,(6,2)) roll(A,1) squeeze(A[None],axis=0) stack((A,A))
tile(A,(2,1)) unstack(A) arange(5) asarray(V) empty((2,3)).shape empty_like(A).shape eye(3) from_dlpack(V) full((2,2),3)
full_like(A,2) linspace(0,1,5) meshgrid(V,V) ones(3) ones_like(A) tril(A) triu(A) zeros(3) zeros_like(A)
argmax(A,axis=1) argmin(A) count_nonzero(V) nonzero(V) searchsorted(V,V) where(B,A,0.0) all(B) any(B) diff(V) argsort(V) sort(V)
unique_all(V) unique_counts(V) unique_inverse(V) unique_values(V) matmul(A,S) matrix_transpose(A) tensordot(A,S,axes=1) vecdot(A,A)
astype(V,'f4') can_cast('f4','f8') finfo('f4').eps iinfo('i4').max isdtype(numpy.dtype('f4'),'integral') result_type(V,A)
linalg.cholesky(S) linalg.cross(A,A+1) linalg.det(S) linalg.diagonal(S) linalg.eigh(S)[0] linalg.eigvalsh(S) linalg.inv(S)
linalg.matmul(A,S) linalg.matrix_norm(A) linalg.matrix_power(S,2) linalg.matrix_rank(A) linalg.matrix_transpose(A)
linalg.outer(V,V) linalg.pinv(A) linalg.qr(A).Q.shape linalg.slogdet(S) linalg.solve(S,A.T) linalg.svd(A)[1] linalg.svdvals(A)
linalg.tensordot(A,S,axes=1) linalg.trace(S) linalg.vecdot(A,A) linalg.vector_norm(A)
fft.fft(A) fft.ifft(A) fft.fftn(A) fft.ifftn(A) fft.rfft(A) fft.irfft(A) fft.rfftn(A) fft.irfftn(A) fft.hfft(A) fft.ihfft(A)
fft.fftfreq(5) fft.rfftfreq(5) fft.fftshift(A) fft.ifftshift(A)
""".split()

# Names that the stack has no method for.
LEFT = () if decomposes() else [f"linalg.{name}" for name in "eigh eigvalsh matrix_rank pinv qr svd svdvals".split()]


def name_of(use):
    return use.split("(")[0]


def ids():
    return [name_of(use) for use in USES]


@pytest.mark.parametrize("use", USES, ids=ids())
def test_each_function_is_native(use):
    values = {"A": A, "S": S, "V": V, "B": B}
    if use.startswith("where"):
        values["A"] = A[0]
    if use.startswith("searchsorted"):
        values["V"] = numpy.sort(V)
    expected = eval("api." + use, {"api": numpy, "numpy": numpy, **values})
    mine = {"api": bh, "numpy": numpy, **{name: bh.asarray(value) for name, value in values.items()}}
    if name_of(use) in LEFT:
        with pytest.raises(bh.FallbackError):
            eval("api." + use, mine)
        return
    result = eval("api." + use, mine)
    if isinstance(expected, (tuple, list)) or isinstance(expected, (numpy.ndarray, numpy.generic)):
        same(result, expected, ulps=64)
    else:
        assert result == expected


def test_nine_of_ten_are_native():
    assert len(USES) >= 170 and 10 * len(LEFT) <= len(USES)


def test_information_on_the_namespace():
    info = bh.__array_namespace_info__()
    assert info.capabilities()["max dimensions"] == 16 and list(info.devices()) == ["cpu"] and info.default_device() == "cpu"
    assert info.default_dtypes()["real floating"] == bh.float64 and "complex64" in info.dtypes()


def test_sorting_in_descending_order():
    x = bh.asarray(numpy.array([[3, 1, 3, 2], [0, 5, 5, 0]]))
    same(bh.sort(x, descending=True), numpy.array([[3, 3, 2, 1], [5, 5, 0, 0]]))
    same(bh.argsort(x, descending=True), numpy.array([[0, 2, 3, 1], [1, 2, 0, 3]]))
    same(bh.argsort(x, axis=None, descending=True), numpy.array([5, 6, 0, 2, 3, 1, 4, 7]))


def test_astype_copies_unless_told():
    x = bh.arange(3)
    assert bh.astype(x, x.dtype) is not x and bh.astype(x, x.dtype, copy=False) is x
    assert str(inspect.signature(bh.astype)) == "(x, dtype, /, *, copy=True, device=None)"
    with pytest.raises(ValueError):
        bh.astype(x, bh.float32, device="tpu")
