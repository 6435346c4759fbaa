"""Arguments that NumPy takes or refuses: the same results, and errors of the same kind."""

import copy
import inspect
import math
import pickle
import sys

import numpy
import pytest

import bh as np
from conftest import same

TAKEN = r"""
np.zeros(12, np.int32)[::2].reshape(3, 2, 1, 1).strides
np.zeros(12, np.int32)[::2].reshape(3, 2, 1, 1, order="F").strides
np.asarray(0, np.int32).reshape(1, 1).strides + np.zeros((1, 3)).strides + np.zeros((3, 1, 2)).strides
np.signbit(np.asarray([np.nan, -np.nan, -0.0, 1.0]))
np.copysign(1.0, np.asarray([np.nan, -np.nan]))
np.round(np.arange(12.0).reshape(3, 4).T).flags.f_contiguous
inspect.signature(np.where) == inspect.signature(numpy.where)
np.frombuffer.__text_signature__ == numpy.frombuffer.__text_signature__
np.histogram(np.asarray([-(2**31) + 1, 2**31 - 2], np.int32), 8)[0]
np.histogram((np.arange(40000) % 97).astype("f4"), np.int8(5))[1]
np.median(np.asarray([[1.0, 2.0, 4.0]]), axis=0, out=np.zeros(3, int))
np.fft.rfft(np.ones(4), True)
np.sum(np.full(3, -0.0), initial=-0.0)
np.arange(start=1, stop=4)
np.sin(np.asarray([0.5]), out=(None,))
np.divmod(np.asarray(7), 2, out=...)[0]
inspect.signature(np.matmul) == inspect.signature(numpy.matmul)
np.gradient(np.asarray([1.0, 2.0, 4.0, 7.0]), np.asarray([0.0, 1.0, 3.0, 4.0]))
np.arange(3.0) * 2**70
np.arange(3, dtype=np.uint8).clip(-1, 129)
np.clip(np.arange(3, dtype=np.int32), -(2**40), 2**70)
np.roll(np.arange(12).reshape(3, 4), (1, 2))
np.bincount([])
np.bincount([], minlength=3)
np.linalg.norm(np.zeros(0), np.inf)
np.nanstd(5)
np.nanstd(np.asarray([1.0, np.nan, 4.0]))
np.arange(stop=5)
np.zeros((), order="F")
np.add(np.arange(3), 1, where=[1, 0, 1])[::2]
np.matmul.signature == "(n?,k),(k,m?)->(n?,m?)"
np.digitize([1, 3], [3, 2, 1])
np.digitize([0, 1, 2, 3], [3, 2, 1], right=True)
np.partition(np.zeros(0, np.int8), 2)
np.einsum("ij->ji", np.arange(6, dtype=np.int8).reshape(2, 3), dtype=float)
np.linalg.lstsq(np.eye(3)[:, :2], np.ones(3))[2]
np.squeeze(np.asarray(3.0), 0) + np.squeeze(np.asarray(3.0), -1)
np.roll(np.arange(10).reshape(5, 2), (2, 1, 3), 0)
np.roll(np.arange(10).reshape(5, 2), np.asarray([2, 1]), (0, 1))
np.ravel(np.broadcast_to(np.asarray([[1], [2]]), (3, 2, 4)), "K")
np.ravel(np.broadcast_to(np.arange(6).reshape(2, 1, 3).copy("F"), (2, 4, 3)), "K")
np.ravel(np.arange(24).reshape(2, 3, 4).transpose(1, 2, 0)[:, ::2], "K")
np.matmul(np.ones((2, 2)), np.eye(2), out=np.zeros((2, 2), bool), casting="unsafe")
np.einsum("->", np.asarray(2), dtype=float)
np.bincount([], weights=[])
np.zeros(np.asarray(3)) + np.empty(np.asarray(3)).size
np.correlate(np.arange(3.0), np.arange(5.0)).strides
np.correlate(np.arange(3) > 0, np.arange(5) > 1)
np.unravel_index(np.asarray([22, 17]), (6, 4), order=None)
np.empty((1, 0, 2)).strides + np.zeros((0, 3), order="F").strides + np.ones((3, 4))[:, :0].strides
np.any(numpy.asarray([1, 0], object)).dtype == bool
np.arange(0, 1, 1e300)
np.random.SeedSequence(np.arange(3)).generate_state(2)
np.random.Generator(np.random.PCG64(np.asarray([1, 2]))).random(3)
np.reshape(np.arange(6), np.asarray([3, 2]))
np.transpose(np.arange(6).reshape(2, 3), np.asarray([1, 0]))
np.arange(6).reshape(2, 3).transpose(np.asarray([1, 0]))
np.select([np.asarray([True, False])], [[1, 2]], 7)
np.add(np.arange(3), 1.5, casting="safe")
np.isscalar(np.sum(np.arange(3)))
np.arange(4.0).ctypes.shape[0]
""".strip().splitlines()

