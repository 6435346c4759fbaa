"""Random numbers of the stack against NumPy's: the numbers, and the states of the generators after them."""

import inspect
import pickle
import subprocess
import sys

import numpy
import pytest

import bh
from bh.random import words as _words
from conftest import LIMIT

# Counts around the ends of blocks of four words and of rows of 4096, beyond what NumPy is asked for.
COUNTS = (9000, 9001, 9003, (90, 101), 16384)


def equal(mine, reference, state, expected):
    """The same numbers of the same type, and the same state of the generators."""
    value = numpy.asarray(mine)
    assert value.dtype == reference.dtype and value.shape == reference.shape
    numpy.testing.assert_array_equal(value, reference)
    assert repr(state) == repr(expected)


@pytest.fixture
def native_words(monkeypatch):
    """Counts how often the stack has made words."""
    monkeypatch.setattr(_words, "FEW", 1 << 12)
    made = []
    for kind, words in _words.SOURCES.items():
        monkeypatch.setitem(_words.SOURCES, kind, lambda *a, words=words: made.append(1) or words(*a))
    return made


@pytest.mark.parametrize("kind", [numpy.random.Philox, numpy.random.PCG64])
@pytest.mark.parametrize("draw", [
    lambda g, n: g.random(n),
    lambda g, n: g.random(n, dtype="f4"),
    lambda g, n: g.uniform(-2, 3, n),
    lambda g, n: g.integers(8, size=n),
    lambda g, n: g.integers(-4, 4, n),
    lambda g, n: g.integers(0, 2**32, n),
    lambda g, n: g.integers(5, 5 + 2**40, n),
    lambda g, n: g.integers(0, 2**64 - 1, n, dtype="u8", endpoint=True),
])  # fmt: skip
def test_words_of_the_stack_are_numpys(kind, draw, native_words):
    mine, reference = (module.Generator(kind(7)) for module in (bh.random, numpy.random))
    # An odd number of halves and of words before, so that some are left over.
    mine.random(3, dtype="f4"), reference.random(3, dtype="f4")
    for count in COUNTS:
        equal(draw(mine, count), draw(reference, count), mine.bit_generator.state, reference.bit_generator.state)
    assert len(native_words) == len(COUNTS)
    equal(mine.normal(size=9), reference.normal(size=9), mine.bit_generator.state, reference.bit_generator.state)


@pytest.mark.parametrize("kind", [numpy.random.Philox, numpy.random.PCG64])
def test_other_numbers_are_made_by_numpy(kind, native_words):
    mine, reference = (module.Generator(kind(1)) for module in (bh.random, numpy.random))
    for draw in (lambda g: g.integers(0, 10, 9000), lambda g: g.random(7), lambda g: g.integers(0, 8, 9000, dtype="i2")):
        equal(draw(mine), draw(reference), mine.bit_generator.state, reference.bit_generator.state)
    assert not native_words and isinstance(mine.random(), float)


def test_counts_that_are_zero_or_of_whole_rows():
    mine, reference = bh.random.default_rng(3), numpy.random.default_rng(3)
    for count in (0, 4096, (2, 4096), 4097):
        equal(mine.random(count), reference.random(count), mine.bit_generator.state, reference.bit_generator.state)


def test_memory_of_numpy_is_left_at_the_end():
    program = "import bh; x = bh.random.default_rng(1).normal(size=100_000); y = x + 1; bh.flush(); z = y * x"
    assert subprocess.run([sys.executable, "-c", program], timeout=LIMIT).returncode == 0


def test_other_libraries_take_the_generators_for_numpys():
    mine, reference = bh.random.default_rng(4), numpy.random.default_rng(4)
    assert isinstance(mine, numpy.random.Generator) and isinstance(bh.random.RandomState(1), numpy.random.RandomState)
    # A generator that NumPy makes of it draws on, and has the same state.
    made = numpy.random.default_rng(mine)
    assert made.random() == reference.random() and mine.random() == reference.random()
    assert bh.random.default_rng(mine) is mine and bh.random.Generator(mine).random() == reference.random()
    assert pickle.loads(pickle.dumps(mine)).random() == reference.random()


def test_outputs_lie_side_by_side():
    for draw in ("random", "standard_normal", "standard_exponential"):
        with pytest.raises(ValueError, match="must be contiguous"):
            getattr(bh.random.default_rng(1), draw)(out=bh.zeros(6)[::3])
    assert bh.random.default_rng(1).permuted(bh.arange(6.0), out=bh.zeros(12)[::2]).shape == (6,)


