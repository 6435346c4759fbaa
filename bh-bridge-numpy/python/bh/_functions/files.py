"""Arrays in files of NumPy's format, and in datasets of `h5py` and `zarr`: between the file and the stack without detours, on a
cluster by each rank."""

import os
import re

import numpy as np

from .. import _native
from .._cluster import datasets
from .._numpy import fallback

ndarray = _native.ndarray


def save(file, arr, allow_pickle=True, *, part=...):
    """Writes an array to a file, whose name ends in `.npy` or gets that end; or to a part of a dataset of `h5py` or `zarr`."""
    if datasets.is_dataset(file):
        return datasets.save(file, arr, part)
    if type(arr) is not ndarray or not isinstance(file, (str, os.PathLike)):
        return np.save(file, fallback.lower(arr), allow_pickle)
    path = os.fspath(file)
    if not isinstance(path, str):
        return np.save(file, fallback.to_numpy(arr), allow_pickle)
    try:
        _native.save(path if path.endswith(".npy") else path + ".npy", arr)
    except (_native.Error, OSError):
        # NumPy says what is wrong with the file as Python's exceptions do.
        np.save(file, fallback.to_numpy(arr), allow_pickle)


def _is_of_python2(file):
    """Has a file's header whole numbers as Python 2 wrote them? NumPy warns of such files, which take longer to read."""
    with open(file, "rb") as opened:
        return re.search(rb"'shape': \(\d+L", opened.readline(10000)) is not None


def load(file, mmap_mode=None, allow_pickle=False, fix_imports=True, encoding="ASCII", *, max_header_size=10000, part=...):
    """The array in a file, or in a part of a dataset of `h5py` or `zarr`; archives, and types that bh lacks, are NumPy's."""
    if datasets.is_dataset(file):
        return datasets.load(file, part)
    if mmap_mode is None and isinstance(file, (str, os.PathLike)) and isinstance(os.fspath(file), str) and not _is_of_python2(file):
        try:
            return _native.load(os.fspath(file))
        except (_native.Error, OSError):
            # Not such a file, or not there: NumPy knows more kinds, and Python's exceptions.
            pass
    loaded = np.load(file, mmap_mode, allow_pickle, fix_imports, encoding, max_header_size=max_header_size)
    return fallback.from_numpy(loaded) if isinstance(loaded, np.ndarray) and mmap_mode is None else loaded
