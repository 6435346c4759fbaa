"""Programs of courses and benchmarks on grids and particles: each gets `np` and a size, and returns its results."""


def _wave(np, rows, columns):
    """A smooth field that is not symmetric."""
    i, j = np.arange(rows)[:, None], np.arange(columns)[None, :]
    return np.sin(i * 0.7 + 0.2) * np.cos(j * 0.3) + 0.01 * i * j


def heat(np, n):
    u = _wave(np, n + 3, n + 2)
    u[0, :], u[-1, :] = 1.0, 0.0
    for _ in range(6):
        change = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) - u[1:-1, 1:-1]
        u[1:-1, 1:-1] += 0.8 * change
        if float(np.abs(change).max()) < 1e-9:
            break
    return u


def jacobi_1d(np, n):
    a, b = np.arange(n + 2.0) / n, np.zeros(n + 2)
    for _ in range(5):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])
    return a, b


def heat_3d(np, n):
    n = min(n, 16) + 2
    a = (np.arange(n)[:, None, None] + np.arange(n)[None, :, None] + (n - np.arange(n))[None, None, :]) * 10.0 / n
    b = a.copy()
    for _ in range(3):
        for source, target in ((a, b), (b, a)):
            inner = source[1:-1, 1:-1, 1:-1]
            target[1:-1, 1:-1, 1:-1] = (
                0.125 * (source[2:, 1:-1, 1:-1] - 2.0 * inner + source[:-2, 1:-1, 1:-1])
                + 0.125 * (source[1:-1, 2:, 1:-1] - 2.0 * inner + source[1:-1, :-2, 1:-1])
                + 0.125 * (source[1:-1, 1:-1, 2:] - 2.0 * inner + source[1:-1, 1:-1, :-2]) + inner
            )  # fmt: skip
    return a, b


def shallow_water(np, n):
    h, u, v = 1 + 0.05 * _wave(np, n + 2, n + 2), np.zeros((n + 2, n + 2)), np.zeros((n + 2, n + 2))
    step, g = 0.02, 9.8
    for _ in range(5):
        u[1:-1, 1:-1] -= step * g * 0.5 * (h[2:, 1:-1] - h[:-2, 1:-1])
        v[1:-1, 1:-1] -= step * g * 0.5 * (h[1:-1, 2:] - h[1:-1, :-2])
        flow_x, flow_y = h * u, h * v
        h[1:-1, 1:-1] -= step * 0.5 * (flow_x[2:, 1:-1] - flow_x[:-2, 1:-1] + flow_y[1:-1, 2:] - flow_y[1:-1, :-2])
        h[0, :], h[-1, :], h[:, 0], h[:, -1] = h[1, :], h[-2, :], h[:, 1], h[:, -2]
        u[0, :], u[-1, :], v[:, 0], v[:, -1] = -u[1, :], -u[-2, :], -v[:, 1], -v[:, -2]
    return h, u, v, (h * (u**2 + v**2) / 2 + 0.5 * g * h**2).sum()


def advection(np, n):
    q = np.exp(-(((np.arange(n) - n / 3) / (n / 8 + 1)) ** 2))
    for _ in range(8):
        flux = 0.4 * (q - np.roll(q, 1))
        limiter = np.maximum(0, np.minimum(1, (q - np.roll(q, 1)) / (np.roll(q, -1) - q + 1.5)))
        q = q - flux - 0.5 * 0.24 * (limiter * flux - np.roll(limiter * flux, 1))
    return q, q.sum()


def n_body(np, n):
    n = min(n, 40)
    position = np.stack([np.cos(np.arange(n) * 1.1), np.sin(np.arange(n) * 0.9), np.arange(n) / n], axis=1)
    velocity, mass = np.zeros((n, 3)), 1 + np.arange(n) % 3
    for _ in range(3):
        apart = position[None, :, :] - position[:, None, :]
        distance = (apart**2).sum(axis=2) + 0.05
        np.fill_diagonal(distance, 1.0)
        force = apart * (mass[None, :] / distance**1.5)[:, :, None]
        velocity += 0.01 * force.sum(axis=1)
        position += 0.01 * velocity
    return position, velocity, 0.5 * (mass[:, None] * velocity**2).sum()


