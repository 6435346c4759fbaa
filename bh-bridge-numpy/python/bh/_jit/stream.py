"""Work on data that is larger than memory: pieces go through a recorded function while the next one is loaded."""

import queue
import threading

import numpy as np

from .. import _native
from .._array.conversion import asarray
from .._graph.graph import iterator

_END = object()


def stream(function, source, rows=1 << 20):
    """Calls a function on one piece after the other, and yields its results; the next piece is loaded meanwhile.

    Parameters
    ----------
    function : callable
        It gets an array of bh, and may return anything.
    source : str, path, array_like or iterable
        The path of a `.npy` file or an array, which are cut into pieces, or an iterable of pieces.
    rows : int
        The rows of a piece.

    Yields
    ------
    object
        The results, in order.

    Examples
    --------
    >>> sum(float(part) for part in bh.stream(bh.sum, [[1.0, 2.0], [3.0]]))
    6.0
    """
    loaded = queue.Queue(maxsize=1)
    stopped = threading.Event()

    def put(value):
        while not stopped.is_set():
            try:
                return loaded.put(value, timeout=0.1)
            except queue.Full:
                continue

    def load():
        try:
            for piece in iterator(source, rows):
                put(np.asarray(piece))
                if stopped.is_set():
                    return
            put(_END)
        except BaseException as error:
            put(error)

    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    try:
        while (piece := loaded.get()) is not _END:
            if isinstance(piece, BaseException):
                raise piece
            result = function(asarray(piece))
            # The stack works on this piece while the program goes on to the next.
            _native.Stack().flush(False)
            yield result
    finally:
        stopped.set()
        thread.join()
