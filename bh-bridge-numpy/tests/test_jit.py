"""bh.jit: calls give what the plain function gives, whatever changes between them, or say why they cannot."""

import itertools
import math
import random
import threading

import numpy
import pytest

import bh
import bh as np


def same(left, right):
    """Equal to the last bit, in types and shapes too."""
    if isinstance(left, (tuple, list)):
        assert type(left) is type(right) and len(left) == len(right)
        return all(same(a, b) for a, b in zip(left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[name], right[name]) for name in left)
    left, right = numpy.asarray(left), numpy.asarray(right)
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


def numbers(*shape, seed=0, dtype=None):
    values = numpy.random.default_rng(seed).uniform(0.5, 2, shape)
    return np.array(values if dtype is None else values.astype(dtype))


def test_later_calls_run_no_python():
    calls = itertools.count()

    @bh.jit(static="calls")
    def f(a, b):
        next(calls)
        return a * 2 + b

    for n in range(5):
        a, b = numbers(3000, seed=n), numbers(3000, seed=n + 10)
        assert same(f(a, b), numpy.asarray(a) * 2 + numpy.asarray(b))
    assert (next(calls), f.traces) == (1, 1)


@pytest.mark.parametrize("n", [1, 5, 100, 3000, 20000])
def test_results_are_as_of_plain_calls(n):
    def f(a, b):
        c = np.where(a > b, a, b)
        return c.sum(), (c * a)[1:], {"least": np.minimum(a, b), "all": [c, a]}

    jitted = bh.jit(f)
    for seed in range(4):
        a, b = numbers(n, seed=seed), numbers(n, seed=seed + 9)
        mine, plain = jitted(a, b), f(a, b)
        assert mine[2]["all"][1] is a
        assert same(mine, plain)
    assert jitted.traces == 1


@pytest.mark.parametrize("n", [4, 300, 5000])
def test_arguments_are_written(n):
    def f(u, v):
        u[1:-1] += 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])
        v[...] = u
        v *= 2

    jitted = bh.jit(f)
    u, v, w, x = numbers(n), numbers(n), numbers(n), numbers(n)
    for _ in range(4):
        jitted(u, v), f(w, x)
        assert same(u, w) and same(v, x)
    assert jitted.traces == 1


def test_what_differs_is_recorded_anew():
    f = bh.jit(lambda a, b: a + b)
    a, b = numbers(3000), numbers(3000, seed=1)
    cases = [(a, b), (a[:100], b[:100]), (a[::2], b[::2]), (a.reshape(30, 100), b[:100]), (a.astype("f4"), b), (a, 2.0), (a, 3.0)]
    cases += [(a, 2), (a, True), (a, a), (a[1:], a[:-1]), (a[::-1], b), (a.reshape(30, 100).T, 1.0), (a, -0.0), (a, 0.0)]
    for number, (left, right) in enumerate(cases):
        for _ in range(2):
            assert same(f(left, right), left + right)
        assert f.traces == number + 1


def test_rows_share_a_recording():
    f = bh.jit(lambda row, total: total + row * row)
    a, total = numbers(50, 700), np.zeros(700)
    expected = total
    for row in a:
        total, expected = f(row, total), expected + row * row
    assert same(total, expected)
    assert f.traces == 1


def test_shared_memory_counts():
    def f(a, b):
        a += b
        return a * b

    jitted = bh.jit(f)
    base, other = numbers(3001), numbers(3001)
    for work, x in ((jitted, base), (f, other)):
        work(x[:-1], x[1:]), work(x[1:], x[:-1]), work(x, x), work(x[:-1], numbers(3000, seed=3)), work(x[1:], x[:-1])
    assert same(base, other)


SCALE, OTHER = 2.0, 5
TABLE = None
MIXED = [1.0, 2.0]


def _helper(a):
    return a * SCALE


