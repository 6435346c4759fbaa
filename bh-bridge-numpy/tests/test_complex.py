"""Complex functions on special numbers: NumPy's values, infinities, NaN and signs of zeros.

NumPy computes some results by formulas whose intermediate results leave the type's range, or cancel. bh may have what NumPy has in
the next wider type. NumPy's products and squares are fused on processors with such instructions, and not on others: both count.
"""

import numpy
import pytest

import bh

pytestmark = pytest.mark.filterwarnings("ignore")

KINDS = {"F": ("f4", 3e38, 2e-38, 1e-44), "D": ("f8", 1.5e308, 3e-308, 5e-323)}
WIDER = {"F": numpy.complex128, "D": numpy.clongdouble}
FUNCTIONS = """sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh
reciprocal square absolute sign conjugate negative positive""".split()
# NumPy's formulas cancel near 0, or round an exponent: its values are off by this many units of the largest part, or of 1.
LOOSE = {"log1p": (8, 1.0), "exp2": (300, 0.0)}
EXPONENTS = (0, 1, 2, 3, 4, 5, 7, -1, -2, -3, 0.5, -0.5, 1.5, 99, -99, 100, 1 + 0j, 2j, 1 + 1j, -1j, 0.25 - 2j)
EXPONENTS += tuple(complex(re, im) for re in (numpy.inf, -numpy.inf, numpy.nan, 1, -1) for im in (0, numpy.inf, numpy.nan))


def numbers(kind):
    """Each part with each: zeros, ordinary, huge, tiny and subnormal numbers, infinities of both signs, and NaN."""
    real, huge, tiny, least = KINDS[kind]
    sizes = [0.0, 1.0, 0.5, 2.5, 100.0, 800.0, 1e-5, 1e-20, huge, tiny, least, numpy.inf]
    parts = numpy.array(sizes + [-size for size in sizes] + [numpy.nan], real)
    made = numpy.empty((parts.size, parts.size), kind)
    made.real, made.imag = parts[:, None], parts
    return made.ravel()


def pairs(kind):
    few = numbers(kind)
    few = few[numpy.isin(abs(few.real), [0, 1, 2.5, numpy.inf]) & numpy.isin(abs(few.imag), [0, 1, 2.5, numpy.inf]) | numpy.isnan(few.real)][::3]
    return numpy.repeat(few, few.size), numpy.tile(few, few.size)


def alike(mine, reference, units=8, least=0.0):
    """Where both are the same: infinities, NaN, zeros with their signs, and other parts within some units of the larger part."""
    info = numpy.finfo(reference.dtype)
    parts = [(mine.real, reference.real), (mine.imag, reference.imag)] if reference.dtype.kind == "c" else [(mine, reference)]
    with numpy.errstate(all="ignore"):
        size = numpy.full(reference.shape, least)
        for _, part in parts:
            size = numpy.fmax(size, numpy.where(numpy.isfinite(part), abs(part), 0))
        equal = numpy.full(reference.shape, True)
        for a, b in parts:
            both_zero = (a == 0) & (b == 0) & (numpy.signbit(a) == numpy.signbit(b))
            near = numpy.isfinite(a) & numpy.isfinite(b) & (abs(a - b) <= units * (info.eps * size + info.smallest_subnormal))
            ordinary = near & ((a != 0) | (b != 0))
            equal &= both_zero | ordinary | (numpy.isnan(a) & numpy.isnan(b)) | (numpy.isinf(a) & (a == b))
    return equal


def less_one(z):
    """The array API's expm1 where NumPy's formula multiplies infinity by 0."""
    made = z.copy()
    made.real -= 1
    return made


def check(mine, operands, function, units=8, least=0.0, others=()):
    """Compares with NumPy's results of a function of the operands, in their type and in the next wider one, and with others."""
    operands = [numpy.asarray(operand) for operand in operands]
    with numpy.errstate(all="ignore"):
        reference = function(*operands)
        wider = function(*(operand.astype(WIDER[operand.dtype.char]) for operand in operands)).astype(reference.dtype)
    value = numpy.asarray(mine)
    assert (value.shape, value.dtype) == (reference.shape, reference.dtype)
    right = alike(value, reference, units, least)
    for other in (wider, *others):
        right |= alike(value, other, units, least)
    wrong = numpy.flatnonzero(~right)
    told = [(*(operand[place] for operand in operands), value[place], reference[place]) for place in wrong[:5]]
    assert not wrong.size, f"{wrong.size} differ: operands, bh's, NumPy's: {told}"


