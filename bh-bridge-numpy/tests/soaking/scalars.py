"""Functions of scalars with branches and loops, between operations on whole arrays."""

from . import sizes


def scalars(draft):
    """A function with loops is applied to arrays, which operations made and others take up."""
    random = draft.random
    shape = sizes.shape(random, random.choice((1, 2)))
    (_complex if random.random() < 0.3 else _real)(draft, shape)


def _real(draft, shape):
    random = draft.random
    x, y, n = draft.input(shape, "float64"), draft.input(shape, "float64"), draft.input(shape, "int64")
    one, other = draft.fresh(), draft.fresh()
    first = random.choice((x, f"({x} * 0.5)", f"({x} + {y})", f"np.abs({x})"))
    draft.add(f"{one}, {other} = np.vectorize(scalar('real', {random.randrange(10**6)}), otypes=[float, int])({first}, {y}, {n} % 11)")
    after = draft.fresh()
    draft.add(f"{after} = {random.choice((f'{one} + {y}', f'{one} * 0.25', f'{one} - {other}', f'np.maximum({one}, {x})'))}")


def _complex(draft, shape):
    random = draft.random
    z, n = draft.input(shape, "complex128"), draft.input(shape, "int64")
    made, after = draft.fresh(), draft.fresh()
    first = random.choice((z, f"({z} * 0.25)", f"({z} - 0.5j)"))
    draft.add(f"{made} = np.vectorize(scalar('complex', {random.randrange(10**6)}), otypes=[complex])({first}, {n})")
    draft.add(f"{after} = {random.choice((f'{made} * 0.5', f'{made}.real + {n}', f'{made} - {z}'))}")
