"""The coefficients that JPEG stores for an image: cosine transforms of 8 by 8 blocks, quantised, in zigzag order, run lengths counted.

Source: G. Wallace, "The JPEG Still Picture Compression Standard" (1991); multimedia courses.
"""

import numpy as np

sizes = {"small": {"n": 64}, "large": {"n": 768}}

TABLE = np.array(
    [
        [16, 11, 10, 16, 24, 40, 51, 61], [12, 12, 14, 19, 26, 58, 60, 55], [14, 13, 16, 24, 40, 57, 69, 56], [14, 17, 22, 29, 51, 87, 80, 62],
        [18, 22, 37, 56, 68, 109, 103, 77], [24, 35, 55, 64, 81, 104, 113, 92], [49, 64, 78, 87, 103, 121, 120, 101], [72, 92, 95, 98, 112, 100, 103, 99],
    ]
)  # fmt: skip


def main(n):
    rng = np.random.default_rng(7)
    y, x = np.mgrid[0:n, 0:n]
    image = np.clip(128 + 60 * np.sin(x / 15) * np.cos(y / 22) + 30 * ((x + y) % 37 < 9) + rng.normal(0, 3, (n, n)), 0, 255).round()
    k = np.arange(8)
    C = np.sqrt(2 / 8) * np.cos((2 * k[None, :] + 1) * k[:, None] * np.pi / 16)
    C[0] /= np.sqrt(2)
    blocks = (image - 128).reshape(n // 8, 8, n // 8, 8).swapaxes(1, 2)
    dct = np.einsum("ui,abij,vj->abuv", C, blocks, C, optimize=True)
    coefficients = np.round(dct / TABLE + 1e-9).astype(np.int32)
    order = np.array(sorted(((i, j) for i in range(8) for j in range(8)), key=lambda p: (p[0] + p[1], p[0] if (p[0] + p[1]) % 2 else p[1])))
    zigzag = coefficients[:, :, order[:, 0], order[:, 1]].reshape(-1, 64)
    dc = np.diff(zigzag[:, 0], prepend=0)
    last = 64 - np.argmax(zigzag[:, ::-1] != 0, axis=1)
    symbols, counts = np.unique(zigzag[:, 1:], return_counts=True)
    p = counts / counts.sum()
    entropy = -(p * np.log2(p)).sum()
    restored = np.matmul(np.matmul(C.T, coefficients * TABLE), C).swapaxes(1, 2).reshape(n, n) + 128
    mse = np.mean((image - restored) ** 2)
    return np.abs(dc).sum(), last.mean(), symbols, entropy, 10 * np.log10(255**2 / mse), restored
