"""A process of one program in one form and size: times the first call and later ones, and, if asked to, says where the time goes.

It prints one line of JSON. `run.py` calls it.
"""

import argparse
import importlib
import json
import pickle
import statistics
import sys
import time

import programs


class Clocks:
    """Seconds that passed, and processor time of all threads, within a `with` statement."""

    def __enter__(self):
        self.begin = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_):
        self.seconds, self.processor = time.perf_counter() - self.begin[0], time.process_time() - self.begin[1]


class Lines:
    """The processor time of all threads while each line of one file runs, without the calls of its own functions."""

    def __init__(self, file):
        self.file, self.seconds, self.places, self.last = file, {}, [], 0.0

    def _count(self):
        now = time.process_time()
        if self.places:
            self.seconds[self.places[-1]] = self.seconds.get(self.places[-1], 0.0) + now - self.last
        self.last = now

    def __call__(self, frame, event, _):
        if frame.f_code.co_filename != self.file:
            return None
        self._count()
        if event == "call":
            self.places.append(frame.f_lineno)
        elif event == "return":
            self.places.pop()
        else:
            self.places[-1] = frame.f_lineno
        return self


def call(program, size, lines=None):
    """One call with new inputs: its clocks and its results."""
    arguments = program.inputs(size)
    with Clocks() as clocks:
        if lines:
            sys.settrace(lines)
        try:
            returned = program.main(**arguments)
        finally:
            sys.settrace(None)
        results = programs.settled(returned)
    return clocks, results


def fallbacks(form):
    """The functions that bh left to NumPy, with the lines and how often."""
    if form != "bh":
        return []
    from bh._numpy import fallback

    return sorted(((count, name, line) for (_, line, name), count in fallback.places.items()), reverse=True)


def parser():
    """The arguments of a process."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("name")
    options.add_argument("form")
    options.add_argument("size")
    options.add_argument("--calls", type=int, default=20, help="the most later calls")
    options.add_argument("--seconds", type=float, default=1.0, help="how long to go on with later calls, of which there are at least 2 unless --calls is less")
    options.add_argument("--results", help="the file that gets the first call's results")
    options.add_argument("--lines", choices=("first", "later"), help="note the time of each line in the first call, or in a later one")
    return options


def main():
    options = parser().parse_args()
    # Imports and the start of bh's stack are no part of a first call.
    module = importlib.import_module(programs.FORMS[options.form])
    for part in ("fft", "linalg", "random"):
        importlib.import_module(f"{module.__name__}.{part}")
    getattr(module, "Stack", lambda: None)()
    program = programs.Program(options.name, options.form)
    lines = Lines(str(program.path)) if options.lines else None
    clocks, results = call(program, options.size, lines if options.lines == "first" else None)
    taken, end = [], time.perf_counter() + options.seconds
    while len(taken) < options.calls and (len(taken) < 2 or time.perf_counter() < end):
        taken.append(call(program, options.size)[0])
    if options.lines == "later":
        clocks, _ = call(program, options.size, lines)
    if options.results:
        with open(options.results, "wb") as file:
            pickle.dump(results, file)
    line = {"first": clocks.seconds, "first processor": clocks.processor, "fallbacks": fallbacks(options.form)}
    if taken:
        line["later"] = statistics.median(clock.seconds for clock in taken)
        line["later processor"] = statistics.median(clock.processor for clock in taken)
    if lines:
        line["lines"] = lines.seconds
    print(json.dumps(line))


if __name__ == "__main__":
    main()
