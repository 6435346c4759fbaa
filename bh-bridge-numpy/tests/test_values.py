"""Values and types that NumPy gives, by their smallest reproducers."""

import warnings

import numpy
import pytest

import bh
from conftest import same

NAN, INF = numpy.nan, numpy.inf


def at(name, dtype, value):
    """An array of two elements after a change of the first one, twice."""

    def change(np):
        a = np.asarray([5, 6], dtype=dtype)
        getattr(np, name).at(a, [0, 0], value)
        return a

    return change


NATIVE = {
    "convolution with infinities": lambda np: np.convolve(np.array([3.0, -3, -3]), np.array([-INF, -0.0, 1.5])),
    "convolution of the same size with NaN": lambda np: np.convolve(np.array([3.0, -3, -3]), np.array([NAN, 1.5]), "same"),
    "correlation with infinities": lambda np: np.correlate(np.array([1, 2, INF]), np.array([INF, 1.0]), "full"),
    "evenly spaced small floats": lambda np: np.linspace(1.5, np.ones(2, "f4"), 3),
    "evenly spaced numbers of a small type": lambda np: np.linspace(np.float32(1.5), 2, 3),
    "place of the only element": lambda np: np.argmax(np.array(2), axis=-1),
    "largest of nothing": lambda np: np.maximum.reduce(np.zeros((2, 0)), axis=(0, 1), initial=5.5),
    "no powers of nothing": lambda np: np.ones((0, 3), int) ** np.array([-1, 1, 2]),
    "logic of complex numbers": lambda np: np.logical_and(np.arange(3), 3 + 1j),
    "logic without casts": lambda np: np.logical_or(np.arange(3, dtype="i2"), np.arange(3, dtype="u1"), casting="no"),
    "sum from negative zeros": lambda np: 1 / np.sum(np.array([complex(-0.0, 0)] * 3), initial=complex(-0.0, -0.0)).real,
    "rint of complex numbers": lambda np: np.rint(np.asarray([-1.75 + 2.5j, 0.5 - 0.5j])),
    "initial of another type": lambda np: np.prod(np.asarray([3, 4]), initial=2.5),
    "initial of a truth value": lambda np: np.min(np.asarray([False]), initial=-3),
    "initial of small floats": lambda np: np.sum(np.asarray([1, 2], "f4"), initial=2.5),
    "vdot of truth values": lambda np: np.vdot(np.asarray([True, True]), np.asarray([True, True])),
    "digitize into falling bins": lambda np: np.digitize([1, 3, 2.5, 0, 4], [3, 2, 1]),
    "digitize into falling bins to the right": lambda np: np.digitize([1, 3, 2.5, 0, 4], [3, 2, 1], right=True),
    "sign of a zero product": lambda np: 1 / (np.array([[-1.0]]) @ np.array([[0.0]])),
    "index arrays around an ellipsis": lambda np: np.arange(60).reshape(3, 4, 5)[:, [0, 1], ..., [0, 1]],
    "indices around an ellipsis that is something": lambda np: np.arange(120).reshape(2, 3, 4, 5)[0, ..., [0, 1]],
    "neighbouring index arrays": lambda np: np.arange(60).reshape(3, 4, 5)[..., [0, 1], [0, 1]],
    "isclose of small floats and a number": lambda np: np.isclose(np.asarray([1.0, 1.1], "f4"), 1.1, rtol=0, atol=0),
    "isclose of a number": lambda np: np.isclose(1, np.asarray([1.0, 1.1], "f4")),
    "isclose of numbers": lambda np: np.isclose(1, 1.0),
    "ravel_multi_index without an order": lambda np: np.ravel_multi_index((np.asarray([1, 0]), np.asarray([1, 2])), (2, 3), order=None),
    "piecewise with whole numbers": lambda np: np.piecewise(np.asarray([1.0, 2, 3]), [np.asarray([0, 1, 1])], [lambda x: -x, 5]),
    "square of truth values": lambda np: np.asarray([True, False]) ** 2,
    "method conj of truth values": lambda np: np.asarray([True, False]).conj(),
    "function conj of truth values": lambda np: np.conj(np.asarray([True, False])),
    "conjugate of complex numbers": lambda np: np.asarray([1 + 2j]).conjugate(),
    "angle of small floats": lambda np: np.angle(np.asarray([1, -2], "f4")),
    "angle of whole numbers": lambda np: np.angle(np.asarray([1, -2])),
    "choose with a number": lambda np: np.choose(np.asarray([0, 1]), [np.asarray([1, 2], "i1"), 3]),
    "choose one": lambda np: np.choose(np.asarray(1), [1, 2]),
    "choose with a float": lambda np: np.choose([0, 1], [np.asarray([1, 2], "f4"), 3.5]),
    "cube roots at the ends": lambda np: np.cbrt(np.asarray([3e38, -3e38, 1e-40, -8, 27], "f4")),
    "cube roots": lambda np: np.cbrt(np.asarray([1.7e308, 5e-324, -27.0, 0.0, INF, NAN])),
    "add at with another sign": at("add", "u4", numpy.asarray([3, 4])),
    "block": lambda np: np.block([[np.ones((2, 2)), np.zeros((2, 1))], [np.full((1, 3), 5.0)]]),
    "large block": lambda np: np.block([[np.ones((300, 600))], [np.zeros((700, 600))]]),
    "ediff1d": lambda np: np.ediff1d(np.asarray([[1, 2], [4, 9]])),
    "ediff1d with ends": lambda np: np.ediff1d(np.asarray([1.0, 2, 4]), to_begin=7, to_end=np.asarray([1.0, 2])),
    "nanmedian": lambda np: np.nanmedian(np.asarray([3.0, NAN, 1, 2])),
    "nanmedian of rows": lambda np: np.nanmedian(np.asarray([[3.0, NAN, 1, 2], [NAN, NAN, NAN, 4], [INF, 1, INF, 7], [NAN] * 4]), axis=1),
    "nanmedian over two axes": lambda np: np.nanmedian(np.arange(24.0).reshape(2, 3, 4), axis=(0, 2), keepdims=True),
    "nanmedian of long columns": lambda np: np.nanmedian(np.where(np.arange(1400).reshape(700, 2) % 3 == 0, NAN, 1.0 * np.arange(1400).reshape(700, 2)), axis=0),
    "nanmedian of huge numbers": lambda np: np.nanmedian(np.asarray([1.7e308, NAN])),
    "add at of many bits": at("add", "i1", numpy.asarray([300, -1])),
}
LEFT = {
    "argsort by fields": lambda np: np.argsort(numpy.array([(2, 1.0), (1, 2.0)], "i4,f8"), order=["f1"]),
    "nan_to_num of complex numbers": lambda np: np.nan_to_num(np.asarray([complex(NAN, 1), complex(1, INF)])),
    "nanmax of complex numbers": lambda np: np.nanmax(np.asarray([1 + 2j, complex(NAN, 1), 1 + 3j])),
    "fmax of complex numbers": lambda np: np.fmax.reduce(np.asarray([1 + 2j, complex(NAN, 1), 1 + 3j])),
    "subtract at with a fraction": at("subtract", "i1", 0.5),
    "add at with fractions": at("add", "i8", numpy.asarray([0.5, 0.5])),
}


