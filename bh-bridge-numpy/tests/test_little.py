"""Little arrays that the recorder has not heard of, beside such that it has: random programs give NumPy's bits in every mixture."""

import random
import re
import warnings

import numpy
import pytest

import bh
from bh import _native

SHAPES = [(), (1,), (7,), (3, 5), (2, 1, 4), (200,), (40, 30)]
TYPES = ["f8", "f4", "i8", "i4", "?", "c16"]
BINARY = ["add", "subtract", "multiply", "maximum", "less", "equal"]
UNARY = ["negative", "absolute", "square"]


def known(array):
    """Has the recorder take over an array's memory."""
    array._memory


class Program:
    """The same statements on arrays of bh and of NumPy."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.pairs = []
        for _ in range(4):
            self.make()

    def pick(self):
        return self.random.choice(self.pairs)

    def number(self, dtype):
        value = self.random.randint(-5, 5)
        return {"b": bool(value % 2), "i": value, "f": value / 4, "c": complex(value, 1)}[numpy.dtype(dtype).kind]

    def make(self):
        shape, dtype = self.random.choice(SHAPES), self.random.choice(TYPES)
        how = self.random.randrange(3)
        for_both = lambda make: self.pairs.append((make(bh), make(numpy)))
        if how == 0:
            for_both(lambda np: np.zeros(shape, dtype))
        elif how == 1:
            value = self.number(dtype)
            for_both(lambda np: np.full(shape, value, dtype))
        else:
            elements = numpy.arange(int(numpy.prod(shape))).reshape(shape).astype(dtype)
            self.pairs.append((bh.array(elements), elements.copy()))

    def binary(self):
        (a, x), (b, y), name = self.pick(), self.pick(), self.random.choice(BINARY)
        if self.random.random() < 0.3:
            b = y = self.number(x.dtype)
        try:
            expected = getattr(numpy, name)(x, y)
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                getattr(bh, name)(a, b)
            return
        self.pairs.append((getattr(bh, name)(a, b), expected))

    def unary(self):
        (a, x), name = self.pick(), self.random.choice(UNARY)
        if x.dtype.kind == "c" and name == "absolute":
            # The last bit of these is each library's own.
            return
        try:
            expected = getattr(numpy, name)(x)
        except TypeError:
            return
        self.pairs.append((getattr(bh, name)(a), expected))

    def inplace(self):
        (a, x), (b, y) = self.pick(), self.pick()
        if not isinstance(x, numpy.ndarray) or x.dtype == bool:
            return
        if x.shape != numpy.shape(y) or x.dtype != y.dtype or self.random.random() < 0.5:
            b = y = self.number(x.dtype)
        x += y
        a += b

    def key(self, x):
        r = self.random
        one = lambda n: slice(r.randint(0, n), r.randint(0, n), r.choice([1, 1, 2])) if r.random() < 0.6 else r.randrange(n)
        return tuple(one(n) for n in x.shape[: r.randint(1, x.ndim)])

    def view(self):
        a, x = self.pick()
        if not isinstance(x, numpy.ndarray) or x.ndim == 0:
            return
        how = self.random.randrange(4)
        if how < 2 and 0 not in x.shape:
            key = self.key(x)
            a, x = a[key], x[key]
        elif how == 2:
            a, x = a.T, x.T
        elif x.flags.c_contiguous and bool(a.flags.c_contiguous):
            a, x = a.reshape(-1), x.reshape(-1)
        self.pairs.append((a, x))

    def assign(self):
        a, x = self.pick()
        if not isinstance(x, numpy.ndarray) or x.ndim == 0 or 0 in x.shape:
            return
        key = self.key(x)
        (b, y) = self.pick()
        if self.random.random() < 0.5 or numpy.shape(y) != numpy.shape(x[key]) or y.dtype != x.dtype:
            b = y = self.number(x.dtype)
        x[key] = y
        a[key] = b

    def mask(self):
        a, x = self.pick()
        if isinstance(x, numpy.ndarray) and x.dtype.kind in "fi":
            if self.random.random() < 0.5:
                self.pairs.append((a[a > 1], x[x > 1]))
            else:
                a[a > 1], x[x > 1] = 2, 2

    def fold(self):
        a, x = self.pick()
        name = self.random.choice(["max", "min"] if x.dtype.kind == "f" else ["any", "all"])
        if not isinstance(x, numpy.ndarray) or x.size == 0 or x.dtype.kind == "c":
            return
        axis = self.random.choice([None, *range(x.ndim)])
        keep = self.random.random() < 0.3
        expected = getattr(numpy, name)(x, axis=axis, keepdims=keep)
        self.pairs.append((getattr(bh, name)(a, axis=axis, keepdims=keep), expected))

    def copy(self):
        a, x = self.pick()
        if isinstance(x, numpy.ndarray):
            self.pairs.append((a.copy(), x.copy(order="A")))

    def reshape(self):
        a, x = self.pick()
        if isinstance(x, numpy.ndarray) and x.base is None and x.flags.c_contiguous and a.base is None:
            a.shape = x.shape = (*x.shape, 1)[-3:] if x.ndim < 3 else (x.size,)

    def step(self):
        statements = [self.make, self.binary, self.binary, self.unary, self.inplace, self.view, self.assign, self.mask]
        self.random.choice([*statements, self.fold, self.copy, self.reshape])()
        if len(self.pairs) > 12:
            self.pairs.pop(self.random.randrange(12))

    def check(self):
        for a, x in self.pairs:
            shown = numpy.asarray(a)
            assert shown.dtype == x.dtype and shown.shape == x.shape
            numpy.testing.assert_array_equal(shown, x)


@pytest.mark.parametrize("told", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("seed", range(25))
def test_random_programs(seed, told):
    program = Program(seed)
    for _ in range(60):
        program.step()
        arrays = [a for a, _ in program.pairs if isinstance(a, bh.ndarray)]
        if arrays and program.random.random() < told:
            known(program.random.choice(arrays))
        if program.random.random() < told / 10:
            bh.flush()
        if program.random.random() < 0.05:
            program.check()
    program.check()


def test_views_follow_an_array_that_is_taken_over():
    a = bh.arange(10.0) + 0.5
    part = a[2:5]
    inner = part[1:]
    known(a)
    inner += 1
    a *= 2
    assert part.tolist() == [5.0, 9.0, 11.0] and inner.tolist() == [9.0, 11.0] and part.base is a
    b = bh.zeros(6)
    row = b[3:]
    known(row)
    b[4] = 7
    row[0] = 5
    assert b.tolist() == [0, 0, 0, 5, 7, 0] and row.tolist() == [5, 7, 0]
    c = bh.ones(6)
    part = c[:3]
    c.shape = (2, 3)
    part[...] = 4
    assert c.tolist() == [[4, 4, 4], [1, 1, 1]] and c.shape == (2, 3)


def test_operations_on_little_arrays_make_no_arrays_of_the_recorder():
    stack = _native.Stack()
    count = lambda: dict(stack.counters())
    a, b = bh.ones(10), bh.ones(10)
    before = count()
    for _ in range(10):
        c = a + b * 2
        c -= a[::1]
        total = c.sum()
    after = count()
    assert float(total) == 20.0 and c.tolist() == [2.0] * 10
    assert after["immediate"] - before["immediate"] >= 40
    assert after["arrays"] == before["arrays"] and after["bases"] == before["bases"]


def test_a_trace_sees_little_arrays_of_before():
    outer = bh.ones(5) * 3

    @bh.jit
    def f(x):
        return x * outer + x[1]

    for value in [1.0, 2.0, 3.0]:
        assert f(bh.full(5, value)).tolist() == [4 * value] * 5
    value, gradient = bh.value_and_grad(lambda x: (x * outer).sum())(bh.arange(5.0) + 1)
    assert float(value) == 45.0 and gradient.tolist() == [3.0] * 5


@pytest.mark.parametrize("seed", range(60))
def test_views_are_numpys(seed):
    """Functions and keys that give views, of arrays of any few extents, with the shortcuts and without."""
    rng = random.Random(seed)
    shape = tuple(rng.randrange(0, 4) for _ in range(rng.randrange(1, 5)))
    first, second = (rng.randrange(-len(shape), len(shape)) for _ in range(2))
    parts = lambda most: tuple(rng.choice([None, slice(None), slice(1, None), slice(None, None, -1), 0]) for _ in range(rng.randrange(most + 1)))
    key = (*parts(len(shape)), ..., *parts(1))
    views = [lambda np, x: x[key], lambda np, x: x[key][None, ..., ::2], lambda np, x: np.swapaxes(x, first, second), lambda np, x: x.swapaxes(first, second)]
    views += [lambda np, x: np.flip(x), lambda np, x: np.flip(x, first), lambda np, x: np.flip(x, axis=second)]
    views += [lambda np, x, name=name: getattr(np, name)(x) for name in ("atleast_1d", "atleast_2d", "atleast_3d")]
    host = numpy.arange(float(numpy.prod(shape))).reshape(shape)
    for view in views:
        try:
            expected = view(numpy, host)
        except IndexError as error:
            with pytest.raises(IndexError, match=re.escape(str(error))):
                view(bh, bh.array(host))
            continue
        for taken in (True, False):
            before = _native.set_shortcuts(taken)
            try:
                array = bh.array(host)
                made = view(bh, array)
            finally:
                _native.set_shortcuts(before)
            assert type(made) is bh.ndarray and made.shape == expected.shape and numpy.array_equal(numpy.asarray(made), expected)
            array += 1
            host_after = view(numpy, host + 1)
            assert numpy.array_equal(numpy.asarray(made), host_after)


@pytest.mark.parametrize("seed", range(40))
def test_mixed_operations_leave_little_arrays_to_the_bridge(seed):
    """Products, casts, running sums and results in another order have NumPy's values, and the recorder hears of none of the arrays."""
    rng = random.Random(seed)
    rows, inner, columns = (rng.randrange(1, 6) for _ in range(3))
    make = lambda shape, kind: (numpy.arange(numpy.prod(shape)) % 7 - 3).reshape(shape).astype(kind)
    kind, other = rng.choice(["f8", "f4", "i8", "c16"]), rng.choice(["i4", "?", "f8", "u1"])
    a, b, v = make((rows, inner), kind), make((inner, columns), kind), make((inner,), kind)
    c = make((rows, inner), other)
    operations = [lambda a, b, v, c: a @ b, lambda a, b, v, c: b.T @ a.T, lambda a, b, v, c: a @ v, lambda a, b, v, c: v.dot(v)]
    operations += [lambda a, b, v, c: a + c, lambda a, b, v, c: c * v, lambda a, b, v, c: c.sum(), lambda a, b, v, c: c.T * 2]
    operations += [lambda a, b, v, c: a.T + c.T, lambda a, b, v, c: (a.T * 2).T + a, lambda a, b, v, c: v.cumsum(), lambda a, b, v, c: (a.T * 2)[..., 0].sum()]
    arrays = [bh.array(host) for host in (a, b, v, c)]
    count = lambda: {name: value for name, value in dict(_native.Stack().counters()).items() if name in ("arrays", "bases")}
    results, before = [], count()
    for operation in operations:
        results.append(operation(*arrays))
    assert count() == before
    for operation, made in zip(operations, results):
        expected = operation(a, b, v, c)
        assert made.dtype == expected.dtype and made.shape == expected.shape
        assert numpy.array_equal(numpy.asarray(made), expected)
        if isinstance(made, bh.ndarray):
            # Taken over by the recorder, it is what it was.
            made._memory
            assert made.strides == bh.array(expected, order="K").strides and numpy.array_equal(numpy.asarray(made), expected)
            made += made
            assert numpy.array_equal(numpy.asarray(made), expected + expected)


