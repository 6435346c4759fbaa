"""Derivatives of programs: arguments, containers, loops over batches, what may be read, rules of the program's own, errors, ranks."""

import dataclasses
import math
import os
import subprocess
import sys
import typing

import numpy
import pytest
from conftest import LIMIT
from test_derivatives import check, values

import bh
import bh as np


def jacobi(u, f):
    for _ in range(12):
        u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) + f[1:-1, 1:-1] * u[1:-1, 1:-1]
    return u * u


def heat(u, k):
    for _ in range(10):
        new = u.copy()
        new[1:-1] += 0.1 * k[1:-1] * (u[2:] - 2 * u[1:-1] + u[:-2]) * u[1:-1]
        u = new
    return u


def network(w1, w2, x):
    hidden = np.maximum(x @ w1, 0.0)
    scores = hidden @ w2
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return -np.log(scores[np.arange(len(scores)), [0, 1, 2, 0]])


def bodies(position, velocity):
    mass = np.array([1.0, 0.5, 0.25, 0.8])
    for _ in range(5):
        apart = position[None] - position[:, None]
        distance = ((apart**2).sum(axis=2) + 0.01) ** 1.5
        force = (apart * (mass[None, :, None] / distance[:, :, None])).sum(axis=1)
        velocity += 0.01 * force
        position += 0.01 * velocity
    return position


def elimination(a):
    n = len(a)
    a[range(n), range(n)] += 3.0
    for k in range(n):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k : k + 1] * a[k : k + 1, k + 1 :]
    return np.diagonal(a)


def conjugate_gradients(a, b):
    a = a @ a.T + 4.0 * np.eye(len(b))
    x, r = np.zeros_like(b), b.copy()
    p, rho = r.copy(), (r * r).sum()
    for _ in range(4):
        q = a @ p
        alpha = rho / (p * q).sum()
        x += alpha * p
        r -= alpha * q
        old, rho = rho, (r * r).sum()
        p *= rho / old
        p += r
    return x


