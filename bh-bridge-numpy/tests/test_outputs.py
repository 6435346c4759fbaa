"""Functions that write into `out` compute in the type that NumPy chooses, in which the output's type takes part."""

import itertools
import warnings

import numpy
import pytest

import bh as np
from conftest import same

TYPES = "? b B h I l L f d F D".split()
CALLS = """
m.sum(a, axis=0, {})
m.sum(a, axis=1, keepdims=True, {})
m.prod(a, axis=0, {})
m.max(a, axis=0, {})
m.min(a, axis=1, {})
m.sum(a, axis=0, initial=2.5, {})
m.prod(a, axis=0, initial=0.5, {})
m.max(a, axis=0, initial=1.5, {})
m.min(a, axis=0, initial=1.5, {})
m.sum(a, axis=0, where=k, {})
m.sum(a, axis=0, where=k, initial=0.25, {})
m.max(a, axis=0, where=k, initial=-0.25, {})
m.all(a, axis=0, {})
m.any(a, axis=1, {})
m.add.reduce(a, {})
m.subtract.reduce(a, {})
m.logical_xor.reduce(a, {})
m.bitwise_or.reduce(a, {})
m.fmax.reduce(a, {})
m.fmin.reduce(a, 1, initial=0.5, {})
m.add.reduce(a, dtype="f4", {})
m.cumsum(a, axis=0, {})
m.cumprod(a, axis=1, {})
m.cumulative_sum(a, axis=0, {})
m.cumulative_prod(a, axis=1, {})
m.cumulative_sum(a, axis=0, include_initial=True, {})
m.cumulative_prod(a, axis=0, include_initial=True, {})
m.maximum.accumulate(a, {})
m.bitwise_xor.accumulate(a, {})
m.logical_or.accumulate(a, {})
m.add.reduceat(a, [0, 2], {})
m.maximum.reduceat(a, [1, 0], 1, {})
m.logical_and.reduceat(a, [1, 0], 1, {})
m.mean(a, axis=0, {})
m.mean(a, axis=1, where=k, {})
m.mean(a, axis=0, keepdims=True, {})
m.mean(a, axis=0, dtype="f4", {})
m.var(a, axis=0, {})
m.var(a, axis=1, ddof=1, where=k, {})
m.std(a, axis=0, {})
m.std(a, axis=0, dtype="f8", {})
m.ptp(a, axis=0, {})
m.trace(a, {})
m.einsum("ij->i", a, {})
m.einsum("ij,ij->ij", a, a, {})
m.einsum("ij,kj->ik", a, a, {})
m.einsum("ij->ji", a, casting="unsafe", {})
m.dot(a, a.T, {})
m.matmul(a, a.T, {})
m.vecdot(a, a, {})
m.outer(a[0], a[1], {})
m.argmax(a, axis=0, {})
m.argmin(a, axis=1, {})
m.take(a, [0, 2], axis=1, {})
m.compress([True, False, True], a, axis=0, {})
m.choose([0, 1, 0, 1], (a[0], a[1]), {})
m.clip(a, 0, 2, {})
m.clip(a, None, 2, {})
m.round(a, {})
m.round(a, 1, {})
m.round(a, -1, {})
m.nansum(a, axis=0, {})
m.nanprod(a, axis=0, {})
m.nanmax(a, axis=0, {})
m.nanmean(a, axis=0, {})
m.nanvar(a, axis=0, {})
m.nanstd(a, axis=1, {})
m.nancumsum(a, axis=0, {})
m.nanargmax(a, axis=0, {})
m.median(a, axis=0, {})
m.quantile(a, 0.3, axis=0, {})
m.concatenate([a, a], {})
m.stack([a, a], {})
m.add.outer(a[0], a[1], {})
m.isposinf(a, {})
""".strip().splitlines()

# Functions that compute on the way in the operand's type.
INNER = ("m.var", "m.std", "m.nanvar", "m.nanstd", "m.matmul", "m.vecdot")