def test_globals_and_closures_are_looked_at(monkeypatch):
    factor, offset = 3.0, numbers(3000, seed=5)

    @bh.jit
    def f(a):
        return _helper(a) * factor + offset + TABLE + MIXED[0]

    a = numbers(3000)
    monkeypatch.setitem(globals(), "TABLE", numbers(3000, seed=6))
    plain = lambda: a * SCALE * factor + offset + TABLE + MIXED[0]
    assert same(f(a), plain()) and same(f(a), plain())
    assert f.traces == 1
    offset = numbers(3000, seed=7)
    assert same(f(a), plain()) and f.traces == 1
    offset += 1
    assert same(f(a), plain()) and f.traces == 1
    monkeypatch.setitem(globals(), "TABLE", numbers(3000, seed=8))
    assert same(f(a), plain()) and f.traces == 1
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert same(f(a), plain()) and f.traces == 2
    factor = 4.0
    assert same(f(a), plain()) and f.traces == 3
    monkeypatch.setitem(globals(), "_helper", lambda a: a + OTHER)
    assert same(f(a), (a + OTHER) * factor + offset + TABLE + MIXED[0]) and f.traces == 4
    monkeypatch.setitem(globals(), "OTHER", 8)
    assert same(f(a), (a + 8) * factor + offset + TABLE + MIXED[0]) and f.traces == 5
    MIXED[0] = 7.0
    try:
        assert same(f(a), (a + 8) * factor + offset + TABLE + MIXED[0]) and f.traces == 6
    finally:
        MIXED[0] = 1.0
    monkeypatch.setitem(globals(), "OTHER", numbers(3000, seed=9))
    assert same(f(a), (a + OTHER) * factor + offset + TABLE + MIXED[0]) and f.traces == 7


def test_names_that_are_there_later():
    f = bh.jit(lambda a: a * (LATER or 2.0) if "LATER" in NAMES else abs(a) + len([1, 2]))
    a = numbers(3000)
    assert same(f(a), a + 2)
    globals()["LATER"] = None
    assert same(f(a), a + 2)
    globals()["LATER"] = 3.0
    NAMES.append("LATER")
    try:
        assert same(f(a), a * 3.0)
        globals()["LATER"] = 4.0
        assert same(f(a), a * 4.0)
        globals()["len"] = lambda values: 7
        NAMES.clear()
        assert same(f(a), a + 7)
    finally:
        for name in ("len", "LATER"):
            globals().pop(name, None)


NAMES = []


class Config:
    def __init__(self):
        self.dt = 0.5

    def scaled(self, a):
        return a * self.dt


CONFIG = Config()


def test_attributes_of_globals_are_looked_at(monkeypatch):
    f = bh.jit(lambda a: a * CONFIG.dt)
    a = numbers(3000)
    assert same(f(a), a * 0.5)
    monkeypatch.setattr(CONFIG, "dt", 0.25)
    assert same(f(a), a * 0.25)
    scaled, static = bh.jit(lambda a: CONFIG.scaled(a)), bh.jit(lambda a: CONFIG.scaled(a), static="CONFIG")
    for call in range(3):
        assert same(scaled(a), a * 0.25) and same(static(a), a * 0.25)
    assert (scaled.traces, scaled.plain) == (1, 0)
    monkeypatch.setattr(CONFIG, "dt", 4.0)
    assert same(scaled(a), a * 4.0) and same(static(a), a * 0.25)


def test_methods():
    class Model:
        def __init__(self, factor):
            self.factor = factor

        @bh.jit(static="self")
        def step(self, a):
            return a * self.factor

    a = numbers(3000)
    for model in (Model(2.0), Model(3.0), Model(2.0)):
        assert same(model.step(a), a * model.factor)
        assert same(model.step(a), a * model.factor)
    with pytest.raises(TypeError, match="static"):
        bh.jit(lambda self, a: a)(Model(1.0), a)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_traced_numbers_may_change(dtype):
    def f(a, dt, n=3):
        h = dt * 0.5
        return a * h - (dt - 1) / (h + 4) + a / dt + n * a, h, -dt

    jitted = bh.jit(f, traced=("dt", "n"))
    a = numbers(3000, dtype=dtype)
    for dt in (0.5, 0.25, 1e-3, 7.0):
        for n in (3, 4, -2):
            assert same(jitted(a, dt, n=n), f(a, dt, n=n))
    assert jitted.traces == 1
    for dt in (numpy.float32(0.5), numpy.float64(0.125), 3):
        assert same(jitted(a, dt, n=1), f(a, dt, n=1))
        assert same(jitted(a, dt + 1, n=1), f(a, dt + 1, n=1))
    assert jitted.traces == 4


def test_traced_numbers_that_do_not_fit_raise():
    f = bh.jit(lambda a, n: a + n, traced="n")
    a = np.arange(70_000).astype("u1")
    assert same(f(a, 3), a + 3)
    assert same(f(a, 200), a + 200)
    with pytest.raises(OverflowError):
        f(a, 300)
    for wrong in (True, 1j, "a", a):
        with pytest.raises(TypeError, match="real number"):
            f(a, wrong)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "use",
    [
        lambda a, n: a if n > 0 else -a,
        lambda a, n: a * math.sqrt(n),
        lambda a, n: a * float(n),
        lambda a, n: a[int(n) :],
        lambda a, n: a**n,
        lambda a, n: a * [1, 2][n],
        lambda a, n: np.zeros(n) + a,
        lambda a, n: a * float(f"{n}"),
    ],
)
def test_traced_numbers_decide_nothing(use):
    with pytest.raises((TypeError, ValueError, bh.Error)):
        bh.jit(use, traced="n")(numbers(3000), 2)


