"""Random programs: `vmap` of gradients and gradients of `vmap` against gradients of one member after the other."""

import numpy
import pytest

import bh
import bh as np

MEMBERS, LENGTH = 3, 7
MATRIX = numpy.random.default_rng(5).uniform(-0.4, 0.4, (LENGTH, LENGTH))


def sine(u, v, k):
    return np.sin(u) * v + k, v


def shifted(u, v, k):
    u[1:] += 0.3 * v[:-1] * u[1:]
    return u, v


def relaxed(u, v, k):
    for _ in range(4):
        u[1:-1] += k * (u[2:] - 2 * u[1:-1] + u[:-2]) * v[1:-1]
    return u, v


def backward(u, v, k):
    u[::-1] *= v
    return v, u


def masked(u, v, k):
    v[u > k] = 0.25
    return u, v


def chosen(u, v, k):
    return np.where(u > v, u * v, k - v), u


def into(u, v, k):
    np.multiply(u, np.exp(-v), out=u)
    return u, v + u


def summed(u, v, k):
    return np.cumsum(u) / LENGTH, v - u.mean()


def ordered(u, v, k):
    return np.sort(u)[::-1] * k, v


def largest(u, v, k):
    u[2:5] /= 1.5 + np.abs(v).max()
    return u, v


def product(u, v, k):
    return np.array(MATRIX) @ u, v * u


def taken(u, v, k):
    return np.take(v, [3, 0, 0, 6, 2, 1, 5]) + k, u


def viewed(u, v, k):
    part = u[::2]
    part -= k * v[:4] ** 2
    return u, v


def scattered(u, v, k):
    v[[5, 1, 3]] = u[:3] * k
    return v, u


STEPS = [sine, shifted, relaxed, backward, masked, chosen, into, summed, ordered, largest, product, taken, viewed, scattered]


def random_program(rng, turns):
    """A function of two arrays that repeats random steps, and their names."""
    steps = [(STEPS[at], float(rng.uniform(0.1, 0.5))) for at in rng.integers(len(STEPS), size=rng.integers(2, 8))]

    def program(u, v):
        # The program may write into its arguments, but not into an array that members have in common.
        v = v * 1.0
        for _ in range(turns):
            for step, k in steps:
                u, v = step(u, v, k)
            # All numbers stay finite.
            u, v = np.tanh(u), np.tanh(v)
        return (u * u + np.sin(v)).sum()

    return program, [step.__name__ for step, _ in steps]


@pytest.mark.parametrize("first", range(0, 640, 64))
def test_gradients_of_random_programs_for_many_members(first):
    for seed in range(first, first + 64):
        rng = numpy.random.default_rng(seed)
        program, names = random_program(rng, 1)
        u, v = rng.uniform(0.2, 0.9, (2, MEMBERS, LENGTH))
        common = bool(rng.integers(2))
        axes = (0, None) if common else (0, 0)
        given = lambda: (np.array(u), np.array(v[0] if common else v))
        own = [bh.grad(program, (0, 1))(np.array(u[m]), np.array(v[0] if common else v[m])) for m in range(MEMBERS)]
        expected = [numpy.stack([numpy.asarray(found[at]) for found in own]) for at in (0, 1)]
        # An array in common keeps one gradient a member inside, and their sum outside.
        inside = bh.vmap(bh.grad(program, (0, 1)), axes)(*given())
        outside = bh.grad(lambda *arrays: bh.vmap(program, axes)(*arrays).sum(), (0, 1))(*given())
        for at in (0, 1):
            numpy.testing.assert_allclose(inside[at], expected[at], rtol=1e-9, atol=1e-11, err_msg=f"{seed} {names}")
            total = expected[at].sum(axis=0) if common and at == 1 else expected[at]
            numpy.testing.assert_allclose(outside[at], total, rtol=1e-9, atol=1e-11, err_msg=f"{seed} {names}")
