"""Covariances and correlations of the columns of a table, one column after the other, and by ranks.

Source: NPBench (ETH Zürich), kernels correlation and covariance, of PolyBench.
"""

import numpy as np

sizes = {"small": {"N": 60, "M": 40}, "large": {"N": 600, "M": 300}}


def main(N, M):
    rng = np.random.default_rng(3)
    data = rng.standard_normal((N, M)) @ rng.standard_normal((M, M)) * 0.1
    mean = np.mean(data, axis=0)
    centred = data - mean
    cov = np.zeros((M, M))
    for i in range(M):
        cov[i:M, i] = cov[i, i:M] = centred[:, i] @ centred[:, i:M] / (N - 1.0)
    stddev = np.std(data, axis=0)
    stddev[stddev <= 0.1] = 1.0
    scaled = centred / (np.sqrt(N) * stddev)
    corr = np.eye(M)
    for i in range(M - 1):
        corr[i + 1 : M, i] = corr[i, i + 1 : M] = scaled[:, i] @ scaled[:, i + 1 : M]
    ranks = np.argsort(np.argsort(data, axis=0), axis=0)
    spearman = np.corrcoef(ranks, rowvar=False)
    iu = np.triu_indices(M, k=1)
    z = np.arctanh(np.clip(corr[iu], -0.999999, 0.999999))
    return cov, corr, spearman, z.mean(), (np.abs(corr[iu]) > 0.5).sum()
