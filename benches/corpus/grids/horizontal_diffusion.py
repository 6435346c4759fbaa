"""Diffusion on levels of an atmosphere: Laplacians with flux limiters.

Source: NPBench (ETH Zürich), kernel hdiff, of the COSMO model's dynamical core.
"""

import numpy as np

sizes = {"small": {"ni": 48, "nj": 48, "nk": 10}, "large": {"ni": 128, "nj": 128, "nk": 60}}


def inputs(ni, nj, nk):
    rng = np.random.default_rng(42)
    return {"field": rng.random((ni + 4, nj + 4, nk)), "coeff": rng.random((ni, nj, nk))}


def main(field, coeff):
    ni, nj, _ = coeff.shape
    lap = 4.0 * field[1 : ni + 3, 1 : nj + 3, :] - (
        field[2 : ni + 4, 1 : nj + 3, :] + field[0 : ni + 2, 1 : nj + 3, :] + field[1 : ni + 3, 2 : nj + 4, :] + field[1 : ni + 3, 0 : nj + 2, :]
    )
    res = lap[1:, 1 : nj + 1, :] - lap[:-1, 1 : nj + 1, :]
    flx = np.where((res * (field[2 : ni + 3, 2 : nj + 2, :] - field[1 : ni + 2, 2 : nj + 2, :])) > 0, 0, res)
    res = lap[1 : ni + 1, 1:, :] - lap[1 : ni + 1, :-1, :]
    fly = np.where((res * (field[2 : ni + 2, 2 : nj + 3, :] - field[2 : ni + 2, 1 : nj + 2, :])) > 0, 0, res)
    return field[2 : ni + 2, 2 : nj + 2, :] - coeff * (flx[1:, :, :] - flx[:-1, :, :] + fly[:, 1:, :] - fly[:, :-1, :])