TAKEN_BY_NUMPY = r"""
np.add.outer(np.arange(2), numpy.array([1, 2], object))
np.add(np.arange(3), 1, sig="dd->d")
np.asarray(2.5).sum().astype(object)
np.add.reduceat(numpy.array([1, 2, 3], object), [0, 2])
np.array([[1, 2], [3, 4]], dtype=object, ndmax=1).shape
np.cumsum(numpy.ones(3, numpy.float16))
np.linspace(np.float16(0), np.float16(1), 3)
np.array([3, 1]) == "a"
np.array([3, 1]) != "a"
np.arange(3) < 2**64
np.logspace(np.float32(0), np.float32(2), base=numpy.float16(10), num=3)
np.nanmean(numpy.ones(3, numpy.float16))
np.trapezoid(numpy.ma.array([1.0, 2.0, 4.0], mask=[0, 0, 1]), np.arange(3.0))
np.gradient(numpy.ma.array([1.0, 2.0, 4.0], mask=[0, 0, 1])).mask
np.asanyarray(numpy.ma.array([1.0, 2.0], mask=[0, 1])).mask
np.copy(numpy.ma.array([1.0, 2.0], mask=[0, 1]), subok=True).mask
np.indices((2, 3), np.float16)
np.where(np.asarray([0, 1, 2], np.float16))
np.digitize(np.asarray([1.0, np.nan]), np.asarray([np.nan, np.nan]))
""".strip().splitlines()

REFUSED = r"""
np.negative.outer(np.asarray(2.0), np.ones((2, 2)))
np.sqrt.outer(np.ones(2), np.ones(3))
np.vdot(np.ones(4), np.ones(()))
np.vdot(np.ones(()), np.ones((2, 3)))
np.vecmat(np.ones(2), np.ones(2))
np.matvec(np.ones(2), np.ones(2))
np.interp(np.ones(2) + 1j, [0, 1], [0, 1])
np.zeros(3).sort(None)
np.bincount([1, 2], np.ones(2) + 1j)
np.zeros((0, 3)).__setitem__((np.arange(2)[:, None], [0, 1]), 1)
np.zeros((3, 0)).__setitem__((0, [1]), 1)
np.zeros(2).ptp()
np.broadcast_to(np.ones(1), 10).__setattr__("dtype", "i1")
np.concatenate(np.ones(2) for _ in range(2))
np.stack(np.ones(2) for _ in range(2))
np.hstack(np.ones(2) for _ in range(2))
np.vstack(np.ones(2) for _ in range(2))
np.empty(2**62, np.uint8)
np.empty((3037000500, 3037000500), np.int8)
np.unpackbits(np.ones(1, np.uint8), bitorder=10)
np.vectorize(lambda x: x)(np.zeros((0, 5), int))
np.arange(start=4)
np.arange(dtype="int64")
np.eye(3).resize("hi")
np.eye(3).resize(-1)
np.eye(3).resize(2, refcheck="hi")
np.matmul(np.ones((0, 1, 1)), np.ones((0, 1, 1)), out=np.ones((1, 1, 1)))
np.matmul(np.eye(2), np.eye(2), out=np.zeros((2, 2), int))
np.einsum("i->i", np.arange(3), order="W")
np.fft.fft(np.arange(3.0), out="")
np.fft.fft(np.arange(3.0), out=np.zeros(3))
np.arange()
np.arange(3)[2**70]
np.zeros(2**70)
np.reshape(np.arange(3), (3.0,))
np.add(np.arange(3), 1.5, casting="no")
np.sort(np.arange(3), kind="bogus")
np.sort(np.arange(3), kind="stable", stable=True)
np.partition(np.arange(3), 10)
np.argpartition(np.arange(3), -5)
np.searchsorted(np.arange(3), 1, sorter=[0, 1])
np.searchsorted(np.arange(3), 1, sorter=[0.0, 1.0, 2.0])
np.searchsorted(np.arange(3), 9, sorter=[0, 1, 3])
np.partition(np.arange(3), 1, kind="bogus")
np.arange(3).partition(1, kind=[])
np.lexsort((np.arange(3),), axis=5)
np.array([1, 2], ndmax=0)
np.array(np.ones((2, 2)), dtype=object, ndmax=1)
np.clip(np.arange(3.0), 1)
np.clip(np.arange(3.0), 1, 2, min=1)
np.convolve([1, 2], [3, 4], mode=None)
np.cross(0, np.zeros((2, 0)))
np.bincount([1], minlength="a")
np.add.reduce(np.zeros(0), initial=None)
np.matmul.at(np.ones(2), [0])
np.vectorize(3)
np.place([1, 2], [True, False], 3)
np.digitize([1j], [1, 2])
np.take(np.arange(3), [1], out=np.zeros(1))
np.array([3, 1]) < "a"
np.asarray(5.0).take(1, out=np.empty((1,)))
np.empty(None)
np.argsort(np.asarray(1.0), axis=1)
np.partition(np.asarray(1.0), 0)
np.correlate(np.asarray(1.0), np.ones(1))
np.ones((2, 3)).reshape((3, 2), copy="False")
np.copyto(np.zeros(2), 1.0, where=np.asarray([1, 0]))
np.linalg.solve(np.eye(2), np.asarray(1.0))
np.linalg.lstsq(np.eye(2), np.ones((2, 2, 2)))
np.linalg.lstsq(np.eye(2), 1.0)
np.place(np.arange(7), np.ones((2, 4), bool), [1])
np.ravel_multi_index((np.arange(2), np.arange(2)), (3.0, 4))
np.ravel_multi_index((np.arange(2), np.arange(2)), (3, 4), mode="inverse")
""".strip().splitlines()


