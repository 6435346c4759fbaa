"""Functions of shapes, reductions, searches and products against NumPy's."""

import inspect

import numpy
import pytest

import bh
from bh._functions import einsum as _einsum
from conftest import same

A = numpy.random.default_rng(1).normal(size=(4, 5))
B = numpy.random.default_rng(2).normal(size=(5, 3))
C = numpy.random.default_rng(3).integers(-5, 9, (3, 4, 5))
V = numpy.array([3, 1, 2, 2, 0, 7, 1])
N = numpy.where(A > 0.8, numpy.nan, A)

CALLS = """
np.zeros((2,3)) | np.ones(3,'int8') | np.full((2,2),7) | np.full(3,[1.,2,3]) | np.eye(3,4,1) | np.identity(3) | np.tri(3,4,1)
np.arange(5) | np.arange(2,9,3) | np.arange(9,0,-2) | np.arange(0,1,0.1) | np.arange(3.0) | np.arange(4,dtype='f4') | np.arange(-3,3,dtype='int16')
np.linspace(0,1,7) | np.linspace(1,2,5,endpoint=False) | np.linspace(0,10,4,dtype=int) | np.linspace(A[0],A[1],3) | np.linspace(3,3,2) | np.linspace(2,5,1)
np.zeros_like(C) | np.ones_like(A) | np.full_like(C,3) | np.empty_like(A).shape | np.indices((2,3)) | np.meshgrid(A[0],V) | np.meshgrid(A[0],V,indexing='ij')
np.fromfunction(lambda i,j:i+2*j,(3,4)) | np.diag(A) | np.diag(V) | np.diag(V,1) | np.diagonal(C,1,0,2) | np.tril(A) | np.triu(A,1) | np.tril(C,-1) | np.diagflat([[1,2],[3,4]])
np.reshape(C,(5,-1)) | np.reshape(C.T,(6,10)) | np.reshape(C,(10,6),order='F') | np.ravel(C) | np.ravel(A,order='F') | np.transpose(C) | np.transpose(C,(2,0,1)) | np.swapaxes(C,0,2) | np.moveaxis(C,0,-1) | np.rollaxis(C,2) | np.expand_dims(A,(0,2)) | np.squeeze(A[None,:,None]) | np.matrix_transpose(C)
np.concatenate([A,A[:2]]) | np.concatenate([A,C[0]],1) | np.concatenate([A,V],None) | np.stack([A,A+1],1) | np.vstack([V,V]) | np.hstack([A,A]) | np.dstack([A,A]) | np.column_stack([V,V]) | np.append(A,V) | np.append(A,A,0) | np.concat([V,V])
np.split(V[:6],3) | np.array_split(V,3) | np.split(A,[1,3]) | np.hsplit(C,2) | np.vsplit(C,3) | np.dsplit(C,5) | np.unstack(A)
np.flip(C) | np.flip(C,1) | np.fliplr(A) | np.flipud(A) | np.roll(V,2) | np.roll(C,(1,2),(0,2)) | np.roll(A,-3) | np.rot90(A) | np.rot90(C,2,(1,2)) | np.tile(A,(2,3)) | np.tile(V,2) | np.repeat(V,3) | np.repeat(A,2,1) | np.repeat(V,V) | np.resize(V,(3,5)) | np.broadcast_to(V,(2,7)) | np.broadcast_arrays(V[:,None],A[0]) | np.atleast_1d(3.0,A) | np.atleast_2d(V) | np.atleast_3d(A)
np.pad(A,2) | np.pad(V,(1,2),'edge') | np.pad(A,((1,1),(0,2)),'constant',constant_values=7) | np.pad(V,3,'reflect') | np.pad(V,2,'wrap') | np.pad(V,2,'symmetric') | np.insert(V,2,9) | np.delete(V,2) | np.delete(A,1,1) | np.trim_zeros(np.array([0,1,2,0])) | np.block([[A,A],[A,A]]) | np.kron(A[:2,:2],B[:2]) | np.vander(A[0],3)
np.sum(C) | np.sum(C,0) | np.sum(C,(0,2),keepdims=True) | np.prod(A,1) | np.mean(A) | np.mean(C,1) | np.std(A,0) | np.var(A,1,ddof=1) | np.max(C,2) | np.min(C) | np.ptp(C,0) | np.any(C>5,1) | np.all(C>-6) | np.cumsum(C,1) | np.cumsum(A) | np.cumprod(A,0) | np.average(A,0) | np.average(A,1,A[0]**2) | np.count_nonzero(C,1) | np.argmax(C,1) | np.argmin(A) | np.argmax(N,1) | np.trace(A) | np.cumulative_sum(V) | np.cumulative_prod(A,axis=1)
np.median(A) | np.median(A,0) | np.percentile(A,[10,50]) | np.quantile(A,0.3,1) | np.nansum(N,1) | np.nanmean(N,0) | np.nanstd(N) | np.nanmin(N,1) | np.nanmax(N) | np.nanmedian(N,1) | np.nancumsum(N) | np.nanprod(N) | np.nanvar(N,0) | np.nanargmax(N,1) | np.nanpercentile(N,30,0)
np.where(A>0,A,0) | np.where(C>2) | np.where(V>1,V,1.5) | np.nonzero(C) | np.argwhere(V) | np.flatnonzero(V) | np.take(A,[1,0,-1],1) | np.take(V,[[1,2],[0,3]]) | np.take(V,[9,-9],mode='clip') | np.take(V,[9,-9],mode='wrap') | np.take_along_axis(A,np.argsort(A,1),1) | np.compress([True,False,True],C,0) | np.extract(A>0,A) | np.choose(V%3,[V,V+10,V+20]) | np.select([V<2,V<5],[V,V*10],-1) | np.clip(A,-0.5,0.5) | np.clip(C,None,3) | np.round(A,2) | np.round(A*100,-1) | np.searchsorted(np.sort(V),[0,2,9]) | np.searchsorted(np.sort(A[0]),A,side='right') | np.digitize(A,np.array([-1,0,1.])) | np.bincount(V) | np.bincount(V,A[0][V%5]) | np.diff(V) | np.diff(A,2,0) | np.diff(V,prepend=0) | np.ediff1d(V)
np.sort(A) | np.sort(C,0) | np.sort(A,None) | np.argsort(V,kind='stable') | np.argsort(A,0) | np.sort(N,1) | np.unique(V) | np.unique(V,return_counts=True,return_index=True,return_inverse=True) | np.union1d(V,[1,9]) | np.intersect1d(V,[1,2,8]) | np.setdiff1d(V,[1,2]) | np.setxor1d(V,[1,9]) | np.isin(V,[1,2])
np.dot(A,B) | np.dot(V,V) | np.dot(A,A[0]) | np.matmul(A,B) | np.matmul(C,np.swapaxes(C,1,2)) | np.matmul(C,V[:5]) | np.matmul(C[:0,:1,:0],C[:0,:0,:0]) | np.matmul(C[:,:0],np.swapaxes(C,1,2)) | np.matmul(C[...,:0],C[0,:0]) | np.matmul(C[...,:0],C[:,:0]) | A@B | np.inner(A,A) | np.outer(V,V) | np.vdot(A,A) | np.tensordot(C,C,((0,1),(0,1))) | np.tensordot(A,B,1) | np.vecdot(A,A) | np.cross(A[:,:3],A[:,1:4])
np.einsum('ij,jk->ik',A,B) | np.einsum('ij->',A) | np.einsum('ii->i',A[:4,:4]) | np.einsum('ij,ij->i',A,A) | np.einsum('ijk,ilk->ijl',C,C) | np.einsum('ij->ji',A) | np.einsum('i,j',V,V) | np.einsum('ij,jk,kl->il',A,B,B.T) | np.einsum('ii',A[:4,:4])
np.einsum('...j->...',C) | np.einsum('ij...,jk->ik...',A,B) | np.einsum('...ij,...jk->...ik',C,C[:,:1].repeat(5,1)) | np.einsum('i...,i...',A,A) | np.einsum('...,...',C,A) | np.einsum('i...',C) | np.einsum(A,[0,1],B,[1,2],[0,2]) | np.einsum(C,[Ellipsis,1],[Ellipsis]) | np.einsum(A,[3,1],A,[3,1])
np.angle(V.astype('i2')) | np.nanmedian(C>3,1) | np.nanmedian(np.array([100,120],'i1')) | np.empty_like(C.copy('F'),order='A',shape=(4,2)).flags.f_contiguous | np.unpackbits(V.astype('u1')) | np.unpackbits(C.astype('u1'),1,count=5,bitorder='little') | np.unpackbits(C.astype('u1'),0,count=-3) | np.unpackbits(C.astype('u1'),-1,count=99) | np.packbits(A>0) | np.packbits(C,1,bitorder='little') | np.packbits(np.zeros((2,0),bool),1)
np.histogram2d(A[0],A[1],3)[0] | np.histogram2d(A[0],A[1],(3,2),[[-1,1],[0,2]],True)[1] | np.histogramdd(A,2)[0] | np.histogramdd(A[:,:2],[3,[-1.,0,2]],weights=A[:,2])[0] | np.histogram(A,'auto') | np.histogram(V,'sturges') | np.convolve(V>1,V>2) | np.correlate(V>1,V>2,'full') | np.correlate(V>1,V)
np.real(A+1j) | np.imag(A+1j) | np.conj(A+1j) | np.angle(A+1j) | np.isclose(A,A+1e-9) | np.allclose(A,A) | np.array_equal(A,A) | np.array_equiv(V,V) | np.nan_to_num(N) | np.isreal(A) | np.sinc(A) | np.unwrap(A*9) | np.gradient(A[0]) | np.gradient(A) | np.trapezoid(A,axis=1) | np.interp(A[0],[-1.,0,1],[0.,5,7]) | np.cov(A) | np.corrcoef(A) | np.histogram(A,4) | np.polyval([1,2,3],A) | np.convolve(V,[1,2,3]) | np.correlate(V,[1,2],'full') | np.heaviside(A,0.5) | np.i0(A) | np.hanning(5) | np.fix(A) | np.apply_along_axis(lambda v:v.sum(),0,A) | np.ix_([0,1],[2,3]) | np.triu_indices(3) | np.unravel_index(7,(3,4)) | np.result_type(A,V) | np.can_cast(A,"f4")
np.interp(A,np.sort(A[0]),A[1]) | np.interp(A[0],[-1,0,1],[0.,5,7],-7,7) | np.interp(0.3,[0,1],[2,4]) | np.interp(A,[0.5],[2]) | np.histogram(C,5,(-1,3)) | np.histogram(V,[0,2,5,8]) | np.histogram(A,4,density=True) | np.histogram(A,4,weights=A*2) | np.histogram(A.astype('f4'),7) | np.convolve(A[0],V,'same') | np.convolve(V,A[0],'valid') | np.convolve(A[0]*1j,A[1]) | np.correlate(A[0],V) | np.correlate(V,A[0],'full') | np.correlate(A[0]*1j,A[1]*2j,'same') | np.unravel_index(V,(3,4)) | np.unravel_index(V,(3,4),order='F') | np.ravel_multi_index((V%3,V%4),(3,4)) | np.ravel_multi_index((V,V),(3,4),mode=('clip','wrap'),order='F') | np.lexsort((V,-V,V%2)) | np.vstack([V,V])
np.linalg.solve(A[:4,:4],A[:4]) | np.linalg.inv(A[:4,:4]) | np.linalg.det(A[:4,:4]) | np.linalg.norm(A) | np.linalg.norm(A,1) | np.linalg.norm(A,axis=1) | np.linalg.norm(V) | np.linalg.norm(A,np.inf,1) | np.linalg.slogdet(A[:4,:4]) | np.linalg.matrix_power(A[:4,:4],3) | np.linalg.cholesky(A@A.T+np.eye(4)) | np.linalg.multi_dot([A,B,B.T]) | np.linalg.matrix_norm(A) | np.linalg.vector_norm(C,axis=1)
np.fft.fft(A) | np.fft.ifft(A,axis=0) | np.fft.rfft(A) | np.fft.irfft(A) | np.fft.fft2(A) | np.fft.fftn(C) | np.fft.rfftn(A) | np.fft.irfftn(A) | np.fft.hfft(A) | np.fft.ihfft(A) | np.fft.fft(A,8) | np.fft.fft(A,3,norm='ortho') | np.fft.fftfreq(7,0.5) | np.fft.rfftfreq(8) | np.fft.fftshift(A) | np.fft.ifftshift(A,1)
A.sum() | A.mean(0) | C.max() | A.T | A.flatten() | A.copy() | C.astype('f4') | A.argsort() | A.round(1) | V.cumsum() | A.std() | C.ptp if 0 else 1 | A.dot(B) | C.swapaxes(0,1) | A.clip(0,1) | V.repeat(2) | V.take([1,2]) | C.squeeze() | A.real | (A+1j).imag | A.nbytes | C.strides | V.tolist() | A.any() | V.nonzero() | C.trace() | V.item(2) | A.min(axis=1,keepdims=True) | A.var(ddof=1) | V.prod() | V.searchsorted(3) | C.diagonal() | V.compress([1,0,1])
"""


