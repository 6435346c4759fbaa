#!/usr/bin/env python3
"""Programs whose results have the same bits everywhere with the key `reproducible`: prints a hash of the results of each.

    benches/reproducible/programs.py                   # with this machine's stack
    benches/reproducible/programs.py --stack cuda      # on a card; OpenCL's stack is `opencl`
    benches/reproducible/programs.py --compare FILE    # names the programs whose hashes differ from a file of such lines, as programs.txt

The data come from whole numbers, as NumPy's random generators use functions of the C library.
"""

import argparse
import hashlib
import os
import sys

import numpy

# Sizes within a block, of several chunks, and of many.
SIZES = (500, 9_000, 70_001)


def numbers(shape, seed=1, kind="f8"):
    """Numbers between -1 and 1 whose sums round."""
    count = int(numpy.prod(shape))
    words = (numpy.arange(1, count + 1, dtype=numpy.uint64) * 2_654_435_761 + seed * 40_503) % 1_000_003
    words = words * words % 999_983
    return (words.astype("f8") / 499_991.5 - 1).astype(kind).reshape(shape)


def sums(np, kind):
    """Sums of all axes and shapes: a function for each."""

    def of(shape, axis, name="sum"):
        return lambda: getattr(np.asarray(numbers(shape, 3, kind)), name)(axis=axis)

    shapes = {(70_001,): [None], (300, 257): [0, 1, None], (9, 1200): [0, 1], (4000, 5): [0, 1], (30, 40, 50): [0, 1, 2, (0, 2), (0, 1)]}
    for shape, axes in shapes.items():
        for axis in axes:
            yield f"sum {kind} {shape} {axis}", of(shape, axis)
    yield f"product {kind}", lambda: (1 + np.asarray(numbers((90, 400), 4, kind)) / 50).prod(axis=1)
    yield f"variance {kind}", of((600, 70), 0, "var")
    yield f"maximum {kind}", of((600, 70), 0, "max")


def functions(np, kind):
    """Functions, alone and within sums."""
    names = "exp log sin cos tan tanh sinh cosh arctan arcsin arccos expm1 log1p log2 log10 exp2 cbrt sqrt arcsinh arccosh arctanh".split()
    x = numbers((20_000,), 5, kind)

    def of(name):
        function = getattr(np, name)
        if name in ("log", "log1p", "log2", "log10", "sqrt"):
            return lambda: function(np.asarray(abs(x) * 40 + 1e-3))
        if name == "arccosh":
            return lambda: function(np.asarray(abs(x) * 9 + 1))
        return lambda: function(np.asarray(x * (0.99 if name.startswith("arc") else 9)))

    for name in names:
        yield f"{name} {kind}", of(name)
    yield f"power {kind}", lambda: np.asarray(abs(x) + 0.1) ** np.asarray(x * 7)
    yield f"sum of exp {kind}", lambda: np.exp(np.asarray(x)).sum()
    yield f"arctan2 {kind}", lambda: np.arctan2(np.asarray(x), np.asarray(x[::-1].copy()))


def softmax(np, kind):
    x = np.asarray(numbers((200, 333), 6, kind)) * 5
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def stencil(np, kind):
    grid = np.asarray(numbers((130, 150), 7, kind))
    for _ in range(5):
        grid[1:-1, 1:-1] = (grid[1:-1, 1:-1] + grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]) * 0.2
    return grid, (grid * grid).sum()


def black_scholes(np, kind):
    spot, strike = 20 + 10 * np.asarray(numbers((30_000,), 8, kind)), 22 + 9 * np.asarray(numbers((30_000,), 9, kind))
    rate, volatility, years = 0.02, 0.3, 1.5
    root = volatility * years**0.5
    d1 = (np.log(spot / strike) + (rate + volatility * volatility / 2) * years) / root

    def normal(d):
        k = 1 / (1 + 0.2316419 * np.abs(d))
        tail = 0.39894228 * np.exp(-d * d / 2) * k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * 1.330274429)))
        return np.where(d > 0, 1 - tail, tail)

    price = spot * normal(d1) - strike * float(numpy.float64(0.9704455)) * normal(d1 - root)
    return price, price.mean()


def nbody(np, kind):
    x, y, mass = (np.asarray(numbers((260,), seed, kind)) for seed in (10, 11, 12))
    dx, dy = x[:, None] - x, y[:, None] - y
    square = dx * dx + dy * dy + 0.01
    pull = mass / (square * np.sqrt(square))
    return (dx * pull).sum(axis=1), (dy * pull).sum(axis=1)


