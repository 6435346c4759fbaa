"""Two phases that separate: Cahn-Hilliard with a semi-implicit spectral step by real transforms.

Source: phase-field course codes; S. B. Biner, "Programming Phase-Field Modeling", case study I.
"""

import numpy as np

sizes = {"small": {"n": 64, "steps": 20}, "large": {"n": 512, "steps": 25}}


def main(n, steps, dt=0.1, kappa=0.5, mobility=1.0):
    rng = np.random.default_rng(11)
    c = 0.5 + 0.02 * (0.5 - rng.random((n, n)))
    kx = 2 * np.pi * np.fft.fftfreq(n)[:, None]
    ky = 2 * np.pi * np.fft.rfftfreq(n)[None, :]
    k2 = kx**2 + ky**2
    k4 = k2**2
    ch = np.fft.rfft2(c)
    energies = np.empty(steps)
    for i in range(steps):
        dfdc = 2 * c * (1 - c) ** 2 - 2 * c**2 * (1 - c)
        ch = (ch - dt * mobility * k2 * np.fft.rfft2(dfdc)) / (1 + dt * mobility * kappa * k4)
        c = np.fft.irfft2(ch, s=(n, n))
        np.clip(c, 0.00001, 0.9999, out=c)
        energies[i] = np.sum(c**2 * (1 - c) ** 2)
    return c, energies