def each_call():
    return [call.strip() for line in CALLS.strip().splitlines() for call in line.split(" | ")]


@pytest.mark.parametrize("call", each_call())
def test_call(call):
    names = {name: value for name, value in globals().items() if name in "ABCVN"}
    expected = eval(call, {"np": numpy, **names})
    result = eval(call, {"np": bh, **{name: bh.asarray(value) for name, value in names.items()}})
    if "strides" in call or "nbytes" in call or "tolist" in call or "result_type" in call or "can_cast" in call:
        assert result == expected
        return
    same(result, expected, ulps=256, check_type=not isinstance(expected, bool))


@pytest.mark.parametrize("call", [call for call in each_call() if "einsum" in call])
def test_einsum_as_it_is_recorded(call, monkeypatch):
    monkeypatch.setattr(_einsum, "_LITTLE", -1)
    test_call(call)


def test_einsum_that_only_moves_elements_is_a_view():
    for module in (numpy, bh):
        square = module.arange(9.0).reshape(3, 3)
        diagonal, turned = module.einsum("ii->i", square), module.einsum("ij->ji", square)
        square[0, 0] = 5
        diagonal[1] = 9
        turned[2, 0] = 3
        same(diagonal, numpy.array([5.0, 9.0, 8.0]))
        same(square, numpy.array([[5.0, 1.0, 3.0], [3.0, 9.0, 5.0], [6.0, 7.0, 8.0]]))


