"""Checkpoints: named arrays and numbers in a folder, from which a program goes on, on any number of ranks.

Each checkpoint is a folder of its own beside the older ones, and the file `latest` names it once all of it is there: a program
that is killed meanwhile finds the one before. Sums over the elements, and one over the manifest, show damage.
"""

import json
import os
import shutil
import zlib
from pathlib import Path

import numpy as np

from .. import _native
from .._functions import files
from .._numpy import fallback
from .ranks import map_blocks

_LATEST = "latest"
_NAMES = "names.json"
_SUM = "names.sum"
# Bytes of arrays that are summed by this process alone, and of the pieces that are summed at a time.
_LITTLE, _PIECE = 1 << 16, 1 << 20


class CheckpointError(_native.Error):
    """A checkpoint is there and cannot be read. No `OSError`, so that a program does not take it for the lack of a checkpoint."""

    __module__ = "bh"


def checkpoint(path, values=None, /, **named):
    """Saves arrays, numbers and texts by name in a folder, and replaces the checkpoint that was there when all of it is on the disk.

    On a cluster each rank writes its own elements, so all ranks must reach the folder by the same path.

    Parameters
    ----------
    path : str or path
        The folder; it is made if it does not exist.
    values : mapping, optional
        Values by name, beside those that are given as keywords.

    Raises
    ------
    TypeError
        For values of other types.
    OSError
        If the folder cannot be written.

    Examples
    --------
    >>> bh.checkpoint("run", u=u, step=10)  # doctest: +SKIP
    >>> bh.restore("run")["step"]  # doctest: +SKIP
    10
    """
    named = {**(values or {}), **named}
    path = Path(path)
    path.mkdir(parents=True, exist_ok=True)
    folder = path / f"checkpoint-{max(map(_number, path.glob('checkpoint-*')), default=0) + 1}"
    folder.mkdir()
    kept = {name: _keep(folder, number, value) for number, (name, value) in enumerate(named.items())}
    manifest = json.dumps(kept)
    _write(folder / _SUM, str(_sum_of(manifest.encode())))
    _write(folder / _NAMES, manifest)
    _write(path / _LATEST, folder.name)
    for other in path.glob("checkpoint-*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)


def restore(path):
    """Returns the values of the checkpoint in a folder, as a dictionary by name, on any number of ranks.

    Parameters
    ----------
    path : str or path
        The folder that `checkpoint` wrote.

    Raises
    ------
    FileNotFoundError
        If there is no checkpoint.
    bh.CheckpointError
        If the checkpoint is damaged: a file is missing, truncated or altered. The message names it.
    """
    path = Path(path)
    try:
        folder = _latest(path)
        kept = None if folder is None else _kept(folder)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, EOFError, _native.Error) as reason:
        text = f"the checkpoint in '{path}' is damaged: {reason}. Put back what is missing, or remove the folder to begin again"
        raise CheckpointError(text) from reason
    if kept is None:
        raise FileNotFoundError(f"there is no checkpoint in '{path}'")
    return kept


def _kept(folder):
    """The arrays of a checkpoint's folder, by name."""
    manifest, sum_file = (folder / _NAMES).read_bytes(), folder / _SUM
    # Older checkpoints have no sum.
    if sum_file.exists() and sum_file.read_text() != str(_sum_of(manifest)):
        raise ValueError(f"'{_NAMES}' is not as it was written")
    return {name: _restored(folder, entry) for name, entry in json.loads(manifest).items()}


def _latest(path):
    """The folder of the last checkpoint. `None` if there is none."""
    try:
        folder = path / (path / _LATEST).read_text()
    except FileNotFoundError:
        # A manifest is written when all else is there.
        whole = [manifest.parent for manifest in path.glob(f"checkpoint-*/{_NAMES}")]
        return max(whole, key=_number, default=None)
    if _number(folder) == 0:
        raise ValueError(f"'{_LATEST}' names no checkpoint")
    return folder


def _number(folder):
    """The number of a checkpoint's folder. Others have 0."""
    kind, _, number = folder.name.partition("-")
    return int(number) if kind == "checkpoint" and number.isdecimal() else 0


def _keep(folder, number, value):
    """Writes a value, and returns how it is found again."""
    if value is None or type(value) in (bool, int, float, str):
        return {"value": value}
    file = f"{number}.npy"
    if type(value) is _native.ndarray:
        files.save(folder / file, value)
        return {"array": file, "is": _mark(value)}
    if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
        with open(folder / file, "wb") as stream:
            np.save(stream, value, allow_pickle=False)
            os.fsync(stream.fileno())
        return {"numpy": file, "scalar": isinstance(value, np.generic), "is": _mark(value)}
    raise TypeError(f"a checkpoint keeps arrays, numbers and texts, not '{type(value).__name__}'")


def _restored(folder, entry):
    if "value" in entry:
        return entry["value"]
    file = entry["array"] if "array" in entry else entry["numpy"]
    value = files.load(folder / file) if "array" in entry else np.load(folder / file, allow_pickle=False)
    # Older checkpoints have no marks.
    if "is" in entry and entry["is"] != _mark(value):
        raise ValueError(f"the array in '{file}' is not the one that was written")
    return value[()] if entry.get("scalar") else value


def _mark(value):
    """The type, shape and checksum of an array, by which a checkpoint recognises it."""
    own = _sum(value) if type(value) is _native.ndarray else _sum_of(value.tobytes())
    return [value.dtype.str, list(value.shape), own]


def _sum(array):
    """The sum of a byte for each element: the same on any number of ranks, each of which reads its own elements."""
    if array.ndim == 0 or array.nbytes < _LITTLE:
        return int(_bytes_of(np.atleast_1d(fallback.to_numpy(array))).sum(dtype=np.uint64))
    return int(map_blocks(_bytes_of, array, dtype=np.uint8).sum(dtype=np.uint64))


def _bytes_of(block):
    """For each element the exclusive or of its bytes."""
    result = np.empty(block.shape, np.uint8)
    rows = max(1, _PIECE * len(block) // max(block.nbytes, 1))
    for first in range(0, len(block), rows):
        piece = block[first : first + rows]
        parts = (piece.real, piece.imag) if piece.dtype.kind == "c" else (piece,)
        words = [part.view(f"u{part.dtype.itemsize}") for part in parts]
        bits = words[0] if len(words) == 1 else words[0] ^ words[1]
        for shift in (32, 16, 8):
            if shift < 8 * bits.dtype.itemsize:
                bits = bits ^ (bits >> shift)
        result[first : first + rows] = bits & 255 if bits.dtype.itemsize > 1 else bits
    return result


def _sum_of(data):
    return zlib.crc32(data)


def _write(file, text):
    """Replaces a file by one that is whole on the disk."""
    new = file.with_name(file.name + ".new")
    with open(new, "w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(new, file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
