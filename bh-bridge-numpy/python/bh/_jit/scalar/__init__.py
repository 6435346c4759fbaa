"""Functions of scalars, read from their source and run on all elements of arrays at once.

`source` finds a function's syntax tree, `reader` makes a program of few kinds of statements (`ir`) of it, `kinds` and `operations`
say what types its values have, `liveness` and `inference` what is known of each variable. `registers` writes it down as one scalar
program, for which `own` turns elements that are written into variables; `emitter` writes it down as operations on arrays under masks.
`loops` runs loops whose length depends on data then.
"""