@pytest.mark.falls_back
def test_types_that_bh_lacks_have_numpys_results():
    for kind in ("f2", "g", ">f8"):
        for call in (
            lambda m, v: m.einsum("i,i", v, v), lambda m, v: m.percentile(v, 50), lambda m, v: m.cumsum(m.arange(3), dtype=kind),
        ):  # fmt: skip
            mine, reference = (call(module, module.array([3, 1, 2]).astype(kind)) for module in (bh, numpy))
            same(mine, reference)
            assert isinstance(mine, numpy.generic) is isinstance(reference, numpy.generic)
    same(bh.zeros_like(bh.array(["a", "b"])), numpy.zeros_like(numpy.array(["a", "b"])))
    same(bh.pad(bh.array([None, 1]), 1), numpy.pad(numpy.array([None, 1]), 1))
    with pytest.raises(ValueError, match="both a start and a stop"):
        bh.arange(3, dtype="M8[s]")
    same(bh.arange(3).astype(None), numpy.arange(3).astype(None))


def test_shapes_that_do_not_fit_are_told_as_by_numpy():
    for count in (1, 100_000):
        calls = (
            lambda np: np.ones(3 * count) + np.ones(4 * count),
            lambda np: np.ones((2, 3 * count)) * 2 - np.ones(4 * count),
            lambda np: np.add(np.ones(3 * count), np.ones(4 * count)),
            lambda np: np.maximum(np.ones(3 * count) * 2, np.ones(4 * count)),
            lambda np: np.ones(3 * count) == np.ones(4 * count),
            lambda np: np.where(np.ones(3 * count) > 0, np.ones(4 * count), 1),
            lambda np: np.where(np.ones(3 * count) > 0, np.ones(3 * count), np.ones((2, 4 * count))),
            lambda np: np.ones(3 * count) + list(range(4 * count)),
        )
        for call in calls:
            texts = []
            for module in (bh, numpy):
                with pytest.raises(ValueError) as raised:
                    call(module)
                texts.append(str(raised.value))
            assert texts[0] == texts[1]


