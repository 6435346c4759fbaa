"""Arrays in a device's memory that bh and other libraries hand each other without a copy. Without a CUDA device, the tests say what holds
there."""

import ctypes
import gc

import bh
import numpy as np
import pytest
from bh import _native

ON_CUDA = bh.zeros(3).__dlpack_device__()[0] == 2


def libraries():
    """Functions that make an array of a library from one of NumPy, take one of bh, and give one to NumPy."""
    found = {}
    try:
        import cupy

        found["cupy"] = cupy.asarray, cupy.from_dlpack, cupy.asnumpy
    except ImportError:
        pass
    try:
        import torch

        if torch.cuda.is_available():
            found["torch"] = lambda a: torch.asarray(a, device="cuda"), torch.from_dlpack, lambda a: a.cpu().numpy()
    except ImportError:
        pass
    try:
        import jax

        if any(device.platform == "gpu" for device in jax.devices()):
            jax.config.update("jax_enable_x64", True)
            found["jax"] = jax.numpy.asarray, jax.dlpack.from_dlpack, np.asarray
    except ImportError:
        pass
    return found


LIBRARIES = libraries() if ON_CUDA else {}
on_cuda = pytest.mark.skipif(not ON_CUDA, reason="the stack has no CUDA device")
TYPES = ["f4", "f8", "c8", "c16", "i1", "i4", "i8", "u1"]


def values(dtype, *shape):
    return (np.arange(np.prod(shape)).reshape(shape) % 100).astype(dtype)


@on_cuda
@pytest.mark.parametrize("name", LIBRARIES)
def test_arrays_of_bh_reach_libraries_where_they_are(name):
    make, take, give = LIBRARIES[name]
    for dtype in TYPES:
        expected = values(dtype, 30, 40)
        array = bh.array(expected) + bh.zeros((), dtype)
        views = [(array, expected), (array.T, expected.T)]
        if name != "jax":
            # JAX takes elements without gaps only.
            views.append((array[3:, ::2], expected[3:, ::2]))
        for ours, theirs in views:
            got = give(take(ours))
            assert got.dtype == theirs.dtype and np.array_equal(got, theirs), (name, dtype)
        assert np.array_equal(np.asarray(array + array), expected + expected)


@on_cuda
@pytest.mark.parametrize("name", LIBRARIES)
def test_arrays_of_libraries_reach_bh_where_they_are(name):
    make, take, give = LIBRARIES[name]
    for dtype in TYPES:
        expected = values(dtype, 30, 40)
        theirs = make(expected)
        array = bh.from_dlpack(theirs)
        assert array.dtype == expected.dtype and array.__dlpack_device__()[0] == 2
        assert np.array_equal(np.asarray(array * 2 + array[:, ::-1]), expected * np.asarray(2, dtype) + expected[:, ::-1]), (name, dtype)
        turned = bh.from_dlpack(theirs.T)
        assert np.array_equal(np.asarray(turned[5:]), expected.T[5:]), (name, dtype)
        del array, turned, theirs
        gc.collect()


@on_cuda
@pytest.mark.parametrize("name", [name for name in LIBRARIES if name != "jax"])
def test_both_sides_see_what_the_other_one_writes(name):
    make, take, give = LIBRARIES[name]
    ours = bh.array(values("f8", 1000, 1000)) + 0.0
    theirs = take(ours)
    for turn in range(5):
        ours += 1
        theirs += 1
        ours[turn] = -1
        theirs[turn + 10] = -2
    expected = values("f8", 1000, 1000) + 10
    for turn in range(5):
        expected[turn] = -1 + 2 * (4 - turn)
        expected[turn + 10] = -2 + 2 * (4 - turn)
    assert np.array_equal(give(theirs), expected) and np.array_equal(np.asarray(ours), expected)
    theirs = make(values("f8", 1000, 1000))
    ours = bh.from_dlpack(theirs)
    if ours._writeable:
        ours *= 2
        theirs += 1
        assert np.array_equal(np.asarray(ours), 2 * values("f8", 1000, 1000) + 1)
        assert np.array_equal(give(theirs), 2 * values("f8", 1000, 1000) + 1)


@on_cuda
@pytest.mark.skipif("cupy" not in LIBRARIES, reason="there is no CuPy")
def test_the_interface_of_cuda_describes_the_memory():
    import cupy

    ours = bh.array(values("f4", 100, 50)) + np.float32(0)
    theirs = cupy.asarray(ours[10:, ::2])
    assert ours.__cuda_array_interface__["data"] == ours.__cuda_array_interface__["data"]
    theirs *= 3
    expected = values("f4", 100, 50)
    expected[10:, ::2] *= 3
    assert np.array_equal(np.asarray(ours), expected)
    pointer = ours.__cuda_array_interface__["data"][0]
    assert theirs.data.ptr == pointer + 4 * 10 * 50


@on_cuda
def test_host_memory_is_given_if_it_is_asked_for():
    array = bh.array(values("f8", 300)) + 0.0
    assert np.array_equal(np.from_dlpack(array, device="cpu"), values("f8", 300))


class Tensor:
    """An array of another library on a CUDA device, of which NumPy gets a copy."""

    shape = (3,)

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        assert dl_device == (1, 0)
        return np.arange(3.0).__dlpack__(max_version=max_version)


@pytest.mark.skipif(ON_CUDA, reason="the stack has a CUDA device")
def test_without_a_device_the_elements_come_through_the_host():
    assert bh.from_dlpack(Tensor()).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        bh.from_dlpack(Tensor(), copy=False)
    array = bh.zeros(5)
    assert array.__dlpack_device__() == (1, 0) and not hasattr(array, "__cuda_array_interface__")
    with pytest.raises(Exception, match="no engine of the stack"):
        _native.lend_device(array, True)
    assert (array + 1).tolist() == [1] * 5


class _Managed(ctypes.Structure):
    """A tensor of DLPack before version 1, of two numbers at an address that nobody reads."""

    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("number", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("kind", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


def _capsule(**fields):
    shape = (ctypes.c_int64 * 1)(2)
    given = {"data": 4096, "device": 2, "rank": 1, "kind": 2, "bits": 64, "lanes": 1, "shape": ctypes.addressof(shape), **fields}
    managed = _Managed(**given)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    name = b"dltensor"
    return make(ctypes.addressof(managed), name, None), (managed, shape, name)


@pytest.mark.parametrize("fields, text", [
    ({"device": 1}, "the device type 1 is none of CUDA"),
    ({"bits": 16}, "elements of kind 2 with 16 bits are not known"),
    ({"lanes": 4}, "are not known"),
])
def test_capsules_that_bh_cannot_take_are_refused(fields, text):
    capsule, kept = _capsule(**fields)
    with pytest.raises(BufferError, match=text):
        _native.adopt_device(capsule)
    with pytest.raises(TypeError, match="no capsule of DLPack"):
        _native.adopt_device(None)
    del kept


def test_memory_that_is_none_of_the_device_stays_its_owners():
    capsule, kept = _capsule()
    with pytest.raises(Exception, match="no engine of the stack|does not lead to memory of CUDA"):
        _native.adopt_device(capsule)
    valid = ctypes.pythonapi.PyCapsule_IsValid
    valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
    assert valid(capsule, b"dltensor") == 1
    del kept
