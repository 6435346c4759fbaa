"""Runs loops that end for each element at another time: some turns at once, then what is left, moved together."""

import math

import numpy as np

from ... import _native
from ..._array.element_types import INT64
from ..recording import Jitted
from .runtime import array_of, number, spread

# Operations that a function for some turns may have, and the most turns; the most operations of a turn that is worth a recording.
_OPERATIONS, _TURNS, _LONGEST = 256, 32, 4096
# The cost of moving one array's elements together, in operations on each; and the fewest elements worth it.
_MOVE, _FEW = 12, 4096


class Plan:
    """A loop: the function for some of its turns, and the types of what changes in it."""

    def __init__(self, function, dtypes, work, has_loops, counts):
        # Loops in loops wait for elements, which recordings cannot repeat.
        self.turns = 1 if has_loops else max(1, min(_TURNS, _OPERATIONS // max(work, 1)))
        self.call = function if has_loops or work > _LONGEST else Jitted(function, frozenset(), frozenset())
        self.dtypes, self.work, self.counts = dtypes, work, counts


def run(plan, mask, shape, state, reads, tables, trips):
    """Runs a loop for the elements of a mask. Returns what has changed, and the mask of those that came to the end of its range."""
    size = math.prod(shape)
    active = spread(mask, bool, shape)
    left = size if mask is None else int(number(active))
    state = [spread(value, dtype, shape) for value, dtype in zip(state, plan.dtypes)]
    reads = [array_of(value, None if type(value) is _native.ndarray else np.asarray(value).dtype) for value in reads]
    together = _Together(shape, reads)
    done = wasted = 0
    while left and (trips is None or done < trips):
        if wasted > _MOVE * (len(state) + len(reads) + 2) * size and together.is_worth(left, size):
            state, active, size = together.move(state, active, left, size)
            wasted = 0
        # Many loops are short for all elements.
        turns = plan.turns if done else max(plan.turns // 4, 1)
        turns = turns if trips is None else min(turns, trips - done)
        base = _native.full((), INT64, done if plan.counts else 0)
        *state, active, count = plan.call(turns, base, active, *state, *together.reads, *tables)
        left, done = int(count), done + turns
        wasted += plan.work * turns * (size - left)
    return together.back([*state, active])


class _Together:
    """Moves the elements that are left together, and back to where they belong."""

    def __init__(self, shape, reads):
        self._shape, self.reads = shape, reads
        self._whole = self._place = None
        self._used = 0

    def is_worth(self, left, size):
        return size >= _FEW and _room(left) <= size * 3 // 4

    def move(self, state, active, left, size):
        """The state of the elements that are left, its mask, and how many elements it has room for."""
        self._store([*state, active])
        if self._place is None:
            spread_out = lambda read: read if read.size == 1 else _flat(_native.broadcast_to(read, self._shape))
            self.reads = [spread_out(read) for read in self.reads]
        state, active = [_flat(value) for value in state], _flat(active)
        (found,) = _nonzero(active)
        room = _room(left)
        places = _native.full((room,), INT64, 0)
        places[:left] = found
        self._place = places if self._place is None else self._place[places]
        self.reads = [read if read.size == 1 else read[places] for read in self.reads]
        self._used = left
        return [value[places] for value in state], _native.arange((room,), INT64, 0, 1) < left, room

    def _store(self, values):
        """Puts values where they belong among those of all elements."""
        if self._place is None:
            self._whole = [_flat(value).copy() for value in values]
            return
        place = self._place[: self._used]
        for whole, value in zip(self._whole, values):
            whole[place] = value[: self._used]

    def back(self, values):
        """The values of all elements."""
        if self._place is None:
            return values
        self._store(values)
        return [_native.reshape(whole, self._shape) for whole in self._whole]


def _flat(value):
    return _native.reshape(value, (value.size,))


def _nonzero(mask):
    from ..._array.indexing import nonzero

    return nonzero(mask)


def _room(count):
    """A round number of elements, not less than this one, so that few sizes are recorded."""
    unit = 1 << max(count.bit_length() - 4, 0)
    return -(-count // unit) * unit
