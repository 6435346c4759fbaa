"""The loops of conv_loops by Numba."""

import numpy as np
from numba import njit


@njit(fastmath=True)
def main(x, weights, bias):
    K, _, cin, cout = weights.shape
    N, H, W = x.shape[0], x.shape[1] - K + 1, x.shape[2] - K + 1
    out = np.empty((N, H, W, cout), dtype=np.float32)
    for n in range(N):
        for i in range(H):
            for j in range(W):
                out[n, i, j] = bias
                for a in range(K):
                    for b in range(K):
                        for c in range(cin):
                            v = x[n, i + a, j + b, c]
                            for o in range(cout):
                                out[n, i, j, o] += v * weights[a, b, c, o]
    return out
