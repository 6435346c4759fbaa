"""Forms of nested containers of arrays: tuples, lists, dictionaries and dataclasses."""

import numpy as np

from .. import _native
from .._array.element_types import code_of

# A form of nested containers: of an array or a number, that of a leaf; else how to make the container, and the forms of the parts.
LEAF = object()


def tree_of(value, leaves):
    """The form of a value. Appends its arrays and numbers to `leaves`."""
    kind, parts = type(value), parts_of(value)
    if parts is None:
        leaves.append(value)
        return LEAF
    if value is None:
        make = None
    elif isinstance(value, (tuple, list)):
        make = kind._make if hasattr(kind, "_make") else kind
    elif isinstance(value, dict):
        names = tuple(value)

        def make(parts):
            return kind(zip(names, parts))

    else:
        import dataclasses

        names = [field.name for field in dataclasses.fields(value)]

        def make(parts):
            return dataclasses.replace(value, **dict(zip(names, parts)))

    return (make, tuple(tree_of(part, leaves) for part in parts))


def parts_of(value):
    """The parts of a container; None for anything else."""
    if value is None:
        return ()
    if isinstance(value, (tuple, list)):
        return tuple(value)
    if isinstance(value, dict):
        return tuple(value.values())
    # As `dataclasses.is_dataclass`, of which most programs have no need.
    if hasattr(type(value), "__dataclass_fields__"):
        import dataclasses

        return tuple(getattr(value, field.name) for field in dataclasses.fields(value))
    return None


def unflatten(tree, leaves):
    """The value of a form with the next ones of an iterator's leaves."""
    if tree is LEAF:
        return next(leaves)
    make, parts = tree
    parts = [unflatten(part, leaves) for part in parts]
    return None if make is None else make(parts)


def alike(a, b):
    """Are two forms the same, apart from the kinds of containers?"""
    if a is LEAF or b is LEAF:
        return a is b
    return len(a[1]) == len(b[1]) and all(map(alike, a[1], b[1]))


def spread(given, tree, what):
    """For each leaf of a form, what `given` says of it: a value for the whole of a part or for each of its parts."""
    parts = parts_of(given) if given is not None else None
    if tree is LEAF or parts is None:
        if parts is not None:
            raise ValueError(f"{what} has a container where the value has an array")
        return [given] * count(tree)
    if len(parts) != len(tree[1]):
        raise ValueError(f"{what} has {len(parts)} parts for {len(tree[1])} of the value")
    return [leaf for part, form in zip(parts, tree[1]) for leaf in spread(part, form, what)]


def count(tree):
    """The number of leaves of a form."""
    return 1 if tree is LEAF else sum(map(count, tree[1]))


def fresh(value, shape, code):
    """A new array with these values."""
    array = _native.empty(shape, code)
    array[...] = value
    return array


def full(value, like):
    """A new array of one number, in the shape and type of another one."""
    return _native.full(like.shape, code_of(like.dtype), value)


def as_result(value):
    """A result of a function as an array."""
    if type(value) is _native.ndarray:
        return value.copy() if value.base is not None and value.base.dtype != value.dtype else value
    import bh

    return bh.asarray(value)


def shape_of(value):
    """The shape of an array or a number, without reading it."""
    return value.shape if type(value) is _native.ndarray else np.shape(value)
