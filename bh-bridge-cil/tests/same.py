#!/usr/bin/env python3
"""Compares what two engines print for each operation: whole numbers and errors are equal, others but for the last bits.

    same.py FILE FILE
"""

import math
import sys


def near(a, b, tolerance):
    """Are two numbers, or words, the same as far as an engine may choose?"""
    try:
        left, right = float(a), float(b)
    except ValueError:
        return a == b
    if math.isnan(left) or math.isnan(right) or math.isinf(left) or math.isinf(right):
        return str(left) == str(right)
    return abs(left - right) <= tolerance * max(abs(left), abs(right), 1)


def main():
    first, second = (open(path, encoding="utf-8").read().splitlines() for path in sys.argv[1:])
    wrong = len(first) != len(second)
    for one, other in zip(first, second):
        name, _, words = one.partition(": ")
        tolerance = 1e-5 if name.startswith(("Single", "uniform f32", "normal f32", "arange")) else 1e-12
        left, right = words.split(), other.partition(": ")[2].split()
        if len(left) != len(right) or not all(near(a, b, tolerance) for a, b in zip(left, right)):
            wrong = True
            print(f"DIFFER\n  {one}\n  {other}")
    print(f"{len(first)} operations compared")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
