"""
A filter of frequencies
=======================

A picture with noise goes to frequencies, where the high ones are damped, and back.
"""

import bh as np
import matplotlib.pyplot as plt


def smooth(size=1024, width=0.03):
    x = np.linspace(-4, 4, size)
    picture = np.sin(x[:, None] * x[None, :]) + 0.8 * (np.random.default_rng(1).random((size, size)) - 0.5)
    across, down = np.fft.rfftfreq(size), np.fft.fftfreq(size)
    damping = np.exp(-(across[None, :] ** 2 + down[:, None] ** 2) / (2 * width**2))
    return np.fft.irfft2(np.fft.rfft2(picture) * damping, s=(size, size))


# %%
plt.imshow(smooth(), cmap="RdGy", extent=(-4, 4, -4, 4))
plt.xlabel("x")
plt.ylabel("y")
plt.colorbar(label="value")