def test_broadcast_knows_its_shape_before_the_elements():
    a, b = bh.arange(3.0) + 1, bh.zeros((2, 1))
    before = bh.profile()["batches"]
    both = bh.broadcast(a, b)
    assert (both.shape, both.ndim, both.nd, both.size, both.numiter) == ((2, 3), 2, 2, 6, 2)
    assert both.iters[0].base is a and both.iters[1].base is b
    assert bh.profile()["batches"] == before
    assert next(both) == (1, 0) and both.index == 1
    assert list(both) == [(2, 0), (3, 0), (1, 0), (2, 0), (3, 0)]
    assert list(inspect.signature(bh.broadcast).parameters) == ["arrays"]
    both.reset()
    assert list(both)[0] == (1, 0)
    nested = bh.broadcast(both, [[1, 2, 3]], bh.broadcast(numpy.ones(3), 2))
    assert nested.numiter == 5 and nested.shape == (2, 3)
    assert isinstance(bh.broadcast([1, 2], 3), numpy.broadcast)
    with pytest.raises(ValueError):
        bh.broadcast(a, bh.zeros(2))
    with pytest.raises(ValueError):
        bh.broadcast(a, x=1)


@pytest.mark.parametrize("expression", [
    "np.repeat(np.arange(3), np.array([[2]]))", "np.repeat(np.arange(3), np.array([2], 'u8'))", "np.mean(np.array(1.0), axis=0)",
    "np.std(np.array(1.0), axis=-1)", "np.average(np.array(1.0), axis=0)", "np.compress([True, False, True], np.zeros((2, 0)), axis=0)",
])  # fmt: skip
def test_what_numpy_refuses_is_refused(expression):
    for np in (bh, numpy):
        with pytest.raises((ValueError, TypeError, IndexError)):
            eval(expression)


