"""Functions of programs that run as array operations: recorded (`bh.jit`), read (`scalar`, `bh.vectorize`, `bh.parallel`) or
differentiated (`bh.grad`)."""
