"""How a task graph runs: a thread for each group of tasks, queues with room for few pieces between them, and what is counted."""

import collections
import contextvars
import threading

from . import pieces as _pieces
from .groups import Elsewhere, Failed, Group

_END = object()

# Pieces that wait before a stage, at most, where it does not say.
AHEAD = 2


class GraphError(RuntimeError):
    """A stage of a task graph failed. `stage` is its name, `piece` the number of its first piece that did not get through."""

    __module__ = "bh"

    def __init__(self, stage, piece, where, error):
        super().__init__(f"{stage} failed at piece {piece}{where}: {type(error).__name__}: {error}")
        self.stage, self.piece = stage, piece


class _Stopped(Exception):
    """Nobody wants the pieces any more."""


class _Run:
    """The state that the threads of one run share, under one lock."""

    def __init__(self, names):
        self.change, self._at_work = threading.Condition(), dict.fromkeys(names, 0)
        fresh = lambda: {"pieces": 0, "starved": 0, "held": 0, "most_waiting": 0, "moved_bytes": 0, "beside": {}}
        self.counters = {name: fresh() for name in names}

    def count_moved(self, name, nbytes):
        """Bytes moved to where a stage works, or from there."""
        with self.change:
            self.counters[name]["moved_bytes"] += nbytes

    def begins(self, name):
        """A stage begins with a piece; others that have one at that time are counted."""
        with self.change:
            counted = self.counters[name]
            counted["pieces"] += 1
            for other, pieces in self._at_work.items():
                if pieces and other != name:
                    counted["beside"][other] = counted["beside"].get(other, 0) + 1
            self._at_work[name] += 1

    def ends(self, name):
        """A stage is done with a piece."""
        with self.change:
            self._at_work[name] -= 1


class _Queue:
    """Pieces between two stages, in order, `room` of them at most. `_END` or a failure follows the last piece."""

    def __init__(self, run, room, before, after):
        self._run, self._room, self._pieces = run, room, collections.deque()
        self._end, self._closed = None, False
        self._before, self._after = run.counters[before], run.counters[after]

    def is_empty(self):
        """Would `get` wait?"""
        return not self._pieces and self._end is None

    def put(self, piece):
        """Adds a piece when there is room."""
        with self._run.change:
            if len(self._pieces) >= self._room:
                self._before["held"] += 1
                self._run.change.wait_for(lambda: self._closed or len(self._pieces) < self._room)
            if self._closed:
                raise _Stopped
            self._pieces.append(piece)
            self._after["most_waiting"] = max(self._after["most_waiting"], len(self._pieces))
            self._run.change.notify_all()

    def get(self):
        """The next piece when there is one; `_END` after the last one, or the failure that kept others from coming."""
        with self._run.change:
            if self.is_empty():
                self._after["starved"] += 1
                self._run.change.wait_for(lambda: not self.is_empty())
            self._run.change.notify_all()
            if self._pieces:
                return self._pieces.popleft()
        if self._end is _END:
            return _END
        raise self._end

    def end(self, how=_END):
        """Tells that nothing more comes, and why."""
        with self._run.change:
            self._end = how
            self._run.change.notify_all()

    def close(self):
        """Tells that nothing more is wanted."""
        with self._run.change:
            self._closed = True
            self._run.change.notify_all()


class _Worker:
    """The thread of a group."""

    def __init__(self, run, group, name, arrive, leave):
        self._run, self._group, self._name, self._arrive, self._leave = run, group, name, arrive, leave
        self._rate = group.tasks[0].rate[0]
        # Calls that the stack works on.
        self._begun, self._calls = collections.deque(), 0

    def work(self):
        """Sends pieces through the group until there are no more."""
        while (pieces := self._arriving()) is not None:
            self._begin(pieces)
            while len(self._begun) > self._group.ahead:
                self._finish()
        while self._begun:
            self._finish()

    def _arriving(self):
        """The pieces of the next call, or none. Before it waits, it finishes the work that the stack has begun."""
        pieces = []
        while len(pieces) < self._rate:
            while self._begun and self._arrive.is_empty():
                self._finish()
            try:
                piece = self._arrive.get()
            except GraphError:
                # Earlier pieces go on first.
                while self._begun:
                    self._finish()
                raise
            if piece is _END:
                if pieces:
                    error = ValueError(f"it takes {self._rate} pieces a call, and the stream ended with {len(pieces)} left")
                    self._fail(str(self._group.tasks[0]), self._calls, error)
                return None
            pieces.append(piece)
        return pieces

    def _begin(self, pieces):
        self._run.begins(self._name)
        try:
            self._begun.append(self._group.begin(pieces, self._count))
        except Failed as failed:
            # Earlier pieces go on first, or fail first.
            while self._begun:
                self._finish()
            self._fail(failed.task, self._calls, failed.__cause__)
        self._calls += 1

    def _count(self, nbytes):
        self._run.count_moved(self._name, nbytes)

    def _finish(self):
        call = self._calls - len(self._begun)
        try:
            results = self._group.end(self._begun.popleft(), self._count)
        except Failed as failed:
            self._fail(failed.task, call, failed.__cause__)
        self._run.ends(self._name)
        for result in results:
            self._leave.put(result)

    def _fail(self, task, call, error):
        raise GraphError(task, call * self._rate, f" on stack {self._group.stack}", error) from error


