"""`python -m soaking.kernels STACK ...`: the programs of courses and benchmarks on stacks, against NumPy."""

import sys

import numpy

import bh

from . import algebra, fields, traps

KERNELS = {kernel.__name__: kernel for kernel in (*fields.KERNELS, *algebra.KERNELS, *traps.KERNELS)}
# Small ones, and one behind the number of elements up to which little is planned.
SIZES = (5, 17, 33, 96)
# On stacks that take longer.
FEW_SIZES = (5, 33)


def difference(name, size):
    """The first wrong result of a program on the present stack; none if all are right."""
    with numpy.errstate(all="ignore"), bh.fallback("silent"):
        mine, right = KERNELS[name](bh, size), KERNELS[name](numpy, size)
    if not isinstance(right, tuple):
        mine, right = (mine,), (right,)
    for number, (one, other) in enumerate(zip(mine, right, strict=True)):
        one, other = numpy.asarray(one), numpy.asarray(other)
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            return f"result {number}: {one.shape} of {one.dtype}, not {other.shape} of {other.dtype}"
        share = 1e-9 if other.dtype.kind in "fc" else 0.0
        wrong = ~(numpy.abs(one - other) <= share * numpy.abs(other).max(initial=0.0)) if share else one != other
        if wrong.any():
            place = tuple(map(int, numpy.argwhere(wrong)[0]))
            return f"result {number}: {int(wrong.sum())} of {other.size} differ, at {place} {one[place]}, not {other[place]}"
    return None


def main(stacks):
    """Runs all programs on stacks and prints what differs; the exit status: 0 if nothing does."""
    found = []
    for stack in stacks:
        bh.Stack(stack).activate()
        found += [f"{stack}: {name}({size}): {text}" for name in KERNELS for size in FEW_SIZES if (text := difference(name, size))]
    print("\n".join(found), end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