def test_generators_are_pickled_as_numpys():
    for made in (bh.random.Generator(bh.random.PCG64DXSM(3)), bh.random.RandomState(bh.random.MT19937(3))):
        made.standard_normal(3)
        again = pickle.loads(pickle.dumps(made))
        assert type(again) is type(made) and (again.standard_normal(4) == made.standard_normal(4)).all()
        make, arguments, _ = made.__reduce__()
        assert type(make(type(arguments[0]).__name__)) is type(made)
    assert isinstance(numpy.random.default_rng(1), bh.random.Generator)
    with pytest.raises(ValueError):
        bh.random.Generator(bh.random.PCG64)


def test_seeds_of_other_classes():
    class Seeds:
        def generate_state(self, n_words, dtype=numpy.uint32):
            return bh.zeros(n_words, dtype)

    numpy.random.bit_generator.ISeedSequence.register(Seeds)
    made = bh.random.default_rng(Seeds())
    assert 0 <= made.random() < 1
    with pytest.raises(TypeError, match="spawn"):
        made.spawn(2)


def test_what_is_shuffled_against_its_nature_is_warned_of_at_the_call():
    with pytest.warns(UserWarning, match="shuffling a 'dict'") as found:
        bh.random.shuffle({0: 0, 1: 1})
    assert "test_random" in found[0].filename


SHUFFLES = """
    g.shuffle(x); g.shuffle(m); g.shuffle(c); g.shuffle(x[::-2]); g.shuffle(m[:, 1:]); g.shuffle(m.T); g.shuffle(x * 2)
    g.shuffle(m[:0]); g.shuffle(x[:1]); v = g.permutation(x); v = g.permutation(m); l = [x[:2], x[2:4], x[4:6]]; g.shuffle(l); v = np.concatenate(l)
"""
SHUFFLES_OF_GENERATORS = """
    g.shuffle(m, axis=1); g.shuffle(c, 2); v = g.permuted(m, axis=1); v = g.permuted(m, axis=0, out=m); v = g.permuted(x, out=x[:]); v = g.permutation(m, axis=1)
"""


@pytest.mark.parametrize("count", (6, 600))
@pytest.mark.parametrize("make", (numpy.random.RandomState, numpy.random.default_rng, lambda seed: numpy.random.seed(seed) or numpy.random))
def test_generators_of_numpy_shuffle_arrays_of_bh(make, count):
    """NumPy's own, in programs that import bh and NumPy."""
    statements = SHUFFLES + (SHUFFLES_OF_GENERATORS if isinstance(make(1), numpy.random.Generator) else "")
    found = []
    for module in (bh, numpy):
        values = {"x": numpy.arange(count), "m": numpy.arange(3.0 * count).reshape(count, 3), "c": numpy.arange(6.0 * count).reshape(count, 2, 3)}
        # Pending ones, where they are large.
        scope = {name: module.array(value) * 1 for name, value in values.items()} | {"np": module, "g": make(5), "v": module.zeros(1)}
        said = []
        for statement in filter(None, map(str.strip, statements.replace("\n", ";").split(";"))):
            exec(statement, scope)
            said += [(statement, numpy.array(scope[name]).tolist()) for name in "xmcv"]
            assert all(type(scope[name]) is module.ndarray for name in "xmc")
        found.append(said)
    for mine, reference in zip(*found, strict=True):
        assert mine == reference


def test_generators_of_numpy_keep_their_forms():
    for kind in (numpy.random.RandomState, numpy.random.Generator):
        assert inspect.signature(kind.shuffle) and kind.shuffle.__name__ == "shuffle" and kind.shuffle.__doc__

    class Own(numpy.random.RandomState):
        def shuffle(self, x):
            super().shuffle(x)

    rows, expected = bh.arange(12.0).reshape(6, 2), numpy.arange(12.0).reshape(6, 2)
    Own(3).shuffle(rows)
    numpy.random.RandomState(3).shuffle(expected)
    assert rows.tolist() == expected.tolist()
    again = pickle.loads(pickle.dumps(numpy.random.RandomState(3).shuffle))
    rows, expected = list(range(9)), list(range(9))
    again(rows)
    numpy.random.RandomState(3).shuffle(expected)
    assert rows == expected
