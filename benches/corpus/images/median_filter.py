"""Salt and pepper removed by a median over windows, and what erosion, dilation and local means make of an image.

Source: scikit-image's and SciPy lecture notes' denoising exercises; NumPy's documentation of sliding_window_view.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

sizes = {"small": {"n": 48}, "large": {"n": 300}}


def main(n):
    rng = np.random.default_rng(9)
    x, y = np.meshgrid(np.linspace(0, 4, n), np.linspace(0, 4, n))
    clean = np.sin(x * y) + (x > 2)
    noisy = clean.copy()
    u = rng.random((n, n))
    noisy[u < 0.05] = clean.min()
    noisy[u > 0.95] = clean.max()
    windows = sliding_window_view(np.pad(noisy, 1, mode="symmetric"), (3, 3))
    median = np.median(windows, axis=(2, 3))
    opened = sliding_window_view(np.pad(windows.min(axis=(2, 3)), 1, mode="edge"), (3, 3)).max(axis=(-2, -1))
    local = windows.mean(axis=(2, 3))
    spread = np.sqrt(np.maximum((windows**2).mean(axis=(2, 3)) - local**2, 0))
    adaptive = np.where(np.abs(noisy - median) > 2 * spread, median, noisy)
    psnr = [10 * np.log10(np.ptp(clean) ** 2 / np.mean((a - clean) ** 2)) for a in (noisy, median, local, adaptive)]
    return median, opened, adaptive, psnr
