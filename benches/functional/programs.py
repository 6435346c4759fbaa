"""Programs in functional style: `step(np, *state)` gives the next state, in the same text for NumPy, bh, JAX and CuPy.

Each has the source of its method in its docstring, sizes for a little and a large run, and starts from the same random numbers on
all systems. Nothing is assigned in place, as JAX allows no assignment.
"""

import math

import numpy

PROGRAMS = {}


class Program:
    """A program: `start(rng, n)` gives the first state as NumPy's arrays and numbers, `step` the next one."""

    def __init__(self, start, step, little, large):
        self.start, self.step, self.little, self.large = start, step, little, large
        self.name, self.text = step.__name__, step.__doc__


def program(start, little, large):
    """Registers a step under its name."""

    def register(step):
        PROGRAMS[step.__name__] = Program(start, step, little, large)
        return step

    return register


def _fields(*shape_of, count=1, dtype="f8"):
    return lambda rng, n: tuple(rng.random(tuple(n if extent == "n" else extent for extent in shape_of)).astype(dtype) for _ in range(count))


@program(_fields("n", "n", count=2), 128, 4096)
def gray_scott(np, u, v):
    """Reaction and diffusion of two substances on a periodic square (Pearson 1993)."""

    def laplacian(a):
        return np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a

    rate = u * v * v
    return u + 0.16 * laplacian(u) - rate + 0.035 * (1 - u), v + 0.08 * laplacian(v) + rate - 0.1 * v


@program(_fields("n", "n", count=2), 128, 4096)
def padded_wave(np, now, before):
    """The wave equation with reflecting borders, second order, on padded arrays (LeVeque 2007, section 10)."""
    p = np.pad(now, 1, mode="edge")
    laplacian = p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * now
    return 2 * now - before + 0.25 * laplacian, now


_DIRECTIONS = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
_WEIGHTS = numpy.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)


@program(lambda rng, n: (rng.random((9, n, n)) * 0.01 + _WEIGHTS[:, None, None],), 64, 2048)
def lattice_boltzmann(np, f):
    """Flow on a periodic square by nine populations that collide (Bhatnagar, Gross and Krook 1954) and are rolled."""
    f = np.stack([np.roll(f[k], (dx, dy), (0, 1)) for k, (dx, dy) in enumerate(_DIRECTIONS)])
    density = f.sum(0)
    u = sum(dx * f[k] for k, (dx, _) in enumerate(_DIRECTIONS) if dx) / density
    v = sum(dy * f[k] for k, (_, dy) in enumerate(_DIRECTIONS) if dy) / density
    square = 1 - 1.5 * (u * u + v * v)
    along = [dx * u + dy * v for dx, dy in _DIRECTIONS]
    rest = np.stack([w * density * (square + 3 * c + 4.5 * c * c) for w, c in zip(_WEIGHTS.tolist(), along)])
    return (f - (f - rest) / 0.6,)


@program(_fields("n", "n"), 128, 2048)
def vorticity(np, w):
    """Vorticity of a periodic flow by Fourier transforms, one step of Euler's method (Canuto et al. 2007)."""
    n = w.shape[0]
    kx = (np.fft.fftfreq(n) * n)[:, None]
    ky = (np.fft.rfftfreq(n) * n)[None, :]
    k2 = kx * kx + ky * ky
    what = np.fft.rfft2(w)
    psi = what / np.where(k2 == 0, 1.0, k2)
    u, v = np.fft.irfft2(1j * ky * psi, s=w.shape), np.fft.irfft2(-1j * kx * psi, s=w.shape)
    wx, wy = np.fft.irfft2(1j * kx * what, s=w.shape), np.fft.irfft2(1j * ky * what, s=w.shape)
    return (w - 1e-3 * (u * wx + v * wy) / n,)


@program(lambda rng, n: (rng.standard_normal((n, 8)), rng.standard_normal((16, 8))), 1000, 2_000_000)
def k_means(np, x, means):
    """A step of Lloyd's method (1982): distances by a product, sums of groups by a product with a table of zeros and ones."""
    distances = (means * means).sum(1)[None, :] - 2 * (x @ means.T)
    nearest = np.argmin(distances, axis=1)
    belongs = (nearest[:, None] == np.arange(16)[None, :]).astype(x.dtype)
    return x, (belongs.T @ x) / np.maximum(belongs.sum(0), 1)[:, None]


def _network(rng, n):
    return (
        rng.standard_normal((n, 784)).astype("f4"),
        rng.standard_normal((n, 10)).astype("f4"),
        (rng.standard_normal((784, 512)) / 28).astype("f4"),
        (rng.standard_normal((512, 10)) / 22).astype("f4"),
    )


@program(_network, 32, 8192)
def two_layers(np, x, y, w1, w2):
    """A step of gradient descent for a network of two layers and squared errors, with its gradient written out."""
    hidden = np.maximum(x @ w1, 0)
    error = (hidden @ w2 - y) * numpy.float32(2 / 8192)
    back = (error @ w2.T) * (hidden > 0)
    return x, y, w1 - numpy.float32(1e-3) * (x.T @ back), w2 - numpy.float32(1e-3) * (hidden.T @ error)


@program(lambda rng, n: (rng.random((n, 3)), rng.random(n)), 64, 4000)
def gaussian_process(np, x, y):
    """Regression by a Gaussian process: kernel matrix, Cholesky's factor, two solutions (Rasmussen and Williams 2006, alg. 2.1)."""
    squares = (x * x).sum(1)
    kernel = np.exp(-0.5 * (squares[:, None] + squares[None, :] - 2 * (x @ x.T)) / 0.09) + 0.01 * np.eye(x.shape[0])
    lower = np.linalg.cholesky(kernel)
    weights = np.linalg.solve(lower.T, np.linalg.solve(lower, y))
    return x, kernel @ weights


