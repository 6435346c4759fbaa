"""Views of arrays that look at them in another way: parts of complex numbers, diagonals, windows, other types."""

import numpy
import pytest

import bh

SPECIAL = [0.0, -0.0, 1.5, -2.5, numpy.inf, -numpy.inf, numpy.nan]


def both(make):
    """The same program on NumPy and bh; the results."""
    return make(numpy), make(bh)


@pytest.mark.parametrize("kind", ["c8", "c16"])
def test_parts_are_exact(kind):
    real, imag = numpy.meshgrid(SPECIAL, SPECIAL)
    expected = numpy.zeros(real.shape, kind)
    mine = bh.zeros(real.shape, kind)
    for a in (expected, mine):
        a.real = real
        a.imag = imag
    for part in ("real", "imag"):
        found, wanted = numpy.asarray(getattr(mine, part)), getattr(expected, part)
        numpy.testing.assert_array_equal(found, wanted)
        signs = ~numpy.isnan(wanted)
        numpy.testing.assert_array_equal(numpy.signbit(found)[signs], numpy.signbit(wanted)[signs])


PROGRAMS = {
    "all": lambda np, a: a.real.__setitem__(..., 7),
    "a slice": lambda np, a: a.imag.__setitem__((slice(None), 1), np.arange(3.0)),
    "a mask": lambda np, a: a.real.__setitem__(a.real > 2, -1),
    "indices": lambda np, a: a.imag.__setitem__(([0, 2], [1, 1]), [5, 6]),
    "function real": lambda np, a: np.real(a).__setitem__(slice(None), 3),
    "function imag": lambda np, a: np.imag(a).fill(4),
    "a view of it": lambda np, a: a.real[1:][:, ::2].__setitem__(0, 9),
    "its transpose": lambda np, a: a.T.imag.__setitem__(0, 9),
    "out": lambda np, a: np.multiply(a.imag, 2, out=a.real),
    "sum into it": lambda np, a: np.sum(a.real, axis=0, out=a.imag[0]),
    "copyto": lambda np, a: np.copyto(a.real, a.imag, where=a.real > 1),
    "put": lambda np, a: np.put(a.real, [0, 3], [1, 2]),
    "sort": lambda np, a: a.imag.sort(axis=0),
    "flat": lambda np, a: a.real.flat.__setitem__(slice(0, 3), 1),
    "add at": lambda np, a: np.add.at(a.real, ([0, 0], [1, 1]), 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_are_views(name):
    def program(np):
        a = np.asarray((numpy.arange(6.0) * (1 + 2j)).reshape(3, 2))
        kept = a.real, a.imag[1]
        PROGRAMS[name](np, a)
        return (a, *kept, a.real + 1)

    expected, mine = both(program)
    for one, other in zip(mine, expected):
        numpy.testing.assert_array_equal(numpy.asarray(one), other)


def test_parts_follow_the_array():
    a = bh.zeros(3, complex)
    real, last = a.real, a.imag[2:]
    a += 1 + 2j
    assert real.tolist() == [1, 1, 1] and last.tolist() == [2]
    real *= 4
    a *= 1j
    last[0] = 8
    assert a.tolist() == [-2 + 4j, -2 + 4j, -2 + 8j]
    assert float(real[0]) == -2 and real.max() == -2 and (real @ real).item() == 12
    assert bh.shares_memory(a, real) and real.base is a
    a.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        a.real[0] = 1
    assert not numpy.asarray(real).flags.writeable


def test_parts_outlive_their_array():
    real = (bh.arange(3.0) * (1 + 1j)).real
    real[0] = 5
    assert real.tolist() == [5, 1, 2]


def test_real_arrays_are_their_own_real_parts():
    a = bh.ones(2)
    assert a.real is a and a.imag.tolist() == [0, 0]
    with pytest.raises(TypeError, match="imaginary part"):
        a.imag = 1


@pytest.mark.parametrize("subscripts", ["ii->i", "ij->ji", "ij->ij"])
def test_einsum_gives_views(subscripts):
    def program(np):
        a = np.zeros((3, 3))
        np.einsum(subscripts, a)[1] = 5
        return a

    expected, mine = both(program)
    numpy.testing.assert_array_equal(numpy.asarray(mine), expected)


def test_windows_are_views():
    windows = numpy.lib.stride_tricks.sliding_window_view

    def program(np):
        a = np.arange(20.0).reshape(4, 5)
        view = windows(a, 3, axis=1, writeable=True)
        view[1, 0] = -1
        return a, view, windows(a, (2, 2)), windows(a, (2, 2), axis=(0, 0))

    expected, mine = both(program)
    for one, other in zip(mine, expected):
        assert isinstance(one, bh.ndarray) and one.flags.writeable == other.flags.writeable
        numpy.testing.assert_array_equal(numpy.asarray(one), other)
    for wrong in (((2, 2, 2),), (9,), (-1,)):
        with pytest.raises(ValueError, match="window"):
            windows(mine[0], *wrong)


@pytest.mark.falls_back
def test_views_as_another_type_share_memory():
    a = bh.zeros(2)
    bits = a.view("u8")
    bits[0] = numpy.float64(1.5).view("u8")
    assert a.tolist() == [1.5, 0]
    a[1] = -0.0
    assert bits[1] == 1 << 63


def test_elements_of_parts_are_those_of_the_array_now():
    def program(np):
        a = np.arange(60000.0).reshape(3, 4, 5000) + 1j * np.arange(5000.0)
        b = a.T[1:4999:7, ::2]
        real, imag = b.real, b.imag
        a[:, 2, :] *= 2
        return [float(real[3, 1, 0]), float(imag[5, 0, 2]), [float(x) for x in imag[:5, 1, 2]], float(max(real[:, 1, 1]))]

    theirs, mine = both(program)
    assert mine == theirs