def lattice_boltzmann(np, n):
    rows, columns = n + 2, n + 5
    weights = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
    ways = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))
    f = weights[:, None, None] * (1 + 0.02 * _wave(np, rows, columns))[None]
    solid = (np.arange(rows)[:, None] - rows // 2) ** 2 + (np.arange(columns)[None, :] - columns // 3) ** 2 < 4
    opposite = [0, 3, 4, 1, 2, 7, 8, 5, 6]
    for _ in range(3):
        for number, (x, y) in enumerate(ways):
            f[number] = np.roll(np.roll(f[number], x, axis=0), y, axis=1)
        density = f.sum(axis=0)
        u = sum(x * f[number] for number, (x, _) in enumerate(ways)) / density
        v = sum(y * f[number] for number, (_, y) in enumerate(ways)) / density
        speed = 1.5 * (u * u + v * v)
        bounced = f[:, solid][opposite, :]
        for number, (x, y) in enumerate(ways):
            along = 3 * (x * u + y * v)
            f[number] += 0.6 * (weights[number] * density * (1 + along + 0.5 * along**2 - speed) - f[number])
        f[:, solid] = bounced
    return f, u, v


def game_of_life(np, n):
    cells = ((np.arange(n)[:, None] * 7 + np.arange(n + 1)[None, :] * 5) % 3 == 0).astype(np.uint8)
    for _ in range(6):
        padded = np.pad(cells, 1, mode="wrap")
        count = sum(padded[1 + i : n + 1 + i, 1 + j : n + 2 + j] for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        cells = ((count == 3) | ((cells == 1) & (count == 2))).astype(np.uint8)
    return cells, cells.sum()


def mandelbrot(np, n):
    c = np.linspace(-2, 0.5, n)[:, None] + 1j * np.linspace(-1.2, 1.21, n)[None, :]
    z, count = np.zeros_like(c), np.zeros(c.shape, dtype=np.int64)
    for _ in range(12):
        inside = np.abs(z) < 2
        z = np.where(inside, z * z + c, z)
        count += inside
    return count


def mandelbrot_compressed(np, n):
    c = (np.linspace(-2, 0.5, n)[:, None] + 1j * np.linspace(-1.2, 1.21, n)[None, :]).ravel()
    z, number, count = np.zeros_like(c), np.arange(c.size), np.zeros(c.shape, dtype=np.int64)
    for step in range(8):
        z = z * z + c[number]
        left = np.abs(z) > 2
        count[number[left]] = step
        z, number = z[~left], number[~left]
    return count


def fdtd(np, n):
    ex, ey, hz = _wave(np, n, n + 1), 0.5 * _wave(np, n + 1, n + 1)[:n], 0.2 * _wave(np, n, n + 1)
    for step in range(4):
        ey[0, :] = step
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return ex, ey, hz


def horizontal_diffusion(np, n):
    field = _wave(np, n + 4, n + 4)[:, :, None] * (1 + np.arange(3))
    laplace = 4.0 * field[1:-1, 1:-1] - (field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2])
    along = laplace[1:, 1:-1] - laplace[:-1, 1:-1]
    along = np.where(along * (field[2:-1, 2:-2] - field[1:-2, 2:-2]) > 0.013, 0, along)
    across = laplace[1:-1, 1:] - laplace[1:-1, :-1]
    across = np.where(across * (field[2:-2, 2:-1] - field[2:-2, 1:-2]) > 0.013, 0, across)
    return field[2:-2, 2:-2] - 0.025 * (along[1:] - along[:-1] + across[:, 1:] - across[:, :-1])


def vertical_advection(np, n):
    levels = 9
    u, w = _wave(np, n, levels), 0.1 * _wave(np, n, levels)
    c, d = np.zeros_like(u), np.zeros_like(u)
    c[:, 0], d[:, 0] = w[:, 1] / 2, u[:, 0]
    for k in range(1, levels):
        divided = 1.0 / (2.0 + w[:, k] - 0.2 * c[:, k - 1])
        c[:, k] = 0.3 * w[:, k] * divided
        d[:, k] = (u[:, k] - 0.2 * d[:, k - 1]) * divided
    x = d.copy()
    for k in range(levels - 2, -1, -1):
        x[:, k] = d[:, k] - c[:, k] * x[:, k + 1]
    return x


def cavity(np, n):
    u, v, p = np.zeros((n + 2, n + 2)), np.zeros((n + 2, n + 2)), np.zeros((n + 2, n + 2))
    for _ in range(3):
        b = 0.1 * ((u[1:-1, 2:] - u[1:-1, :-2]) / 2 + (v[2:, 1:-1] - v[:-2, 1:-1]) / 2)
        for _ in range(3):
            old = p.copy()
            p[1:-1, 1:-1] = (old[1:-1, 2:] + old[1:-1, :-2] + old[2:, 1:-1] + old[:-2, 1:-1]) / 4 - b
            p[:, -1], p[0, :], p[:, 0], p[-1, :] = p[:, -2], p[1, :], p[:, 1], 0
        before = u.copy()
        u[1:-1, 1:-1] = before[1:-1, 1:-1] * (1 - 0.1 * (before[1:-1, 1:-1] - before[1:-1, :-2])) - 0.05 * (p[1:-1, 2:] - p[1:-1, :-2])
        v[1:-1, 1:-1] -= 0.05 * (p[2:, 1:-1] - p[:-2, 1:-1])
        u[0, :], u[:, 0], u[:, -1], u[-1, :] = 0, 0, 0, 1
    return u, v, p


def wave_equation(np, n):
    before = np.sin(np.linspace(0, np.pi, n))
    now = before.copy()
    for _ in range(7):
        after = np.zeros_like(now)
        after[1:-1] = 2 * now[1:-1] - before[1:-1] + 0.64 * (now[2:] - 2 * now[1:-1] + now[:-2])
        before, now = now, after
    return now, np.gradient(now), np.trapezoid(now)


def red_black(np, n):
    u = _wave(np, 2 * (n // 2) + 4, 2 * (n // 2) + 4)
    for _ in range(3):
        for i, j in ((1, 1), (2, 2), (1, 2), (2, 1)):
            u[i:-1:2, j:-1:2] = 0.25 * (u[i - 1 : -2 : 2, j:-1:2] + u[i + 1 :: 2, j:-1:2][: u[i:-1:2].shape[0]] + u[i:-1:2, j - 1 : -2 : 2] + u[i:-1:2, j + 1 :: 2])
    return u


KERNELS = (
    heat, jacobi_1d, heat_3d, shallow_water, advection, n_body, lattice_boltzmann, game_of_life, mandelbrot, mandelbrot_compressed, fdtd,
    horizontal_diffusion, vertical_advection, cavity, wave_equation, red_black,
)  # fmt: skip
