"""Universal functions against NumPy's, over types and layouts."""

import operator
import platform
import warnings

import numpy
import pytest

import bh
from conftest import same

TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split()
NATIVE_ELSEWHERE = {"matmul", "vecdot", "matvec", "vecmat"}
# Functions that bh leaves to NumPy: special functions of bits, and types without an order or a function in bh.
LEFT = {"frexp", "isnat", "ldexp"}
UFUNCS = sorted({getattr(numpy, n).__name__ for n in dir(numpy) if isinstance(getattr(numpy, n), numpy.ufunc)} - NATIVE_ELSEWHERE - LEFT)


def sample(dtype, shape, seed=0):
    """Numbers of both signs, zeros and some special ones."""
    generator = numpy.random.default_rng(seed)
    dtype = numpy.dtype(dtype)
    if dtype.kind == "b":
        return generator.random(shape) < 0.5
    if dtype.kind in "iu":
        info = numpy.iinfo(dtype)
        return generator.integers(max(info.min, -20), min(info.max, 20), shape, dtype)
    values = generator.normal(0, 3, shape).astype(dtype)
    if dtype.kind == "c":
        values = values + 1j * generator.normal(0, 3, shape).astype(values.real.dtype)
    return values.astype(dtype)


def supported(function, dtypes):
    """Does NumPy have a loop for these types, whose types bh has too?"""
    try:
        loop = function.resolve_dtypes((*map(numpy.dtype, dtypes), *[None] * function.nout))
    except TypeError:
        return False
    return all(kind.name in TYPES for kind in loop)


COMPLEX_LEFT = {"arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "exp2", "expm1", "log2", "log1p", "maximum", "minimum", "fmax", "fmin", "rint", "sign", "reciprocal"}


@pytest.mark.parametrize("name", UFUNCS)
def test_types_and_values(name):
    mine, reference = bh.__dict__[name] if name in bh.__dict__ else None, getattr(numpy, name)
    if mine is None:
        pytest.skip("no public name")
    tried = 0
    for dtype in TYPES:
        dtypes = (dtype,) * reference.nin
        if not supported(reference, dtypes) or dtype.startswith("complex") and name in COMPLEX_LEFT:
            continue
        if name == "reciprocal" and dtype[:1] in "iub" or name == "power" and dtype.startswith("int"):
            continue
        arguments = [sample(dtype, (3, 5), seed) for seed in range(reference.nin)]
        if name in ("left_shift", "right_shift"):
            arguments[1] = numpy.abs(arguments[1]).astype(dtype)
        with warnings.catch_warnings(), numpy.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            expected = reference(*arguments)
            result = mine(*map(bh.asarray, arguments))
        same(result, expected, ulps=64)
        tried += 1
    assert tried


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "maximum", "less", "power", "floor_divide", "remainder", "arctan2", "logical_and"])
def test_promotion(name):
    mine, reference = getattr(bh, name), getattr(numpy, name)
    for one in TYPES:
        for other in TYPES:
            if not supported(reference, (one, other)):
                continue
            if name == "power" and numpy.result_type(one, other).kind in "iu":
                continue
            complex_ = "complex" in one + other
            if complex_ and name in ("maximum",) or {"uint64"} < {one, other} and name == "less":
                continue
            a, b = sample(one, (4,), 1), sample(other, (4,), 2)
            with numpy.errstate(all="ignore"):
                same(mine(bh.asarray(a), bh.asarray(b)), reference(a, b), ulps=64)


@pytest.mark.parametrize("scalar", [2, -3, 2.5, 1j, True, numpy.float32(1.5), numpy.int8(3), numpy.float64(2.0)])
def test_numbers_beside_arrays(scalar):
    for dtype in TYPES:
        a = sample(dtype, (4,), 3)
        for operator in ("__add__", "__mul__", "__rsub__", "__truediv__"):
            try:
                expected = getattr(a, operator)(scalar)
            except (TypeError, OverflowError) as error:
                with pytest.raises(type(error)), bh.fallback("silent"):
                    getattr(bh.asarray(a), operator)(scalar)
                continue
            if numpy.asarray(expected).dtype.name not in TYPES:
                continue
            same(getattr(bh.asarray(a), operator)(scalar), expected)


