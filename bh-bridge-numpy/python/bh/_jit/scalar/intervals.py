"""The least and the greatest whole number that a value may be, None where they are not known."""


def _sum_of(*intervals):
    lows, highs = zip(*intervals)
    return None if None in lows else sum(lows), None if None in highs else sum(highs)


def _negated(interval):
    low, high = interval
    return None if high is None else -high, None if low is None else -low


def _product_of(one, other):
    if None in (*one, *other):
        return None, None
    corners = [a * b for a in one for b in other]
    return min(corners), max(corners)


def _least_of(one, other):
    highs = [high for _, high in (one, other) if high is not None]
    return None if None in (one[0], other[0]) else min(one[0], other[0]), min(highs, default=None)


def _remainder_of(one, other):
    return (0, other[1] - 1) if other[0] is not None and other[0] > 0 and other[1] is not None else (None, None)


# The bounds of operations' results, from the least and greatest numbers of their operands.
INTERVALS = {
    "add": _sum_of, "subtract": lambda one, other: _sum_of(one, _negated(other)), "negative": _negated, "multiply": _product_of,
    "copy": lambda one: one, "min": _least_of, "max": lambda one, other: _negated(_least_of(_negated(one), _negated(other))),
    "remainder": _remainder_of,
}  # fmt: skip
