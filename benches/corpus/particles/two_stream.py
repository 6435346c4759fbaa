"""Two streams of electrons by the particle-in-cell method, with weights of linear interpolation.

Source: P. Mocz, "Create Your Own Plasma PIC Simulation (With Python)" (2020), with a spectral solver of the field.
"""

import numpy as np

sizes = {"small": {"N": 4000, "Nx": 64, "steps": 10}, "large": {"N": 100_000, "Nx": 400, "steps": 25}}


def field(pos, Nx, boxsize, n0):
    N = pos.shape[0]
    dx = boxsize / Nx
    j = np.floor(pos / dx).astype(int)
    jp1 = j + 1
    weight_j = (jp1 * dx - pos) / dx
    weight_jp1 = (pos - j * dx) / dx
    jp1 = np.mod(jp1, Nx)
    n = np.bincount(j, weights=weight_j, minlength=Nx)
    n += np.bincount(jp1, weights=weight_jp1, minlength=Nx)
    n *= n0 * boxsize / N / dx
    k = 2 * np.pi * np.fft.fftfreq(Nx, dx)
    k[0] = 1
    phi = np.fft.fft(n - n0) / (-(k**2))
    phi[0] = 0
    E_grid = -np.real(np.fft.ifft(1j * k * phi))
    return -(weight_j * E_grid[j] + weight_jp1 * E_grid[jp1]), n


def main(N, Nx, steps, boxsize=50.0, n0=1.0, vb=3.0, vth=1.0, A=0.1, dt=0.5):
    rng = np.random.default_rng(42)
    pos = rng.random(N) * boxsize
    vel = vth * rng.standard_normal(N) + vb
    half = N // 2
    vel[half:] *= -1
    vel *= 1 + A * np.sin(2 * np.pi * pos / boxsize)
    acc, _ = field(pos, Nx, boxsize, n0)
    for _ in range(steps):
        vel += acc * dt / 2.0
        pos += vel * dt
        pos = np.mod(pos, boxsize)
        acc, n = field(pos, Nx, boxsize, n0)
        vel += acc * dt / 2.0
    return n, np.histogram(vel, bins=50, range=(-10, 10))[0], (vel**2).mean()


tolerance = 1e-6
