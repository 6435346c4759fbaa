"""Functions of one member that run for many at once: `vmap`.

A function runs once, with arrays of one member's shape, while bh keeps what it records. Operations that depend on the members are then
recorded for all of them, with one more axis in front of each view.
"""

import functools

import numpy as np

from .. import _native
from .._array.conversion import native
from .._array.element_types import FLOAT64, code_of
from .._functions.joining import stack
from .._functions.manipulation import moveaxis
from .symbols import here
from .trees import LEAF, as_result, fresh, parts_of, shape_of, spread, tree_of, unflatten

_array = _native.ndarray


def vmap(fun, in_axes=0, out_axes=0):
    """A function that runs `fun` for each member of its arguments at once, as JAX's `vmap`.

    Parameters
    ----------
    fun : callable
        A function in plain NumPy of one member: with loops, branches, slices, masks and in-place updates.
    in_axes : int, None, or a container of them
        The axis of the members, for all arguments or for each of them; an entry may be a container of the form of its argument.
        None means that all members have the argument in common. Arguments by keyword have their members along the first axis.
    out_axes : int, None, or a container of them
        The axis of the members in results. None is for results that all members have in common.

    Returns
    -------
    callable
        It takes arguments with members, and returns results with members. Arguments that `fun` changes are changed.

    Raises
    ------
    bh.Error
        If `fun` reads a value that differs among the members (`if x > 0`, `float(x)`, `x[mask]`), at the line that does; if it writes
        such values into an array of the caller.
    ValueError
        If arguments have different numbers of members, or none has members.

    Notes
    -----
    Random numbers that `fun` draws differ from member to member: each draw is one for each member in turn.

    Examples
    --------
    >>> bh.vmap(bh.dot)(bh.array([[1.0, 2.0], [3.0, 4.0]]), bh.array([[1.0, 1.0], [2.0, 0.0]]))
    array([3., 6.])
    >>> bh.vmap(lambda row, scale: row * scale, in_axes=(0, None), out_axes=1)(bh.ones((3, 2)), 2.0)
    array([[2., 2., 2.],
           [2., 2., 2.]])
    """

    @functools.wraps(fun, assigned=("__doc__", "__name__"), updated=())
    def of_members(*args, **kwargs):
        axes = in_axes
        if parts_of(axes) is not None and axes is not None:
            if len(axes) != len(args):
                raise ValueError(f"vmap: in_axes has {len(axes)} entries for {len(args)} positional arguments")
            axes = tuple(axes)
        leaves = []
        tree = tree_of(args, leaves)
        named = tree_of(kwargs, leaves)
        places = spread(axes, tree, "vmap: in_axes")
        places += [0] * (len(leaves) - len(places))
        run = _Run([_stacked(leaf, axis) for leaf, axis in zip(leaves, places)])
        given = iter(run.members(leaves))
        value = run.call(fun, unflatten(tree, given), unflatten(named, given))
        run.write_back(leaves, places)
        return _results(run, value, out_axes)

    return of_members


def _stacked(leaf, axis):
    """A new array of all members of an argument, which are along its first axis; None for an argument in common."""
    if axis is None:
        return None
    shape = shape_of(leaf)
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise TypeError(f"vmap: axes are whole numbers or None, not {axis!r}")
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"vmap: an argument of shape {shape} has no axis {axis}")
    moved = moveaxis(native(leaf), axis, 0)
    return fresh(moved, moved.shape, moved._code)


class _Run:
    """A run of a function for all members of its arguments."""

    differentiates = False

    def __init__(self, stacked):
        self._stacked = stacked
        counts = sorted({array.shape[0] for array in stacked if array is not None})
        if not counts:
            raise ValueError("vmap needs at least one argument with members: all of in_axes are None")
        if len(counts) > 1:
            raise ValueError(f"vmap: arguments have different numbers of members: {', '.join(map(str, counts))}")
        (self.count,) = counts

    def members(self, leaves):
        """The arguments of one member."""
        if here.give_up is not None:
            here.give_up("it calls vmap")
        made = [None if array is None else _native.full(array.shape[1:], array._code, 0) for array in self._stacked]
        self.taping = _native.Members([array for array in made if array is not None])
        return [leaf if array is None else array for leaf, array in zip(leaves, made)]

    def call(self, fun, args, kwargs):
        """Runs the function, and then what it recorded for all members. Returns the form of its value; the results with members,
        or as they are if they have them in common, are in `results`."""
        self._outer, self._drawn = here.tapings, []
        here.tapings = (*self._outer, self)
        leaves = []
        try:
            tree = tree_of(fun(*args, **kwargs), leaves)
            arrays = [as_result(leaf) for leaf in leaves]
        except BaseException:
            self.taping.abandon()
            raise
        finally:
            here.tapings = self._outer
        stacked = [array for array in self._stacked if array is not None] + [array for _, array in self._drawn]
        stops = [taped.taping for taped in self._outer if taped.differentiates]
        found, self._changed = self.taping.end(self.count, stacked, arrays, stops)
        self.results = [(array, False) if all_members is None else (all_members, True) for array, all_members in zip(arrays, found)]
        return tree

    def draw(self, name, function, args, kwargs):
        """Random numbers of each member, where the function draws those of one."""
        if kwargs.get("out") is not None:
            raise self.refuse_draw(f"{name} with out")
        here.tapings, inside = self._outer, here.tapings
        try:
            each = [as_result(function(*args, **kwargs)) for _ in range(self.count)]
            # Without members nothing is drawn, but the function goes on.
            all_members = stack(each) if each else fresh(0, (0, *np.shape(function(*args, **kwargs))), FLOAT64)
        finally:
            here.tapings = inside
        all_members = fresh(all_members, all_members.shape, all_members._code)
        one = _native.full(all_members.shape[1:], all_members._code, 0)
        self.taping.vary(one)
        self._drawn.append((one, all_members))
        return one

    @staticmethod
    def refuse_draw(name):
        return _native.Error(f"vmap: {name} writes random numbers into an array, which members have in common or read; draw new arrays")

    def write_back(self, leaves, places):
        """Gives the caller's arrays what the function has left in them."""
        mapped = [(leaf, axis, array) for leaf, axis, array in zip(leaves, places, self._stacked) if array is not None]
        for (leaf, axis, array), changed in zip(mapped, self._changed):
            if changed and hasattr(leaf, "__setitem__"):
                leaf[...] = moveaxis(array, 0, axis)


def _results(run, tree, out_axes):
    """The results of all members, in the form of the function's value."""
    if tree is not LEAF and parts_of(out_axes) is not None and out_axes is not None:
        axes = spread(out_axes, tree, "vmap: out_axes")
    else:
        axes = [out_axes] * len(run.results)
    leaves = []
    for (array, differs), axis in zip(run.results, axes):
        if axis is None:
            if differs:
                raise ValueError("vmap: out_axes is None for a result that differs among the members")
            leaves.append(array)
            continue
        if not differs:
            wide = (run.count, *array.shape)
            array = fresh(_native.broadcast_to(array, wide), wide, code_of(array.dtype))
        leaves.append(moveaxis(array, 0, axis) if axis else array)
    return unflatten(tree, iter(leaves))
