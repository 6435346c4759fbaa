"""Datasets of HDF5 files, as `h5py` opens them: on a cluster each rank reads its own elements at their places in the file, where
they lie side by side."""

import os
import threading

import numpy as np

from . import _fallback, _native, _ranks
from ._types import CODE

# Less goes through the first rank, as in files of NumPy's format.
_SHARED_BYTES = 1 << 20

# The method takes the file that was named last.
_one = threading.Lock()


def is_dataset(value):
    """Is this a dataset of `h5py`, which is not imported for that?"""
    kind = type(value)
    return kind.__module__.partition(".")[0] == "h5py" and kind.__name__ == "Dataset"


def _place(dataset):
    """Where the elements begin in the file, if all ranks may read them there."""
    kind, file = dataset.dtype, dataset.file
    plain = kind in CODE and kind.kind in "iuf" and kind.isnative and file.driver == "sec2" and not file.userblock_size
    apart = dataset.chunks is not None or dataset.external or dataset.is_virtual
    if not plain or apart or dataset.size * kind.itemsize < _SHARED_BYTES or _ranks.ranks() == 1:
        return None
    if file.mode != "r":
        file.flush()
    return dataset.id.get_offset()


def load(dataset):
    """The elements of a dataset."""
    offset = _place(dataset)
    if offset is None:
        host = np.asarray(dataset[...])
        return _fallback.from_numpy(host.astype(host.dtype.newbyteorder("="), copy=False))
    array = _native.empty(dataset.shape, CODE[dataset.dtype])
    stack = _native.Stack(array._stack)
    with _one:
        stack.message(f"cluster file {offset} {os.path.abspath(dataset.file.filename)}")
        _native.extension("cluster_file_read", [array], [])
        stack.flush()
    return array
