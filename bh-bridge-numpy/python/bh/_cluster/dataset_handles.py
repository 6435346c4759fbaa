"""Datasets of `h5py` and `zarr` as processes of ranks open them: by place and name. Nothing here uses the package, of which these
processes have only a part."""

import contextlib

import numpy as np


def source(dataset):
    """How another process finds a dataset; `None` if it cannot."""
    if type(dataset).__module__.partition(".")[0] == "h5py":
        file = dataset.file
        # Two processes may have a file open if both only read.
        return ("h5py", file.filename, dataset.name) if file.mode == "r" and file.driver == "sec2" else None
    root = getattr(dataset.store, "root", None)
    return None if root is None else ("zarr", str(root), dataset.path)


@contextlib.contextmanager
def opened(found, mode):
    """The dataset of a source."""
    kind, place, name = found
    if kind == "h5py":
        import h5py

        with h5py.File(place, mode) as file:
            yield file[name]
    else:
        import zarr

        yield zarr.open_array(store=place, path=name, mode=mode)


def read(found, part, numbers, *, own):
    """The rows of a part with these numbers, which follow each other."""
    first, *rest = part
    rows = slice(first.start + int(numbers[0]) * first.step, first.start + int(numbers[-1]) * first.step + 1, first.step)
    with opened(found, "r") as dataset:
        return dataset[(rows, *rest)]


def write(found, part, height, numbers, rows, *, own):
    """Writes rows of a part of a dataset in files of `height` rows each: those files of which the first rows are this rank's own.
    `own`: which of the rows are, the others are neighbours'."""
    first, *rest = part
    begin, count = first.start + int(numbers[0]), len(numbers)
    low, high = (begin + place for place in own)
    # A file that begins before this rank's rows is another rank's, except the first of all.
    low = first.start if low == first.start else -(-low // height) * height
    high = min(-(-high // height) * height, begin + count)
    if low < high:
        with opened(found, "r+") as dataset:
            dataset[(slice(low, high), *rest)] = rows[low - begin : high - begin]
    return np.zeros(rows.shape, "u1")
