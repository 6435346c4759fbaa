"""What is carried out at once has the bits of what is recorded: folds of one element, and loops over small parts of large arrays."""

import os
import subprocess
import sys

import pytest

FOLDS = """
import itertools, numpy, bh as np
for dtype, value, function in itertools.product("?bBiqfdFD", (0.0, -0.0, 1.5, -3.0, numpy.nan, numpy.inf), ("sum", "prod", "min", "max", "any", "all")):
    if dtype in "?bBiq" and not numpy.isfinite(value) or dtype == "B" and value < 0 or dtype in "FD" and function in ("min", "max"):
        continue
    large = np.array(numpy.full((60, 60), value).astype(dtype))
    for one in (large[3:4, 5], large[3:4, 5:6], np.copy(large[7, 7:8])):
        print(dtype, value, function, numpy.asarray(getattr(np, function)(one)).tobytes().hex(), numpy.asarray(np.dot(one.ravel(), one.ravel())).tobytes().hex())
"""
PARTS = """
import numpy, bh as np
source = numpy.random.default_rng(3)
A, B = (np.array(source.random((60, 60))) for _ in range(2))
for i in range(60):
    for j in range(0, 60, 7):
        B[i, j] += np.dot(A[i + 1:, i], B[i + 1:, j])
    B[i] -= A[:, i] * 0.25
    if i % 20 == 0:
        A = A * 1.5 + B
    if i % 30 == 7:
        B = B[::-1, ::-1]
print(numpy.asarray(A).tobytes().hex(), numpy.asarray(B).tobytes().hex())
"""


@pytest.mark.parametrize("text", (FOLDS, PARTS))
def test_bits_do_not_depend_on_what_is_carried_out_at_once(text):
    def printed(limit):
        environment = dict(os.environ, BH_RECORDER_IMMEDIATE_BYTES=str(limit))
        return subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True, timeout=100).stdout

    recorded = printed(0)
    assert recorded and printed(8192) == recorded and printed(1 << 30) == recorded


PRODUCTS = """
import numpy, bh as np
def at_once():
    return dict(line.split()[:2] for line in str(np.profile()).splitlines()).get("immediate", "0")
matrix, vector = np.ones((3, 3)) + 1, np.ones(3)
matrix @ vector
large = np.ones((300, 300))
for turn in range(3):
    # The filter looks for products in what is recorded, and calls the method by a number of its own.
    print(float((large[:, :, None] * large[:4, None].T.reshape(1, 300, 4)).sum(axis=1).sum()) > 0)
    before = int(at_once())
    matrix @ vector
    print(int(at_once()) - before)
"""


def test_products_stay_at_once_when_batches_have_some():
    environment = {**os.environ, "BH_VE_CPU_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", PRODUCTS], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "1"] * 3
