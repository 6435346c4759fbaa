"""The setup of the process of a task graph's stage before the first piece: its tasks, and how the program imports NumPy."""

import builtins
import pickle

import numpy as np

from .._cluster import functions
from .._numpy import imports


def packed(tasks):
    """Tasks, and how this program imports NumPy, as bytes."""
    means_bh = builtins.__import__ is imports._import
    return pickle.dumps((means_bh, imports.named, functions.pack(list(tasks), _carry_array)))


def _carry_array(array):
    return _array, (np.asarray(array),)


def _array(elements):
    import bh

    return bh.asarray(elements)


def unpacked(setup):
    """The tasks of these bytes, in a process that is set up as the program."""
    import bh

    means_bh, named, tasks = pickle.loads(setup)
    imports.named.update(named)
    if means_bh:
        imports.install()
    bh.Stack()
    return functions.unpack(tasks, bh)
