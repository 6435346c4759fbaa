"""Memory shared with other libraries: buffers, DLPack, and NumPy's results taken over."""

import ctypes
import gc
import pickle
import resource
import warnings
import weakref

import numpy
import pytest

import bh
from bh import _native
from bh._numpy import fallback
from conftest import same


def test_buffers_of_arrays_are_shared():
    x = bh.arange(12.0).reshape(3, 4)
    seen = numpy.asarray(x)
    seen[0, 0] = 77
    x[1] = 5
    y = x * 2
    assert float(x[0, 0]) == 77 and seen[1, 2] == 5 and float(y[0, 0]) == 154
    view = memoryview(x[:, ::2])
    assert (view.shape, view.strides, view.format, view.readonly) == ((3, 2), (32, 16), "d", False)
    assert numpy.asarray(x.T).flags.f_contiguous and numpy.asarray(bh.zeros((0, 3))).shape == (0, 3)
    del seen, view
    gc.collect()
    x += 1
    assert float(x[0, 0]) == 78


def test_read_only_buffers_are_snapshots():
    # Too large to be carried out at once, so an array and no scalar of NumPy.
    total = bh.arange(100_000.0).sum()
    wide = bh.broadcast_to(bh.arange(3), (2, 3))
    for value in (total, wide):
        view = memoryview(value)
        assert view.readonly and view.tolist() == numpy.asarray(value).tolist()
        with pytest.raises(ValueError):
            numpy.asarray(value)[...] = 0
    base = bh.arange(3.0)
    fixed = base[:]
    fixed.setflags(write=False)
    seen = numpy.asarray(fixed)
    base += 10
    bh.flush()
    assert seen.tolist() == [0, 1, 2] and base.tolist() == [10, 11, 12]


@pytest.mark.parametrize("kind", "? b h i l B H I L f d F D".split())
def test_element_types_of_buffers(kind):
    x = bh.ones(3, kind)
    assert numpy.asarray(x).dtype == x.dtype == numpy.dtype(kind) and numpy.asarray(x).tolist() == [1] * 3


def test_contiguous_buffers_only_where_they_are():
    assert bytes(bh.arange(3, dtype="u1")) == b"\0\1\2"
    with pytest.raises((ValueError, BufferError)):
        numpy.frombuffer(bh.arange(6.0)[::2])


def test_dlpack_without_copies():
    x = bh.arange(5.0)
    seen = numpy.from_dlpack(x)
    seen[0] = 9
    assert float(x[0]) == 9 and numpy.from_dlpack(x, copy=True).base is not x
    same(bh.from_dlpack(numpy.arange(3)), numpy.arange(3))


def test_results_of_numpy_are_taken_over(monkeypatch):
    taken = []
    donate = _native.donate_buffer
    monkeypatch.setattr(_native, "donate_buffer", lambda *a: taken.append(1) or donate(*a))
    x = bh.random.default_rng(1).normal(size=100_000)
    assert taken
    y = x + 1
    x += 1
    reference = numpy.random.default_rng(1).normal(size=100_000) + 1
    same(x, reference)
    del x
    gc.collect()
    same(y, reference)


def test_memory_that_others_refer_to_is_copied():
    kept, others = numpy.zeros(100_000), []

    def by_a_weak_reference():
        array = numpy.zeros(100_000)
        others.append(weakref.ref(array))
        return array

    def by_a_frame():
        def generate():
            array = numpy.zeros(100_000)
            while True:
                yield array

        generator = generate()
        others.append(generator.__next__)
        return next(generator)

    def by_an_object():
        others.append(lambda: kept)
        return kept

    # The interpreter adapts code that runs often.
    for _ in range(40):
        for function in (by_a_weak_reference, by_a_frame, by_an_object):
            mine = fallback.taken(function, (), {})
            other = others.pop()()
            if other is not None:
                other[0] = 5
            assert float(mine[0]) == 0, function
            kept[0] = 0


def at(address, place=0):
    """The float at an address, as a library in C would see it."""
    return ctypes.c_double.from_address(address + 8 * place)


def address_in_c(a):
    """The address as code in C reads it from `PyArrayInterface`, whose field `data` has this offset."""
    read = ctypes.pythonapi.PyCapsule_GetPointer
    read.restype, read.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    capsule = a.__array_struct__
    return ctypes.c_void_p.from_address(read(capsule, None) + 40).value


