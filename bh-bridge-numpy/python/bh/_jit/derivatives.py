"""Derivatives of functions in plain NumPy: `grad`, `value_and_grad`, `vjp`, `jvp`, `jacobian`, `hvp`, `stop_gradient`,
`check_grad`.

A function runs as usual while bh keeps what it records: in-place updates, slices, masks, loops and branches as they went. The
adjoint of that is recorded like any other program. Names and meanings of arguments are JAX's.
"""

import functools

import numpy as np

from .. import _native
from .._array.element_types import code_of, is_complex, is_inexact
from .._functions.manipulation import moveaxis
from .members import vmap
from .symbols import here
from .taped import Taped, copied, leaves_like
from .trees import fresh, full, tree_of, unflatten

_array = _native.ndarray


def grad(fun, argnums=0, has_aux=False, memory=None, disk=None):
    """A function that returns the gradient of `fun`, whose result is one real number.

    Parameters
    ----------
    fun : callable
        A function in plain NumPy on bh's arrays. It may write into its arguments and branch on comparisons.
    argnums : int or tuple of ints
        The positional arguments to differentiate by: arrays, numbers, or tuples, lists, dictionaries and dataclasses of them.
    has_aux : bool
        `fun` returns a pair, whose second part is passed through.
    memory : int, float or str
        The most memory that the gradient may take: bytes, a size as "2 GiB" or "25%", or a share of the machine's memory between 0 and
        1. If the values that the derivative reads do not fit, parts of `fun` run again from states that are kept. The gradient has the
        same bits. The function that is returned has a method `plan`, which takes the same arguments, runs `fun`, and returns a
        `MemoryPlan`: the peak, and how often parts will run again.
    disk : int or str
        How many bytes of states may go to a temporary file if they do not fit in `memory`, such as "20 GiB". They do where that takes
        less time than to run parts of `fun` again. The file has no name; it ends with the gradient, also after errors.

    Returns
    -------
    callable
        It takes the arguments of `fun`, and returns the gradient in the form of the argument, or a tuple of them. The gradient of
        an argument that `fun` changes is that by its value at the call.

    Raises
    ------
    bh.Error
        If `fun` reads a value that depends on the arguments (`float(x)`, `np.asarray(x)`), except through `stop_gradient`; if the
        derivative of an operation is not known.
    MemoryError
        If `memory` is too small a bound: the message names the least.
    OSError
        If the disk is full.
    TypeError
        For arguments that are no floating-point or complex numbers, and for results that are not one real number.

    Examples
    --------
    >>> def energy(u):
    ...     u[1:-1] *= u[2:]
    ...     return (u * u).sum()
    >>> bh.grad(energy)(bh.array([1.0, 2.0, 3.0]))
    array([ 2., 36., 30.])
    """
    inner = value_and_grad(fun, argnums, has_aux, memory, disk)

    @functools.wraps(fun, assigned=("__doc__", "__name__"), updated=())
    def gradient(*args, **kwargs):
        value, found = inner(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    if memory is not None:
        gradient.plan = inner.plan
    return gradient


def value_and_grad(fun, argnums=0, has_aux=False, memory=None, disk=None):
    """A function that returns the pair of the value of `fun` and its gradient, from one run of `fun`. Parameters and errors are those of `grad`.

    Examples
    --------
    >>> bh.value_and_grad(lambda x: (x * x).sum())(bh.array([1.0, 2.0]))
    (np.float64(5.0), array([2., 4.]))
    """

    several = isinstance(argnums, (tuple, list))
    numbers = tuple(argnums) if several else (argnums,)
    bound = _bound(memory, disk)

    @functools.wraps(fun, assigned=("__doc__", "__name__"), updated=())
    def value_and_gradient(*args, **kwargs):
        taped = Taped(fun, args, kwargs, numbers, has_aux, later=False, bound=bound)
        try:
            found = taped.pull([full(1.0, taped.number())])
        finally:
            taped.write_back()
        found = tuple(found) if several else found[0]
        return ((taped.value, taped.aux) if has_aux else taped.value), found

    def plan(*args, **kwargs):
        taped = Taped(fun, args, kwargs, numbers, has_aux, later=False, bound=bound)
        taped.write_back()
        return taped.plan()

    if bound is not None:
        value_and_gradient.plan = plan
    return value_and_gradient


def _bound(memory, disk):
    """The bytes of `memory` and of `disk`, or None without a bound."""
    if memory is None:
        if disk is not None:
            raise TypeError("disk: states go to the disk only under a bound of memory, the argument memory")
        return None
    return _native.memory_bound(memory, "memory"), None if disk is None else _native.memory_bound(disk, "disk")


def vjp(fun, *primals, has_aux=False, memory=None, disk=None):
    """The value of `fun`, and a function that takes a cotangent of the value back to the arguments.

    Parameters
    ----------
    fun : callable
        A function as `grad` takes, whose result may be an array.
    *primals : array_like
        Its arguments.
    has_aux : bool
        `fun` returns a pair, whose second part is a third result.
    memory : int, float or str
        The bound of `grad`.
    disk : int or str
        How many bytes of states may go to a file, as for `grad`.

    Returns
    -------
    tuple
        The value, and a function that takes an array of the value's shape and returns a tuple with one cotangent for each argument.

    Raises
    ------
    bh.Error
        As `grad`.

    Examples
    --------
    >>> value, back = bh.vjp(bh.sin, bh.array([0.0, 1.0]))
    >>> back(bh.ones(2))
    (array([1.        , 0.54030231]),)
    """
    bound = _bound(memory, disk)
    taped = Taped(fun, primals, {}, tuple(range(len(primals))), has_aux, later=True, bound=bound)
    taped.write_back()

    def back(cotangent):
        leaves = leaves_like(cotangent, taped.result_tree, taped.results, "cotangent")
        return tuple(taped.pull(leaves))

    return (taped.value, back, taped.aux) if has_aux else (taped.value, back)


def jvp(fun, primals, tangents, has_aux=False):
    """The value of `fun`, and its derivative along tangents of the arguments.

    Parameters
    ----------
    fun : callable
        A function as `grad` takes, whose result may be an array.
    primals, tangents : tuple
        The arguments, and a tangent of the same shape for each.
    has_aux : bool
        `fun` returns a pair, whose second part is a third result.

    Raises
    ------
    bh.Error
        As `grad`.

    Examples
    --------
    >>> bh.jvp(bh.sin, (bh.array([0.0, 1.0]),), (bh.ones(2),))
    (array([0.        , 0.84147098]), array([1.        , 0.54030231]))
    """
    if len(primals) != len(tangents):
        raise TypeError(f"jvp takes as many tangents as primals, not {len(tangents)} for {len(primals)}")
    taped = Taped(fun, primals, {}, tuple(range(len(primals))), has_aux, later=False)
    # The way back is linear in the cotangents: its own way back takes tangents forward.
    seeds = [full(0.0, result) for result in taped.results]
    transposed = Taped(lambda *seeds: taped.pull(list(seeds)), seeds, {}, tuple(range(len(seeds))), False, later=False)
    leaves = []
    for tree, arguments, tangent in zip(taped.trees, taped.given, tangents):
        leaves += leaves_like(tangent, tree, arguments, "tangent")
    found = transposed.pull(leaves) if seeds else []
    taped.write_back()
    derivative = unflatten(taped.result_tree, iter(found))
    return (taped.value, derivative, taped.aux) if has_aux else (taped.value, derivative)


def jacobian(fun, argnums=0):
    """A function that returns the derivatives of each element of an array that `fun` returns by each element of one argument.

    It runs one adjoint for each element of the result, or one tangent for each element of the argument, whichever are fewer, and
    all of them at once as `vmap` does.

    Parameters
    ----------
    fun : callable
        A function as `grad` takes, whose result is an array.
    argnums : int
        The argument to differentiate by.

    Returns
    -------
    callable
        It takes the arguments of `fun`, and returns an array of the result's shape followed by the argument's.

    Examples
    --------
    >>> bh.jacobian(lambda x: x * x)(bh.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """

    def derivatives(*args, **kwargs):
        taped = Taped(fun, args, kwargs, (argnums,), False, later=True)
        if len(taped.results) != 1 or len(taped.given[0]) != 1:
            raise TypeError("jacobian takes functions from one array to one array")
        (result,), (argument,) = taped.results, taped.given[0]
        taped.write_back()
        forward = argument.size < result.size and is_complex(code_of(argument.dtype)) == is_complex(code_of(result.dtype))
        if forward and not taped.calls:
            seeds = [full(0.0, result)]
            transposed = Taped(lambda seed: taped.pull([seed]), seeds, {}, (0,), False, later=True)
            columns = _of_units(transposed, argument, result)
            return moveaxis(columns, 0, -1).reshape(result.shape + argument.shape)
        return _of_units(taped, result, argument).reshape(result.shape + argument.shape)

    return derivatives


# Elements of all ways back that are taken at once, at most.
_AT_ONCE = 1 << 25


def _of_units(taped, result, argument):
    """The argument's adjoints for the unit vectors of the result, one after the other along the first axis: the Jacobian."""

    def row(seed):
        found = []
        tree_of(taped.pull([seed]), found)
        return found[0]

    rows = _native.empty((result.size, *argument.shape), code_of(argument.dtype))
    # Derivatives of the program's own run one way back at a time: they may read what they get.
    most = 1 if taped.calls else max(1, _AT_ONCE // max(result.size, argument.size, 1))
    for first in range(0, result.size, most):
        count = min(most, result.size - first)
        seeds = _native.full((count, result.size), code_of(result.dtype), 0.0)
        _native.diagonal(seeds[:, first : first + count], 0, 0, 1)[...] = 1.0
        seeds = seeds.reshape((count, *result.shape))
        rows[first : first + count] = row(seeds[0])[None] if taped.calls else vmap(row)(seeds)
    return rows


def hvp(fun, primals, tangents):
    """The second derivative of a function whose result is one real number, times tangents of its arguments.

    Parameters
    ----------
    fun : callable
        A function as `grad` takes.
    primals, tangents : tuple
        The arguments, and a tangent of the same shape for each.

    Examples
    --------
    >>> bh.hvp(lambda x: (x**3).sum(), (bh.array([1.0, 2.0]),), (bh.ones(2),))
    array([ 6., 12.])
    """
    numbers = tuple(range(len(primals)))

    directions = []
    for tangent in tangents:
        tree_of(tangent, directions)

    def slope(*args):
        slopes = []
        for found in grad(fun, numbers)(*args):
            tree_of(found, slopes)
        return sum((g * t).sum() for g, t in zip(slopes, directions))

    found = grad(slope, numbers)(*primals)
    return found[0] if len(primals) == 1 else found


def stop_gradient(x):
    """The same values, which count as constants for derivatives, so that the function may read them as numbers.

    Parameters
    ----------
    x : array_like, or a container of arrays

    Examples
    --------
    >>> bh.grad(lambda x: (bh.stop_gradient(x) * x).sum())(bh.array([2.0, 3.0]))
    array([2., 3.])
    """
    leaves, found = [], []
    tree = tree_of(x, leaves)
    for leaf in leaves:
        if type(leaf) is _array and is_inexact(code_of(leaf.dtype)):
            leaf = _native.constant_copy(leaf, [taped.taping for taped in here.tapings if taped.differentiates])
            for taped in here.tapings:
                if not taped.differentiates:
                    taped.taping.stop(leaf)
        found.append(leaf)
    return unflatten(tree, iter(found))


def check_grad(fun, *args, argnums=0, step=None, rtol=1e-5, seed=0):
    """Compares the gradient of `fun` with central differences along a random direction, and returns the relative difference.

    Parameters
    ----------
    fun : callable
        A function as `grad` takes.
    *args
        Its arguments.
    argnums : int or tuple of ints
        The arguments to differentiate by.
    step : float, optional
        The step of the differences; by default the cube root of the type's rounding.
    rtol : float
        The largest relative difference.
    seed : int
        The seed of the direction.

    Raises
    ------
    AssertionError
        If the difference is larger. The message names the argument.

    Examples
    --------
    >>> bh.check_grad(lambda x: (x**3).sum(), bh.array([1.0, 2.0])) < 1e-5
    True
    """
    numbers = tuple(argnums) if isinstance(argnums, (tuple, list)) else (argnums,)
    found = grad(fun, numbers)(*args)
    rng, worst = np.random.default_rng(seed), 0.0
    for number, gradient in zip(numbers, found):
        leaves = []
        tree = tree_of(args[number], leaves)
        slopes = []
        tree_of(gradient, slopes)
        plain = [np.asarray(leaf) for leaf in leaves]
        directions = [_direction(rng, leaf) for leaf in plain]
        little = step or float(np.cbrt(max(np.finfo(leaf.dtype).eps for leaf in plain)))

        def value(by, number=number, tree=tree, plain=plain, directions=directions):
            moved = [fresh(x + by * d, x.shape, code_of(x.dtype)) for x, d in zip(plain, directions)]
            changed = [copied(arg) for arg in args]
            changed[number] = unflatten(tree, iter(moved))
            return float(fun(*changed))

        expected = (value(little) - value(-little)) / (2 * little)
        actual = float(sum(np.real(np.sum(np.asarray(g) * d)) for g, d in zip(slopes, directions)))
        difference = abs(actual - expected) / max(abs(actual), abs(expected), 1e-300)
        if not difference <= rtol:
            text = f"the gradient by argument {number} gives {actual} along a direction, differences give {expected}"
            raise AssertionError(f"{text}: the relative difference is {difference:.2g}")
        worst = max(worst, difference)
    return worst


def _direction(rng, like):
    direction = rng.standard_normal(like.shape)
    if like.dtype.kind == "c":
        direction = direction + 1j * rng.standard_normal(like.shape)
    return np.asarray(direction, dtype=like.dtype)
