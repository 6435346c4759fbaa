"""Derivatives through NumPy's linear algebra, Fourier transforms, sorts and compositions, against differences of the fourth order, and
of the way back against the way forward."""

import numpy
import pytest
from test_derivatives import check, values

import bh
import bh as np


def hermitian(a):
    return (a + np.conjugate(np.swapaxes(a, -1, -2))) / 2


def regular(a):
    """Square matrices far from singular ones."""
    return a + 2.0 * np.diag(np.arange(1.0, a.shape[-1] + 1))


def positive(a):
    return hermitian(a) + 3.0 * np.eye(a.shape[-1])


def spread(a):
    """Hermitian matrices with eigenvalues apart."""
    return hermitian(a) * 0.3 + np.diag(np.arange(1.0, a.shape[-1] + 1))


def tall(a):
    """Matrices with singular values apart."""
    return a * 0.3 + np.eye(*a.shape[-2:]) * np.arange(1.0, a.shape[-1] + 1)


def projections(vectors):
    """Values that do not depend on the phases of eigenvectors."""
    return np.abs(vectors) ** 2


def factors(a):
    """Q and R with a positive diagonal of R, in one vector."""
    q, r = np.linalg.qr(a)
    signs = np.sign(np.diagonal(r, 0, -2, -1).real)
    q, r = q * signs[..., None, :], r * signs[..., None]
    return np.concatenate([q.reshape(a.shape[:-2] + (-1,)), r.reshape(a.shape[:-2] + (-1,))], -1)


SQUARE = {
    "solve": lambda a: np.linalg.solve(regular(a), a[..., :2] * a[..., 1:3]),
    "solve of a vector": lambda a: np.linalg.solve(regular(a), a[..., 0, :, None])[..., 0],
    "inv": lambda a: np.linalg.inv(regular(a)),
    "det": lambda a: np.linalg.det(regular(a)),
    "negative det": lambda a: np.linalg.det(regular(a)[..., ::-1, :]),
    "logarithm of the determinant": lambda a: np.linalg.slogdet(regular(a))[1],
    "cholesky": lambda a: np.linalg.cholesky(positive(a)),
    "upper cholesky": lambda a: np.linalg.cholesky(positive(a), upper=True),
    "qr": lambda a: factors(regular(a)),
    "only r": lambda a: np.abs(np.linalg.qr(regular(a), mode="r")) ** 2,
    "eigvalsh": lambda a: np.linalg.eigvalsh(spread(a)),
    "eigh values": lambda a: np.linalg.eigh(spread(a))[0],
    "eigh vectors": lambda a: projections(np.linalg.eigh(spread(a))[1]) * np.linalg.eigh(spread(a), "U")[0][..., None],
    "function of a matrix": lambda a: (lambda w, v: (v * np.exp(w)[..., None, :]) @ np.conjugate(np.swapaxes(v, -1, -2)))(*np.linalg.eigh(spread(a))),
    "svd": lambda a: (lambda u, s, v: (u * (s**2)[..., None, :]) @ v + projections(u) + projections(v))(*np.linalg.svd(tall(a))),
    "norms": lambda a: np.linalg.norm(a) + np.linalg.norm(tall(a), 2, (-2, -1)) + np.linalg.norm(tall(a), "nuc", (-2, -1)),
    "matrix_power": lambda a: np.linalg.matrix_power(a, 3),
    "inverse power": lambda a: np.linalg.matrix_power(regular(a), -2),
    "cond": lambda a: np.linalg.cond(tall(a)),
}


@pytest.mark.parametrize("name", SQUARE)
def test_square_matrices(name):
    function = SQUARE[name]
    check(function, values((4, 4)))
    check(function, values((2, 3, 3), seed=2))
    check(function, values((3, 3)) + 1j * values((3, 3), low=-0.4, high=0.4, seed=3))


def test_determinants_in_order():
    check(lambda a: np.linalg.slogdet(regular(a))[0] * np.linalg.slogdet(regular(a))[1], values((4, 4)))
    check(lambda a: np.linalg.slogdet(regular(a))[0], values((3, 3)) + 1j * values((3, 3), seed=3))
    check(lambda a: np.linalg.multi_dot([a, a.T, a]), values((3, 4)))


RECTANGULAR = {
    "qr": lambda a: factors(tall(a)),
    "svd": lambda a: (lambda u, s, v: (u * (s**2)[..., None, :]) @ v)(*np.linalg.svd(tall(a), full_matrices=False)),
    "left vectors": lambda a: projections(np.linalg.svd(tall(a), full_matrices=False)[0]),
    "right vectors": lambda a: projections(np.linalg.svd(tall(a), full_matrices=False)[2]),
    "singular values": lambda a: np.linalg.svd(tall(a), compute_uv=False),
    "svdvals": lambda a: np.linalg.svdvals(tall(a)) ** 2,
    "pinv": lambda a: np.linalg.pinv(tall(a)),
}


