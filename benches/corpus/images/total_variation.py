"""Total-variation denoising by Chambolle's dual iteration, until the change is small.

Source: A. Chambolle (2004); scikit-image's denoise_tv_chambolle is of this form.
"""

import numpy as np

sizes = {"small": {"n": 48}, "large": {"n": 400}}


def main(n, weight=0.15, eps=2e-4, limit=100):
    rng = np.random.default_rng(3)
    y, x = np.ogrid[:n, :n]
    image = ((x - n / 2) ** 2 + (y - n / 2) ** 2 < (n / 4) ** 2) * 1.0 + 0.15 * rng.standard_normal((n, n))
    p = np.zeros((2, n, n))
    g = np.zeros_like(p)
    d = np.zeros_like(image)
    i = 0
    while i < limit:
        if i > 0:
            d = -p.sum(0)
            d[1:, :] += p[0, :-1, :]
            d[:, 1:] += p[1, :, :-1]
            out = image + d
        else:
            out = image
        E = (d**2).sum()
        g[0, :-1, :] = np.diff(out, axis=0)
        g[1, :, :-1] = np.diff(out, axis=1)
        norm = np.sqrt((g**2).sum(axis=0))[np.newaxis, ...]
        E += weight * norm.sum()
        tau = 1.0 / 4.0
        norm *= tau / weight
        norm += 1.0
        p -= tau * g
        p /= norm
        E /= float(image.size)
        if i == 0:
            E_init = E
            E_previous = E
        else:
            if np.abs(E_previous - E) < eps * E_init:
                break
            E_previous = E
        i += 1
    return out, i, E