def check(program):
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected, mine = program(numpy), program(bh)
    assert type(mine) is bh.ndarray or numpy.ndim(expected) == 0
    same(mine, expected, ulps=2)
    assert numpy.array_equal(numpy.signbit(numpy.real(expected)), numpy.signbit(numpy.real(numpy.asarray(mine)))) or expected.dtype == bool


@pytest.mark.parametrize("name", NATIVE)
def test_native(name):
    check(NATIVE[name])


@pytest.mark.falls_back
@pytest.mark.parametrize("name", LEFT)
def test_left_to_numpy(name):
    check(LEFT[name])


# Calls that give scalars, and calls that give arrays without dimensions.
KINDS = """
np.unstack(np.ones(2))[0] | np.dot(np.ones(0), np.ones(0)) | np.trunc(np.array(True), where=np.array(True)) | np.expand_dims(np.array(3), ())
np.flip(np.array(3)) | np.vectorize(lambda x: x + 1)(np.array(3)) | np.conj(np.array(3)) | np.round(np.array(3), 0) | np.fix(np.array(3))
np.positive(np.array(3)) | np.round(np.array(2.5)) | np.squeeze(np.ones((1, 1))) | np.where(True, np.array(1), 2) | np.take(np.ones(2), 0)
np.linalg.norm(np.ones(2)) | np.linalg.norm(np.zeros(0), np.inf) | np.argmax(np.array(3), keepdims=True) | np.linspace(0, 2, 3, retstep=True)[1]
np.linspace(0, 1, 1, retstep=True)[1] | np.linspace(0, 1, 0, retstep=True)[1] | np.linspace([0, 1], 1, 1, retstep=True)[1] | np.linspace(0, 1, 1, False, True)[1]
np.zeros(0).searchsorted(np.array(1.0)) | np.array(3).copy() | np.array(3)[...] | np.array(3)[()] | -np.array(3) | abs(np.array(3)) | np.array(3) + 1
""".replace("\n", "|").split("|")


