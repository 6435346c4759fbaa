"""Borders and diagonals: the elements, and the errors, of NumPy's."""

import numpy
import pytest
from conftest import same

import bh
from bh._functions import padding

MODES = "constant edge reflect symmetric wrap linear_ramp maximum mean median minimum empty".split()
TYPES = "f8 f4 i8 u1 ? c16".split()


def made(np, call):
    """The result of a call, or the class and text of its error."""
    try:
        return call(np)
    except Exception as error:  # noqa: BLE001
        return type(error), str(error)


def check(call):
    mine, reference = made(bh, call), made(numpy, call)
    if isinstance(reference, tuple) and isinstance(reference[0], type):
        assert mine == reference
        return
    same(mine, reference, 0)
    assert numpy.asarray(mine).tobytes() == reference.tobytes()


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.parametrize("recorded", (False, True))
def test_random_borders(seed, recorded):
    source = numpy.random.default_rng(seed)
    shape = source.integers(0 if seed % 9 == 0 else 1, 5, size=source.integers(1, 5))
    array = (source.normal(size=shape) * 9).astype(TYPES[seed % len(TYPES)])
    turn = [lambda x: x, lambda x: x[::-1], lambda x: x.T, lambda x: x[..., ::2]][source.integers(4)]
    widths = [3, (1, 2), ((2, 1),) * array.ndim, source.integers(0, 4, (array.ndim, 2)).tolist(), -1, 1.5, [[1], [2]], {0: (1, 1)}, numpy.array([2, 0])][source.integers(9)]
    mode = MODES[seed % 5] if seed % 3 else MODES[source.integers(11)]
    options = {}
    if mode == "constant" and source.integers(2):
        options["constant_values"] = [7, 2.5, (1, 2), ((1, 2),) * array.ndim, numpy.float32(3), 300][source.integers(6)]
    if mode in ("reflect", "symmetric") and source.integers(3) == 0:
        options["reflect_type"] = "odd" if array.dtype.kind not in "b" else "even"
    if seed % 40 == 0:
        options["strange"] = 1
    if mode == "empty":
        return
    # The public function has NumPy compute what is little.
    pad = lambda np: padding.pad if recorded and np is bh else np.pad
    before = padding.fallback.mode("silent")
    try:
        check(lambda np: pad(np)(turn(np.asarray(array)), widths, mode, **options))
    finally:
        padding.fallback.mode(before)


def test_borders_are_copied_from_the_source(monkeypatch):
    monkeypatch.setattr(padding, "_numpys_pad", None)
    of = lambda np: padding.pad if np is bh else np.pad
    array = numpy.arange(400 * 300.0).reshape(400, 300)
    for mode in ("constant", "edge", "reflect", "symmetric", "wrap"):
        check(lambda np: of(np)(np.asarray(array) * 2, ((1, 2), (3, 0)), mode))
    check(lambda np: of(np)(np.asarray(array)[::2, ::-1] + 1, 5, "reflect"))


def filled(np, array, *arguments):
    array = np.array(array)
    np.fill_diagonal(array, *arguments)
    return array


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (9, 2), (3, 3, 3), (2, 3, 2), (4,), (0, 3), (1, 1), (300, 200)])
@pytest.mark.parametrize("value", [1.5, 2, True, [1, 2], [[5.0, 6.0], [7.0, 8.0]], [], numpy.arange(20.0), "x", 1 + 2j, None, numpy.nan])
@pytest.mark.parametrize("wrap", (False, True))
@pytest.mark.parametrize("dtype", ("f8", "i4"))
@pytest.mark.filterwarnings("ignore")
def test_diagonals(shape, value, wrap, dtype):
    array = numpy.arange(numpy.prod(shape)).reshape(shape).astype(dtype)
    check(lambda np: filled(np, array, value, wrap))
    if type(value) is list:
        check(lambda np: filled(np, array, np.array(value), wrap))


def test_diagonals_of_views():
    for view in (lambda x: x[::-1], lambda x: x.T, lambda x: x[1:, ::2], lambda x: x[:, 1]):
        host, mine = numpy.zeros((5, 6)), bh.zeros((5, 6))
        for np, whole in ((numpy, host), (bh, mine)):
            if view(whole).ndim == 2:
                np.fill_diagonal(view(whole), [1.0, 2.0])
        same(mine, host)