PROGRAMS = {
    "jacobi": (jacobi, [(7, 8), (7, 8)]),
    "heat": (heat, [(12,), (12,)]),
    "network": (network, [(5, 6), (6, 3), (4, 5)]),
    "bodies": (bodies, [(4, 3), (4, 3)]),
    "elimination": (elimination, [(5, 5)]),
    "conjugate gradients": (conjugate_gradients, [(5, 5), (5,)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    function, shapes = PROGRAMS[name]
    check(function, *[values(shape, seed=at) for at, shape in enumerate(shapes)], rtol=1e-5)


def test_long_loops_over_many_batches():
    def logistic(x):
        for _ in range(3000):
            x *= 1.0005
            x -= 0.0005 * x * x
        return x

    check(logistic, values((3,)), rtol=1e-5)


def test_branches_and_masks_may_be_read():
    def function(x):
        total = x.sum() * 0
        for _ in range(5):
            if (x > 0.6).any():
                x = x * 0.8
            total += (x[: np.count_nonzero(x > 0.3)] ** 2).sum()
        return total

    check(function, values((20,)))


def test_random_numbers_are_constants():
    def function(x):
        np.random.seed(3)
        return x * np.random.random(x.shape) + np.random.default_rng(4).standard_normal(x.shape) * x**2

    check(function, values())


def test_gradients_of_arguments_that_change():
    def energy(u):
        u[1:-1] *= u[2:]
        u += 1.0
        return (u * u).sum()

    u = np.array([1.0, 2.0, 3.0])
    plain = numpy.array([1.0, 2.0, 3.0])
    assert bh.grad(energy)(u).tolist() == [4.0, 42.0, 36.0]
    assert u.tolist() == [2.0, 7.0, 4.0]
    assert bh.grad(energy)(plain).tolist() == [4.0, 42.0, 36.0]
    assert plain.tolist() == [2.0, 7.0, 4.0]


def test_arguments_that_functions_also_read_from_elsewhere():
    x = np.array([1.0, 2.0])

    def function(y):
        y *= x * x
        return (y * x).sum()

    assert bh.grad(function)(x).tolist() == [1.0, 8.0]
    assert x.tolist() == [1.0, 8.0]


class Pair(typing.NamedTuple):
    a: object
    b: object


@dataclasses.dataclass
class Model:
    weight: object
    bias: float


def test_arguments_in_containers():
    def function(given, scale):
        return given["x"].sum() * given["y"][0] * scale.a + (scale.b**2).sum()

    found = bh.grad(function, argnums=(0, 1))({"x": np.ones(3), "y": [2.0, None]}, Pair(3.0, np.arange(2.0)))
    assert found[0]["x"].tolist() == [6.0, 6.0, 6.0]
    assert (found[0]["y"], found[1].a, found[1].b.tolist()) == ([9.0, None], 6.0, [0.0, 2.0])
    found = bh.grad(lambda model: (model.weight * model.bias).sum())(Model(np.arange(3.0), 2.0))
    assert (type(found), found.weight.tolist(), found.bias) == (Model, [2.0, 2.0, 2.0], 3.0)


def test_auxiliary_values_numbers_and_types():
    (value, aux), found = bh.value_and_grad(lambda x: (x * x, {"twice": 2 * x}), has_aux=True)(3.0)
    assert (value, aux, found) == (9.0, {"twice": 6.0}, 6.0)
    assert bh.grad(lambda x, y: x * y, argnums=-1)(2.0, 5.0) == 2.0
    found = bh.grad(lambda x: (x * x).sum())(np.ones(3, dtype=np.float32))
    assert (found.dtype, found.tolist()) == (np.float32, [2.0, 2.0, 2.0])
    assert bh.grad(lambda x, y: (x * y).sum(), argnums=0)(np.ones(2), np.arange(2)).tolist() == [0.0, 1.0]
    assert bh.grad(lambda x: 1.0)(np.ones(2)).tolist() == [0.0, 0.0]
    x = np.ones(3)
    assert bh.grad(lambda y: (x * y).sum())(x).tolist() == [1.0, 1.0, 1.0]
    assert [g.tolist() for g in bh.grad(lambda y, z: (y * y * z).sum(), (0, 1))(x, x)] == [[2.0] * 3, [1.0] * 3]


def test_ways_back_may_be_taken_later_and_again():
    x = np.array([1.0, 2.0])
    scale = np.array([3.0, 4.0])

    def function(x):
        x = x * x
        x *= scale * x
        return x, x.sum()

    (value, total), back = bh.vjp(function, x)
    expected = 4 * x**3 * scale
    scale += 1.0
    value *= 0.0
    for _ in range(2):
        assert back((np.ones(2), 0.0))[0].tolist() == expected.tolist()
        assert back((np.zeros(2), 2.0))[0].tolist() == (2 * expected).tolist()
    with pytest.raises(TypeError, match="cotangent has another form"):
        back(np.ones(2))
    with pytest.raises(ValueError, match="cotangent has shape"):
        back((np.ones(3), 0.0))


def test_second_derivatives():
    def function(x):
        y = x.copy()
        y[1:] *= np.sin(y[:-1])
        y *= y
        return (y * x[::-1]).sum()

    x = values((4,))
    hessian = bh.jacobian(bh.grad(function))(np.array(x))
    numpy.testing.assert_allclose(hessian, hessian.T, rtol=1e-12)
    check(lambda x: bh.grad(function)(x), x)
    direction = np.array(values((4,), seed=9))
    numpy.testing.assert_allclose(bh.hvp(function, (np.array(x),), (direction,)), hessian @ direction, rtol=1e-12)
    third = bh.grad(lambda x: bh.grad(lambda y: bh.grad(lambda z: z**5)(y))(x))(2.0)
    assert third == 240.0
    # Arguments of the outer derivative are constants of the inner one.
    assert bh.grad(lambda x: x * bh.grad(lambda y: x * y)(1.0))(3.0) == 6.0


def test_jitted_functions_are_differentiated():
    step = bh.jit(lambda x: np.sin(x) * x)
    x = np.array(values())
    step(x), step(x)
    numpy.testing.assert_allclose(
        bh.grad(lambda x: step(step(x)).sum())(x), bh.grad(lambda x: (np.sin(np.sin(x) * x) * (np.sin(x) * x)).sum())(x)
    )


def line_of(function):
    return function.__code__.co_firstlineno + 1


def reads_float(x):
    return (x * float((x * x).sum())).sum()


def reads_item(x):
    return x.sum() * (x * x).sum().item()


def reads_math(x):
    return x.sum() * math.sqrt((x * x).sum())


def reads_asarray(x):
    return x.sum() * numpy.asarray(x * x)[0]


def reads_element(x):
    return [x.sum() * complex(x[0] * 2).real][0]


@pytest.mark.parametrize("function", [reads_float, reads_item, reads_math, reads_asarray, reads_element])
def test_reading_what_depends_on_arguments_is_an_error(function):
    with pytest.raises(bh.Error, match="stop_gradient") as caught:
        bh.grad(function)(np.ones(3))
    assert line_of(function) in [entry.lineno + 1 for entry in caught.traceback]
    # Nothing is left behind.
    assert bh.grad(lambda x: (x * x).sum())(np.ones(3)).tolist() == [2.0, 2.0, 2.0]
    assert float(np.ones(3).sum()) == 3.0


def test_what_does_not_depend_on_arguments_may_be_read():
    def function(x):
        scale = np.ones(3).sum()
        stopped = bh.stop_gradient({"r": (x * x).sum()})["r"]
        return (x * float(scale) * float(stopped)).sum() + float(np.floor(x.sum()))

    assert bh.grad(function)(np.ones(3)).tolist() == [9.0, 9.0, 9.0]
    assert bh.grad(lambda x: (x * bh.stop_gradient(x)).sum())(np.ones(3)).tolist() == [1.0, 1.0, 1.0]
    assert bh.stop_gradient(3) == 3 and bh.stop_gradient(np.ones(2)).tolist() == [1.0, 1.0]


def looped(x, y):
    total, n = 0.0, 0
    while x > 0.3 and n < 50:
        x = x * 0.7 if y > 0.5 else math.sin(x) * 0.8 + 0.1 * y**2
        total += x * y / (1 + n)
        n += 1
    return total, x


def cube_root(x):
    guess = max(x, 1.0)
    for _ in range(200):
        better = guess - (guess * guess * guess - x) / (3 * guess * guess)
        if abs(better - guess) <= 1e-15 * guess:
            break
        guess = better
    return guess


def test_functions_of_scalars_with_loops():
    step, root = bh.vectorize(looped), bh.vectorize(cube_root)
    x, y = values((4, 5), 0.5, 3.0), values((4, 5), seed=1)
    check(lambda x, y: step(x, y)[0] * step(x, y)[1], x, y, rtol=1e-5)
    check(lambda x, y: step(x[:, 1:] * y[0, 0], y[0, 1:])[0], x, y, rtol=1e-5)
    check(root, x, rtol=1e-6)
    check(lambda x: bh.grad(lambda x: root(x * x).sum())(x), x, rtol=1e-5)
    numpy.testing.assert_allclose(bh.grad(lambda x: root(x).sum())(np.array(x)), x ** (-2 / 3) / 3, rtol=1e-12)
    numpy.testing.assert_allclose(bh.vmap(bh.grad(lambda x: root(x).sum()))(np.array(x)), x ** (-2 / 3) / 3, rtol=1e-12)
    assert bh.grad(lambda x: bh.vectorize(lambda x: 0 if x < 1 else 1)(x).sum() * x.sum())(np.array([0.5, 2.0])).tolist() == [1.0, 1.0]


def looked_up(x):
    table = x * x

    @bh.vectorize
    def function(y):
        total, n = 0.0, 0
        while n < 2:
            total += y * table[n]
            n += 1
        return total

    return function(x).sum()


def test_operations_without_rules_are_errors_with_their_line():
    with pytest.raises(bh.Error, match=f"test_derived_programs.py:{looked_up.__code__.co_firstlineno + 11}: .*derivative is not known"):
        bh.grad(looked_up)(np.ones(3))


def test_functions_with_derivatives_of_their_own():
    calls = []

    @bh.custom_vjp
    def eigenvalues(a):
        return np.array(numpy.linalg.eigvalsh(numpy.asarray(a)))

    def forward(a):
        values, vectors = numpy.linalg.eigh(numpy.asarray(a))
        return np.array(values), np.array(vectors)

    def backward(vectors, g):
        calls.append(g.shape)
        return ((vectors * g) @ vectors.T,)

    with pytest.raises(AttributeError, match="defvjp"):
        eigenvalues(np.eye(2))
    eigenvalues.defvjp(forward, backward)

    def function(x):
        a = x @ x.T
        first = eigenvalues(a)
        a *= 2.0
        a += np.diag(first)
        y = eigenvalues(a)
        first *= y
        return np.sin(first) + y * y

    x = values((4, 5))
    assert eigenvalues(np.eye(2)).tolist() == [1.0, 1.0]
    weights, direction = values((4,), seed=3), values((4, 5), seed=4)
    found = bh.grad(lambda x: (function(x) * weights).sum())(np.array(x))
    assert calls == [(4,), (4,)]
    value = [float((function(np.array(x + by * direction)) * weights).sum()) for by in (1e-5, -1e-5)]
    numpy.testing.assert_allclose(numpy.sum(numpy.asarray(found) * direction), (value[0] - value[1]) / 2e-5, rtol=1e-5)


def test_parts_of_functions_with_derivatives_of_their_own():
    @bh.custom_vjp
    def scaled(given, factor):
        return {"twice": given[0] * 2.0 * factor, "count": len(given)}

    scaled.defvjp(lambda given, factor: (scaled(given, factor), factor), lambda factor, g: ((10.0 * g["twice"] * factor, None), None))
    found = bh.grad(lambda x, y: (scaled((x, y), 3.0)["twice"] * x).sum(), (0, 1))(np.array([1.0, 2.0]), np.array([5.0, 5.0]))
    assert [g.tolist() for g in found] == [[6.0 + 30.0, 12.0 + 60.0], [0.0, 0.0]]
    outside = bh.custom_vjp(lambda x: x)
    with pytest.raises(ValueError, match="not among its arguments"):

        def function(x):
            outside.defvjp(lambda z: (z * x, None), lambda rest, g: (g,))
            return outside(bh.stop_gradient(x)).sum()

        bh.grad(function)(np.ones(2))
    outside.defvjp(lambda z: (z, None), lambda rest, g: g)
    with pytest.raises(TypeError, match="tuple of 1"):
        bh.grad(lambda x: outside(x).sum())(np.ones(2))
    outside.defvjp(lambda z: (z, None), lambda rest, g: (g[:1],))
    with pytest.raises(ValueError, match="shape"):
        bh.grad(lambda x: outside(x).sum())(np.ones(2))


def test_wrong_arguments_and_results():
    with pytest.raises(TypeError, match="floating-point"):
        bh.grad(lambda x: x * 2)(3)
    with pytest.raises(TypeError, match="floating-point"):
        bh.grad(lambda x: x.sum())(np.arange(3))
    with pytest.raises(TypeError, match="one real number"):
        bh.grad(lambda x: x * 2)(np.ones(3))
    with pytest.raises(TypeError, match="one real number"):
        bh.grad(lambda x: (x, x))(1.0)
    with pytest.raises(ValueError, match="positional argument"):
        bh.grad(lambda x: x, argnums=1)(1.0)
    with pytest.raises(ZeroDivisionError):
        bh.grad(lambda x: 1 / 0)(1.0)


def test_check_grad_finds_wrong_gradients():
    assert bh.check_grad(lambda x, y: (np.sin(x) * y).sum(), np.array(values()), np.array(values()), argnums=(0, 1)) < 1e-7
    with pytest.raises(AssertionError, match="argument 0"):
        bh.check_grad(lambda x: (bh.stop_gradient(x) * x).sum(), np.array(values()))


def test_tangents_of_the_programs_own():
    @bh.custom_jvp
    def eigenvalues(a):
        return np.array(numpy.linalg.eigvalsh(numpy.asarray(a)))

    with pytest.raises(AttributeError, match="defjvp"):
        bh.grad(lambda a: eigenvalues(a).sum())(np.eye(2))

    @eigenvalues.defjvp
    def rule(primals, tangents):
        values, vectors = numpy.linalg.eigh(numpy.asarray(primals[0]))
        vectors = np.array(vectors)
        return np.array(values), np.diagonal(vectors.T @ tangents[0] @ vectors)

    assert eigenvalues(np.eye(2)).tolist() == [1.0, 1.0]
    check(lambda x: np.sin(eigenvalues(x @ x.T)) * eigenvalues(x @ x.T + x[0, 0]), values((3, 4)), rtol=1e-5)
    scaled = bh.custom_jvp(lambda given, n: given[0] * n)
    scaled.defjvp(lambda primals, tangents: (primals[0][0] * primals[1], 7.0 * tangents[0][0]))
    assert bh.grad(lambda x: scaled((x, x), 3).sum())(np.ones(2)).tolist() == [7.0, 7.0]
    value, tangent = bh.jvp(lambda x: scaled([x], 2), (np.ones(2),), (np.array([1.0, 2.0]),))
    assert (value.tolist(), tangent.tolist()) == ([2.0, 2.0], [7.0, 14.0])


@pytest.mark.filterwarnings("ignore:.*it takes derivatives")
@pytest.mark.filterwarnings("ignore:.*it calls vmap")
def test_derivatives_inside_of_jitted_functions():
    scale = np.array([2.0, 3.0])

    @bh.jit
    def slope(x):
        x *= scale
        found = bh.grad(lambda x: (x**3).sum())(x)
        x += 1.0
        return found * x

    for _ in range(3):
        x = np.array([1.0, 2.0])
        assert slope(x).tolist() == [12.0 * 3, 108.0 * 7]
        assert x.tolist() == [3.0, 7.0]
    assert (slope.traces, slope.plain) == (0, 3)
    many = bh.jit(lambda x: bh.vmap(lambda y: y.sum())(x))
    assert many(np.ones((2, 3))).tolist() == [3.0, 3.0] == many(np.ones((2, 3))).tolist()
    with pytest.raises(ZeroDivisionError):
        bh.jit(lambda x: bh.grad(lambda x: x.sum())(x) / (1 // 0))(x)
    assert bh.jit(lambda x: x + 1)(np.ones(2)).tolist() == [2.0, 2.0]


RANKS = """
[stacks]
ranks = ["filter", "cluster", "fuser", "node", "ve-cpu"]
default = "ranks"
[components.cluster]
ranks = 3
small_bytes = 16
"""


def test_derivatives_and_members_on_ranks(tmp_path):
    (tmp_path / "ranks.toml").write_text(RANKS)
    here = os.path.dirname(__file__)
    environment = {**os.environ, "BH_CONFIG": str(tmp_path / "ranks.toml"), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    chosen = "jacobi or bodies or lines_and_spaces"
    files = [os.path.join(here, f"{name}.py") for name in ("test_derived_programs", "test_derived_loops", "test_vmap")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files, "-k", chosen]
    done = subprocess.run(command, env=environment, cwd=here, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
