"""Checkpoints: named arrays and numbers in a folder, from which a program goes on, on any number of ranks.

Each checkpoint is a folder of its own beside the older ones, and the file `latest` names it once all of it is there: a program
that is killed meanwhile finds the one before.
"""

import json
import os
import shutil
from pathlib import Path

import numpy as np

from . import _files, _native

_LATEST = "latest"
_NAMES = "names.json"


def checkpoint(path, values=None, /, **named):
    """Keeps arrays, numbers and texts by name in the folder `path`, in the place of those that were kept there before.

    On a cluster each rank writes its own elements, so that all ranks must reach the folder by the same path.
    """
    named = {**(values or {}), **named}
    path = Path(path)
    path.mkdir(parents=True, exist_ok=True)
    before = _latest(path)
    folder = path / f"checkpoint-{_number(before) + 1}"
    # What a program left that was killed while it wrote.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    kept = {name: _keep(folder, number, value) for number, (name, value) in enumerate(named.items())}
    _write(folder / _NAMES, json.dumps(kept))
    _write(path / _LATEST, folder.name)
    for other in path.glob("checkpoint-*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)


def restore(path):
    """What the last checkpoint in the folder `path` kept, by name. Without one it is a `FileNotFoundError`."""
    path = Path(path)
    latest = _latest(path)
    if latest is None:
        raise FileNotFoundError(f"there is no checkpoint in '{path}'")
    kept = json.loads((path / latest / _NAMES).read_text())
    return {name: _restored(path / latest, entry) for name, entry in kept.items()}


def _latest(path):
    try:
        return (path / _LATEST).read_text()
    except FileNotFoundError:
        return None


def _number(name):
    return int(name.rpartition("-")[2]) if name else 0


def _keep(folder, number, value):
    """Writes a value, and returns how it is found again."""
    if value is None or type(value) in (bool, int, float, str):
        return {"value": value}
    file = f"{number}.npy"
    if type(value) is _native.ndarray:
        _files.save(folder / file, value)
        return {"array": file}
    if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
        with open(folder / file, "wb") as stream:
            np.save(stream, value, allow_pickle=False)
            os.fsync(stream.fileno())
        return {"numpy": file, "scalar": isinstance(value, np.generic)}
    raise TypeError(f"a checkpoint keeps arrays, numbers and texts, not '{type(value).__name__}'")


def _restored(folder, entry):
    if "value" in entry:
        return entry["value"]
    if "array" in entry:
        return _files.load(folder / entry["array"])
    value = np.load(folder / entry["numpy"], allow_pickle=False)
    return value[()] if entry["scalar"] else value


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
