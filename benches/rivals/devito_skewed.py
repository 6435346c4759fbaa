"""Stencils in Devito with blocks along both axes that are skewed by time, in the C code of its own."""

import functools

import devito_arrays

heat_steps = functools.partial(devito_arrays.heat_steps, skewing=True, blockinner=True, blocklevels=1)
