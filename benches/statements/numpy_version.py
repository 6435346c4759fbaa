"""Single statements on whole arrays in NumPy, as in `bh.cpp`: `numpy_version.py N [NAME...]` prints a JSON line for each."""

import json
import math
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
from harness import checksum, pseudo

TIMED, TIMED_RUNS = 0.1, 5


def statements(n):
    """The statements by name, on arrays of about n elements."""
    m, c = math.isqrt(n), int(round(n ** (1 / 3), 9))
    real = np.float64
    a, b = pseudo(n, 1, real), pseudo(n, 2, real)
    A, B = pseudo(m * m, 3, real).reshape(m, m), pseudo(m * m, 4, real).reshape(m, m)
    row, points = pseudo(m, 5, real), pseudo(n // 4 * 3, 6, real).reshape(-1, 3)
    cube = pseudo(c**3, 7, real).reshape(c, c, c)
    f = a.astype(np.float32)
    i, j = (a * 1000).astype(np.int64), (b * 1000).astype(np.int64) + 1
    places, bins, rows = (b * n).astype(np.int64), (b * 100).astype(np.int64), (row * m).astype(np.int64)
    i4, i1, mask = i.astype(np.int32), (a * 60).astype(np.int8), a > 0.5

    def put():
        h = np.zeros(n)
        h[places] = b
        return h

    def softmax():
        e = np.exp(A - A.max(1)[:, None])
        return e / e.sum(1)[:, None]

    return {
        "a + b": lambda: a + b,
        "f * 2 + 1": lambda: f * 2 + 1,
        "i + j": lambda: i + j,
        "i1 + i1": lambda: i1 + i1,
        "((a / 2 + 1) * a - 3) * a": lambda: ((a / 2 + 1) * a - 3) * a,
        "i // j": lambda: i // j,
        "i // 7": lambda: i // 7,
        "i % 7": lambda: i % 7,
        "i4 // 7": lambda: i4 // 7,
        "a % b": lambda: np.fmod(a, b + 1),
        "a ** b": lambda: (a + 1) ** b,
        "sqrt(a)": lambda: np.sqrt(a),
        "exp(a)": lambda: np.exp(a),
        "log(a)": lambda: np.log(a + 1),
        "sin(a)": lambda: np.sin(a),
        "sin(f)": lambda: np.sin(f),
        "tan(a)": lambda: np.tan(a),
        "arctan2(a, b)": lambda: np.arctan2(a, b + 1),
        "where(mask, a, b)": lambda: np.where(mask, a, b),
        "clip(a)": lambda: np.clip(a, 0.2, 0.8),
        "mask & (a > b)": lambda: mask & (a > b),
        "sum(a)": lambda: a.sum(),
        "sum(i)": lambda: i.sum(),
        "max(a)": lambda: a.max(),
        "dot(a, b)": lambda: a @ b,
        "sum(A, 0)": lambda: A.sum(0),
        "sum(A, 1)": lambda: A.sum(1),
        "sum(A[:, ::2], 1)": lambda: A[:, ::2].sum(1),
        "std(A, 1)": lambda: A.std(1),
        "sum(cube, 0)": lambda: cube.sum(0),
        "sum(cube, 1)": lambda: cube.sum(1),
        "sum(cube, (0, 2))": lambda: cube.sum((0, 2)),
        "sum(points, 0)": lambda: points.sum(0),
        "norm(points, 1)": lambda: np.sqrt((points * points).sum(1)),
        "A + A.T": lambda: A + A.T,
        "A.T.copy()": lambda: A.T.copy(),
        "cube.transpose(2, 1, 0)": lambda: cube.transpose(2, 1, 0).copy(),
        "a[::-1] + b": lambda: a[::-1] + b,
        "a[::2] + b[1::2]": lambda: a[: n - 1 : 2] + b[1::2],
        "a[::3] * 2": lambda: a[::3] * 2,
        "A - row": lambda: A - row,
        "cumsum(a)": lambda: a.cumsum(),
        "cumsum(A, 0)": lambda: A.cumsum(0),
        "a[places]": lambda: a[places],
        "A[rows]": lambda: A[rows],
        "A[:, rows]": lambda: A[:, rows],
        "h[places] = b": put,
        "bincount(bins, b)": lambda: np.bincount(bins, b, 100),
        "f64(i)": lambda: i.astype(np.float64),
        "i64(a * 1000)": lambda: (a * 1000).astype(np.int64),
        "f32(a)": lambda: a.astype(np.float32),
        "A @ B": lambda: A @ B,
        "A @ row": lambda: A @ row,
        "row @ A": lambda: row @ A,
        "abs(fft(a))": lambda: np.abs(np.fft.fft(a)),
        "concatenate(a, b)": lambda: np.concatenate([a, b]),
        "repeat(A, 2, 1)": lambda: A.repeat(2, 1),
        "roll(A, 1, 1)": lambda: np.roll(A, 1, 1),
        "diff(a)": lambda: np.diff(a),
        "softmax(A)": softmax,
    }


def measure(statement):
    """The median seconds of a statement that has run before, and its checksum."""
    result = statement()
    seconds, begin = [], time.perf_counter()
    while len(seconds) < TIMED_RUNS or time.perf_counter() - begin < TIMED:
        start = time.perf_counter()
        result = statement()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), checksum(result)


def main():
    n, *names = sys.argv[1:]
    for name, statement in statements(int(n)).items():
        if not names or name in names:
            seconds, total = measure(statement)
            print(json.dumps({"statement": name, "seconds": seconds, "checksum": total}), flush=True)


if __name__ == "__main__":
    main()
