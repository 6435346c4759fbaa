"""Shared memory in which pieces travel between processes: two places in turn, that grow as needed."""

import contextlib
import mmap
import os
import pickle

import numpy as np

from . import pieces

# Arrays begin at multiples of this.
_ALIGNED = 64


class Slots:
    """Two files in memory; a piece of call n travels in file n % 2. One side writes and the other one reads."""

    def __init__(self, files=None):
        self.files = files or [os.memfd_create("bh-pieces") for _ in range(2)]
        self._maps = [None, None]

    def _mapped(self, turn, size):
        if self._maps[turn] is None or len(self._maps[turn]) < size:
            self._maps[turn] = mmap.mmap(self.files[turn], size)
        return memoryview(self._maps[turn])

    def write(self, call, piece, count):
        """Stores a piece of NumPy's arrays and other objects, and returns where; `count` is called with the bytes of each array."""
        buffers = []
        rest = pickle.dumps(piece, 5, buffer_callback=buffers.append)
        parts = [memoryview(rest), *(buffer.raw() for buffer in buffers)]
        places, end = [], 0
        for part in parts:
            places.append((end, part.nbytes))
            end += -(-part.nbytes // _ALIGNED) * _ALIGNED
        if os.fstat(self.files[call % 2]).st_size < end:
            os.ftruncate(self.files[call % 2], end)
        memory = self._mapped(call % 2, end)
        for (begin, size), part in zip(places, parts):
            memory[begin : begin + size] = part
        for buffer in buffers:
            count(buffer.raw().nbytes)
        return end, places

    def read(self, call, place, count=lambda nbytes: None):
        """A copy of the piece that lies at a place."""
        return pieces.each(lambda part: np.array(part) if isinstance(part, np.ndarray) else part, self.shown(call, place, count))

    def shown(self, call, place, count=lambda nbytes: None):
        """The piece that lies at a place, whose arrays are there only until the next but one comes."""
        size, ((begin, length), *others) = place
        memory = self._mapped(call % 2, size)
        for _, nbytes in others:
            count(nbytes)
        return pickle.loads(memory[begin : begin + length], buffers=[memory[at : at + nbytes] for at, nbytes in others])

    def close(self):
        """Gives the files back, and the memory that nobody looks at any more."""
        for memory in filter(None, self._maps):
            with contextlib.suppress(BufferError):
                memory.close()
        for file in self.files:
            os.close(file)