def test_out_where_and_type():
    a, b = numpy.arange(6.0).reshape(2, 3), numpy.arange(3.0) + 1
    out, expected = bh.zeros((2, 3)), numpy.zeros((2, 3))
    mask = a % 2 == 0
    result = bh.add(bh.asarray(a), bh.asarray(b), out=out, where=bh.asarray(mask))
    numpy.add(a, b, out=expected, where=mask)
    assert result is out
    same(out, expected)
    same(bh.add(bh.asarray(a), 1, dtype="float32"), numpy.add(a, 1, dtype="float32"))
    ints = bh.zeros(3, "int64")
    with pytest.raises(TypeError, match="same_kind"):
        bh.add(bh.asarray(b), 1, out=ints)
    bh.add(bh.asarray(b), 1, out=ints, casting="unsafe")
    same(ints, numpy.array([2, 3, 4]))
    with pytest.raises(ValueError, match="broadcast"):
        bh.add(bh.asarray(a), bh.zeros(4))
    with pytest.raises(ValueError, match="non-broadcastable output"):
        bh.add(bh.asarray(a), 1, out=bh.zeros(3))


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum", "logical_and", "logical_or", "bitwise_xor"])
def test_methods(name):
    mine, reference = getattr(bh, name), getattr(numpy, name)
    a = sample("int32", (3, 4, 5))
    x = bh.asarray(a)
    for axis in (0, 1, -1, None, (0, 2)):
        same(mine.reduce(x, axis=axis), reference.reduce(a, axis=axis))
        same(mine.reduce(x, axis=axis, keepdims=True), reference.reduce(a, axis=axis, keepdims=True))
    same(mine.accumulate(x, 1), reference.accumulate(a, 1))
    same(mine.outer(x[0, 0], x[1, 1]), reference.outer(a[0, 0], a[1, 1]))
    same(mine.reduceat(x, [0, 2, 1], 1), reference.reduceat(a, [0, 2, 1], 1))
    same(mine.reduce(x, 1, initial=7), reference.reduce(a, 1, initial=7))
    mask = a > 0
    same(mine.reduce(x, 1, initial=3, where=bh.asarray(mask)), reference.reduce(a, 1, initial=3, where=mask))


def test_reductions_of_nothing():
    same(bh.add.reduce(bh.zeros((0, 3))), numpy.zeros(3))
    with pytest.raises(ValueError, match="zero-size array to reduction operation maximum"):
        bh.zeros(0).max()
    same(bh.maximum.reduce(bh.zeros(0), initial=2.0), numpy.float64(2))


def test_at():
    a = numpy.zeros(5)
    x = bh.zeros(5)
    numpy.add.at(a, [1, 1, -1], [1.0, 2.0, 5.0])
    bh.add.at(x, [1, 1, -1], bh.asarray([1.0, 2.0, 5.0]))
    same(x, a)


def test_special_values():
    values = numpy.array([0.0, -0.0, 1.0, -1.0, numpy.inf, -numpy.inf, numpy.nan, 1e-310])
    x = bh.asarray(values)
    with numpy.errstate(all="ignore"):
        for name in ("negative", "signbit", "sign", "square", "reciprocal", "cbrt", "rint", "modf", "isnan", "fabs"):
            same(getattr(bh, name)(x), getattr(numpy, name)(values))
        assert numpy.signbit(numpy.asarray(bh.negative(x)))[0]
        for name in ("copysign", "hypot", "fmax", "fmin", "logaddexp", "heaviside"):
            expected = getattr(numpy, name)(values[:, None], values)
            result = getattr(bh, name)(x[:, None], x)
            kept = ~numpy.isnan(values) if name == "copysign" else numpy.ones(8, bool)
            same(numpy.asarray(result)[:, kept], expected[:, kept])


@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_neighbours_of_floating_point_numbers(kind):
    generator = numpy.random.default_rng(1)
    bits = generator.integers(0, 2 ** (32 if kind == "f4" else 64) - 1, 4000, dtype=kind.replace("f", "u")).view(kind)
    limits = numpy.finfo(kind)
    powers = numpy.exp2(numpy.arange(-149, 127) if kind == "f4" else numpy.arange(-1074, 1023)).astype(kind)
    special = numpy.array([0.0, -0.0, numpy.inf, numpy.nan, limits.max, limits.tiny, limits.smallest_subnormal, 1], kind)
    with numpy.errstate(all="ignore"):
        x = numpy.concatenate([bits, powers, -powers, numpy.nextafter(powers, special[:1]), special, -special])
        for y in (numpy.array(numpy.inf, kind), numpy.array(-numpy.inf, kind), special[:1], x[::-1].copy()):
            numpy.testing.assert_array_equal(numpy.asarray(bh.nextafter(bh.asarray(x), bh.asarray(y))), numpy.nextafter(x, y))
        numpy.testing.assert_array_equal(numpy.asarray(bh.spacing(bh.asarray(x))), numpy.spacing(x))