KEPT = Config()


@pytest.mark.parametrize(
    "work, text",
    [
        (lambda a: a * float(a[0]), "reads"),
        (lambda a: a if a.sum() > 0 else -a, "reads"),
        (lambda a: a + np.random.random(3000), "random"),
        (lambda a: [bh.flush(), a][1], "waits"),
        (lambda a: a + len(np.nonzero(a > 1)[0]), "reads"),
        (lambda a: (setattr(KEPT, "last", a * 2), a + 1)[1], "keeps"),
        (lambda a: a + numpy.asarray(a).sum(), "waits"),
    ],
)
def test_what_would_not_be_repeated_is_refused(work, text):
    a = numbers(3000)
    with pytest.raises(Exception, match=text) as raised:
        bh.jit(work, static="KEPT")(a)
    assert isinstance(raised.value, (bh.Error, TypeError))
    # Nothing stays behind.
    assert same(a + 1, numpy.asarray(a) + 1)
    assert same(bh.jit(lambda a: a * 3)(a), a * 3)


@pytest.mark.parametrize(
    "work, value, traced",
    [(lambda a: a if a.sum() > 0 else -a, numbers(3000), ()), (lambda a: a if a > 0 else -a, numbers(3), ()), (lambda n: n if n > 0 else -n, 2.5, "n")],
)
def test_branches_on_values_get_a_note_that_names_where(work, value, traced):
    with pytest.raises((bh.Error, TypeError, ValueError)) as raised:
        bh.jit(work, traced=traced)(value)
    assert [note for note in raised.value.__notes__ if "np.where(condition, a, b)" in note] == raised.value.__notes__


def test_arrays_that_the_function_does_not_name_are_refused():
    hidden = {"array": numbers(3000, seed=2)}
    get = hidden.get
    with pytest.raises(bh.Error, match="test_jit.py.*neither an argument"):
        bh.jit(lambda a, get: a + get("array"), static="get")(numbers(3000), get)


def test_other_classes_are_refused():
    with pytest.raises(TypeError, match="array of NumPy"):
        bh.jit(lambda a: a + 1)(numpy.ones(3))
    with pytest.raises(TypeError, match="class object"):
        bh.jit(lambda a, b: a + 1)(numbers(3), object())
    with pytest.raises(TypeError, match="class set"):
        bh.jit(lambda a: {1, 2})(numbers(3))
    with pytest.raises(TypeError, match="written in Python"):
        bh.jit(len)
    with pytest.raises(TypeError, match="no argument"):
        bh.jit(lambda a: a, traced="b")


def test_calls_that_change_what_they_read_are_run_as_usual():
    def f(a, found):
        found.append(a * 2)
        return a

    def g(a):
        a.shape = (30, 100)
        return a * 2

    def h(a):
        CONFIG.last = a * CONFIG.dt
        return a

    for function in (f, g, h):
        jitted, a = bh.jit(function), numbers(3000)
        given = [a, []] if function is f else [a]
        with pytest.warns(RuntimeWarning, match="changes during its calls"):
            for call in range(5):
                a.shape = 3000
                jitted(*given)
        assert jitted.traces == 0
        assert function is not f or len(given[1]) == 5 and all(same(kept, a * 2) for kept in given[1])
    assert same(CONFIG.last, numbers(3000) * CONFIG.dt)


def test_a_failing_function_leaves_nothing_behind():
    def f(a, fail):
        a += 1
        if fail:
            raise KeyError("mine")
        return a * 2

    jitted = bh.jit(f)
    a = numbers(3000)
    before = numpy.array(a)
    with pytest.raises(KeyError, match="mine"):
        jitted(a, True)
    assert same(a, before + 1)
    assert same(jitted(a, False), (before + 2) * 2)
    assert same(jitted(a, False), (before + 3) * 2)


def test_failing_operations_lose_what_depends_on_them():
    f = bh.jit(lambda a, i: (a[i], a * 2))
    a, fine, wrong = numbers(30_000), np.arange(30_000), np.arange(30_000) + 1
    for _ in range(2):
        assert same(f(a, fine), (a[fine], a * 2))
        bad, good = f(a, wrong)
        with pytest.warns(RuntimeWarning):
            assert same(good, a * 2)
        with pytest.raises(IndexError):
            numpy.asarray(bad)