@pytest.mark.parametrize("name", RECTANGULAR)
def test_rectangular_matrices(name):
    for shape in ((5, 3), (3, 5)):
        check(RECTANGULAR[name], values(shape))
        check(RECTANGULAR[name], values(shape) + 1j * values(shape, seed=3))


def test_least_squares():
    check(lambda a, b: np.linalg.lstsq(tall(a), b)[0], values((5, 3)), values((5,), seed=2))
    check(lambda a, b: np.linalg.lstsq(tall(a), b)[0], values((5, 3)), values((5, 2), seed=2))
    check(lambda a, b: np.linalg.lstsq(tall(a), b)[1], values((5, 3)), values((5, 2), seed=2))


def test_low_ranks():
    a = values((5, 2)) @ values((2, 4), seed=2)
    check(lambda x, y: np.linalg.pinv(x @ y), values((5, 2)), values((2, 4), seed=2))
    check(lambda s: np.linalg.lstsq(s * np.array(a), np.array(a[:, 0]))[0], numpy.array(1.3))


def test_eigenvalues_of_any_matrix():
    def reconstructed(a):
        values, vectors = np.linalg.eig(regular(a))
        return ((vectors * np.exp(values)) @ np.linalg.inv(vectors)).real

    check(reconstructed, values((4, 4)))
    check(lambda a: projections(np.linalg.eig(regular(a))[1]), values((4, 4)))
    check(lambda a: np.abs(np.linalg.eigvals(regular(a))) ** 2, values((4, 4)))
    check(lambda a: np.linalg.eigvals(regular(a)), values((3, 3)) + 1j * values((3, 3), seed=3))


def test_equal_eigenvalues():
    check(lambda s: (lambda w, v: (v * np.sin(w)) @ v.T)(*np.linalg.eigh(np.eye(3) * s + np.diag(np.array([0.0, 0.0, 1.0])))), numpy.array(0.7))


def test_second_derivatives_of_factorizations():
    for function in (
        lambda a: np.linalg.slogdet(regular(a))[1],
        lambda a: np.linalg.cholesky(positive(a)).sum(),
        lambda a: (np.linalg.eigvalsh(spread(a)) ** 3).sum(),
        lambda a: (np.linalg.qr(regular(a))[1] ** 2).sum(),
        lambda a: (np.linalg.svd(tall(a), compute_uv=False) ** 3).sum(),
        lambda a: (np.linalg.inv(regular(a)) ** 2).sum(),
    ):
        check(bh.grad(function), values((3, 3)), rtol=1e-5)


def test_what_matrices_do_not_determine():
    for function in (lambda a: np.linalg.svd(a)[0].sum(), lambda a: np.linalg.qr(a, mode="complete")[0].sum()):
        with pytest.raises(bh.Error, match="test_derivatives_of_numpy.py.*derivative is not known"):
            bh.grad(function)(np.array(values((5, 3))))


FOURIER = {
    "fft": lambda x: np.fft.fft(x, axis=0),
    "padded fft": lambda x: np.fft.fft(x, 7, norm="ortho"),
    "cut ifft": lambda x: np.fft.ifft(x, 3, norm="forward"),
    "fft2": lambda x: np.fft.fft2(x),
    "ifft2": lambda x: np.fft.ifft2(x, norm="ortho"),
    "fftn": lambda x: np.fft.fftn(x, s=(6, 4), axes=(0, 1)),
    "ifftn": lambda x: np.fft.ifftn(x),
    "hfft": lambda x: np.fft.hfft(x),
    "hfft of an odd number": lambda x: np.fft.hfft(x, 7),
    "irfft": lambda x: np.fft.irfft(x),
    "irfft of an odd number": lambda x: np.fft.irfft(x, 7, axis=0),
    "irfft2": lambda x: np.fft.irfft2(x),
    "irfftn": lambda x: np.fft.irfftn(x, s=(4, 6), axes=(0, 1), norm="forward"),
    "shifts": lambda x: np.fft.fftshift(x) * np.fft.ifftshift(x, axes=0),
}
REAL = {
    "rfft": lambda x: np.fft.rfft(x),
    "rfft of an odd number": lambda x: np.fft.rfft(x, 7, axis=0, norm="ortho"),
    "rfft2": lambda x: np.fft.rfft2(x),
    "rfftn": lambda x: np.fft.rfftn(x, norm="forward"),
    "ihfft": lambda x: np.fft.ihfft(x),
    "spectral derivative": lambda x: np.fft.irfft(np.fft.rfft(x) * (1j * np.arange(3.0)), 5) * x,
}