@pytest.mark.parametrize("address", [lambda a: a.ctypes.data, lambda a: a.__array_interface__["data"][0], address_in_c])
def test_addresses_hold_as_long_as_the_array(address):
    a = bh.arange(1000.0)
    first = address(a)
    tenth = address(a[10:20])
    gc.collect()
    a += 1
    others = [bh.ones(1000) * k for k in range(20)]
    bh.flush()
    assert at(first, 5).value == 6 and at(tenth).value == 11 and address(a) == first and tenth == first + 80
    a[:] = a * 2
    assert at(first, 5).value == 12 and len(others) == 20
    at(first, 5).value = 77
    assert float(a[5]) == 77 and float((a + 1)[5]) == 78
    fixed = a[:]
    fixed.setflags(write=False)
    assert address(fixed) == first


def test_addresses_of_an_array_that_is_resized_are_those_of_its_new_memory():
    a = bh.arange(1000.0)
    a.ctypes.data
    a.resize(5000)
    address = a.ctypes.data
    a += 1
    assert at(address, 999).value == 1000 and at(address, 4999).value == 1


def test_arrays_without_elements_that_can_be_read_have_no_address():
    a = bh.arange(30_000.0)
    for _ in range(20):
        lost, fine = a[bh.arange(30_000) + 1], a * 2
        for address in (lambda a: a.ctypes, numpy.asarray, lambda a: a.__array_interface__, address_in_c):
            with pytest.raises(IndexError):
                address(lost)
        assert float(fine[2]) == 4


def test_memory_whose_address_is_known_is_given_back_with_the_array():
    def rounds(count):
        for _ in range(count):
            a = bh.ones(500_000)
            a.ctypes.data
            a += 1
            del a
        bh.flush()

    rounds(5)
    before = resident()
    rounds(100)
    assert resident() - before < 100 << 20