def test_constant_data():
    def f(a):
        weights = np.array([0.25, 0.5, 0.25])
        weights *= 2
        weights[0] += 1
        picked = a[np.array([0, 5, 7])] + a[[1, 2, 3]]
        return a[:3] * weights + picked, weights, np.eye(3), np.linspace(0, 1, 5), np.zeros(()) + 2

    jitted = bh.jit(f)
    for seed in range(4):
        a = numbers(3000, seed=seed)
        results, plain = jitted(a), f(a)
        assert same(results, plain)
        results[1][...] = -1
    assert jitted.traces == 1


def test_linear_algebra():
    def f(a, b):
        return a @ b, np.sort(b, axis=0), np.fft.fft(b[0]), np.linalg.solve(a + 60 * np.eye(60), b)

    jitted = bh.jit(f)
    for seed in range(3):
        a, b = numbers(60, 60, seed=seed), numbers(60, 60, seed=seed + 5)
        (*mine, solution), (*expected, other) = jitted(a, b), f(a, b)
        assert same(tuple(mine), tuple(expected))
        # By a method of the stack and by LAPACK.
        assert np.allclose(solution, other, rtol=1e-13, atol=1e-15)
    assert jitted.traces == 1


def test_nested_functions_are_part_of_the_outer_one():
    inner = bh.jit(lambda a: a * SCALE)
    outer = bh.jit(lambda a: inner(a) + inner(a + 1))
    for seed in range(3):
        a = numbers(3000, seed=seed)
        assert same(outer(a), a * SCALE + (a + 1) * SCALE)
    assert (outer.traces, inner.traces) == (1, 0)


def test_arguments_by_name_and_in_collections():
    def f(pair, *, options, scale=2.0):
        return pair[0] * scale + pair[1] + options["offset"] * options["times"]

    jitted = bh.jit(f)
    for seed in range(3):
        a, b, c = (numbers(3000, seed=seed + k) for k in range(3))
        for options in ({"offset": c, "times": 2}, {"times": 3, "offset": c}):
            assert same(jitted((a, b), options=options), f((a, b), options=options))
            assert same(jitted([a, b], options=options, scale=3.0), f([a, b], options=options, scale=3.0))
    assert jitted.traces == 4


def test_no_arrays_at_all():
    f = bh.jit(lambda n: np.arange(n) * 2.0)
    for n in (10, 30_000, 10, 30_000):
        assert same(f(n), np.arange(n) * 2.0)
    assert f.traces == 2


def test_memory_shared_with_the_program_is_not_recorded():
    memory = numpy.arange(30_000.0)
    f = bh.jit(lambda a: a * 2)
    a = np.asarray(memory)
    first = f(a)
    assert same(first, memory * 2)
    view = numpy.asarray(a)
    assert same(f(a), view * 2)


def test_results_are_arrays_of_their_own():
    f = bh.jit(lambda a: (a * 2, a[1:], a.T))
    a = numbers(30_000)
    first, second = f(a), f(a)
    first[0][...] = 0
    assert same(second[0], a * 2)
    second[1][...] = 5
    assert same(a[1:], numpy.full(29_999, 5.0)) and second[1].base is a
    assert same(f(a)[0], a * 2)


def test_values_at_hand_are_seen():
    """Small arrays change at once between calls."""
    f = bh.jit(lambda a, s: (a + s, (a * s).sum()))
    a, s = np.array([1.0, 2.0, 3.0]), np.array(2.0)
    for step in range(5):
        assert same(f(a, s), (a + s, (a * s).sum()))
        a[step % 3] = 10 + step
        s[...] = step
        if step == 2:
            float(a[0])


