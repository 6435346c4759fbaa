"""Short programs with a step that must not be merged, reordered or rounded otherwise; each gets `np` and a size."""


def scaled_sums(np, n):
    """Two factors, or a factor and a term, behind a sum of four arrays and more."""
    a, b, c, d = (np.arange(n * 100.0 + k)[k:] % (7 + k) / 8 for k in range(4))
    mean = 0.25 * (a + b + c + d)
    return 0.3 * mean, (a + b + c + d) / 4 * 0.5, 0.5 * (0.25 * (a + b + c + d) + 1.5), 2.0 * (a + b + c + d + a) * 0.25 - a


def cubes(np, n):
    """A power of a long array, and of its parts."""
    x = np.arange(100.0 * n) % 977 / 31 + 0.1
    parts = [x[at : at + 100] ** 3 for at in range(0, 100 * n, 100)]
    return (x**3 - np.concatenate(parts)) * 1e300, x**2 - x * x


def column(np, n):
    """A column that is read, chosen from and stacked: its elements lie on few ranks and are asked for in steps."""
    v = np.ones((4 * n, n))[:n, 0] + 1
    first = float(v[0])
    w = np.where(v > 0, v, 0)
    x = np.stack([v, v * 2])
    return (x[0] != 2).sum(), x, w * first


def reversed_diagonal(np, n):
    """A diagonal is chosen from, and then turned in place."""
    v = np.diagonal(np.arange(7.0 * n).reshape(n, 7) + 1) + 1
    v3 = np.zeros(8)
    v3[np.asarray(np.arange(2) * 10 % 8)] = 4
    w = np.where(v > 0, v, 0)
    v[...] = v[::-1]
    return v, w, v3


KERNELS = (scaled_sums, cubes, column, reversed_diagonal)