def test_operations_in_another_order_see_the_memory_that_a_resized_array_has_now():
    wide = bh.ones((4, 3)).T
    a = bh.arange(6.0)
    other = a
    a.resize(4, refcheck=False)
    a[:] = 7.0
    assert (wide + a == 8.0).all() and other is a
    b = bh.arange(3.0)
    b.resize(4, refcheck=False)
    b[:] = numpy.arange(4.0)
    assert (numpy.asarray(wide * b) == numpy.arange(4.0)).all()
    assert numpy.asarray(bh.where(wide > 0, b, -1.0)).tolist() == [[0.0, 1.0, 2.0, 3.0]] * 3


def test_a_copy_in_a_named_type_has_its_first_name():
    a = bh.array(numpy.array([1, 2], "q"))
    assert a.dtype.char == "q" and a.astype(numpy.int64).dtype.char == "l" and a.astype("q").dtype.char == "q"


CALLS = [
    lambda np, a, s: a.diagonal(),
    lambda np, a, s: np.diagonal(a, s),
    lambda np, a, s: np.diagonal(a, s, 1, 0),
    lambda np, a, s: np.diagonal(a, -s, -2, -1),
    lambda np, a, s: np.diagonal(a, 9),
    lambda np, a, s: np.diagonal(a, 0, 1, 1),
    lambda np, a, s: np.diagonal(a).flags.writeable,
    lambda np, a, s: np.diag(a),
    lambda np, a, s: np.diag(a, s),
    lambda np, a, s: np.trace(a),
    lambda np, a, s: a.trace(s),
    lambda np, a, s: np.trace(a, s, -1, 0),
    lambda np, a, s: np.nonzero(a),
    lambda np, a, s: a.nonzero(),
    lambda np, a, s: np.flatnonzero(a),
    lambda np, a, s: np.count_nonzero(a),
    lambda np, a, s: np.where(a),
    lambda np, a, s: np.cumprod(a),
    lambda np, a, s: a.cumprod(axis=-1),
    lambda np, a, s: a.argmax(0),
    lambda np, a, s: np.argmin(a, axis=-1),
    lambda np, a, s: a.argmax(axis=s),
    lambda np, a, s: a.argsort(),
    lambda np, a, s: np.repeat(a, 2, axis=0),
    lambda np, a, s: np.lexsort((a, a)),
    lambda np, a, s: a.tobytes(),
    lambda np, a, s: str(a.tolist()),
    lambda np, a, s: a.real,
    lambda np, a, s: a.imag,
    lambda np, a, s: np.einsum("ij,ij->i", a, a),
    lambda np, a, s: np.einsum("ij,kj", a, a, optimize=True),
    lambda np, a, s: np.einsum("ij->j", a),
    lambda np, a, s: np.einsum("ij->ji", a),
    lambda np, a, s: np.einsum("i,j->ij", a, a),
    lambda np, a, s: np.einsum("...,...", a, a),
    lambda np, a, s: numpy.array(2, a.dtype) * a,
    lambda np, a, s: a + numpy.array(3, "i2"),
    lambda np, a, s: numpy.float32(1.5) < a,
    lambda np, a, s: np.add(a, numpy.array(True)),
    lambda np, a, s: a ** 2,
    lambda np, a, s: a ** (s + 2),
    lambda np, a, s: 2 ** a,
    lambda np, a, s: np.power(a, a),
    lambda np, a, s: a * [2] * a.shape[-1],
    lambda np, a, s: a + [0.5, 1],
    lambda np, a, s: (1, 2, 3) - a,
    lambda np, a, s: a < [1],
    lambda np, a, s: (np.fill_diagonal(a, s), a)[1],
    lambda np, a, s: (np.fill_diagonal(a, 0.5), a)[1],
    lambda np, a, s: np.array(s) * a,
    lambda np, a, s: np.array(1.5),
    lambda np, a, s: np.empty(a.shape, a.dtype).shape,
    lambda np, a, s: np.empty_like(a).dtype,
]  # fmt: skip