@program(_fields(8, "n", 64, count=3, dtype="f4"), 32, 2048)
def attention(np, q, k, v):
    """Softmax attention of eight heads (Vaswani et al. 2017)."""
    scores = np.einsum("hid,hjd->hij", q, k) * numpy.float32(0.125)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return np.matmul(weights, v), k, v


@program(lambda rng, n: (rng.random((n, 3, 3)) + 3 * numpy.eye(3), rng.random((n, 3, 1))), 100, 1_000_000)
def little_systems(np, a, b):
    """A linear system of three unknowns for each of many points."""
    return a, np.linalg.solve(a, b) + 0.5


@program(lambda rng, n: (rng.integers(0, 4096, n), numpy.zeros(4096)), 1000, 20_000_000)
def counts(np, keys, seen):
    """How often each of 4096 keys occurs."""
    return keys, seen * 0.5 + np.bincount(keys, minlength=4096, **({"length": 4096} if np.__name__.startswith("jax") else {}))


@program(lambda rng, n: (rng.random((n, 32, 32)).astype("f4"),), 4, 4096)
def pooled_images(np, x):
    """Largest values of squares of 2 × 2, spread over the image again."""
    n = x.shape[0]
    pooled = x.reshape(n, 16, 2, 16, 2).max(axis=(2, 4))
    return (np.repeat(np.repeat(pooled, 2, axis=1), 2, axis=2) * numpy.float32(0.9) + numpy.float32(0.1) * x,)


@program(lambda rng, n: (rng.random(n), rng.random(n)), 1000, 20_000_000)
def moving_average(np, x, y):
    """Averages of 64 neighbours by running sums, and what a signal lies above them."""
    sums = np.cumsum(x)
    average = (sums[64:] - sums[:-64]) / 64
    return np.concatenate([x[:32], average, x[-32:]]) * 0.5 + y * 0.5, np.maximum(y, x)


@program(lambda rng, n: (rng.standard_normal((n, 64)), rng.standard_normal(n), numpy.zeros(64)), 200, 1_000_000)
def logistic_regression(np, x, y, w):
    """A step of gradient descent for a logistic regression (Hastie et al. 2009, section 4.4)."""
    p = 1 / (1 + np.exp(-(x @ w)))
    return x, y, w - 1e-3 * (x.T @ (p - (y > 0)))


@program(lambda rng, n: (rng.random((n, n)), rng.random(n)), 64, 8192)
def power_iteration(np, a, x):
    """The largest eigenvalue's vector (von Mises and Pollaczek-Geiringer 1929)."""
    y = a @ x
    return a, y / np.sqrt((y * y).sum())


@program(lambda rng, n: (rng.standard_normal((n, 32)),), 100, 500_000)
def whitening(np, x):
    """Columns nearer to columns without correlation, by the eigenvalues of their covariance (ZCA; Bell and Sejnowski 1997)."""
    centred = x - x.mean(0)
    values, vectors = np.linalg.eigh(centred.T @ centred / x.shape[0])
    return (x + 0.1 * ((centred @ vectors) / np.sqrt(values + 1e-9)) @ vectors.T,)


@program(lambda rng, n: (rng.random(n) * 100 + 1,), 1000, 10_000_000)
def quantiles(np, x):
    """Values clipped at two of their quantiles, by sorting."""
    ordered = np.sort(x)
    low, high = ordered[x.shape[0] // 20], ordered[-(x.shape[0] // 20)]
    return (np.clip(x, low, high) * 1.01,)


@program(lambda rng, n: (rng.random((n, n)), rng.random((n, n)) > 0.5), 128, 4096)
def masked_relaxation(np, u, fixed):
    """Laplace's equation by Jacobi's method where a mask says which values are given."""
    p = np.pad(u, 1)
    return np.where(fixed, u, 0.25 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2])), fixed


@program(lambda rng, n: (rng.random((n, 3)), rng.random(n) + 0.5), 64, 8192)
def attraction(np, x, mass):
    """Accelerations of bodies that attract each other, all pairs, softened (Aarseth 2003)."""
    d = x[None, :, :] - x[:, None, :]
    r2 = (d * d).sum(-1) + 1e-4
    return x + 1e-6 * (d * (mass[None, :] / (r2 * np.sqrt(r2)))[:, :, None]).sum(1), mass


@program(lambda rng, n: (rng.random((n, n)),), 64, 2048)
def blurred(np, image):
    """A Gaussian blur by Fourier transforms, and what it takes away (Gonzalez and Woods 2018, section 4.9)."""
    n = image.shape[0]
    f = np.fft.fftfreq(n)
    mask = np.exp(-50.0 * (f[:, None] ** 2 + f[None, :] ** 2))
    smooth = np.fft.ifft2(np.fft.fft2(image) * mask).real
    return (image + 0.1 * (image - smooth),)


@program(lambda rng, n: (rng.standard_normal((64, n)).cumsum(1) + 100,), 256, 200_000)
def returns(np, prices):
    """Logarithmic returns of 64 prices, their volatility by windows, and the matrix of their correlations."""
    r = np.diff(np.log(np.abs(prices) + 1), axis=1)
    r = r - r.mean(axis=1, keepdims=True)
    correlation = (r @ r.T) / np.sqrt(np.outer((r * r).sum(1), (r * r).sum(1)))
    return (prices * 0.999 + 0.001 * math.tau * (correlation @ prices) / 64,)