def outcome(library, expression):
    return eval(expression, {"np": library, "numpy": numpy, "inspect": inspect})


@pytest.mark.parametrize("expression", TAKEN)
def test_arguments_that_are_taken(expression):
    same(outcome(np, expression), outcome(numpy, expression))


@pytest.mark.falls_back
@pytest.mark.parametrize("expression", TAKEN_BY_NUMPY)
def test_arguments_that_numpy_deals_with(expression):
    numpy.testing.assert_array_equal(outcome(np, expression), outcome(numpy, expression))


@pytest.mark.falls_back
@pytest.mark.parametrize("expression", REFUSED)
def test_arguments_that_are_refused(expression):
    with pytest.raises(Exception) as theirs:
        outcome(numpy, expression)
    with pytest.raises(theirs.type):
        outcome(np, expression)


# Calls with odd axes, whose errors have NumPy's words.
AXES = """
np.concatenate([a, a], True) | np.concatenate([a, a], axis=numpy.True_) | np.concatenate([a, a], 1.0) | a.cumsum(True) | np.cumprod(a, 1.0) | np.cumsum(a, True)
np.argmax(a, True) | a.argmin(1.0) | np.take(a, [0], True) | np.repeat(a, 2, True) | np.compress([True], a, True) | np.append(a, a, True) | a.sum(1.0)
np.swapaxes(a, 0, 5) | np.diagonal(a, 0, 5) | np.array_split(a, 2, 5) | np.array_split(a, 2, None) | np.fft.fft(a, axis=5) | np.fft.fft(a, axis=1.0)
np.fft.rfft(a, axis=None) | np.fft.irfft(a, axis="a") | np.fft.ifft(a, 0) | np.fft.fft(a, True) | np.fft.fft(a, norm="x") | np.fft.ifft(a, norm="x") | np.fft.fft2(a, axes=(0, 5))
np.fft.fft2(a, axes=1) | np.fft.fftn(a, s=(3, 4, 5)) | np.fft.irfftn(a, axes=()) | np.fft.rfft2(a[0]) | np.fft.fft(a[0, 0]) | np.fft.hfft(a, axis=3) | np.fft.fftn(a, s=3)
np.fft.fftn(a, axes="ab") | np.fft.fft(a, axis=2**70) | np.fft.fftn(a, axes=(2**70,)) | np.fft.fft2(a, s=(3,)) | np.fft.fftshift(a, axes=5)
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("extent", [3, 200])
@pytest.mark.parametrize("call", [call.strip() for line in AXES.strip().splitlines() for call in line.split("|")])
def test_odd_axes_are_refused_in_numpys_words(call, extent):
    found = []
    for module in (numpy, np):
        a = module.ones((extent, extent)) + module.zeros((extent, extent))
        with pytest.raises(Exception) as error:
            eval(call, {"np": module, "numpy": numpy, "a": a})
        found.append((error.type, str(error.value)))
    assert found[0] == found[1]


def test_values_of_further_dimensions_are_assigned():
    array = np.zeros((3, 2))
    array[:] = np.ones((1, 3, 2))
    same(array, numpy.ones((3, 2)))
    with pytest.raises(ValueError, match="could not broadcast input array from shape"):
        array[:] = np.ones((2, 3, 2))


def test_reductions_write_into_any_type():
    for function in (np.sum, np.max, np.mean):
        out = np.zeros((), np.int64)
        assert function(np.asarray([1.5, 2.0, 3.0]), out=out) is out
        same(out, getattr(numpy, function.__name__)([1.5, 2.0, 3.0], out=numpy.zeros((), numpy.int64)))
    out = np.zeros(3, np.uint32)
    np.add.at(out, [0], np.asarray([1], np.uint8))
    same(out, numpy.asarray([1, 0, 0], numpy.uint32))


@pytest.mark.falls_back
def test_work_at_indices_is_done_in_the_type_of_the_result():
    mine, reference = np.ones(3, np.int8), numpy.ones(3, numpy.int8)
    np.subtract.at(mine, [0, 0, 1], 0.5)
    numpy.subtract.at(reference, [0, 0, 1], 0.5)
    same(mine, reference)


def test_the_place_of_an_extreme_can_be_changed():
    place = np.argmax(np.arange(6).reshape(2, 3), keepdims=True)
    place[0] = 9
    same(place, numpy.asarray([[9]]))


@pytest.mark.falls_back
def test_what_numpy_writes_into_outputs_arrives():
    for clip in (lambda a, out: np.clip(a, 0.5, 2.5, out, casting="unsafe"), lambda a, out: a.clip(0.5, 2.5, out, casting="unsafe")):
        out = np.zeros(4, np.int32)
        assert clip(np.arange(4), out) is out
        same(out, numpy.asarray([0, 1, 2, 2], numpy.int32))


def test_what_numpy_warns_of_is_warned_of():
    with pytest.warns(np.exceptions.ComplexWarning):
        np.concatenate([np.ones(2), np.ones(2) * 1j], dtype=float, casting="unsafe")
    for write in (lambda out: np.add(np.ones(2) * 1j, 1, out=out, casting="unsafe"), lambda out: np.cumsum(np.ones(2) * 1j, out=out)):
        with pytest.warns(np.exceptions.ComplexWarning):
            write(np.zeros(2))
    if hasattr(numpy, "row_stack"):
        with pytest.warns(DeprecationWarning):
            same(np.row_stack([np.ones(2), np.zeros(2)]), numpy.asarray([[1.0, 1.0], [0.0, 0.0]]))


def test_masks_of_numbers_choose():
    array = np.zeros(2)
    np.copyto(array, 3.0, where=4)
    same(array, numpy.full(2, 3.0))

    def masked(library):
        a = library.arange(6).reshape(2, 3)
        library.putmask(a, library.asarray([[1, 0, 2], [0, 0, 0]]), 9)
        return a

    same(masked(np), masked(numpy))


@pytest.mark.falls_back
def test_what_numpy_places_arrives():
    array = np.zeros(4)
    np.put(array, [1], numpy.asarray([2], numpy.float16))
    np.copyto(array, numpy.asarray([0, 0, 3, 0], numpy.float16), where=[False, False, True, False])
    same(array, numpy.asarray([0.0, 2.0, 3.0, 0.0]))


def test_arrays_change_their_size_in_place():
    array = np.zeros((2, 3))
    array[:] = np.arange(6.0).reshape(2, 3)
    view = array[1]
    with pytest.raises(ValueError, match="referenced by another array"):
        array.resize((2, 2))
    array.resize((2, 2), refcheck=False)
    same(array, numpy.asarray([[0.0, 1.0], [2.0, 3.0]]))
    array.resize(5, refcheck=False)
    same(array, numpy.asarray([0.0, 1.0, 2.0, 3.0, 0.0]))
    same(view, numpy.asarray([3.0, 4.0, 5.0]))
    with pytest.raises(ValueError, match="does not own its data"):
        view.resize(7)


def test_universal_functions_are_pickled_and_have_one_conjugate():
    assert pickle.loads(pickle.dumps(np.add)) is np.add and copy.deepcopy(np.add) is np.add
    assert np.conj is np.conjugate and "D->D" in np.conjugate.types
    real = np.arange(3)
    assert real.conj() is real and inspect.signature(np.add) == inspect.signature(numpy.add)
    same(np.asarray([1 + 2j]).conj(), numpy.asarray([1 - 2j]))


def test_flags_are_compared():
    one, other = np.zeros((2, 3)), np.zeros((3, 2))
    assert one.flags == other.flags == numpy.zeros((2, 3)).flags and one.flags != other.T.flags
    assert other.T.flags.fortran and other.T.flags.farray and one.flags.carray and one.flags.behaved


def test_memory_is_described():
    array = np.arange(3.0)
    described = array.__array_interface__
    assert described["shape"] == (3,) and described["typestr"] == "<f8"
    assert numpy.ctypeslib.as_array(array.ctypes.data_as(numpy.ctypeslib.ctypes.POINTER(numpy.ctypeslib.ctypes.c_double)), (3,))[1] == 1


def test_products_in_place_fit():
    a = np.ones((2, 2))
    a @= np.full((2, 2), 2.0)
    same(a, numpy.full((2, 2), 4.0))
    for other in (np.ones((2, 1)), np.ones(2)):
        with pytest.raises(ValueError):
            a @= other
    with pytest.raises(TypeError):
        b = np.ones((2, 2), int)
        b @= np.ones((2, 2))


def test_outputs_that_are_none_are_refused():
    a = np.ones(2)
    for error, call in {
        TypeError: [lambda: np.add(a, 1, a, a), lambda: np.add(a, 1, []), lambda: np.frexp(a, out=a)],
        ValueError: [lambda: np.add(a, 1, out=()), lambda: np.add(a, 1, out=(a, a))],
    }.items():
        for wrong in call:
            with pytest.raises(error):
                wrong()


def test_what_else_methods_and_functions_take():
    a = np.array([0, 2, 1])
    same(a.choose([1, 2, 3], [4, 5, 6], [7, 8, 9]), numpy.array([1, 8, 6]))
    np.putmask(a, [0, 1, 1], [-1, -2, -3])
    same(a, numpy.array([0, -2, -3]))
    a.resize(None)
    assert np.where(True, None, None).dtype == object and a.flat.index == 0
    same(np.array(a, copy=np._CopyMode.IF_NEEDED), numpy.array([0, -2, -3]))
    with pytest.raises(TypeError):
        del a.flat[0]
    part = np.arange(12.0).reshape(3, 4)[:, ::2]
    same(pickle.loads(pickle.dumps(part, 5, buffer_callback=print)), numpy.arange(12.0).reshape(3, 4)[:, ::2])
    turned, buffers = np.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2), []
    stored = pickle.dumps(turned, 5, buffer_callback=buffers.append)
    same(pickle.loads(stored, buffers=buffers), numpy.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2))
    assert len(buffers) == 1
    assert sys.getsizeof(np.ones(1000)) > 8000 > sys.getsizeof(np.ones(1000)[::2])
    flipped = np.arange(4).reshape(2, 2)[::-1]
    assert flipped.ravel("K").flags.owndata
    assert np.arange(np.array("2000-01-01", "M8[D]"), np.array("2000-01-03", "M8[D]")).size == 2
    with pytest.raises(AttributeError):
        a.device = "cpu"
    assert bool(np.all(numpy.ma.array([1, 0], mask=[0, 1])))
    assert copy.copy(np.asfortranarray(np.ones((2, 3)))).flags.f_contiguous
    with pytest.raises(TypeError):
        np.concatenate([a, a], out=np.zeros(6), dtype=float)
    with pytest.raises(numpy.exceptions.AxisError):
        np.unstack(a, axis=3)
    with pytest.raises(TypeError):
        a.reshape((True, -1))


def test_folds_of_nothing_are_their_start():
    assert math.copysign(1, np.sum(np.zeros(0), initial=-0.0)) == -1
    same(np.add.reduce(np.zeros((0, 2)), initial=3.0), numpy.array([3.0, 3.0]))
    with pytest.raises(TypeError):
        np.add(1, 1, out=(...,))
    with pytest.warns(RuntimeWarning, match="invalid value encountered in cast"):
        np.add(np.array([numpy.nan]), 1, dtype=int, casting="unsafe")


def test_keys_of_other_classes():
    class Pair(tuple):
        pass

    class Index:
        def __array__(self, dtype=None, copy=None):
            return np.array([1, 0])

    a = np.arange(4.0).reshape(2, 2)
    same(a[Pair(([0], [1]))], numpy.array([1.0]))
    a[Pair(([0], [1]))] = 7
    same(a[Index()], numpy.array([[2.0, 3.0], [0.0, 7.0]]))


def test_factors_are_as_exact_as_numpys():
    a = np.array([[2, 1j], [-1j, 3]], np.complex64)
    assert bool((np.linalg.cholesky(a).diagonal().imag == 0).all())
    a = np.array([[1.0, 1.0], [1.0, 1.0 + 2e-6]], np.float32)
    found, expected = (module.linalg.lstsq(module.asarray(a), module.ones(2, "f4"))[0] for module in (np, numpy))
    assert found.dtype == numpy.float32
    numpy.testing.assert_allclose(numpy.asarray(found), expected, atol=1e-6)
    assert np.linalg.norm(np.ones((0, 2)), np.inf, axis=(0, 1)) == 0 and np.linalg.norm(np.ones((0, 2)), 2) == 0
    with np.fallback("silent"):
        numpy.testing.assert_array_equal(np.linalg.pinv(numpy.eye(2).astype(">f8")), numpy.eye(2))


def test_results_at_hand_are_numpys_scalars():
    a = np.arange(4.0)
    for found in (a.mean(), a.std(), np.linalg.norm(a), np.array(2.0)[()], np.average(a), a.max()):
        assert type(found) is numpy.float64


def test_arrays_of_more_dimensions_are_numpys():
    deep = (1,) * 20
    with np.fallback("silent"):
        for made in (np.zeros(deep), np.ones(deep, int), np.empty(deep), np.full(deep, 2.0), np.ones(1).reshape(deep)):
            assert type(made) is numpy.ndarray and made.ndim == 20
    same((np.zeros(deep) + 1).reshape(1), numpy.ones(1))


def test_numbers_that_functions_are_given():
    assert np.real(1) == 1 and type(np.imag(1 + 2j)) is float
    same(np.eye(numpy.uint64(2), numpy.uint64(3), numpy.uint64(1)), numpy.eye(2, 3, 1))
    assert np.eye(2, 3, order="F").flags.f_contiguous and np.zeros(np.array(3)).shape == (3,)
    assert type(np.lib.stride_tricks.sliding_window_view(numpy.ma.ones(3), 2, subok=True)) is numpy.ma.MaskedArray
    with pytest.raises(ValueError, match="Only None and strings"):
        np.ones(1).__array_namespace__(api_version=2024)


def test_transforms_of_several_axes():
    twice = np.fft.rfftn(np.ones((2, 3)), axes=(0, 0, 1), s=(10, 20, 40))
    assert twice.shape == (10, 21)
    with pytest.warns(DeprecationWarning, match="containing `None` values"):
        np.fft.fftn(np.ones((2, 3)), s=(2, None), axes=(0, 1))
    with pytest.raises(ValueError, match="wrong shape"):
        np.fft.fft(np.ones(4), out=np.zeros((3, 4), complex))
    with pytest.raises(TypeError, match="ArrayType"):
        np.fft.fft(np.ones(4), out="")
    generator = np.random.default_rng(1)
    assert f"{id(generator):X}" in repr(generator) and str(generator) == "Generator(PCG64)"


def test_masks_of_lists_and_keys_of_one_shape():
    a = np.arange(4.0)
    assert np.sum(a, where=[1, 0, 0, 1]) == 3 and np.mean(a, where=[True, False, False, True]) == 1.5
    with pytest.raises(ValueError, match="same shape"):
        np.lexsort((a, a[:2]))
    with pytest.raises(TypeError, match="add.. got an unexpected keyword argument 'bogus'"):
        np.add(a, 1, bogus=3)


@pytest.mark.parametrize("value", [300, -1, 1j, numpy.nan, None, [1, 2]])
def test_what_does_not_fit_into_an_element_of_flat(value):
    for module in (np, numpy):
        with pytest.raises(ValueError, match="single item"):
            module.zeros(3, "u1").flat[1] = value


def test_strings_of_objects_that_hold_arrays():
    held = numpy.array([None])
    held[0] = np.array(1.2)

    class Described:
        def __init__(self):
            self.__array_interface__ = held.__array_interface__

    for shown in (held, memoryview(held), [held], Described()):
        assert np.array([shown], dtype="S").ravel().tolist() == [b"1.2"]


@pytest.mark.parametrize("key", ["0.0:, 0.0", "0.0:, 0.0, :", ":, :4.0, 0.0", "1.0", "0, 1.5", "'x'"])
def test_floats_are_no_indices(key):
    for module in (np, numpy):
        with pytest.raises(IndexError, match="only integers, slices|valid indices"):
            eval(f"a[{key}]", {"a": module.array([[[5]]])})


def test_products_and_determinants_at_hand_are_scalars():
    truth = np.ones(1, "?")
    assert type(truth @ truth) is numpy.bool and type(np.ones(2) @ np.ones(2)) is numpy.float64
    assert [type(part) for part in np.linalg.slogdet([[2.0]])] == [numpy.float64] * 2
    assert np.linalg.slogdet(np.eye(2)[None])[0].shape == (1,)


MANY_DIMENSIONS = """
np.ones((1,) * 16)[None]
np.ones((1,) * 16)[..., None, None]
np.ones((2,) * 9)[(None,) * 10]
np.ones((1,) * 16)[(0,) + (None,) * 3]
np.ones((1,) * 16)[[[0]]]
np.expand_dims(np.ones((1,) * 16), 0)
np.broadcast_to(np.ones(2), (1,) * 63 + (2,)) * 2
np.multiply.outer(np.ones((1,) * 8), np.ones((1,) * 9))
np.stack([np.ones((1,) * 16)] * 2, axis=-1)
np.arange(2).reshape((1,) * 63 + (2,))
np.reshape(np.arange(4), (2, 2) + (1,) * 20, order="F")
np.zeros_like(np.ones(1), shape=(1,) * 17)
np.full_like(np.ones(1), 2, shape=(1,) * 17)
np.array(np.ones(2), ndmin=20)
np.kron(np.ones((1,) * 17), np.ones(2))
np.tensordot(np.ones((1,) * 9), np.ones((1,) * 9), 0)
np.einsum("abcdefghi,jklmnopqr", np.ones((1,) * 9), np.ones((1,) * 9))
np.meshgrid(*[np.arange(1)] * 17)[0]
np.tile(np.ones(2), (1,) * 17)
np.lib.stride_tricks.as_strided(np.ones(1), (1,) * 17, (8,) * 17)
np.lib.stride_tricks.sliding_window_view(np.ones((2,) * 9), (1,) * 9)
np.where(np.ones((1,) * 16, bool)[None], 1, 2)
np.ones((1,) * 16)[None] + np.ones(3)
np.concatenate([np.ones((1,) * 16)[None], np.ones((1,) * 16)[None]], axis=5)
np.sum(np.ones((1,) * 16)[None], 0)
""".strip().splitlines()


@pytest.mark.falls_back
@pytest.mark.parametrize("call", MANY_DIMENSIONS)
def test_arrays_of_many_dimensions_are_numpys(call):
    same(*(eval(call, {"np": m}) for m in (np, numpy)))


EDGES = """
np.average(np.zeros((0, 3)), axis=1)
np.clip(np.array([True, False]), False, True)
np.clip(np.array([True, False]), 0, 1)
np.clip(np.array([True, False]), None, True)
np.select([np.array([True, False])], [-1], np.array([7, 8], "u8"))
np.select([np.array([True, False])], [np.array([1, 2], "u1")], 300)
np.select([np.array([True, False])], [np.array([1, -2])], np.array([7], "u8"))
np.argmax(np.array([[1.0, 2]]), 0, out=np.zeros(2))
np.argmax(np.array([1.0, 2]), out=np.zeros(()))
np.repeat(np.array([]), -1)
np.repeat(np.array([1, 2]), -1)
np.repeat(np.zeros((0, 2)), -1, axis=0)
np.repeat(np.zeros((0, 2)), -1, axis=1)
np.zeros(0).repeat(-1)
np.std(np.arange(7), dtype=int)
np.std(np.arange(7.0) * 1.7, dtype="i4")
np.std(np.arange(7.0) * 1.7, dtype=bool)
np.std(np.arange(14.0).reshape(2, 7), axis=1, dtype=int)
np.std(np.arange(7), dtype=int, keepdims=True)
np.var(np.arange(7.0) * 1.7, dtype="u1")
np.nanstd(np.arange(7.0) * 1.7, dtype="i1")
np.nanstd(np.arange(7.0), axis=0, dtype=int, keepdims=True)
np.nanstd(5, dtype=int)
np.dot(np.arange(3.0), np.arange(3.0), out=np.zeros(())).flags.writeable
np.dot(2.0, np.array(3.0), out=np.zeros(())).flags.writeable
np.arange(3.0).dot(np.arange(3.0), np.zeros(()))
np.add.accumulate(np.arange(6.0), axis=None, out=np.ones(6))
np.add.accumulate(np.arange(6.0).reshape(2, 3), None)
np.multiply.accumulate(np.arange(6.0), (0,))
np.add.accumulate(np.arange(6.0).reshape(2, 3), (0, 1))
np.add.accumulate(np.arange(6.0).reshape(2, 3), ())
np.add.accumulate(np.array(2.0))
np.add.accumulate(np.array(2.0), 3)
np.add.reduceat(np.arange(6.0), [0, 2], axis=None)
np.add.reduceat(np.arange(6.0).reshape(2, 3), [0, 1], axis=None)
np.add.reduceat(np.array(2.0), [0])
np.cumsum(np.arange(6.0), axis=(0,))
np.sum(np.ones((2, 3)), axis=[0])
np.all(np.ones((2, 3)), axis=[0, 1])
np.mean(np.ones((2, 3)), axis=[0, 1])
np.average(np.ones((2, 3)), axis=[0, 1])
np.var(np.ones((2, 3)), axis=True)
np.max(np.ones((2, 3)), axis=(0, 0))
np.sum(np.ones((2, 3)), axis=2)
np.sum(np.array(2.0), axis=3)
np.ptp(np.ones((2, 3)), axis=[0])
np.take(np.zeros((2, 0)), [5], axis=0)
np.take(np.zeros((2, 0)), [-1], axis=0)
np.take(np.zeros((2, 0)), [5], axis=0, mode="clip")
np.zeros((2, 3, 0)).take(np.array([5]), axis=1)
np.take(np.zeros((0, 2)), [5], axis=1)
np.dot(np.array(False), np.array(100, "i4"), out=np.zeros((), "f4"))
np.dot(np.array(2.0), np.array(3.0), out=np.zeros(1))
np.dot(np.array(2.5), np.arange(3), out=np.zeros(3, "f4"))
np.dot(np.array(100, "i2"), np.arange(6, dtype="u1").reshape(2, 3).T, out=np.zeros((3, 2), "i1"))
np.dot(np.array(2), np.arange(3), out=np.zeros(6, "f4")[::2])
np.dot(np.array(2), np.array(3), out=np.zeros((), "u1"))
np.dot(True, np.arange(3) > 1, out=np.zeros(3, "i8"))
np.dot(2, 3, out=np.zeros(1, int))
np.dot(np.array(2.5), np.arange(3), out=np.zeros(3))
np.bitwise_and.reduce(np.zeros((0, 3), "f4"), dtype="f4", initial=2)
np.bitwise_or.reduce(np.zeros((3, 3), "i4"), dtype="f4")
np.bitwise_or.accumulate(np.zeros((3, 3), "i4"), dtype="f4")
np.gcd.reduce(np.full((3, 3), 4, "i4"), dtype="i8")
np.copyto(np.broadcast_to(np.zeros(3), (2, 3)), 1j)
""".strip().splitlines()


@pytest.mark.falls_back
@pytest.mark.parametrize("call", EDGES)
def test_edges_are_numpys(call):
    found = []
    for m in (np, numpy):
        try:
            found.append(numpy.asarray(eval(call, {"np": m})))
        except (TypeError, ValueError, IndexError, ZeroDivisionError) as error:
            found.append((type(error).__name__, str(error)))
    if isinstance(found[1], tuple):
        assert found[0] == found[1]
    else:
        same(*found)
