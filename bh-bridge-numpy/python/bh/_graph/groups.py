"""Tasks of a graph that go one after the other on one stack: here, or in a process that has the stack to itself."""

import json
import os
import pickle
import subprocess
import sys

from . import pieces as _pieces
from .setup import packed
from .slots import Slots


class Failed(Exception):
    """A task, given by its name, failed for a reason, the cause."""

    def __init__(self, task):
        super().__init__(task)
        self.task = task


class Group:
    """Tasks of this process. Their work on a piece is recorded while the stack works on the piece before."""

    def __init__(self, stack, tasks):
        self.stack, self.tasks = stack, tasks
        self.ahead = 0 if stack == _pieces.HOST else 1

    def wait_until_ready(self):
        """Nothing has to start."""

    def begin(self, pieces, count):
        """Records what the tasks make of the pieces of a call."""
        results = pieces
        for task in self.tasks:
            try:
                results = self._after(task, results, count)
            except Exception as error:
                raise Failed(str(task)) from error
        if self.ahead:
            _pieces.hand_over()
        return pieces, results

    def end(self, begun, count):
        """The results of a call, when they are there."""
        pieces, results = begun
        try:
            _pieces.settle(tuple(results))
        except Exception as error:
            raise Failed(self._failing(pieces)) from error
        return results

    def _after(self, task, pieces, count=lambda nbytes: None):
        calls = [pieces] if task is self.tasks[0] else [(piece,) for piece in pieces]
        return [result for call in calls for result in task.call(tuple(_pieces.moved(piece, self.stack, count) for piece in call))]

    def _failing(self, pieces):
        """Which task's work fails: they keep no state, so each is done again, and waited for."""
        for task in self.tasks:
            try:
                pieces = self._after(task, pieces)
                _pieces.settle(tuple(pieces))
            except Exception:
                return str(task)
        return str(self.tasks[-1])

    def interrupt(self):
        """Tasks here end when their piece is done."""

    def close(self):
        """Nothing is left."""


class Elsewhere:
    """Tasks of a process that has another stack. Pieces travel through shared memory, two calls at a time."""

    def __init__(self, stack, tasks):
        self.stack, self.tasks, self.ahead, self._calls = stack, tasks, 1, 0
        setup = packed(tasks)
        # These modules take milliseconds, which programs without such stages save.
        import socket
        from multiprocessing.connection import Connection

        mine, other = socket.socketpair()
        self._connection = Connection(mine.detach())
        self._inward, self._outward = Slots(), Slots()
        places = [other.fileno(), *self._inward.files, *self._outward.files]
        code = f"import sys; sys.path[:] = {json.dumps(sys.path)}; from bh._graph.process import main; main({places})"
        self._process = subprocess.Popen([sys.executable, "-c", code], pass_fds=places, env={**os.environ, "BH_STACK": stack})
        other.close()
        self._connection.send_bytes(setup)

    def wait_until_ready(self):
        """Waits for the stack of the process; raises what kept it from starting."""
        error = self._received()
        if error is not None:
            raise error

    def _received(self):
        try:
            return pickle.loads(self._connection.recv_bytes())
        except (EOFError, OSError):
            raise RuntimeError(f"the process of stack {self.stack} ended with code {self._process.wait()}") from None

    def begin(self, pieces, count):
        """Sends the pieces of a call."""
        call, self._calls = self._calls, self._calls + 1
        host = tuple(_pieces.moved(piece, _pieces.HOST) for piece in pieces)
        try:
            place = self._inward.write(call, host, count)
            self._connection.send_bytes(pickle.dumps((call, place)))
        except OSError:
            # The process is gone; who waits for its answer tells.
            pass
        except Exception as error:
            raise Failed(str(self.tasks[0])) from error
        return call

    def end(self, call, count):
        """The results of a call, when they are there."""
        try:
            place, task, error = self._received()
        except RuntimeError as ended:
            raise Failed(" >> ".join(map(str, self.tasks))) from ended
        if error is not None:
            raise Failed(task) from error
        return list(self._outward.read(call, place, count))

    def interrupt(self):
        """Ends the process: it goes when nothing more comes, or else is made to."""
        import socket

        try:
            with socket.socket(fileno=os.dup(self._connection.fileno())) as end:
                end.shutdown(socket.SHUT_WR)
        except OSError:
            # It has gone already.
            pass
        try:
            self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def close(self):
        """Gives the shared memory back when the process has ended."""
        self._process.wait()
        self._connection.close()
        self._inward.close()
        self._outward.close()
