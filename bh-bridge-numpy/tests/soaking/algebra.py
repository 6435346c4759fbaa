"""Programs of courses and benchmarks on matrices, statistics, signals and images: each gets `np` and a size, and returns its results."""


def _matrix(np, rows, columns):
    """A matrix of full rank, far from singular."""
    i, j = np.arange(rows)[:, None], np.arange(columns)[None, :]
    return ((i * 7 + j * 3) % 11) / 11.0 + 3.0 * (i == j)


def k_means(np, n):
    points = np.stack([np.arange(n) % 5 + 0.1 * np.sin(np.arange(n)), (np.arange(n) * 3) % 7 + 0.1 * np.cos(np.arange(n))], axis=1)
    centres = points[:3].copy()
    for _ in range(4):
        nearest = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)
        for k in range(3):
            mine = points[nearest == k]
            if len(mine):
                centres[k] = mine.mean(axis=0)
    return centres, nearest, np.bincount(nearest, minlength=3)


def principal_components(np, n):
    data = _matrix(np, n + 3, 5) @ _matrix(np, 5, 4)
    centred = (data - data.mean(axis=0)) / data.std(axis=0)
    covariance = centred.T @ centred / (len(data) - 1)
    values, vectors = np.linalg.eigh(covariance)
    return covariance, values[::-1], np.abs(vectors[:, -1])


def gram_schmidt(np, n):
    a = _matrix(np, n + 2, min(n, 9))
    q, r = np.zeros_like(a), np.zeros((a.shape[1], a.shape[1]))
    for k in range(a.shape[1]):
        r[k, k] = np.sqrt((a[:, k] ** 2).sum())
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, a.shape[1]):
            r[k, j] = q[:, k] @ a[:, j]
            a[:, j] -= q[:, k] * r[k, j]
    return q, r


def lu(np, n):
    a = _matrix(np, min(n, 24), min(n, 24))
    for k in range(len(a) - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


def lu_pivoted(np, n):
    a = _matrix(np, min(n, 16), min(n, 16))[::-1].copy()
    for k in range(len(a) - 1):
        pivot = k + int(np.argmax(np.abs(a[k:, k])))
        if pivot != k:
            a[[k, pivot]] = a[[pivot, k]]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k][:, None] * a[k, k + 1 :]
    return a


def cholesky(np, n):
    m = min(n, 20)
    a = _matrix(np, m, m)
    a = a @ a.T + np.eye(m)
    factor = np.zeros_like(a)
    for j in range(m):
        factor[j, j] = np.sqrt(a[j, j] - (factor[j, :j] ** 2).sum())
        factor[j + 1 :, j] = (a[j + 1 :, j] - factor[j + 1 :, :j] @ factor[j, :j]) / factor[j, j]
    return factor, np.linalg.cholesky(a)


def triangular_solve(np, n):
    m = min(n, 24)
    lower, b = np.tril(_matrix(np, m, m)), np.arange(m) + 1.0
    x = np.zeros(m)
    for i in range(m):
        x[i] = (b[i] - lower[i, :i] @ x[:i]) / lower[i, i]
    return x


def conjugate_gradients(np, n):
    a = 4.0 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    b, x = np.ones(n), np.zeros(n)
    r = b - a @ x
    p, squares = r.copy(), r @ r
    for _ in range(4):
        image = a @ p
        alpha = squares / (p @ image)
        x, r = x + alpha * p, r - alpha * image
        squares, before = r @ r, squares
        p = r + (squares / before) * p
    return x


def power_method(np, n):
    a, v = _matrix(np, n, n), np.ones(n)
    for _ in range(5):
        v = a @ v
        v /= np.linalg.norm(v)
    return v, v @ a @ v


def fourier_filter(np, n):
    t = np.arange(n) / n
    signal = np.sin(2 * np.pi * 3 * t) + 0.5 * np.cos(2 * np.pi * 11 * t)
    spectrum = np.fft.rfft(signal)
    spectrum[np.fft.rfftfreq(n, 1 / n) > 5] = 0
    return np.fft.irfft(spectrum, n), np.abs(np.fft.fft(signal)) ** 2, np.fft.fftshift(np.fft.fftfreq(n))


