"""Functions of programs that run as array operations: recorded (`bh.jit`) or read (`scalar`, `bh.vectorize`, `bh.parallel`)."""
