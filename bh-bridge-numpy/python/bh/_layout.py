"""How the elements of an array lie in memory."""


def axes_in_memory(order, shape, strides):
    """The dimensions from the outermost in memory on, for an array in an order like one of these strides; None for C's."""
    rank = len(shape)
    if rank < 2 or order == "C":
        return None
    in_fortran, in_c = (dense(extents, steps) for extents, steps in ((shape, strides), (shape[::-1], strides[::-1])))
    if order == "F" or in_fortran and not in_c:
        return list(range(rank))[::-1]
    if order == "A" or in_c:
        return None
    axes = sorted(range(rank), key=lambda axis: -abs(strides[axis]))
    return None if axes == list(range(rank)) else axes


def dense(shape, strides):
    """Do elements with these strides, the innermost first, lie side by side?"""
    step = 1
    for extent, stride in zip(shape, strides):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True
