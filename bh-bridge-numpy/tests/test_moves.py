"""Rolled, padded and joined arrays: NumPy's bits and errors, natively and composed in Python, whatever state the operands are in."""

import numpy
import pytest

import bh
import bh as np

TYPES = "f8 f4 i8 i4 u1 ? c16 c8".split()
MODES = "constant edge reflect symmetric wrap".split()
FORMS = [
    lambda x: x, lambda x: x, lambda x: x, lambda x: x[::-1], lambda x: x.T, lambda x: x[..., ::2], lambda x: x[1:], lambda x: x[..., :1],
    lambda x: x.real,
]  # fmt: skip
# The states of an operand when the function is called: given elements, computed ones, and a pending operation.
STATES = [lambda x: x, lambda x: x + x.dtype.type(0), lambda x: abs(x)]


def shape_of(rng, rank):
    """Few elements, or more than operations are carried out on at once."""
    shape = rng.integers(0 if rng.integers(9) == 0 else 1, 5, size=rank)
    if rng.integers(4) == 0:
        shape[rng.integers(rank)] = 40000
    return tuple(map(int, shape))


def operand(rng, shape, dtype):
    values = (rng.normal(size=shape) * 9).astype(dtype)
    form, state = FORMS[rng.integers(len(FORMS))], STATES[rng.integers(len(STATES))]
    return lambda np: form(state(np.asarray(values)))


def one_of(rng, *choices):
    return choices[rng.integers(len(choices))]


def rolled(rng):
    rank = int(rng.integers(1, 5))
    a = operand(rng, shape_of(rng, rank), one_of(rng, *TYPES))
    axis = lambda: int(rng.integers(-rank, rank)) if rng.integers(20) else rank
    shift = lambda: int(rng.integers(-9, 10))
    axes = one_of(rng, None, axis(), (axis(), axis()), tuple(range(rank)), [axis()])
    count = len(axes) if isinstance(axes, (tuple, list)) else 1
    by = one_of(rng, shift(), tuple(shift() for _ in range(count)), [shift() for _ in range(count)], numpy.int64(shift()), (shift(), shift()))
    return one_of(rng, lambda np: np.roll(a(np), by, axes), lambda np: np.roll(a(np), by, axis=axes), lambda np: np.roll(a(np), shift=by, axis=axes))


def padded(rng):
    rank = int(rng.integers(1, 5))
    a = operand(rng, shape_of(rng, rank), one_of(rng, *TYPES))
    width = lambda: int(rng.integers(0, 4))
    each = [[width(), width()] for _ in range(rank)]
    widths = one_of(rng, width(), (width(), width()), each, tuple(map(tuple, each)), [width()], [(1, 2)], [[1], [2]], numpy.array(each), numpy.uint8(1), -1, 1.5, True, {0: 2}, [1, numpy.int8(2)])
    mode, options = one_of(rng, *MODES), {}
    if mode == "constant" and rng.integers(2):
        number = lambda: one_of(rng, 0, -1, 2, 1.5, True, 300, 2 + 1j, numpy.float32(3.25), numpy.int8(-3), numpy.nan, 1e300)
        options["constant_values"] = one_of(rng, number(), (number(), number()), [[number(), number()] for _ in range(rank)], numpy.array([1, 2]), [3])
    calls = [lambda np: np.pad(a(np), widths, mode, **options), lambda np: np.pad(a(np), widths, mode=mode, **options)]
    if mode == "constant":
        calls.append(lambda np: np.pad(a(np), widths, **options))
    return one_of(rng, *calls)


def joined(rng):
    name = one_of(rng, "concatenate", "stack", "vstack", "hstack", "column_stack", "dstack")
    rank = int(rng.integers(1, 4))
    shape, dtype, count = list(shape_of(rng, rank)), one_of(rng, *TYPES), int(rng.integers(0 if rng.integers(20) == 0 else 1, 5))
    axis = int(rng.integers(-rank, rank + (name == "stack")))
    parts = []
    for _ in range(count):
        own = list(shape)
        if name == "concatenate":
            own[axis] = int(rng.integers(0, 5))
        if rng.integers(20) == 0:
            own[rng.integers(rank)] += 1
        parts.append(operand(rng, own, dtype if rng.integers(8) else one_of(rng, *TYPES)))
    if rng.integers(9) == 0:
        parts.append(lambda np: [1.0, 2.0])
    kind = one_of(rng, list, tuple)
    all = lambda np: kind(part(np) for part in parts)
    function = lambda np: getattr(np, name)
    if name in ("concatenate", "stack"):
        return one_of(rng, lambda np: function(np)(all(np), axis), lambda np: function(np)(all(np), axis=axis), lambda np: function(np)(all(np)))
    return lambda np: function(np)(all(np))