@pytest.mark.parametrize("kind", "b h i l B H I L".split())
def test_divisors_multiples_and_bits(kind):
    limits, generator = numpy.iinfo(kind), numpy.random.default_rng(2)
    a, b = (generator.integers(limits.min, limits.max, 200, dtype=kind, endpoint=True) for _ in range(2))
    a[:3], b[:3] = [0, limits.min, limits.max], [0, 0, limits.min]
    x, y = bh.asarray(a), bh.asarray(b)
    same(bh.gcd(x, y), numpy.gcd(a, b))
    same(bh.lcm(x, y), numpy.lcm(a, b))
    same(bh.bitwise_count(x), numpy.bitwise_count(a))


def test_outputs_that_are_given():
    a = numpy.arange(6.0)
    x = bh.asarray(a)
    for call in (
        lambda m, v: m.add(v, 1, v), lambda m, v: m.add(v, v, out=v), lambda m, v: m.sqrt(v, v), lambda m, v: m.negative(v, out=(v,)),
        lambda m, v: m.add(v[1:], 1, out=v[:-1]), lambda m, v: m.multiply(v[:3], v[3:], out=v[::2]), lambda m, v: m.add(1, 2, out=v),
        lambda m, v: m.add(v, v, where=v > 2, out=v), lambda m, v: m.add(v, 1, out=v, dtype="f8"),
    ):  # fmt: skip
        mine, reference = x.copy(), a.copy()
        result = call(bh, mine)
        call(numpy, reference)
        same(mine, reference)
        assert result._memory == mine._memory
    for wrong in (lambda m, v: m.add(v, 1, out=m.ones(5)), lambda m, v: m.add(v, 0.5, out=m.ones(6, int)), lambda m, v: m.add(v, 1, v, out=v)):
        with pytest.raises((TypeError, ValueError)):
            wrong(numpy, a)
        with pytest.raises((TypeError, ValueError)):
            wrong(bh, x)
    fixed = x[:]
    fixed.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        bh.add(x, 1, out=fixed)


def test_comparisons_of_numbers_without_a_common_type():
    names = "less less_equal greater greater_equal equal not_equal".split()
    signed = numpy.array([-1, 0, 5, -(2**63), 2**63 - 1, -(2**63) + 1])
    unsigned = numpy.array([2**64 - 1, 0, 5, 2**63, 2**63 - 1, 2**63 + 1], "u8")
    pairs = [(signed, unsigned), (unsigned, signed), (unsigned, numpy.int64(-1)), (numpy.uint64(5), signed)]
    pairs += [(numpy.arange(3, dtype=kind), number) for kind in ("u1", "i1", "u8", "i8") for number in (-1, 300, -(2**70), 2**70)]
    for name in names:
        for one, other in pairs:
            given = [bh.asarray(value) if numpy.ndim(value) else value for value in (one, other)]
            same(getattr(bh, name)(*given), getattr(numpy, name)(one, other))
            same(getattr(bh, name)(*given[::-1]), getattr(numpy, name)(other, one))


