"""asian_option by JAX, with NumPy's random numbers."""

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)


@jax.jit
def price(Z, s0, strike, r, sigma, T):
    paths, steps = Z.shape
    dt = T / steps
    S = s0 * jnp.exp(jnp.cumsum((r - 0.5 * sigma**2) * dt + sigma * jnp.sqrt(dt) * Z, axis=1))
    arithmetic = jnp.maximum(S.mean(axis=1) - strike, 0) * jnp.exp(-r * T)
    geometric = jnp.maximum(jnp.exp(jnp.log(S).mean(axis=1)) - strike, 0) * jnp.exp(-r * T)
    cov = jnp.cov(arithmetic, geometric)
    b = cov[0, 1] / cov[1, 1]
    controlled = arithmetic - b * (geometric - geometric.mean())
    half = 1.96 * controlled.std(ddof=1) / jnp.sqrt(paths)
    return arithmetic.mean(), controlled.mean(), half, b, (S.min(axis=1) < 0.9 * s0).astype(jnp.float64).mean()


def main(paths, steps, s0=100.0, strike=100.0, r=0.05, sigma=0.2, T=1.0):
    Z = np.random.default_rng(123).standard_normal((paths, steps))
    return price(Z, s0, strike, r, sigma, T)
