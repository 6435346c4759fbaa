"""The Kuramoto-Sivashinsky equation by exponential time differencing of fourth order.

Source: A.-K. Kassam, L. N. Trefethen, "Fourth-order time stepping for stiff PDEs" (2005), program kursiv.m.
"""

import numpy as np

sizes = {"small": {"n": 128, "steps": 80}, "large": {"n": 4096, "steps": 400}}
tolerance = 1e-6


def main(n, steps, h=0.25):
    x = 32 * np.pi * np.arange(1, n + 1) / n
    u = np.cos(x / 16) * (1 + np.sin(x / 16))
    v = np.fft.fft(u)
    k = np.concatenate([np.arange(0, n // 2), [0], np.arange(-n // 2 + 1, 0)]) / 16
    L = k**2 - k**4
    E = np.exp(h * L)
    E2 = np.exp(h * L / 2)
    M = 16
    r = np.exp(1j * np.pi * (np.arange(1, M + 1) - 0.5) / M)
    LR = h * L[:, None] + r[None, :]
    Q = h * np.real(np.mean((np.exp(LR / 2) - 1) / LR, axis=1))
    f1 = h * np.real(np.mean((-4 - LR + np.exp(LR) * (4 - 3 * LR + LR**2)) / LR**3, axis=1))
    f2 = h * np.real(np.mean((2 + LR + np.exp(LR) * (-2 + LR)) / LR**3, axis=1))
    f3 = h * np.real(np.mean((-4 - 3 * LR - LR**2 + np.exp(LR) * (4 - LR)) / LR**3, axis=1))
    g = -0.5j * k
    rows = [u]
    for step in range(1, steps + 1):
        Nv = g * np.fft.fft(np.real(np.fft.ifft(v)) ** 2)
        a = E2 * v + Q * Nv
        Na = g * np.fft.fft(np.real(np.fft.ifft(a)) ** 2)
        b = E2 * v + Q * Na
        Nb = g * np.fft.fft(np.real(np.fft.ifft(b)) ** 2)
        c = E2 * a + Q * (2 * Nb - Nv)
        Nc = g * np.fft.fft(np.real(np.fft.ifft(c)) ** 2)
        v = E * v + Nv * f1 + 2 * (Na + Nb) * f2 + Nc * f3
        if step % 20 == 0:
            rows.append(np.real(np.fft.ifft(v)))
    return np.vstack(rows)