def resident():
    """Bytes of memory that the process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@pytest.mark.filterwarnings("ignore:Setting the strides")
def test_shapes_that_are_set_in_a_loop_keep_no_memory():
    a = bh.arange(12.0)

    def rounds(count):
        for _ in range(count):
            a.shape = 3, 4
            row = a[1]
            a.shape = (12,)
            a.strides = (8,)
            a.shape = 2, 6
        return row

    rounds(100)
    before = resident()
    row = rounds(30_000)
    assert resident() - before < 8 << 20
    assert row.tolist() == [4, 5, 6, 7] and a.tolist() == numpy.arange(12.0).reshape(2, 6).tolist()


def test_sizes_that_are_set_in_a_loop_keep_no_memory():
    a = bh.ones(500_000)

    def rounds(count):
        for k in range(count):
            a.resize(500_000 + k % 7 + 1)
            a[3] = k
            bh.flush()

    rounds(5)
    before = resident()
    rounds(60)
    assert resident() - before < 60 << 20 and float(a[3]) == 59


def test_names_of_callers_are_not_kept():
    class Kept:
        """Something that a program has."""

    def gone():
        names = {"__name__": "program", "bh": bh, "kept": Kept()}
        exec("x = bh.arange(3.0); y = x.sum(); z = x[1]", names)
        assert type(names["y"]) is numpy.float64
        return weakref.ref(names["kept"])

    before = _native.follow_array_api(False)
    kept = gone()
    _native.follow_array_api(before)
    gc.collect()
    assert kept() is None


def test_elements_as_numbers():
    x = bh.arange(12.0).reshape(3, 4)[:, ::-1]
    a = numpy.arange(12.0).reshape(3, 4)[:, ::-1]
    for index in ((5,), (-1,), (1, 2), ((2, -3),), (numpy.int64(4),)):
        assert x.item(*index) == a.item(*index)
    for wrong in ((12,), (3, 0), (-13,)):
        with pytest.raises(IndexError):
            x.item(*wrong)
    with pytest.raises(ValueError):
        x.item(1, 2, 3)


@pytest.mark.parametrize("kind", "? b h i l B H I L f d F D".split())
def test_files_are_numpys(tmp_path, kind):
    a = (numpy.arange(24).reshape(2, 3, 4) % 5).astype(kind)
    x = bh.asarray(a)
    for value, reference in ((x, a), (x[:, ::-1, 1:], a[:, ::-1, 1:]), (x[0, 0, 0], a[0, 0, 0]), (x[:0], a[:0])):
        bh.save(tmp_path / "mine", value)
        same(numpy.load(tmp_path / "mine.npy"), reference)
        numpy.save(tmp_path / "numpys.npy", reference)
        loaded = bh.load(tmp_path / "numpys.npy")
        assert type(loaded) is bh.ndarray
        same(loaded, reference)
        loaded[...] = 1
    numpy.save(tmp_path / "turned.npy", a.T)
    same(bh.load(str(tmp_path / "turned.npy")), a.T)


@pytest.mark.falls_back
def test_files_that_are_left_to_numpy(tmp_path):
    numpy.save(tmp_path / "text.npy", numpy.array(["a", "b"]))
    assert bh.load(tmp_path / "text.npy").tolist() == ["a", "b"]
    numpy.save(tmp_path / "swapped.npy", numpy.arange(3).astype(">i4"))
    assert bh.load(tmp_path / "swapped.npy").tolist() == [0, 1, 2]
    bh.savez(tmp_path / "several", a=bh.arange(3), b=bh.ones(2))
    with bh.load(tmp_path / "several.npz") as archive:
        assert archive["a"].tolist() == [0, 1, 2]
    with open(tmp_path / "open.npy", "wb") as file:
        bh.save(file, bh.arange(4))
    with open(tmp_path / "open.npy", "rb") as file:
        assert bh.load(file).tolist() == [0, 1, 2, 3]
    assert numpy.load(tmp_path / "open.npy", mmap_mode="r")[2] == bh.load(tmp_path / "open.npy", mmap_mode="r")[2]
    with pytest.raises(FileNotFoundError):
        bh.load(tmp_path / "nothing.npy")
    with pytest.raises(FileNotFoundError):
        bh.save(tmp_path / "no" / "folder.npy", bh.ones(2))
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises((ValueError, EOFError)):
        bh.load(tmp_path / "broken.npy")


def test_failures_strike_only_what_depends_on_them():
    outside, kept = bh.asarray([7] * 30_000), bh.ones(3)
    lost = bh.zeros(3)
    lost[outside] = 1
    with warnings.catch_warnings(record=True):
        assert numpy.asarray(kept).tolist() == kept.tolist() == [1, 1, 1]
    for _ in range(2):
        with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 3"):
            lost.tolist()


def test_failures_of_what_nobody_reads_are_warned_of():
    # Too large for the recorder to carry out at once: a batch runs, and what failed is in it.
    outside, kept = bh.asarray([7] * 30_000), bh.ones(30_000)
    lost = bh.zeros(3)
    lost[outside] = 1
    del lost
    with pytest.warns(RuntimeWarning, match="index 7 is out of bounds"):
        assert kept.tolist() == [1] * 30_000
    assert kept.tolist() == [1] * 30_000


def test_arrays_are_pickled_in_buffers_of_their_own_memory():
    x, buffers = bh.arange(6.0).reshape(2, 3), []
    pickled = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    loaded = pickle.loads(pickled, buffers=buffers)
    x[0, 0] = -1
    assert type(loaded) is bh.ndarray and float(loaded[0, 0]) == -1
    # Memory of others is copied.
    assert pickle.loads(pickled, buffers=[bytes(buffers[0].raw())])[0, 0] == -1


@pytest.mark.parametrize("make", [lambda a: a, lambda a: a.T, lambda a: a.transpose(1, 0, 2), lambda a: a[:, ::2], lambda a: a[:0], lambda a: a[0, 0, 0]])
def test_pickles_of_any_order(make):
    x = make(bh.arange(24.0).reshape(2, 3, 4))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        same(pickle.loads(pickle.dumps(x, protocol)), numpy.asarray(x))


def test_buffers_of_dimensions_with_one_element_have_strides_of_what_lies_side_by_side():
    x = bh.ones((1, 10, 10))
    view = bh.lib.stride_tricks.as_strided(x, strides=(-1, 80, 8))
    assert memoryview(view).strides == (800, 80, 8)


def test_parts_without_elements_have_a_place():
    x = bh.empty(100, "u1")
    begin = x.__array_interface__["data"][0]
    assert x[7:8][:-1].__array_interface__["data"][0] == begin + 7


def test_files_of_python_2_are_warned_of(tmp_path):
    path = tmp_path / "old.npy"
    numpy.save(path, numpy.ones(2))
    path.write_bytes(path.read_bytes().replace(b"(2,), }", b"(2L,),}"))
    with pytest.warns(UserWarning, match="Python 2"):
        same(bh.load(path), numpy.ones(2))
