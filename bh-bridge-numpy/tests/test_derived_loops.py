"""Derivatives of grids' shifted boxes, added in one pass, and of loops over elements: both against the plain ways."""

import numpy
import pytest
from test_derivatives import check, values

import bh
import bh as np


def waves(u, k):
    for _ in range(3):
        u[1:-1, 1:-1] += k[1:-1, 1:-1] * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return u


def relaxed(u, k):
    for _ in range(3):
        u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]) - k[1:-1, 1:-1]
    return u * k


def skewed(u, k):
    for _ in range(2):
        new = u.copy()
        new[2:-1, :-3] -= 0.1 * u[2:-1, :-3] * (u[3:, 1:-2] - u[:-3, 3:]) + k.T[2:-1, :-3] * u[1:-2, :-3]
        new[0], new[:, -1] = new[1], u[:, 0] * 2
        u = new
    return u[::-1] + u.T


def staggered(h, u):
    for _ in range(3):
        u[:, 1:] -= 0.1 * (h[:, 1:] - h[:, :-1])
        h[:, :-1] -= 0.1 * (u[:, 1:] - u[:, :-1]) * h[:, :-1]
    return h.sum(axis=0) * u


def windowed(u, k):
    return np.lib.stride_tricks.sliding_window_view(u, (3, 3)).mean(axis=(2, 3)) * k[1:-1, 1:-1] + np.diff(u, axis=1)[1:-1, 1:] ** 2


@pytest.mark.parametrize("function", [waves, relaxed, skewed, staggered, windowed])
@pytest.mark.parametrize("dtype", [numpy.float64, numpy.float32, numpy.complex128])
def test_shifted_boxes_of_grids_in_one_pass(monkeypatch, function, dtype):
    u, k = (values((190, 190), seed=seed).astype(dtype) for seed in (1, 2))
    weights = values((190, 190), seed=3).astype(dtype)[: len(function(np.array(u), np.array(k)))]

    def scalar(u, k):
        found = function(u, k)
        return (found * np.array(weights[: found.shape[0], : found.shape[1]])).real.sum()

    found = []
    for adjoints in ("", "boxes"):
        monkeypatch.setenv("BH_ADJOINTS", adjoints)
        found.append(bh.grad(scalar, (0, 1))(np.array(u), np.array(k)))
    for gathered, added in zip(*found):
        numpy.testing.assert_allclose(gathered, added, rtol=1e-4 if dtype == numpy.float32 else 1e-12, atol=1e-5 if dtype == numpy.float32 else 1e-12)


def test_shifted_boxes_of_lines_and_spaces():
    def line(u):
        for _ in range(3):
            u[2:-2] += 0.1 * (u[4:] - 4 * u[3:-1] + 6 * u[2:-2] - 4 * u[1:-3] + u[:-4]) * u[2:-2]
        return u

    def space(u):
        inner = (slice(1, -1),) * 3
        u[inner] += 0.1 * (u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 1:-1, 2:] * u[1:-1, 1:-1, :-2])
        return u

    check(line, values((40000,)), rtol=1e-5)
    check(space, values((35, 36, 37)), rtol=1e-5)


def sweeps(u, k):
    for i in range(1, 7):
        for j in range(1, 7):
            u[i, j] += u[i, j - 1] - 0.5 * u[i - 1, j]
            u[i, j] /= 3.0
            u[i, j] *= k[i, j]
    return u


def substituted(u, k):
    x = np.zeros(8)
    for i in range(8):
        x[i] = (k[i, 0] - u[i, :i] @ x[:i]) / (2 + u[i, i])
        k[i, 0] = x[i]
    return x


def recurrences(u, k):
    last, total = u[0, 0], 0.0
    for i in range(1, 8):
        kept = u[i, i]
        u[i, i] = kept * last + k[i, 0] * k[i, 0]
        total += bh.stop_gradient(u[i, i]) * kept
        last = u[i, i] - u[i - 1, i - 1] + kept
    return u * total


@pytest.mark.parametrize("function", [sweeps, substituted, recurrences])
def test_loops_over_elements(monkeypatch, function):
    u, k = values((8, 8), seed=1), values((8, 8), seed=2)
    # Zeros in the way back, whose signs must not differ either.
    weights = values((8, 8), seed=3) * (numpy.arange(8) % 3 > 0)

    def scalar(u, k):
        found = function(u, k)
        return (found * np.array(weights[0] if found.ndim == 1 else weights)).sum()

    found = []
    for tape, memory in ("all", None), ("", None), ("", 6000), ("all", 6000):
        monkeypatch.setenv("BH_TAPE", tape)
        parts = bh.grad(scalar, (0, 1), memory=memory)(np.array(u), np.array(k))
        found.append([numpy.asarray(part) + 0.0 for part in parts])
    for others in found[1:]:
        assert [part.tobytes() for part in others] == [part.tobytes() for part in found[0]]
    if function is not recurrences:
        check(lambda u: function(u, np.array(k)), u, rtol=1e-5)