@pytest.mark.parametrize("name", [*FOURIER, *REAL])
def test_fourier_transforms(name):
    check({**FOURIER, **REAL}[name], values())
    if name in FOURIER:
        check(FOURIER[name], values() + 1j * values(seed=4))


COMPOSED = {
    "median": lambda x: np.median(x, axis=0),
    "median of an odd number": lambda x: np.median(x, axis=1),
    "median of all": lambda x: np.median(x),
    "quantile": lambda x: np.quantile(x, 0.3, axis=0),
    "percentile": lambda x: np.percentile(x, [20, 55], axis=1),
    "partition": lambda x: np.partition(x, 2, axis=1)[:, :2],
    "take_along_axis": lambda x: np.take_along_axis(x, np.argsort(x, axis=0), axis=0) ** 2,
    "put_along_axis": lambda x: put_along_axis(x),
    "argsort": lambda x: x[np.arange(4)[:, None], np.argsort(-x, axis=1)] * np.arange(5.0),
    "cumprod": lambda x: np.cumprod(x),
    "cumulative_sum": lambda x: np.cumulative_sum(x, axis=1) * x,
    "interp of points": lambda x: np.interp(x[0], np.array([0.0, 0.3, 0.6, 1.0]), x[1, :4]),
    "interp of places": lambda x: np.interp(np.array([0.25, 0.5, 0.6]), np.cumsum(x[0]) * 0.2, x[1]),
    "convolve same": lambda x: np.convolve(x[0], x[1, :3], "same"),
    "convolve valid": lambda x: np.convolve(x[0], x[1, :3], "valid"),
    "correlate": lambda x: np.correlate(x[0], x[1, :3], "full"),
    "einsum trace": lambda x: np.einsum("ii->", x[:, :4]),
    "einsum diagonal": lambda x: np.einsum("ii->i", x[:, :4]) ** 2,
    "einsum of three": lambda x: np.einsum("ij,kj,kl->il", x, x, x),
    "einsum of batches": lambda x: np.einsum("bij,bjk->bik", x.reshape(2, 2, 5), x.reshape(2, 5, 2)),
    "einsum with a vector": lambda x: np.einsum("ij,j->i", x, x[0]),
    "einsum outer": lambda x: np.einsum("i,j->ij", x[:, 0], x[0]),
    "inner": lambda x: np.inner(x, x * x),
    "kron": lambda x: np.kron(x[:2, :2], x[2:, :2]),
    "vdot": lambda x: np.vdot(x, np.sin(x)),
    "trace": lambda x: np.trace(x) * x,
    "polyval": lambda x: np.polyval(x[0], x[1]),
    "gradient": lambda x: np.gradient(x, axis=0) ** 2,
    "cov": lambda x: np.cov(x),
    "corrcoef": lambda x: np.corrcoef(x),
    "meshgrid": lambda x: (lambda a, b: a * b)(*np.meshgrid(x[0], x[:, 1])),
    "nanmean": lambda x: np.nanmean(x, axis=0),
    "unwrap": lambda x: np.unwrap(x * 9, axis=1),
    "vander": lambda x: np.vander(x[0], 3),
    "select": lambda x: np.select([x > 0.7, x > 0.4], [x * x, np.sin(x)], 0.0),
    "piecewise": lambda x: np.piecewise(x, [x > 0.5, x <= 0.5], [lambda v: v * v, lambda v: 2 * v]),
    "choose": lambda x: np.choose(np.array([0, 1, 0, 1, 0]), [x[0], x[1] ** 2]),
    "block": lambda x: np.block([[x, x * x], [x[::-1], x]]),
    "rot90": lambda x: np.rot90(x) * np.arange(4.0),
    "delete": lambda x: np.delete(x, 1, axis=1) ** 2,
    "insert": lambda x: np.insert(x, 1, x[:, 0], axis=1) ** 2,
    "lexsorted": lambda x: x[:, np.lexsort((x[0], x[1]))] * np.arange(5.0),
    "heaviside": lambda x: np.heaviside(x - 0.5, 0.5) * x,
    "sinc": lambda x: np.sinc(x),
    "i0": lambda x: np.i0(x),
    "histogram of weights": lambda x: np.bincount(np.array([0, 1, 1, 0, 2]), weights=x[0]) ** 2,
}


def put_along_axis(x):
    np.put_along_axis(x, np.array([[0], [2], [1], [4]]), x[:, :1] * 3, axis=1)
    return x * x


@pytest.mark.parametrize("name", COMPOSED)
def test_composed_functions(name):
    check(COMPOSED[name], values())