def _read(run, source, name, leave):
    """The thread of a source."""
    number, pieces = 0, None
    try:
        try:
            pieces = source.function()
            while True:
                run.begins(name)
                piece = next(pieces, _END)
                run.ends(name)
                if piece is _END:
                    break
                source.gives.check(piece, f"what {name} gives")
                leave.put(piece)
                number += 1
        finally:
            run.counters[name]["pieces"] = number
            if hasattr(pieces, "close"):
                pieces.close()
    except _Stopped:
        raise
    except Exception as error:
        raise GraphError(name, number, "", error) from error


def _groups(tasks):
    """The tasks by what carries them out: threads, or processes for other stacks than this one's."""
    present, parts = _pieces.present_stack(), []
    for task in tasks:
        if parts and task.stack in (None, parts[-1][0]) and task.rate == (1, 1) and task.ahead is None:
            parts[-1][1].append(task)
        else:
            parts.append((task.stack or (parts[-1][0] if parts else present), [task]))
    # Where NumPy is all that there is, it serves every stack.
    here = {present, _pieces.HOST} if present != _pieces.HOST else {stack for stack, _ in parts}
    # One after the other, so that those before one that cannot be made are known, and ended.
    return ((Group if stack in here else Elsewhere)(stack, tasks) for stack, tasks in parts)


def _different(*names):
    """The names, those that came before with a number."""
    return [f"{name} ({names[:at].count(name) + 1})" if name in names[:at] else name for at, name in enumerate(names)]


def run_stages(graph, stages, last):
    """Runs a graph, and yields what the last stage, which this thread calls, makes of each piece."""
    source, groups, queues, threads = stages[0], [], [], []
    try:
        groups += _groups(stages[1:])
        for group in groups:
            group.wait_until_ready()
        names = _different(str(source), *(" >> ".join(map(str, group.tasks)) for group in groups), str(last))
        run = _Run(names)
        graph.counters = run.counters
        rooms = [group.tasks[0].ahead or AHEAD for group in groups] + [last.ahead or AHEAD]
        queues += [_Queue(run, room, *pair) for room, pair in zip(rooms, zip(names, names[1:]))]
        works = [(lambda: _read(run, source, names[0], queues[0]), None, queues[0])]
        for group, name, arrive, leave in zip(groups, names[1:], queues, queues[1:]):
            works.append((_Worker(run, group, name, arrive, leave).work, arrive, leave))
        for work in works:
            threads.append(threading.Thread(target=contextvars.copy_context().run, args=(_guarded, *work), daemon=True))
            threads[-1].start()
        yield from _taken(run, last, names[-1], queues[-1])
    finally:
        if queues:
            queues[-1].close()
        for group in groups:
            group.interrupt()
        for thread in threads:
            thread.join()
        for group in groups:
            group.close()


def _guarded(work, arrive, leave):
    """A stage's work: when it ends, the stage after it hears of that, and the one before it need not go on."""
    try:
        work()
        leave.end()
    except _Stopped:
        pass
    except BaseException as error:
        leave.end(error)
    finally:
        if arrive:
            arrive.close()


def _taken(run, last, name, arrive):
    """The last stage's results for the pieces, one after the other."""
    stack, number = last.stack or _pieces.present_stack(), 0
    while (piece := arrive.get()) is not _END:
        run.begins(name)
        try:
            last.takes.check(piece, f"what {name} gets")
            result = last.function(_pieces.moved(piece, stack, lambda nbytes: run.count_moved(name, nbytes)))
        except Exception as error:
            raise GraphError(name, number, "", error) from error
        run.ends(name)
        number += 1
        del piece
        yield result