def test_threads():
    f = bh.jit(lambda a, b: a * b + 1)
    failures = []

    def work(seed):
        for n in range(30):
            a, b = numbers(2000 + 100 * (n % 3), seed=seed + n), numbers(2000 + 100 * (n % 3), seed=n)
            if not same(f(a, b), numpy.asarray(a) * numpy.asarray(b) + 1):
                failures.append((seed, n))

    f(numbers(2000), numbers(2000)), f(numbers(2100), numbers(2100)), f(numbers(2200), numbers(2200))
    threads = [threading.Thread(target=work, args=(100 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and f.traces == 3


def random_function(seed):
    """A function of two arrays and a number, and another one made alike."""
    choose = random.Random(seed)
    statements = []
    names = ["a", "b"]
    for number in range(choose.randint(2, 12)):
        x, y = choose.choice(names), choose.choice(names)
        new = f"t{number}"
        kind = choose.randrange(12)
        line = [
            f"{new} = {x} + {y}",
            f"{new} = {x} * {choose.choice([0.5, 2, 3.25])} - {y}",
            f"{new} = np.where({x} > {y}, {x}, {y} * 2)",
            f"{new} = {x} * dt + {y} / (dt + 3)",
            f"{x}[2:-1] += {y}[1:-2]",
            f"{x}[::2] = {y}[1::2] * {choose.choice(['dt', '2.0'])}",
            f"{new} = {x}[::-1] + {y}",
            f"{new} = {x} + {y}.sum()",
            f"{new} = np.cumsum({x}) * 1e-3 + {y}",
            f"{new} = np.roll({x}, {choose.randint(-3, 3)}) * {y}",
            f"{new} = np.sqrt(np.abs({x})) + np.array([1.0, 2.0])[{choose.randint(0, 1)}]",
            f"{new} = {x}.reshape(2, -1).T.reshape(-1) + {y}.mean()",
        ][kind]
        statements.append(line)
        if line.startswith(new):
            names.append(new)
    results = ", ".join(choose.sample(names, min(len(names), choose.randint(1, 3))))
    source = f"def f(a, b, dt):\n    " + "\n    ".join(statements) + f"\n    return {results},\n"
    made = []
    for _ in range(2):
        scope = {"np": np}
        exec(source, scope)
        made.append(scope["f"])
    return source, made


@pytest.mark.parametrize("seed", range(60))
def test_random_functions(seed):
    source, (jitted, plain) = random_function(seed)
    choose = random.Random(seed)
    jitted = bh.jit(jitted, traced="dt")
    n = choose.choice([4, 10, 100, 1200, 4000])
    for call in range(5):
        whole, other = numbers(3 * n, seed=call), numbers(3 * n, seed=call)
        form = choose.randrange(4)
        pairs = []
        for base in (whole, other):
            a = [base[:n], base[n : 2 * n], base[: 2 * n : 2], base[:n]][form]
            pairs.append((a, [base[n : 2 * n], base[: n], base[1 : 2 * n : 2], numbers(n, seed=7)][form]))
        dt = choose.choice([0.5, 0.125, 2.0])
        mine, expected = jitted(*pairs[0], dt), plain(*pairs[1], dt)
        assert same(mine, expected), source
        assert same(whole, other), source


class Keeper:
    """Has what a traced function keeps."""

    number = None


@pytest.mark.parametrize("made", [lambda dt: dt, lambda dt: dt * 2])
@pytest.mark.parametrize(
    "use",
    [
        lambda u, dt: u * dt, lambda u, dt: dt / u, lambda u, dt: np.add(u, dt), lambda u, dt: u.fill(dt),
        lambda u, dt: u.__setitem__(0, dt), lambda u, dt: u.__iadd__(dt), lambda u, dt: np.full(3, dt), lambda u, dt: np.array([dt]),
        lambda u, dt: dt * 2, lambda u, dt: -dt,
        lambda u, dt: float(dt), lambda u, dt: dt > 1, lambda u, dt: f"{dt}",
    ],
)  # fmt: skip
def test_a_traced_number_ends_with_its_trace(made, use):
    keeper = Keeper()

    @bh.jit(traced="dt", static="keeper")
    def kept(u, dt):
        keeper.number = made(dt)
        return u * dt

    @bh.jit(traced="dt", static=("keeper", "use"))
    def used(u, dt):
        return use(u, keeper.number)

    u = numbers(100)
    kept(u, 2.0)
    with pytest.raises(TypeError, match="outside of the call"):
        use(u, keeper.number)
    with pytest.raises(TypeError, match="outside of the call"):
        used(u, 2.0)
    assert same(kept(u, 3.0), numpy.asarray(u) * 3.0)


def test_a_traced_number_of_another_call_is_no_result():
    keeper = Keeper()

    @bh.jit(traced="dt", static="keeper")
    def f(u, dt):
        kept, keeper.number = keeper.number, dt
        return u if kept is None else (u, kept)

    u = numbers(10)
    f(u, 2.0)
    with pytest.raises(TypeError, match="outside of the call"):
        f(numbers(20), 2.0)


def test_a_traced_number_belongs_to_the_thread_of_its_call():
    keeper = Keeper()

    @bh.jit(traced="dt", static="keeper")
    def f(u, dt):
        def other():
            try:
                keeper.number = dt * 2
            except TypeError as error:
                keeper.number = error

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return u * dt

    f(numbers(10), 2.0)
    assert isinstance(keeper.number, TypeError)