def test_one_of_two_outputs_is_given():
    for out in (lambda target: {"out": (None, target)}, lambda target: {"out": (target, None)}):
        results = []
        for module in (bh, numpy):
            target = module.zeros(4, int)
            results.append((*module.divmod(module.arange(4), 3, **out(target)), target))
        same(*results)
    for module in (bh, numpy):
        target = module.zeros(4, int)
        same(module.divmod(module.arange(4), 3, target)[1], numpy.arange(4) % 3)
        same(target, numpy.arange(4) // 3)


def test_the_sign_of_nan_is_seen():
    small = numpy.array([numpy.nan, -numpy.nan, 0.0, -0.0, 1.0, -numpy.inf], "f4")
    large = numpy.tile(small, 20000)
    for a in (small, large, large[::-7]):
        same(bh.signbit(bh.array(a)), numpy.signbit(a))
        same(bh.signbit(bh.array(a.astype("f8")).astype("f4") * 1), numpy.signbit(a.astype("f8").astype("f4") * 1))


def test_copysign_sees_the_sign_of_nan():
    signs = numpy.tile(numpy.array([numpy.nan, -numpy.nan, -0.0, 2.0]), 5000)
    assert numpy.array_equal(numpy.signbit(numpy.asarray(bh.copysign(1.0, bh.array(signs)))), numpy.signbit(signs))


# Numbers beyond integer types.
BEYOND = numpy.array([-1.0, 300.0, numpy.nan, numpy.inf, -numpy.inf, 3e9, -3e9, 70000.0, -70000.5, 1e19, -1e19, 1.5e19, 1e30, 2.0**31, 2.0**63])


def agreed_beyond(source, kind):
    """Which of `BEYOND` NumPy's loops over vectors of numbers convert as those over single numbers do."""
    values = BEYOND.astype(source)
    return numpy.repeat(values, 64).astype(kind)[::64] == numpy.concatenate([value.astype(kind) for value in numpy.split(values, len(values))])


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
@pytest.mark.parametrize("source", ["f4", "f8"])
@pytest.mark.parametrize("times", [1, 2000])
def test_numbers_beyond_integer_types_are_numpys(kind, source, times):
    values = numpy.tile(BEYOND, times).astype(source)
    with numpy.errstate(all="ignore"):
        # On x86-64 bh's rule is that of single numbers, on AArch64 that of vectors.
        if times == 1 or platform.machine() == "x86_64":
            values = values[numpy.tile(agreed_beyond(source, kind), times)]
        expected = values.astype(kind)
        same(bh.array(values).astype(kind), expected)
        # In the kernel that makes the floats, where the conversion may be compiled.
        same((bh.array(values) * 1).astype(kind), expected)
        target = bh.zeros(len(values), kind)
        target[...] = bh.array(values)
        same(target, expected)


def test_dictionaries_of_functions_are_the_programs():
    assert vars(bh.hypot).keys() <= {"__module__", "__qualname__", "__signature__"}
    bh.hypot.note = 1
    assert vars(bh.hypot)["note"] == 1 and bh.hypot.__name__ == "hypot"
    del bh.hypot.note


def test_methods_are_left_to_operands_with_functions_of_their_own():
    class Other:
        def __array_ufunc__(self, function, method, *inputs, **keywords):
            return function, method, inputs, keywords

    a = Other()
    for call in (
        lambda f: f.reduce(a, "axis", "dtype", "out", "keep"),
        lambda f: f.reduce(a, axis=0, keepdims=True),
        lambda f: f.reduce(a, 0, None, None, False),
        lambda f: f.accumulate(a, 0, dtype="dtype"),
        lambda f: f.reduceat(a, [4, 2], "axis"),
        lambda f: f.outer(a, 42),
        lambda f: f.outer(42, a),
        lambda f: f.at(a, [4, 2], 3),
    ):
        assert call(bh.multiply) == call(numpy.multiply)
    x = bh.arange(3.0)
    assert x.__array_ufunc__(bh.add, "__call__", x, a) is NotImplemented
    for call in (lambda f: f.reduce(1, (), None, ...), lambda f: f.accumulate([1], 0, None, ...)):
        with pytest.raises(TypeError, match="only allowed as a keyword"):
            call(bh.add)


def test_folds_take_arguments_in_any_form():
    a = numpy.arange(6.0).reshape(2, 3)
    x = bh.array(a)
    for call in (
        lambda f, a: f.reduce(a),
        lambda f, a: f.reduce(a, 1),
        lambda f, a: f.reduce(a, axis=None),
        lambda f, a: f.reduce(a, 1, None, None, True),
        lambda f, a: f.reduce(a, keepdims=True, axis=(0, 1)),
        lambda f, a: f.reduce(a, 0, "f4"),
        lambda f, a: f.reduce(a, 0, initial=3),
        lambda f, a: f.reduce(array=a, axis=0),
    ):
        same(call(bh.add, x), call(numpy.add, a))
    for arguments, keywords in (((0, None, None, False, 1, True, 2), {}), ((0,), {"axis": 0}), ((), {"axes": 0}), ((0,), {"keep": 1})):
        with pytest.raises(TypeError):
            bh.add.reduce(x, *arguments, **keywords)


MASKED = """
np.power(np.array([2, 3, 4] * n), np.array([-1, 2, 3] * n), where=k, out=np.zeros(3 * n, int))
np.power(np.array([2, 3, 4] * n), -1, where=np.zeros(3 * n, bool), out=np.zeros(3 * n, int))
np.divide(1, np.array([0.0, 1, 2] * n), where=k, out=np.full(3 * n, numpy.nan))
np.floor_divide(5, np.array([0, 1, 2] * n), where=k, out=np.zeros(3 * n, int))
np.remainder(np.array([0, 1, 2] * n), 0, where=np.zeros(3 * n, bool), out=np.zeros(3 * n, int))
np.log(np.array([-1.0, 1, 2] * n), where=k, out=np.zeros(3 * n))
np.arctanh(np.array([3, 0.1, 0.2] * n), where=k, out=np.zeros(3 * n))
np.multiply(np.array([1e300, 1, 2] * n), 1e300, where=k, out=np.zeros(3 * n))
np.add(np.array([numpy.nan, 1, 2] * n), 1, where=k, out=np.zeros(3 * n, int), casting="unsafe")
np.left_shift(np.array([1, 1, 2] * n), np.array([-1, 1, 2] * n), where=k, out=np.zeros(3 * n, int))
np.add(np.arange(3.0 * n).reshape(3, n), np.arange(n), where=np.arange(n) % 2 == 0, out=np.zeros((3, n)))
""".strip().splitlines()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [2, 3000])
@pytest.mark.parametrize("call", MASKED)
def test_elements_that_are_left_out_have_no_errors(call, n):
    mine, theirs = (eval(call, {"np": m, "numpy": numpy, "n": n, "k": m.array([False, True, True] * n)}) for m in (bh, numpy))
    assert numpy.array_equal(numpy.asarray(mine), theirs, equal_nan=True)


