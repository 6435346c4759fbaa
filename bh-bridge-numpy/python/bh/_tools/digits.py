"""Decimal digits that the results of a program keep, line by line."""

import linecache

from .. import _native


class Digits(list):
    """Lines of the program with the digits that their results keep: the worst first. Shown as a table."""

    def __str__(self):
        if not self:
            return "no digits were counted: bh.digits(watch=True) or python -m bh --digits begins that"
        rows = [f"{'digits':>6} {'array':>6} {'of':>5} {'runs':>6}  place"]
        for row in self:
            text = linecache.getline(row["file"], row["line"]).strip()
            rows.append(f"{row['element']:6.1f} {row['array']:6.1f} {row['most']:5.1f} {row['runs']:6}  {row['file']}:{row['line']}: {row['operation']}  {text}")
        return "\n".join(rows)

    __repr__ = __str__


_KEYS = ("file", "line", "operation", "element", "array", "most", "runs")


def digits(watch=None):
    """The decimal digits that results keep, for each line of the program, as a table with the fewest first.

    `digits(watch=True)` begins to count them, and `digits(watch=False)` ends it. While digits are counted, each array of floats has three
    shadows, whose results are rounded at random: arrays of floats take four times the memory. `element` is of the worst element, `array`
    is relative to the largest element of the same result, and `most` is what the type has.

    Parameters
    ----------
    watch : bool, optional
        True starts counting, False stops it; without it, the call returns the counts.

    Examples
    --------
    >>> bh.digits(watch=True)  # doctest: +SKIP
    >>> (bh.ones(3) + 1e-10 - 1).sum()  # doctest: +SKIP
    >>> bh.digits()  # doctest: +SKIP
    """
    stack = _native.Stack()
    if watch is not None:
        stack.set_digits(bool(watch))
    return Digits(sorted((dict(zip(_KEYS, row)) for row in stack.digits()), key=lambda row: (row["element"], row["array"])))
