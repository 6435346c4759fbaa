"""Boolean memory that others write: every byte but 0 is true, in every way in which bh reads it."""

import os
import subprocess
import sys

import numpy
import pytest
from conftest import BUILD_QUICKLY

import bh

LENGTHS = (7, 512, 60_000)

# Of a mask m, another one n, numbers a and whole numbers i. The results have the same elements for all bytes of true ones.
CALLS = {
    "count": lambda np, m, n, a, i: np.count_nonzero(m),
    "sum": lambda np, m, n, a, i: m.sum(),
    "mean": lambda np, m, n, a, i: m.mean(),
    "product": lambda np, m, n, a, i: m.prod(),
    "any, all": lambda np, m, n, a, i: [m.any(), m.all(), m[:3].any(), (m | ~m).all()],
    "extremes": lambda np, m, n, a, i: [m.min(), m.max(), m.argmax(), m.argmin(), m[::-1].argmax()],
    "running sum": lambda np, m, n, a, i: np.cumsum(m),
    "running or": lambda np, m, n, a, i: np.logical_or.accumulate(m),
    "logic": lambda np, m, n, a, i: [m & n, m | n, m ^ n, ~m, np.logical_and(m, n), np.logical_or(m, n), np.logical_xor(m, n), np.logical_not(m)],
    "arithmetic": lambda np, m, n, a, i: [m + n, m * n, np.maximum(m, n), np.minimum(m, n)],
    "comparisons": lambda np, m, n, a, i: [m == n, m != n, m < n, m <= n, m > n, m >= n, m == True, m > False],  # noqa: E712
    "casts": lambda np, m, n, a, i: [m.astype(kind) for kind in "bBhHiIlLfdFD"],
    "numbers": lambda np, m, n, a, i: [m * 2.5, a * m, a + m, i - m, i + m, m / 4],
    "where": lambda np, m, n, a, i: [np.where(m, a, -1.0), np.where(m, i, n), np.where(n, m, ~m) == m],
    "masks": lambda np, m, n, a, i: [a[m], i[m], a[~m], a[m & n], np.compress(m, a), np.extract(m, i), a[::-1][m]],
    "positions": lambda np, m, n, a, i: [np.flatnonzero(m), np.nonzero(m)[0], np.argwhere(m)],
    "truth values chosen": lambda np, m, n, a, i: [np.count_nonzero(n[m]), n[m] == True],  # noqa: E712
    "assigned under a mask": lambda np, m, n, a, i: assigned(np, m, a),
    "masked sums": lambda np, m, n, a, i: [np.sum(i, where=m), np.max(i, where=m, initial=0), np.sum(m, where=n)],
    "sorted": lambda np, m, n, a, i: [np.sort(m) == True, np.argsort(m, kind="stable")],  # noqa: E712
    "rows": lambda np, m, n, a, i: rows(np, m, a),
    "copies": lambda np, m, n, a, i: [m.copy() == n.copy(), np.concatenate([m, n]) == True, np.take(m, i % len(m)) == n],  # noqa: E712
    "fused": lambda np, m, n, a, i: (np.where((a > 3) & m, a, 0.0) * (m ^ n)).sum(),
    "element by element": lambda np, m, n, a, i: [[bool(m[k]), m[k].item(), m[k] + 1] for k in range(7)],
    "lists": lambda np, m, n, a, i: [m.tolist()[:50], sorted(set(m[:50].tolist()))],
    "bounds of a search": lambda np, m, n, a, i: np.searchsorted(np.sort(m), n[:20]),
}


def assigned(np, m, a):
    b, c = a.copy(), a.copy()
    b[m] = -1
    c[m] = a[m] * 2
    return [b, c]