@pytest.mark.parametrize("expression", [
    "np.clip(np.zeros(3, bool), 0, np.zeros(3, 'f4'))", "np.clip(np.zeros(3, bool), 0.5, np.zeros(3, 'f4'))",
    "np.clip(np.zeros(3, 'i4'), np.zeros(3, 'f4'), 7)", "np.clip(np.arange(3, dtype='u1'), -1, np.ones(3, 'i1'))",
    "np.linalg.norm(np.array(3), keepdims=True)", "np.kron(np.array(2), np.array(0.5))", "np.mean(np.array(2.0), axis=())",
])  # fmt: skip
def test_types_and_numbers_of_results(expression):
    mine, theirs = (eval(expression) for np in (bh, numpy))
    same(mine, theirs)
    assert type(mine) is type(theirs) or type(mine) is bh.ndarray and mine.ndim


@pytest.mark.falls_back
def test_functions_for_each_element_give_types_that_bh_lacks():
    squares = bh.vectorize(lambda x: x * x, otypes=[object])
    assert squares(bh.arange(3.0)).tolist() == [0.0, 1.0, 4.0] and squares(bh.arange(3)).dtype == object


def test_brackets_make_arrays_of_bh():
    a, v, w = numpy.ones((2, 3)), numpy.arange(3), numpy.ones(2, "f4")
    made = lambda np, a, v, w: [
        np.r_[a, a], np.c_[a, a], np.r_[1:3, v], np.r_["0,2", v, v], np.r_[v, 1, 2], np.r_[:3], np.r_["-1", a, a], np.r_[0:6:4j, 1j],
        np.c_["0,2,0", v, v], np.r_[w, 1.5], np.mgrid[0:3, 0:2], *np.ogrid[-1:1:5j, 0:3:0.5], np.mgrid[-1:1:5j], np.mgrid[0:1:0.1],
    ]  # fmt: skip
    for mine, expected in zip(made(bh, bh.asarray(a), bh.asarray(v), bh.asarray(w)), made(numpy, a, v, w), strict=True):
        assert type(mine) is bh.ndarray
        same(mine, expected)
    assert type(bh.r_["a; a"]) is numpy.matrix