def outcome(call, np):
    """The type, extents, order in memory and bits of a result, or the class and text of its error."""
    try:
        result = call(np)
    except Exception as error:  # noqa: BLE001
        return type(error), str(error)
    assert type(result) is np.ndarray
    host = numpy.asarray(result)
    flags = result.flags
    return host.dtype, host.shape, flags.c_contiguous, flags.f_contiguous, host.tobytes()


@pytest.mark.parametrize("seed", range(240))
@pytest.mark.parametrize("function", (rolled, padded, joined))
@pytest.mark.filterwarnings("ignore")
def test_random_calls(function, seed):
    rng = numpy.random.default_rng(seed)
    call = function(rng)
    reference = outcome(call, numpy)
    assert outcome(call, bh) == reference
    bh._native.set_shortcuts(False)
    try:
        assert outcome(call, bh) == reference
    finally:
        bh._native.set_shortcuts(True)


CALLS = [
    lambda np, x: np.roll(x, (1, -1), (0, 1)), lambda np, x: np.pad(x, 2, "edge"), lambda np, x: np.pad(x, ((1, 0), (0, 3)), "wrap"),
    lambda np, x: np.pad(x, 1, constant_values=((1, 2), (3, 4))), lambda np, x: np.pad(x[::-1, ::2], 1, "reflect"),
    lambda np, x: np.concatenate([x, x[:1], x * 2]), lambda np, x: np.stack([x, x + 1, x], -1), lambda np, x: np.vstack((x[0], x)),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_recorded_functions(call):
    x, y = numpy.arange(12.0).reshape(3, 4), numpy.arange(12.0)[::-1].reshape(3, 4)
    recorded = bh.jit(lambda x: call(bh, x))
    for values in (x, y):
        assert numpy.asarray(recorded(bh.asarray(values))).tobytes() == call(numpy, values).tobytes()


@pytest.mark.parametrize("call", CALLS)
def test_operands_stay_as_they_are(call):
    x, made = bh.asarray(numpy.arange(12.0).reshape(3, 4)), bh.zeros((300, 400))
    result = call(bh, x)
    result[...] = -1
    assert (numpy.asarray(x) == numpy.arange(12).reshape(3, 4)).all()
    large = call(bh, made)
    made += 1
    expected = call(numpy, numpy.zeros((300, 400)))
    assert numpy.asarray(large).tobytes() == expected.tobytes()


def test_each_box_is_one_operation():
    a = bh.zeros((300, 400)) + 1
    bh.flush()
    for call, count in (
        (lambda: bh.roll(a, 3, 0), 2), (lambda: bh.roll(a, (1, -1), (0, 1)), 4), (lambda: bh.roll(a, 0, 1), 1), (lambda: bh.pad(a, 1), 5),
        (lambda: bh.pad(a, ((0, 0), (1, 1)), "wrap"), 3), (lambda: bh.pad(a, 1, "edge"), 9), (lambda: bh.concatenate([a, a[:9]]), 2),
        (lambda: bh.stack([a] * 9), 9), (lambda: bh.hstack((a, a, a)), 3),
    ):  # fmt: skip
        before = bh._native.Stack().work()[0]
        result = call()
        assert bh._native.Stack().work()[0] - before == count
        del result


def test_many_pieces_take_several_steps_or_numpys_code():
    values = numpy.arange(2.0**11).reshape((2,) * 11)
    turn = lambda module, a: module.roll(a, (1,) * 11, range(11))
    numpy.testing.assert_array_equal(turn(np, np.array(values) + 0), turn(numpy, values))
    for dtype in ("f8", "i4", "?"):
        parts = lambda module: [(module.arange(12) % 5).astype(dtype).reshape(3, 4)[:, ::step] for step in (1, -1) * 200]
        for call in (lambda m, all: m.concatenate(all, 1), lambda m, all: m.stack(all, 2), lambda m, all: m.vstack(all), lambda m, all: m.concatenate(all + [[[0.5]] * 3], 1)):
            made, expected = call(np, parts(np)), call(numpy, parts(numpy))
            assert made.dtype == expected.dtype and type(made) is np.ndarray
            numpy.testing.assert_array_equal(made, expected)
    recorded = np.jit(lambda a: np.concatenate([a[:2]] * 300) * 2)
    numpy.testing.assert_array_equal(recorded(np.arange(4.0)), numpy.concatenate([numpy.arange(2.0)] * 300) * 2)