def rows(np, m, a):
    wide = m[: len(m) // 7 * 7].reshape(-1, 7)
    return [wide.sum(0), wide.sum(1), wide.any(0), wide.all(1), wide[:, ::2].sum(1), wide.T.argmax(0), wide.T.copy().sum(0)]


def odd_bytes(length, seed):
    """Any bytes, a third of which are 0."""
    dice = numpy.random.default_rng(seed)
    return numpy.where(dice.random(length) < 1 / 3, 0, dice.integers(0, 256, length)).astype("u1")


def written_later(data):
    """An array of bh whose exported memory gets these bytes afterwards."""
    made = bh.array(numpy.ones(len(data), bool))
    numpy.asarray(made).view("u1")[:] = data
    return made


# Arrays of bh with these bytes.
WAYS = {
    "written later": written_later,
    "adopted": lambda data: bh.from_dlpack(data.view(bool)),
    "shared buffer": lambda data: bh.asarray(data.view(bool)),
}


def flat(value):
    return [part for each in value for part in flat(each)] if isinstance(value, (list, tuple)) else [numpy.asarray(value)]


def check(way, name):
    for length in LENGTHS:
        data, others = odd_bytes(length, 1), odd_bytes(length, 2)
        wanted = CALLS[name](numpy, data != 0, others != 0, numpy.arange(length) * 1.0, numpy.arange(length))
        found = CALLS[name](bh, WAYS[way](data), WAYS[way](others), bh.arange(length) * 1.0, bh.arange(length))
        wanted, found = flat(wanted), flat(found)
        assert len(wanted) == len(found)
        for place, (mine, reference) in enumerate(zip(found, wanted)):
            assert mine.dtype == reference.dtype and mine.shape == reference.shape, (name, length, place)
            # As bytes, of which results have 0 and 1 alone.
            assert mine.tobytes() == reference.tobytes() or numpy.allclose(mine, reference, 1e-12, 0), (name, length, place)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("way", WAYS)
def test_any_byte_is_true(way, name):
    check(way, name)


SETTINGS = {
    "recorded": {"BH_RECORDER_IMMEDIATE_BYTES": "0", "BH_VE_CPU_JIT": "off"},
    "compiled": {"BH_RECORDER_IMMEDIATE_BYTES": "0", "BH_VE_CPU_JIT": "on", "BH_VE_CPU_JIT_CACHE_DIR": ""},
    "opencl": {
        "BH_STACK": "opencl", "BH_RECORDER_IMMEDIATE_BYTES": "0", "BH_OPENCL_DEVICE": "cpu", "BH_OPENCL_PLACEMENT": "device",
        "BH_OPENCL_WHILE_BUILDING": "off", "BH_OPENCL_TUNE": "off", **BUILD_QUICKLY,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_any_byte_is_true_for_every_engine(tmp_path, name):
    env = {**os.environ, **SETTINGS[name], "PYTHONPATH": os.pathsep.join(sys.path), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, __file__], env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def test_masks_of_one_byte_are_counted():
    mask = bh.array(numpy.ones(512, bool))
    bool(mask[0])
    memory = memoryview(mask)
    numpy.asarray(memory).view("u1")[:] = 128
    memory.release()
    assert mask.sum() == numpy.count_nonzero(mask) == bh.count_nonzero(mask) == 512
    assert bh.arange(512)[mask].shape == (512,)


def test_memory_changes_between_calls():
    mask = bh.array(numpy.zeros(300, bool))
    seen = numpy.asarray(mask).view("u1")
    for byte in (0, 1, 2, 128, 255):
        seen[:] = byte
        assert int(mask.sum()) == (300 if byte else 0) and bool(mask[7]) is bool(byte)
        assert bh.arange(300)[mask].shape == ((300 if byte else 0),)


def test_files_and_copies_have_two_bytes(tmp_path):
    data = odd_bytes(1000, 3)
    numpy.save(tmp_path / "odd.npy", data.view(bool))
    assert bh.count_nonzero(bh.load(tmp_path / "odd.npy")) == numpy.count_nonzero(data)
    bh.save(tmp_path / "mine.npy", written_later(data))
    assert numpy.array_equal(numpy.load(tmp_path / "mine.npy"), data != 0)
    read = numpy.array(written_later(data), copy=True)
    assert numpy.array_equal(read, data != 0)


if __name__ == "__main__":
    for each in CALLS:
        check("written later", each)