def in_pieces(function, *operands):
    """The results on little arrays, which are computed at once."""
    size = 64
    starts = range(0, operands[0].size, size)
    made = [numpy.asarray(function(*(bh.array(operand[at : at + size]) for operand in operands))) for at in starts]
    return numpy.concatenate(made)


def recorded(function, *operands):
    """The results of kernels."""
    large = [numpy.tile(operand, 32) for operand in operands]
    made = numpy.asarray(function(*map(bh.array, large))).reshape(32, -1)
    assert made.tobytes() == numpy.tile(made[0], 32).tobytes() or numpy.isnan(made).any()
    return made[-1]


WAYS = pytest.mark.parametrize("way", [in_pieces, recorded])
TYPES = pytest.mark.parametrize("kind", KINDS)


def products(a, b):
    """Products of parts that are rounded one by one."""
    made = numpy.empty(a.shape, a.dtype)
    with numpy.errstate(all="ignore"):
        made.real, made.imag = a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real
    return made


@WAYS
@TYPES
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, kind, way):
    z = numbers(kind)
    with numpy.errstate(all="ignore"):
        others = {"square": [products(z, z)], "expm1": [less_one(numpy.exp(z))]}.get(name, [])
    check(way(getattr(bh, name), z), [z], getattr(numpy, name), *LOOSE.get(name, ()), others=others)


@WAYS
@TYPES
def test_angles(kind, way):
    z = numbers(kind)
    check(way(bh.angle, z), [z], numpy.angle)


@WAYS
@TYPES
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_arithmetic(name, kind, way):
    a, b = pairs(kind)
    check(way(getattr(bh, name), a, b), [a, b], getattr(numpy, name), others=[products(a, b)] if name == "multiply" else [])


@WAYS
@TYPES
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_powers(exponent, kind, way):
    """Powers, which lose as many digits as the logarithm has before its point; as a function of arrays and as an operator."""
    z = numbers(kind)
    exponents = numpy.full(z.size, exponent, kind)
    units = 8 * (1 + abs(exponent) * abs(numpy.log(KINDS[kind][3]))) if numpy.isfinite(exponent) else 8
    others = [products(z, z)] if exponent == 2 else []
    check(way(bh.power, z, exponents), [z, exponents], numpy.power, units, others=others)
    check(way(lambda x: bh.power(x, exponent), z), [z], lambda x: numpy.power(x, exponent), units, others=others)
    raised = lambda x: x**exponent
    check(way(raised, z), [z], raised, units, others=others)
    if isinstance(exponent, (int, float)):

        def in_place(x):
            x **= exponent
            return x

        check(way(in_place, z), [z.copy()], raised, units, others=others)


@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_roots_and_reciprocals_are_powers_of_real_numbers_too(kind):
    x = numpy.array([0.0, -0.0, 2, -2, 3, numpy.inf, -numpy.inf, numpy.nan, 49], kind)
    for exponent in (0.5, -1, -1.0):
        with numpy.errstate(all="ignore"):
            mine, reference = numpy.asarray(bh.array(x) ** exponent), x**exponent
        assert mine.tobytes() == reference.tobytes() or alike(mine, reference, 0 if exponent != -1.0 else 4).all()


def test_inverse_tangents_next_to_their_poles():
    z = numpy.array([1 + 1e-200j, 1 - 1e-160j, -1 + 5e-324j, 1 + 1e-155j, 1 + 1e-149j])
    check(bh.arctanh(bh.array(z)), [z], numpy.arctanh)
    z = numpy.array([1e-300 + 1j, -1e-160 - 1j, 5e-324 + 1j, 1e-155 - 1j])
    check(bh.arctan(bh.array(z)), [z], numpy.arctan)