def statistics(np, kind):
    x = np.asarray(numbers((4001, 12), 13, kind))
    centred = x - x.mean(axis=0)
    return x.mean(axis=0), x.std(axis=0), centred.T @ centred / 4000, (centred**3).mean(axis=0)


def running(np, kind):
    return np.cumsum(np.asarray(numbers((140_000,), 14, kind))), np.cumsum(np.asarray(numbers((300, 200), 15, kind)), axis=0)


def masked(np, kind):
    x = np.asarray(numbers((500, 120), 16, kind))
    return x[x > 0.3].sum(), np.where(x > 0, x, 0).sum(axis=0), np.sum(x, where=x < 0.5, axis=1)


def casts(np, kind):
    x = np.asarray(numbers((9_000,), 17, kind)) * 1e5
    return x.astype("u1"), x.astype("i2"), x.astype("i8"), x.astype("f4").sum()


def products(np, kind):
    a, b = np.asarray(numbers((70, 130), 18, kind)), np.asarray(numbers((130, 90), 19, kind))
    return a @ b, a @ b[:, 0].copy(), np.dot(a[0].copy(), a[1].copy()), np.einsum("ij,jk->ki", a, b)


def indexed(np, kind):
    x, at = np.asarray(numbers((50_000,), 20, kind)), np.asarray((numbers((50_000,), 21) * 500 + 500).astype("i8"))
    total = np.zeros(1001, kind)
    np.add.at(total, at, x)
    return total, x[at].sum()


def logistic(np, kind):
    x, y = np.asarray(numbers((900, 11), 22, kind)), np.asarray(numbers((900,), 23, kind)) > 0
    weights = np.zeros(11, kind)
    for _ in range(5):
        wrong = 1 / (1 + np.exp(-(x * weights).sum(axis=1))) - y
        weights = weights - 0.5 * (x * wrong[:, None]).mean(axis=0)
    return weights


def waves(np, kind):
    t = np.arange(60_000, dtype=kind) / 977
    return np.sin(t) * np.exp(-t / 50) + np.cos(3 * t) ** 2, np.hypot(np.sin(t), np.cos(t)).sum()


def drawn(np, kind):
    x = np.random.default_rng(5).random((300, 200)).astype(kind)
    return x, x.sum(axis=0), x.sum()


def norms(np, kind):
    x = np.asarray(numbers((800, 60), 24, kind))
    return np.sqrt((x * x).sum(axis=1)), x / np.sqrt((x * x).sum(axis=0)), np.abs(x).sum()


def complexes(np, kind):
    x, y = (3 * np.asarray(numbers((40_000,), seed, kind)) + 1j * np.asarray(numbers((40_000,), seed + 1, kind)) for seed in (25, 27))
    names = "exp log sqrt sin cos tan sinh cosh tanh abs".split()
    return x * y, x / y, x**2, (x * y).sum(), *(getattr(np, name)(x) for name in names)


WRITTEN = [softmax, stencil, black_scholes, nbody, statistics, running, masked, casts, products, indexed, logistic, waves, drawn, norms, complexes]


def programs(np):
    """Names and programs; each makes an array, or several."""
    for kind in ("f8", "f4"):
        yield from sums(np, kind)
        yield from functions(np, kind)
        for program in WRITTEN:
            yield f"{program.__name__} {kind}", lambda program=program, kind=kind: program(np, kind)


def hashed(results):
    """A hash of the bits of arrays, where all NaN are the same."""
    state = hashlib.blake2b(digest_size=8)
    for result in results if isinstance(results, tuple) else (results,):
        array = numpy.array(result)
        if array.dtype.kind == "f":
            array[numpy.isnan(array)] = numpy.nan
        state.update(f"{array.dtype.str} {array.shape}".encode())
        state.update(numpy.ascontiguousarray(array).tobytes())
    return state.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stack", help="the stack; by default the configured one")
    parser.add_argument("--compare", help="a file of lines that this program printed elsewhere")
    arguments = parser.parse_args()
    os.environ["BH_RECORDER_REPRODUCIBLE"] = "true"
    if arguments.stack:
        os.environ["BH_STACK"] = arguments.stack
    import bh

    lines = [f"{hashed(program())} {name}" for name, program in programs(bh)]
    if not arguments.compare:
        print("\n".join(lines))
        return
    with open(arguments.compare) as file:
        wanted = file.read().splitlines()
    differing = [mine for mine, other in zip(lines, wanted, strict=True) if mine != other]
    print("\n".join([*differing, f"{len(lines) - len(differing)} of {len(lines)} programs have the same bits"]))
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
