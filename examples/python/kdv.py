"""
Two solitary waves
==================

The equation of Korteweg and de Vries, by Fourier transforms: a fast wave overtakes a slow one, and both go on unchanged.
"""

import sys

import bh as np
import matplotlib.pyplot as plt

POINTS = int(sys.argv[1]) if len(sys.argv) > 1 else 256
SPEEDS = (1.0, 0.25)


def wave(x, speed, start):
    """A solitary wave of this speed."""
    return speed / 2 / np.cosh(np.sqrt(speed) / 2 * (x - start)) ** 2


x = np.linspace(-40, 40, POINTS, endpoint=False)
numbers = np.fft.fftfreq(POINTS, x[1] - x[0]) * 2 * np.pi
time_step = 0.4 / float(np.abs(numbers).max()) ** 1.5
whole = np.exp(1j * numbers**3 * time_step)
half = np.exp(1j * numbers**3 * time_step / 2)


def change(spectrum):
    """How the nonlinear term changes the spectrum."""
    return -3j * numbers * np.fft.fft(np.fft.ifft(spectrum).real ** 2)


u = wave(x, SPEEDS[0], -20) + wave(x, SPEEDS[1], -5)
mass, energy = u.sum(), (u * u).sum()
spectrum = np.fft.fft(u)
history = []
for number in range(int(40 / time_step)):
    # Runge and Kutta for the nonlinear term; the linear one is exact.
    one = change(spectrum)
    two = change(half * (spectrum + time_step / 2 * one))
    three = change(half * spectrum + time_step / 2 * two)
    four = change(whole * spectrum + time_step * half * three)
    spectrum = whole * spectrum + time_step / 6 * (whole * one + 2 * half * (two + three) + four)
    if number % 50 == 0:
        history.append(np.fft.ifft(spectrum).real)
u = np.fft.ifft(spectrum).real
print(f"mass {float(u.sum() / mass):.6f}, energy {float((u * u).sum() / energy):.6f} of what they were; the highest wave has {float(u.max()):.3f}")
assert np.isclose(u.sum(), mass) and np.isclose((u * u).sum(), energy, rtol=1e-3) and abs(float(u.max()) - SPEEDS[0] / 2) < 0.05

figure, axes = plt.subplots()
picture = axes.imshow(np.asarray(np.stack(history)), aspect="auto", origin="lower", extent=(-40, 40, 0, 40))
axes.set(xlabel="place", ylabel="time")
figure.colorbar(picture, label="height")
