"""gray_scott by JAX, its steps in one compiled loop."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)


def laplacian(a):
    return jnp.roll(a, 1, 0) + jnp.roll(a, -1, 0) + jnp.roll(a, 1, 1) + jnp.roll(a, -1, 1) - 4 * a


@functools.partial(jax.jit, static_argnums=2)
def run(u, v, steps, du, dv, feed, kill):
    def step(_, fields):
        u, v = fields
        uvv = u * v * v
        return u + du * laplacian(u) - uvv + feed * (1 - u), v + dv * laplacian(v) + uvv - (feed + kill) * v

    return jax.lax.fori_loop(0, steps, step, (u, v))


def main(n, steps, du=0.16, dv=0.08, feed=0.035, kill=0.065):
    rng = np.random.default_rng(7)
    u = np.ones((n, n))
    v = np.zeros((n, n))
    r = n // 8
    middle = slice(n // 2 - r, n // 2 + r)
    u[middle, middle] = 0.50
    v[middle, middle] = 0.25
    u += 0.02 * rng.random((n, n))
    v += 0.02 * rng.random((n, n))
    u, v = run(u, v, steps, du, dv, feed, kill)
    return u, v, v.mean(), (v > 0.1).sum()
