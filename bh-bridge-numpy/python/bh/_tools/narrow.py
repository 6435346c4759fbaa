"""Which arrays of a program could be `float32`: it runs again with lines in single precision, and its outputs are compared."""

import contextlib
import io
import linecache
import math

import numpy as np

from .. import _native
from .digits import digits as _digits

# The digits of `float64`, and what only its lines have.
_MOST, _DOUBLE = 15.9, 8


class Narrowed(list):
    """Lines of the program with the digits that its outputs keep if only the arrays of this line are `float32`: the most first. `together`
    are the digits that they keep if all lines whose row has `narrow` are. Shown as a table."""

    together = _MOST

    def __str__(self):
        if not self:
            return "no line makes arrays of float64"
        rows = [f"{'digits':>6} {'float32':>8}  place"]
        for row in self:
            text = linecache.getline(row["file"], row["line"]).strip()
            rows.append(f"{row['digits']:6.1f} {'yes' if row['narrow'] else 'no':>8}  {row['file']}:{row['line']}  {text}")
        return "\n".join([*rows, f"{self.together:6.1f} digits are left if all lines with yes are float32"])

    __repr__ = __str__


def narrow(function, *args, least=6.0, **named):
    """Which lines of a function could make `float32` instead of `float64`, and how many digits its results would keep.

    The function runs once for each of its lines, with the results of the line rounded to single precision after each operation, and a
    few times with several such lines. Digits are relative to the largest element of a result; the result with the fewest counts.

    Parameters
    ----------
    function : callable
        Returns the outputs: an array, a number, or a tuple, list or dict of them. It makes the same arrays each time.
    *args, **named
        Its arguments.
    least : float, optional
        The digits that the results must keep with all chosen lines in single precision.

    Raises
    ------
    ValueError
        While operations are checked or digits are counted.

    Examples
    --------
    >>> def spread(x):
    ...     mean = x.mean()
    ...     return ((x - mean) ** 2).mean()
    >>> table = bh.narrow(spread, bh.arange(30_000.0))
    >>> len(table) > 0
    True
    """
    stack = _native.Stack()

    def outputs(lines):
        stack.set_narrowed(lines)
        try:
            return _values(function(*args, **named))
        finally:
            stack.set_narrowed([])

    _digits(watch=True)
    try:
        # The shadows leave the program's own results as they are.
        expected = _values(function(*args, **named))
        found = _digits()
    finally:
        _digits(watch=False)
    lines = list(dict.fromkeys((row["file"], row["line"]) for row in found if row["most"] > _DOUBLE))
    kept = {line: _kept(expected, outputs([line])) for line in lines}
    lines.sort(key=kept.get, reverse=True)
    table = Narrowed()
    # The longest beginning of the list that keeps the digits; what narrows the outputs alone too much is in none.
    low, high = 0, sum(kept[line] >= least for line in lines)
    while low < high:
        middle = (low + high + 1) // 2
        digits = _kept(expected, outputs(lines[:middle]))
        if digits >= least:
            low, table.together = middle, digits
        else:
            high = middle - 1
    table.extend({"file": file, "line": line, "digits": kept[file, line], "narrow": number < low} for number, (file, line) in enumerate(lines))
    return table


def of_script(run, names):
    """The table for the variables of a script that `run()` runs and whose names it returns. Only the first run prints."""
    silent = []

    def script():
        with contextlib.redirect_stdout(io.StringIO()) if silent else contextlib.nullcontext():
            silent.append(True)
            found = run()
        missing = [name for name in names if name not in found]
        if missing:
            raise NameError(f"--float32: the script has no variable {missing[0]!r} at its end")
        return {name: found[name] for name in names}

    return narrow(script)


def _values(result):
    """The outputs as arrays of NumPy, in order."""
    if isinstance(result, dict):
        result = list(result.values())
    parts = result if isinstance(result, (tuple, list)) else [result]
    # Later operations change arrays in place.
    return [np.array(part) for part in parts]


def _kept(expected, found):
    """The digits that all outputs keep."""
    return min((_common(mine, other) for mine, other in zip(expected, found)), default=_MOST)


def _common(expected, found):
    """The digits that two arrays have in common, relative to the largest element."""
    if expected.shape != found.shape:
        return 0.0
    if expected.dtype.kind not in "fc":
        return _MOST if np.array_equal(expected, found) else 0.0
    with np.errstate(all="ignore"):
        same = (expected == found) | (np.isnan(expected) & np.isnan(found))
        apart = np.abs(np.where(same, 0, expected - found)).max(initial=0)
        size = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    if apart == 0:
        return _MOST
    return min(max(-math.log10(apart / size), 0.0), _MOST) if np.isfinite(apart) and apart < size else 0.0