def called(call, m, host, mask, out):
    """The output array after a call, or the class of its exception."""
    names = {"m": m, "a": m.array(host), "k": m.array(mask), "out": None if out is None else m.array(out)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = eval(call.format("out=out"), names)
    except Exception as error:
        return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")
    assert out is None or made is names["out"]
    return numpy.asarray(made)


@pytest.mark.falls_back
@pytest.mark.parametrize("call", CALLS)
def test_the_outputs_type_takes_part(call):
    mask = numpy.random.default_rng(2).random((3, 4)) < 0.7
    for given, wanted in itertools.product(TYPES, TYPES):
        # Sums and products stay within all types, as NumPy stores what it has of a sum in a narrower output on its way.
        host = numpy.array([[0, 1, 1, 2], [1, 0, 1, 1], [1, 2, 0, 1]]).astype(given)
        if given in "fdFD" and wanted in "fdFD":
            host += numpy.array(0.1, host.dtype)
        made = called(call, numpy, host, mask, None)
        if isinstance(made, str):
            continue
        reference = called(call, numpy, host, mask, numpy.full(made.shape, 7).astype(wanted))
        mine = called(call, np, host, mask, numpy.full(made.shape, 7).astype(wanted))
        if isinstance(reference, str) or isinstance(mine, str):
            assert type(mine) is type(reference) and mine == reference, (call, given, wanted, mine, reference)
        else:
            same(mine, reference, 4 if not call.startswith(INNER) or given not in "fF" else 4 * 2**29)


def test_sums_into_a_wider_output_keep_what_they_add():
    for m in (numpy, np):
        sums = m.cumsum(m.array([1e8, 1, 1], "f4"), out=m.zeros(3))
        assert float(sums[2]) == 1e8 + 2
        total = m.add.reduce(m.full((3, 3), 0.1, "f4"), axis=0, out=m.zeros(3))
        assert float(total[0]) == 3 * float(numpy.float32(0.1))
        large = m.sum(m.full(300_000, 255, "u1"), out=m.zeros((), "u1"))
        assert int(large) == 300_000 * 255 % 256


def test_an_output_does_not_change_how_later_calls_compute():
    a = np.arange(4, dtype="u1")
    np.maximum.reduce(a, out=np.zeros(()))
    np.add.reduce(a, out=np.zeros((), complex))
    assert np.maximum.reduce(a).dtype == "u1" and np.add.reduce(a).dtype == "u8"


REFUSED = """
np.add.reduce(x, 0, out=np.zeros(2))
np.add.reduce(x, 0, out=np.zeros(1))
np.add.reduce(x, 0, out=np.zeros((2, 3)), keepdims=True)
np.add.reduce(x, 0, out=np.zeros(3), keepdims=True)
np.add.reduce(x, None, out=np.zeros(1))
np.maximum.reduce(x, 0, out=np.zeros(()))
np.bitwise_and.reduce(x.astype(int), 0, out=np.zeros(3))
np.add.accumulate(x, 0, out=np.zeros((3, 2)))
np.add.reduceat(x, [0, 1], 0, out=np.zeros((3, 3)))
np.mean(x, 0, out=np.zeros(2))
np.var(x, 0, out=np.zeros(2))
np.std(x, 0, out=np.zeros(3, int))
np.ptp(x, 0, out=np.zeros(3, int))
np.argmax(x, 0, out=np.zeros(3))
np.argmax(x, 0, out=np.zeros(2, int))
np.choose([0, 1], [x[0, :2], x[1, :2]], out=np.zeros(3))
np.clip(x, 1, 2, out=np.zeros((2, 3), int))
np.clip(x, None, 2, out=np.zeros((2, 3), int))
np.round(x, out=np.zeros((2, 3), int))
np.round(x, 1, out=np.zeros((2, 3), int))
np.dot(x, x.T, out=np.zeros((2, 2), int))
np.dot(x, x.T, out=np.zeros((2, 3)))
np.matmul(x, x.T, out=np.zeros((2, 2), int))
np.matmul(x, x.T, out=np.zeros((2, 3)))
np.outer([1, 2], [3.5, 4], out=np.zeros((2, 2), int))
np.concatenate([x, x], out=np.zeros((4, 3), int))
""".strip().splitlines()


@pytest.mark.parametrize("call", REFUSED)
def test_outputs_are_refused_in_numpys_words(call):
    words = []
    for m in (numpy, np):
        with pytest.raises((TypeError, ValueError)) as info:
            eval(call, {"np": m, "x": m.arange(6.0).reshape(2, 3)})
        words.append((info.type.__name__, str(info.value)))
    assert words[0] == words[1]


def test_products_with_weights_do_not_overflow():
    a, weights = ([100, 1, 1, 2], [7, -1, 1, 7])
    assert float(np.average(np.array(a, "i1"), weights=np.array(weights, "i1"))) == numpy.average(a, weights=weights)


def test_what_a_mask_of_all_dimensions_takes():
    for m in (numpy, np):
        a = m.array([[1.0, 2.0, 3.0]])
        for value in (m.array([[5.0, 6.0, 7.0]]), m.array([[5.0]])):
            with pytest.raises(TypeError, match="boolean array indexing assignment requires a 0 or 1-dimensional input, input has 2"):
                a[a > 0] = value
    assert np.zeros((0, 2)).take([5], axis=1).shape == (0, 1)