def test_powers_under_a_mask_are_checked():
    with pytest.raises(ValueError, match="negative integer powers"):
        bh.power(bh.array([2, 3]), bh.array([-1, 2]), where=bh.array([True, False]), out=bh.zeros(2, int))


@pytest.mark.parametrize("name", "maximum minimum fmax fmin bitwise_and bitwise_or bitwise_xor add".split())
def test_folds_of_lists_of_arrays(name):
    source = numpy.random.default_rng(5)
    for count, shape, kind in ((2, (5,), "f8"), (3, (4, 3), "i4"), (16, (2,), "f4"), (17, (3,), "f8"), (3, (3000,), "f8"), (2, (0,), "f8"), (3, (6,), "?")):
        if kind[0] == "f" and name.startswith("bitwise"):
            continue
        hosts = [(source.integers(-2, 3, shape) * 0.5).astype(kind) for _ in range(count)]
        if kind[0] == "f":
            hosts[0][:1], hosts[-1][-1:] = numpy.nan, -0.0
        for make in (list, tuple):
            mine = getattr(bh, name).reduce(make(map(bh.asarray, hosts)))
            reference = getattr(numpy, name).reduce(make(hosts))
            same(mine, reference)
            # Of zeros, NumPy takes either.
            folded = getattr(bh, name).reduce(bh.stack([bh.asarray(one) for one in hosts]))
            assert numpy.asarray(mine).tobytes() == numpy.asarray(folded).tobytes()
        if 0 in shape:
            continue
        same(getattr(bh, name).reduce([bh.asarray(one) for one in hosts], axis=-1), getattr(numpy, name).reduce(hosts, axis=-1))


def test_calls_in_place_and_with_arrays_of_numpy_are_served_from_the_second_one_on(monkeypatch):
    asked = []
    record = bh.ufunc._record
    monkeypatch.setattr(bh.ufunc, "_record", lambda self, *args, **kwargs: asked.append(self.__name__) or record(self, *args, **kwargs))
    a = bh.array(numpy.array([1, 2, 3], "u2"))
    for call in (lambda: operator.ixor(a, a), lambda: bh.bitwise_or(a, numpy.array([1, 1, 1], "u2")), lambda: bh.left_shift(a, numpy.uint16(1), out=a)):
        call()
        before = len(asked)
        call()
        assert len(asked) == before
