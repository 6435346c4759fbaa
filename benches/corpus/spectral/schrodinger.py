"""A wave packet that meets a barrier: the Schrödinger equation by split steps.

Source: J. Vanderplas, "Quantum Python: Animating the Schrodinger Equation" (2012), a class with k-space steps.
"""

import numpy as np

sizes = {"small": {"n": 512, "steps": 100}, "large": {"n": 16384, "steps": 200}}


class Schrodinger:
    def __init__(self, x, psi0, V, hbar=1.0, m=1.0):
        self.x, self.V, self.hbar, self.m = x, V, hbar, m
        self.dx = x[1] - x[0]
        self.k = 2 * np.pi * np.fft.fftfreq(len(x), self.dx)
        self.psi = psi0.astype(complex)
        self.t = 0.0
        self._dt = None

    def prepare(self, dt):
        if self._dt != dt:
            self._dt = dt
            self.half = np.exp(-0.5j * self.V / self.hbar * dt)
            self.kinetic = np.exp(-0.5j * self.hbar / self.m * (self.k * self.k) * dt)

    def time_step(self, dt, steps=1):
        self.prepare(dt)
        for _ in range(steps):
            self.psi *= self.half
            phi = np.fft.fft(self.psi)
            phi *= self.kinetic
            self.psi = np.fft.ifft(phi)
            self.psi *= self.half
        self.t += dt * steps

    def norm(self):
        return np.sqrt((np.abs(self.psi) ** 2).sum() * self.dx)


def main(n, steps):
    x = np.linspace(-50, 50, n, endpoint=False)
    V = np.zeros(n)
    V[np.abs(x) < 0.5] = 1.0
    V[(x < -45) | (x > 45)] = 1e3
    psi0 = (np.pi * 4) ** -0.25 * np.exp(-0.125 * (x + 20) ** 2 + 1j * 1.2 * x)
    system = Schrodinger(x, psi0, V)
    passed = []
    for _ in range(10):
        system.time_step(30 / steps, steps // 10)
        passed.append((np.abs(system.psi[x > 0]) ** 2).sum() * system.dx)
    return system.psi, np.array(passed), system.norm(), system.t