@pytest.mark.parametrize("name, args", [("hanning", (5,)), ("kaiser", (5, 2.0)), ("geomspace", (1, 9, 3)), ("tril_indices", (3,)), ("diag_indices", (3,))])
def test_arrays_made_of_numbers_alone_are_bhs(name, args):
    mine, expected = getattr(bh, name)(*args), getattr(numpy, name)(*args)
    for one, other in zip(mine, expected, strict=True) if type(mine) is tuple else [(mine, expected)]:
        assert type(one) is bh.ndarray
        same(one, other)


@pytest.mark.parametrize("name", ["nanpercentile", "nanquantile"])
def test_quantiles_of_all_elements_are_arrays_of_bh(name):
    x = numpy.array([[1.0, numpy.nan, 3.0], [4.0, 0.5, numpy.nan]])
    mine = getattr(bh, name)(bh.asarray(x), [0.25, 0.5])
    assert type(mine) is bh.ndarray
    same(mine, getattr(numpy, name)(x, [0.25, 0.5]))


@pytest.mark.falls_back
def test_choices_that_are_no_numbers():
    for m in (bh, numpy):
        cases = [m.arange(4) > 2, m.arange(4) > 1]
        assert m.select(cases, ["hi", "mid"], "lo").tolist() == ["lo", "lo", "mid", "hi"]
        assert m.select(cases, [m.array(["i4", "b", "c", "d"]), "f8"], "none").tolist() == ["none", "none", "f8", "d"]
        assert m.select(cases, [None, 1], 0).tolist() == [0, 0, 1, None]
        same(m.select(cases, [m.ones(4, "f"), 2.5], 0), numpy.array([0, 0, 2.5, 1], "f"))


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "c16"])
def test_medians_are_nan_where_elements_are(dtype):
    values = numpy.random.default_rng(5).normal(size=(41, 30, 20)) * 9
    if dtype != "i8":
        values[::7, 3, 2:] = values[5, :, 1] = numpy.nan
    values = values.astype(dtype)
    for axis in (None, 0, 1, -1, (0, 2)):
        for kept in (False, True):
            a = bh.array(values) + bh.zeros(1, dtype)
            same(bh.median(a, axis=axis, keepdims=kept), numpy.median(values, axis=axis, keepdims=kept))
    out = bh.zeros((41, 20), "f8" if dtype == "i8" else dtype)
    assert bh.median(bh.array(values), axis=1, out=out) is out
    same(out, numpy.median(values, axis=1))


def test_sums_of_products_have_the_order_of_each_operand(monkeypatch):
    monkeypatch.setattr(_einsum, "_LITTLE", -1)
    a, b = numpy.arange(40.0 * 40).reshape(40, 40), numpy.arange(40.0 * 40).reshape(40, 40) % 7
    views = [lambda a: a, lambda a: a.T, lambda a: a[::-1], lambda a: a.T[:, ::-1]]
    for text in ("ij,jk->ik", "ij,ij->ji", "ij,ij->ij", "ij,kj->ki"):
        # The second time finds the orders of the first.
        for first, second in [(first, second) for first in views for second in views] * 2:
            mine = bh.einsum(text, first(bh.array(a)), second(bh.array(b)))
            reference = numpy.einsum(text, first(a), second(b))
            same(mine, reference)
            assert mine.strides == reference.strides, text
