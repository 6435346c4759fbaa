"""Timing two programs against each other: both stay in memory and run in turns, so that their timed runs lie close together
in time, and the machine, which others may use as well, is much the same for both."""

import contextlib
import json
import math
import statistics
import subprocess
import tempfile
import threading
import time

import collection

# Seconds between runs, in which the threads of the last one stop to wait actively for more work.
REST = 0.02
# Seconds that a program which should end may take.
PATIENCE = 10
# A median is known well enough when half the width of its interval is below this part of it.
PRECISION = 0.02
# How far from the middle, in standard deviations of a normal distribution: an interval that holds 95 times of 100.
DEVIATIONS = 1.96


class Turns:
    """A program that runs on command."""

    def __init__(self, command, n, iters, dtype, *, threads, limit, environment=None):
        self.words = [*map(str, command), str(n), str(iters), dtype, "--warm", "--turns"]
        self.errors = tempfile.TemporaryFile("w+")
        pipe = subprocess.PIPE
        env = collection.environment_of(threads) | (environment or {})
        self.process = subprocess.Popen(self.words, stdin=pipe, stdout=pipe, stderr=self.errors, text=True, env=env)
        self.limit = limit

    def _line(self):
        """The next line, or an error with what the program said."""
        watch = threading.Timer(self.limit, self.process.kill)
        watch.start()
        line = self.process.stdout.readline()
        in_time = watch.is_alive()
        watch.cancel()
        if not line:
            status = self.process.wait()
            self.errors.seek(0)
            why = self.errors.read().strip()[-500:] if in_time else f"nothing for {self.limit} seconds"
            raise RuntimeError(f"{' '.join(self.words)} ended with {status}: {why}")
        return line

    def _expect(self, what):
        if (line := self._line()) != f"{what}\n":
            raise RuntimeError(f"{' '.join(self.words)} said {line.strip()!r} instead of {what!r}")

    def _go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def run(self):
        """New initial values, and a run at once, with threads that are still awake; its line as a dictionary."""
        for what in ("fill", "run"):
            self._expect(what)
            self._go_on()
        return json.loads(self._line())

    def close(self):
        """Ends the program: a waiting one by itself."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()


def interval(values):
    """The median, and the interval between two of the values that holds the median of their distribution with a
    probability of 95% (by the signs of the differences; the least and the greatest of fewer than nine)."""
    values = sorted(values)
    skip = max(math.floor((len(values) - DEVIATIONS * math.sqrt(len(values))) / 2), 0)
    return statistics.median(values), values[skip], values[-1 - skip]


def is_precise(values):
    """Is the median of these known well enough?"""
    median, low, high = interval(values)
    return (high - low) / 2 <= PRECISION * median


class Taken:
    """The results of some turns: seconds and checksums by form, bh's own last line, and failures."""

    def __init__(self, forms):
        self.seconds, self.sums, self.own, self.failures = {form: [] for form in forms}, {}, {}, []

    def add(self, form, line):
        """Notes a run's line."""
        self.seconds[form].append(line["seconds"])
        self.sums[form] = line["checksum"]
        if form == "bh":
            self.own = line

    def pairs(self, form="bh"):
        """The twin's time relative to that of another form in each turn."""
        return [twin / other for twin, other in zip(self.seconds.get("twin", []), self.seconds.get(form, []))]

    def summary(self, form="bh"):
        """The median of these pairs with its interval, and the least and the greatest of them; None without any."""
        if not (pairs := self.pairs(form)):
            return None
        return dict(zip(("median", "low", "high", "least", "greatest"), (*interval(pairs), min(pairs), max(pairs))))


def measure(commands, n, iters, dtype, args, *, runs, most):
    """Takes `runs` turns, and more, up to `most`, until the ratio of the twin and bh is known well. In a turn all forms run
    closely after each other, in changing order; NumPy as often as `args` allows."""
    taken, programs, spent = Taken(commands), {}, 0.0

    def attempt(form, step):
        """The result of a step of a program; a program that fails has no further turns."""
        try:
            return step()
        except (RuntimeError, ValueError, OSError, subprocess.TimeoutExpired) as error:
            taken.failures.append(f"{form}: {error}")
            if form in programs:
                programs.pop(form).close()
            return None

    def numpy():
        # It has nothing to warm up that would show in a long run.
        warm = args.size == "small"
        return collection.run_once(commands["numpy"], n, iters, dtype, warm=warm, threads=args.threads, limit=args.limit)

    try:
        for form in commands:
            if form != "numpy":
                programs[form] = Turns(commands[form], n, iters, dtype, threads=args.threads, limit=args.limit)
        for turn in range(most):
            for form in list(programs)[:: -1 if turn % 2 else 1]:
                time.sleep(REST)
                if line := attempt(form, lambda: programs[form].run()):
                    taken.add(form, line)
            if "numpy" in commands and turn < args.numpy_runs and (turn == 0 or 0 < spent < args.numpy_seconds):
                started = time.monotonic()
                if line := attempt("numpy", numpy):
                    taken.add("numpy", line)
                    spent += time.monotonic() - started
            if turn + 1 >= runs and (len(programs) < 2 or is_precise(taken.pairs())):
                break
    finally:
        for program in programs.values():
            program.close()
    return taken
