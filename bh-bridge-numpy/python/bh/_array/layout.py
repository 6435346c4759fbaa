"""How the elements of an array lie in memory, and the dimensions that arguments name."""

import operator

import numpy as np
from numpy.lib.array_utils import normalize_axis_index


def axis_index(axis, rank):
    """The dimension that an axis names, which counts from the last one if it is negative; NumPy's functions in C refuse truth values."""
    if isinstance(axis, (bool, np.bool_)):
        raise TypeError("an integer is required for the axis")
    return normalize_axis_index(operator.index(axis), rank)


def axes_in_memory(order, shape, strides):
    """The dimensions from the outermost in memory on, for an array in an order like one of these strides; None for C's."""
    rank = len(shape)
    if rank < 2 or order == "C" or order != "F" and 0 in shape:
        return None
    in_fortran, in_c = (dense(extents, steps) for extents, steps in ((shape, strides), (shape[::-1], strides[::-1])))
    if order == "F" or in_fortran and not in_c:
        return list(range(rank))[::-1]
    if order == "A" or in_c:
        return None
    axes = sorted(range(rank), key=lambda axis: -abs(strides[axis]))
    return None if axes == list(range(rank)) else axes


def joint_order(shapes, strides):
    """The dimensions from the outermost in memory on, for one array that several ones are put into. Where two of these differ about
    dimensions, they stay as in C."""
    axes = [0]
    for axis in range(1, len(shapes[0])):
        place = axis
        for before in reversed(range(axis)):
            other = axes[before]
            told = [abs(steps[axis]) > abs(steps[other]) for shape, steps in zip(shapes, strides) if shape[axis] != 1 != shape[other]]
            if told and not all(told):
                break
            place = before if told else place
        axes.insert(place, axis)
    return axes


def repeats(array):
    """Do elements of an array share memory, as those of a broadcast or of overlapping windows do? Rare views whose elements are
    distinct although their axes interleave count as well."""
    reach = 0
    for step, extent in sorted((abs(step), extent) for step, extent in zip(array._stride, array.shape) if extent > 1):
        if step <= reach:
            return True
        reach += step * (extent - 1)
    return False


def dense(shape, strides):
    """Do elements with these strides, the innermost first, lie side by side?"""
    step = 1
    for extent, stride in zip(shape, strides):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True
