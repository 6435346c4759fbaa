"""Frames of a telescope: darks and flats, cosmic rays clipped by sigmas over the stack, stars found and measured.

Source: Astropy's CCD Data Reduction Guide; S. Howell, "Handbook of CCD Astronomy".
"""

import numpy as np

sizes = {"small": {"n": 48, "frames": 6}, "large": {"n": 320, "frames": 16}}


def main(n, frames):
    rng = np.random.default_rng(3)
    y, x = np.mgrid[0:n, 0:n]
    sky = np.full((n, n), 100.0)
    stars = rng.uniform(5, n - 5, (max(n // 6, 6), 2))
    for sy, sx in stars.tolist():
        sky += 2000 * np.exp(-((x - sx) ** 2 + (y - sy) ** 2) / (2 * 1.5**2))
    flat = 1 - 0.2 * np.hypot(x - n / 2, y - n / 2) / n
    dark = rng.normal(20, 1, (n, n))
    stack = np.array([rng.poisson(sky * flat) + dark for _ in range(frames)])
    hits = rng.random(stack.shape) < 0.002
    stack[hits] += rng.uniform(1000, 5000, hits.sum())
    calibrated = (stack - dark) / (flat / np.median(flat))
    data = calibrated.copy()
    previous, rejected = -1, 0
    while rejected != previous:
        previous = rejected
        center = np.nanmedian(data, axis=0)
        spread = np.nanstd(data, axis=0)
        data[np.abs(data - center) > 4 * spread + 1e-9] = np.nan
        data[np.abs(calibrated - center) > 8 * np.sqrt(np.abs(center) + 1)] = np.nan
        rejected = np.isnan(data).sum()
    combined = np.nanmean(data, axis=0)
    background = np.median(combined)
    mad = 1.4826 * np.median(np.abs(combined - background))
    core = combined[1:-1, 1:-1]
    peak = (
        (core > background + 20 * mad)
        & (core >= combined[:-2, 1:-1])
        & (core >= combined[2:, 1:-1])
        & (core >= combined[1:-1, :-2])
        & (core >= combined[1:-1, 2:])
    )
    found = np.argwhere(peak) + 1
    flux = np.array([(combined - background)[np.hypot(x - c, y - r) < 5].sum() for r, c in found.tolist()])
    return combined, rejected, found, flux


tolerance = 1e-8