@pytest.mark.falls_back
@pytest.mark.parametrize("expression", [one.strip() for one in KINDS if one.strip()])
def test_scalars_and_arrays_without_dimensions(expression):
    mine, reference = (eval(expression, {"np": library}) for library in (bh, numpy))
    same(mine, reference)
    is_scalar = isinstance(mine, (numpy.generic, float)) or mine._scalar
    assert is_scalar == isinstance(reference, (numpy.generic, float))


@pytest.mark.falls_back
def test_order_of_fields():
    records = numpy.array([(2, 1.0), (1, 2.0)], "i4,f8")
    assert bh.sort(records, order="f0").tolist() == [(1, 2.0), (2, 1.0)]
    for sort in (bh.sort, bh.argsort):
        with pytest.raises(ValueError, match="no fields"):
            sort(bh.ones(2), order="f0")


class Shows:
    """An object that shows itself as an array of a library."""

    def __init__(self, library):
        self.library = library

    def __array__(self, dtype=None, copy=None):
        return self.library.ones(2, dtype)


@pytest.mark.parametrize("library", [numpy, bh], ids=["numpy", "bh"])
def test_objects_that_show_themselves_as_arrays(library):
    a = bh.zeros(2)
    a[:] = Shows(library)
    for made in (bh.asarray(Shows(library)), bh.array(Shows(library), "f8"), a, bh.zeros(2) + Shows(library), bh.sqrt(Shows(library))):
        assert made.tolist() == [1, 1]


def test_shapes_given_as_arrays():
    shape = bh.asarray([2, 3])
    for make in (bh.zeros, bh.ones, bh.empty, lambda s: bh.full(s, 2.0), lambda s: bh.arange(6).reshape(s), lambda s: bh.broadcast_to(1, s)):
        assert make(shape).shape == (2, 3)
    assert bh.zeros(bh.asarray(3)).shape == (3,) and bh.zeros((bh.asarray(2), 3)).shape == (2, 3)


def test_arrays_of_scalars_may_be_assigned_to():
    # Too large to be carried out at once, so an array and no scalar of NumPy.
    total = bh.ones(90_000).sum() / 30_000
    for made in (bh.asarray(total), bh.array(total), total.reshape(()), total[...], bh.where(bh.asarray(True), total, 0.0)):
        made *= 2
        made[...] = made + 1
        assert made.item() == 7 and made.shape == ()
    for made in (bh.atleast_1d(total), total.reshape(1), total[None]):
        made[0] = 8
        assert made.tolist() == [8]
    assert total.item() == 3 and isinstance(bh.where(True, 1.0, 2.0), bh.ndarray)


def test_at_is_no_way_around_protection():
    a = bh.ones(2)
    a.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        bh.add.at(a, [0], 1)


VIEWS = [
    lambda a: (a[::2], a[1::2]), lambda a: (a[:6], a[6:]), lambda a: (a[:7], a[6:]), lambda a: (a[::-1], a[3:4]), lambda a: (a[:0], a),
    lambda a: (a.reshape(3, 4)[:, :2], a.reshape(3, 4)[:, 2:]), lambda a: (a.reshape(3, 4)[:, :3], a.reshape(3, 4).T[2]),
]  # fmt: skip


@pytest.mark.parametrize("views", VIEWS)
def test_shared_memory(views):
    for name in ("shares_memory", "may_share_memory"):
        expected = getattr(numpy, name)(*views(numpy.arange(12)))
        assert getattr(bh, name)(*views(bh.arange(12))) == expected
