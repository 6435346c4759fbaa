"""Two elementwise operations per iteration on n elements: what a library costs when arrays are small."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness


def setup(n, dtype):
    return harness.pseudo(n, 34, dtype)


def run(x, iters):
    for _ in range(iters):
        x = x * 0.999 + 0.001
    return lambda: [harness.checksum(x)]


harness.main("small_ops", setup, run)