def convolution(np, n):
    image, weights = _matrix(np, n + 4, n + 3), np.array([[1.0, 2, 1], [2, 4, 2], [1, 2, 1]]) / 16
    result = np.zeros((n + 2, n + 1))
    for i in range(3):
        for j in range(3):
            result += weights[i, j] * image[i : i + n + 2, j : j + n + 1]
    return result


def edges(np, n):
    image = np.pad(_matrix(np, n, n), 1, mode="edge")
    gx = image[:-2, 2:] + 2 * image[1:-1, 2:] + image[2:, 2:] - image[:-2, :-2] - 2 * image[1:-1, :-2] - image[2:, :-2]
    gy = image[2:, :-2] + 2 * image[2:, 1:-1] + image[2:, 2:] - image[:-2, :-2] - 2 * image[:-2, 1:-1] - image[:-2, 2:]
    return np.hypot(gx, gy), np.hypot(gx, gy) > 2.05


def perceptron(np, n):
    x, hidden, out = _matrix(np, n, 6) - 0.5, _matrix(np, 6, 8) * 0.1, _matrix(np, 8, 3) * 0.1
    target = np.eye(3)[np.arange(n) % 3]
    for _ in range(3):
        inner = np.maximum(x @ hidden, 0)
        scores = inner @ out
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
        slope = (scores - target) / n
        back = slope @ out.T * (inner > 0)
        out, hidden = out - 0.5 * inner.T @ slope, hidden - 0.5 * x.T @ back
    return hidden, out, -(target * np.log(scores)).sum() / n


def correlation(np, n):
    data = _matrix(np, n + 2, 7)
    data = (data - data.mean(axis=0)) / (np.sqrt(n + 2.0) * data.std(axis=0))
    result = np.eye(7)
    for i in range(6):
        result[i + 1 :, i] = result[i, i + 1 :] = data[:, i] @ data[:, i + 1 :]
    return result, np.cov(data.T)


def shortest_paths(np, n):
    m = min(n, 20)
    path = ((np.arange(m)[:, None] * np.arange(1, m + 1)[None, :]) % 7 + 1).astype(np.int64)
    for k in range(m):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))
    return path


def histogram(np, n):
    values = ((np.arange(n * 5) * 37) % 101) / 101.0
    counts, borders = np.histogram(values, bins=10)
    sums = np.zeros(10)
    np.add.at(sums, np.minimum((values * 10).astype(np.int64), 9), values)
    return counts, borders, sums, np.cumsum(counts) / counts.sum(), np.digitize(values, borders[1:-1])


def monte_carlo(np, n):
    random = np.random.default_rng(5)
    price = 100.0 * np.exp(np.cumsum(0.001 + 0.02 * random.standard_normal((n, 12)), axis=1))
    payoff = np.maximum(price.mean(axis=1) - 100, 0)
    return payoff.mean(), payoff.std(), np.sort(payoff)[-3:], np.percentile(price[:, -1], [5, 50, 95])


def contour_integral(np, n):
    m = min(n, 9)
    h, total = _matrix(np, m, m) + 0j, np.zeros((m, m), dtype=complex)
    for step in range(6):
        z = 12 * np.exp(2j * np.pi * (step + 0.5) / 6)
        total += z * np.linalg.inv(z * np.eye(m) - h) / 6
    return total


def interpolation(np, n):
    x = np.linspace(0, 3, n + 2)
    y, at = x**3 - 2 * x, np.linspace(0.1, 2.9, 2 * n)
    place = np.searchsorted(x, at) - 1
    share = (at - x[place]) / (x[place + 1] - x[place])
    return y[place] * (1 - share) + y[place + 1] * share, np.interp(at, x, y), np.polyval(np.array([1.0, 0, -2, 0]), at)


def text_like(np, n):
    codes = (np.arange(n * 3) * 31 % 26).astype(np.int64)
    value = np.zeros((), dtype=np.int64)
    for part in codes[:20]:
        value = (value * 31 + part) % 1000003
    pairs = np.zeros((26, 26), dtype=np.int64)
    np.add.at(pairs, (codes[:-1], codes[1:]), 1)
    return value, pairs, np.unique(codes, return_counts=True)[1]


KERNELS = (
    k_means, principal_components, gram_schmidt, lu, lu_pivoted, cholesky, triangular_solve, conjugate_gradients, power_method, fourier_filter,
    convolution, edges, perceptron, correlation, shortest_paths, histogram, monte_carlo, contour_integral, interpolation, text_like,
)  # fmt: skip
