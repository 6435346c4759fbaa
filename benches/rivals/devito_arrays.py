"""Stencils in Devito: the C code of its own, on all threads, built before the first timed run."""

import functools

import numpy as np
from devito import Eq, Grid, Operator, TimeFunction, configuration

configuration["language"] = "openmp"
configuration["log-level"] = "ERROR"


@functools.cache
def heat_operator(rows, columns, **options):
    """A step of the inner points of a grid of this size; what surrounds them is the function's halo."""
    grid = Grid(shape=(rows - 2, columns - 2), extent=(rows - 3, columns - 3), dtype=np.float64)
    x, y = grid.dimensions
    u = TimeFunction(name="u", grid=grid, space_order=2, dtype=np.float64)
    beside = [u.subs(axis, axis + way * axis.spacing) for axis in (x, y) for way in (-1, 1)]
    return u, Operator(Eq(u.forward, 0.2 * (u + sum(beside))), opt=("advanced", {"openmp": True, **options}))


def heat_steps(grid, iters, **options):
    u, operator = heat_operator(*grid.shape, **options)
    inner = (slice(1, -1), slice(1, -1))
    for part in (0, 1):
        u.data_with_halo[part][inner] = grid
    operator.apply(time_M=iters - 1)
    return [np.asarray(u.data_with_halo[iters % 2][inner])]
