"""Datasets of `h5py` and arrays of `zarr`: on a cluster each rank reads and writes its own elements, where the files allow it."""

import functools
import os
import threading

import numpy as np

from .. import _native
from .._array.element_types import CODE
from .._numpy import fallback
from . import dataset_handles, ranks as _ranks

ndarray = _native.ndarray

# Less goes through the first rank, as in files of NumPy's format.
_SHARED_BYTES = 1 << 20

# About the bytes of a piece of data that passes through the first rank.
_PIECE_BYTES = 1 << 26

# The method takes the file that was named last.
_one = threading.Lock()


def is_dataset(value):
    """Is this a dataset of `h5py` or an array of `zarr`? Neither is imported for that."""
    kind = type(value)
    return (kind.__module__.partition(".")[0], kind.__name__) in (("h5py", "Dataset"), ("zarr", "Array"))


def load(dataset, part=...):
    """The elements of a dataset, or of a part of it."""
    part, shape = _sliced(dataset.shape, part)
    kind = np.dtype(dataset.dtype).newbyteorder("=")
    if kind not in CODE or shape is None or not _is_shared(shape, kind):
        return _converted(dataset[part])
    result = _native.empty(shape, CODE[kind])
    offset = _offset(dataset, part)
    if offset is not None:
        _move("cluster_file_read", dataset, offset, [result], [])
        return result
    found = dataset_handles.source(dataset)
    if found is not None and isinstance(part[0], slice):
        return _ranks.rows_of(functools.partial(dataset_handles.read, found, part), shape, kind)
    for rows, place in _pieces(part, shape, kind.itemsize):
        result[rows] = _converted(dataset[place])
    return result


def save(dataset, array, part=...):
    """Writes an array to a dataset of its shape, or to a part of one."""
    part, shape = _sliced(dataset.shape, part)
    if type(array) is not ndarray or array.shape != shape or not _is_shared(shape, array.dtype):
        dataset[part] = fallback.to_numpy(array) if type(array) is ndarray else array
        return
    if dataset.dtype == array.dtype and array.flags.c_contiguous:
        offset = _offset(dataset, part, make=True)
        if offset is not None:
            _move("cluster_file_write", dataset, offset, [_native.empty((1,), CODE[np.dtype("u1")])], [array])
            # HDF5 keeps the last few elements that it read or wrote, which are out of date: other ones take their place.
            for place in (0, -1):
                dataset[(place,) * dataset.ndim]
            return
    found = None if _is_hdf5(dataset) else dataset_handles.source(dataset)
    if found is not None and isinstance(part[0], slice) and part[0].step == 1:
        height = (dataset.shards or dataset.chunks)[0]
        # A file is written by one rank, which gets the rows of others in it.
        if height <= shape[0] // _ranks.ranks():
            _ranks.note_of(functools.partial(dataset_handles.write, found, part, height), array, height - 1)
            return
    for rows, place in _pieces(part, shape, array.itemsize):
        dataset[place] = fallback.to_numpy(array[rows])


def _is_hdf5(dataset):
    return type(dataset).__module__.partition(".")[0] == "h5py"


def _converted(host):
    host = np.asarray(host)
    return fallback.from_numpy(host.astype(host.dtype.newbyteorder("="), copy=False))


def _is_shared(shape, kind):
    return bool(shape) and np.prod(shape, dtype=float) * kind.itemsize >= _SHARED_BYTES and _ranks.ranks() > 1


def _sliced(shape, part):
    """A part with an entry for each dimension, and its shape; `None` for a part that is not made of numbers and of slices that go
    forwards."""
    whole = part if isinstance(part, tuple) else (part,)
    before = next((place for place, entry in enumerate(whole) if entry is ...), len(whole))
    missing = len(shape) - (len(whole) - (before < len(whole)))
    whole = (*whole[:before], *[slice(None)] * missing, *whole[before + 1 :])
    if len(whole) != len(shape) or not all(isinstance(entry, (slice, int, np.integer)) for entry in whole):
        return part, None
    slices = [slice(*entry.indices(extent)) if isinstance(entry, slice) else entry for entry, extent in zip(whole, shape)]
    if any(isinstance(entry, slice) and entry.step < 1 for entry in slices):
        return part, None
    return tuple(slices), tuple(len(range(entry.start, entry.stop, entry.step)) for entry in slices if isinstance(entry, slice))


def _pieces(part, shape, size):
    """Rows of the result, and the parts of the dataset where they are."""
    axis = next(place for place, entry in enumerate(part) if isinstance(entry, slice))
    entry, count = part[axis], shape[0]
    each = max(1, _PIECE_BYTES // max(1, int(np.prod(shape[1:])) * size))
    for low in range(0, count, each):
        high = min(count, low + each)
        rows = slice(entry.start + low * entry.step, entry.start + (high - 1) * entry.step + 1, entry.step)
        yield slice(low, high), (*part[:axis], rows, *part[axis + 1 :])


def _offset(dataset, part, make=False):
    """Where the elements of a part begin in the file of an HDF5 dataset, if they lie there side by side for all ranks. `make`: they
    get their place if they have none yet."""
    if not _is_hdf5(dataset):
        return None
    kind, file = dataset.dtype, dataset.file
    plain = kind in CODE and kind.kind in "iuf" and kind.isnative and file.driver == "sec2" and not file.userblock_size
    apart = dataset.chunks is not None or dataset.external or dataset.is_virtual
    rest = zip(part[1:], dataset.shape[1:])
    rows = isinstance(part[0], slice) and part[0].step == 1 and all(entry == slice(0, extent, 1) for entry, extent in rest)
    if not plain or apart or not rows:
        return None
    if make and dataset.id.get_offset() is None:
        dataset[(0,) * dataset.ndim] = 0
    if file.mode != "r":
        file.flush()
    offset = dataset.id.get_offset()
    return None if offset is None else offset + part[0].start * int(np.prod(dataset.shape[1:])) * kind.itemsize


def _move(method, dataset, offset, outputs, inputs):
    """Lets each rank move its own elements, which lie in the file from `offset` on."""
    stack = _native.Stack((inputs or outputs)[0]._stack)
    with _one:
        stack.message(f"cluster file {offset} {os.path.abspath(dataset.file.filename)}")
        _native.extension(method, outputs, inputs)
        stack.flush()
