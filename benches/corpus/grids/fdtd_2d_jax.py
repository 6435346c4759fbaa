"""fdtd_2d by JAX, its steps in one compiled loop."""

import jax

jax.config.update("jax_enable_x64", True)


@jax.jit
def run(ex, ey, hz, fict):
    def step(t, fields):
        ex, ey, hz = fields
        ey = ey.at[0, :].set(fict[t])
        ey = ey.at[1:, :].add(-0.5 * (hz[1:, :] - hz[:-1, :]))
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        hz = hz.at[:-1, :-1].add(-0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]))
        return ex, ey, hz

    return jax.lax.fori_loop(0, fict.shape[0], step, (ex, ey, hz))


def main(tmax, ex, ey, hz, fict):
    return run(ex, ey, hz, fict)