def _outcome(work):
    try:
        return work()
    except Exception as error:
        return type(error)


def _is_same(mine, expected):
    if isinstance(expected, tuple):
        return isinstance(mine, tuple) and len(mine) == len(expected) and all(map(_is_same, mine, expected))
    if not isinstance(expected, (numpy.ndarray, numpy.generic)):
        return mine == expected
    # A result without dimensions that is recorded is an array until it is read.
    if isinstance(expected, numpy.ndarray) and not isinstance(mine, bh.ndarray):
        return False
    mine = numpy.asarray(mine)
    return mine.dtype == expected.dtype and mine.shape == expected.shape and numpy.array_equal(mine, expected, equal_nan=mine.dtype.kind in "fc")


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("seed", range(6))
def test_calls_on_little_arrays_give_what_numpy_gives_with_the_native_calls_and_without(seed, kind):
    """Parts, other orders, arrays that the recorder has taken over, and elements that are not numbers."""
    rng = random.Random(f"{seed} {kind}")
    for _ in range(4):
        shape = [rng.randrange(1, 5) for _ in range(rng.randrange(1, 4))]
        whole = numpy.array([rng.randrange(-2, 3) for _ in range(numpy.prod(shape))]).reshape(shape).astype(kind)
        if kind in ("f8", "f4") and rng.random() < 0.3:
            whole.flat[0] = rng.choice([numpy.nan, -0.0, numpy.inf])
        cut = rng.choice([lambda x: x, lambda x: x.T, lambda x: x[::-1], lambda x: x[..., ::2], lambda x: x[1:], lambda x: x * 1, lambda x: x[None]])
        offset = rng.randrange(-2, 3)
        for call in CALLS:
            with numpy.errstate(all="ignore"):
                expected = _outcome(lambda: call(numpy, cut(whole.copy()), offset))
                for taken in (True, False):
                    before = _native.set_shortcuts(taken)
                    try:
                        array = bh.array(whole)
                        if rng.random() < 0.3:
                            known(array)
                        mine = _outcome(lambda: call(bh, cut(array), offset))
                    finally:
                        _native.set_shortcuts(before)
                    where = CALLS.index(call), whole, offset, taken, mine, expected
                    assert _is_same(mine, expected) or mine is bh.FallbackError, where


