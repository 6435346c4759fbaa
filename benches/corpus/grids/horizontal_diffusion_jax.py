"""horizontal_diffusion by JAX."""

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


@jax.jit
def main(field, coeff):
    ni, nj, _ = coeff.shape
    lap = 4.0 * field[1 : ni + 3, 1 : nj + 3] - (
        field[2 : ni + 4, 1 : nj + 3] + field[0 : ni + 2, 1 : nj + 3] + field[1 : ni + 3, 2 : nj + 4] + field[1 : ni + 3, 0 : nj + 2]
    )
    res = lap[1:, 1 : nj + 1] - lap[:-1, 1 : nj + 1]
    flx = jnp.where(res * (field[2 : ni + 3, 2 : nj + 2] - field[1 : ni + 2, 2 : nj + 2]) > 0, 0, res)
    res = lap[1 : ni + 1, 1:] - lap[1 : ni + 1, :-1]
    fly = jnp.where(res * (field[2 : ni + 2, 2 : nj + 3] - field[2 : ni + 2, 1 : nj + 2]) > 0, 0, res)
    return field[2 : ni + 2, 2 : nj + 2] - coeff * (flx[1:] - flx[:-1] + fly[:, 1:] - fly[:, :-1])
