"""The process of a task graph's stage that has a stack to itself: it gets tasks, then pieces, and answers what tasks make of them."""

import collections
import copyreg
import multiprocessing.connection
import pickle
import signal

from .. import _native
from .._cluster import functions
from . import pieces
from .groups import Failed, Group
from .setup import unpacked
from .slots import Slots


def _error(*args):
    return _native.Error(*args)


# Its name in this package is not its own.
copyreg.pickle(_native.Error, lambda error: (_error, error.args))


def main(places):
    """Serves until the other side ends. `places` are the numbers of files: the connection, then shared memory in and out."""
    # An interrupt ends the program's own process; this one ends with the connection.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = multiprocessing.connection.Connection(places[0])
    inward, outward = Slots(places[1:3]), Slots(places[3:5])
    try:
        group = Group(pieces.present_stack(), unpacked(connection.recv_bytes()))
    except Exception as error:
        connection.send_bytes(_carried_error(error))
        return
    connection.send_bytes(pickle.dumps(None))
    try:
        _serve(group, connection, inward, outward)
    except (EOFError, OSError):
        # The program is gone, or wants nothing more.
        pass


def _serve(group, connection, inward, outward):
    begun = collections.deque()

    def answer():
        call, work = begun.popleft()
        try:
            if isinstance(work, Failed):
                raise work
            results = tuple(pieces.moved(piece, pieces.HOST) for piece in group.end(work, None))
            text = pickle.dumps((outward.write(call, results, lambda nbytes: None), None, None))
        except Failed as failed:
            text = _carried_error(failed.__cause__, failed.task)
        except Exception as error:
            text = _carried_error(error, str(group.tasks[-1]))
        connection.send_bytes(text)

    while True:
        while begun and not connection.poll(0):
            answer()
        call, place = pickle.loads(connection.recv_bytes())
        try:
            begun.append((call, group.begin(inward.shown(call, place), lambda nbytes: None)))
        except Failed as failed:
            begun.append((call, failed))
        while len(begun) > 1:
            answer()


def _carried_error(error, task=None):
    """An error as bytes, for the answer of a call if a task is named; one that cannot be pickled as its text."""
    answer = lambda error: error if task is None else (None, task, error)
    try:
        text = pickle.dumps(answer(error))
        pickle.loads(text)
        return text
    except Exception:
        return pickle.dumps(answer(RuntimeError(f"{type(error).__name__}: {error}")))
