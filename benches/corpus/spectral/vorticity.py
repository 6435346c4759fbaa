"""Two-dimensional turbulence: the vorticity equation in Fourier space with the 2/3 rule.

Source: course codes for pseudo-spectral Navier-Stokes; C. Canuto et al., "Spectral Methods in Fluid Dynamics", chapter 7.
"""

import numpy as np

sizes = {"small": {"n": 64, "steps": 8}, "large": {"n": 256, "steps": 12}}


def main(n, steps, nu=1e-3, dt=5e-3):
    rng = np.random.default_rng(1)
    k = np.fft.fftfreq(n, 1 / n)
    kx, ky = np.meshgrid(k, k, indexing="ij")
    k2 = kx**2 + ky**2
    inverse = np.where(k2 == 0, 1, k2)
    dealias = (np.abs(kx) < n / 3) & (np.abs(ky) < n / 3)
    w = np.fft.fft2(rng.standard_normal((n, n))) * np.exp(-k2 / 50) * dealias
    w[0, 0] = 0

    def rhs(w):
        psi = w / inverse
        u = np.fft.ifft2(1j * ky * psi).real
        v = np.fft.ifft2(-1j * kx * psi).real
        wx = np.fft.ifft2(1j * kx * w).real
        wy = np.fft.ifft2(1j * ky * w).real
        return -np.fft.fft2(u * wx + v * wy) * dealias - nu * k2 * w

    for _ in range(steps):
        k1 = rhs(w)
        k2_ = rhs(w + 0.5 * dt * k1)
        k3 = rhs(w + 0.5 * dt * k2_)
        k4 = rhs(w + dt * k3)
        w = w + dt / 6 * (k1 + 2 * k2_ + 2 * k3 + k4)
    enstrophy = 0.5 * np.sum(np.abs(w) ** 2) / n**4
    return np.fft.ifft2(w).real, enstrophy