def test_variances_of_little_arrays_have_the_bits_of_the_composition():
    rng = numpy.random.default_rng(5)
    for shape, axis, ddof in [((7,), None, 1), ((4, 5), 0, 1), ((4, 5), 1, 2), ((4, 5), None, 0), ((2, 3, 4), (0, 2), 1), ((3,), 0, 3), ((1, 4), 0, 1)]:
        host = rng.random(shape)
        for name in ("var", "std"):
            results = []
            for taken in (True, False):
                before = _native.set_shortcuts(taken)
                try:
                    with numpy.errstate(all="ignore"), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        results.append(numpy.asarray(getattr(bh, name)(bh.array(host), axis=axis, ddof=ddof)))
                        expected = getattr(numpy, name)(host, axis=axis, ddof=ddof)
                finally:
                    _native.set_shortcuts(before)
            assert results[0].tobytes() == results[1].tobytes()
            numpy.testing.assert_allclose(results[0], expected, rtol=1e-13)


def test_views_of_little_arrays_are_views_of_their_memory():
    a = bh.array(numpy.arange(9.0).reshape(3, 3))
    diagonal, moved, same = a.diagonal(), bh.einsum("ii->i", a), a.real
    a[1, 1] = 50.0
    assert diagonal[1] == 50.0 and moved[1] == 50.0 and same is a and diagonal.base is a
    with pytest.raises(ValueError, match="read-only"):
        diagonal[0] = 1.0
    moved[2] = 7.0
    a.real = bh.ones((3, 3)) * 2
    assert a[2, 2] == 2.0 and diagonal.sum() == 6.0
    c = bh.array(numpy.array([1 + 2j, 3 - 1j]))
    c.real += 1.0
    assert c.tolist() == [2 + 2j, 4 - 1j] and c.real.base is c
