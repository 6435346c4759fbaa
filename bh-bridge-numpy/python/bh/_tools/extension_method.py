"""`bh.extension_method`: operations of the program's own, written in C or in the language of a device."""

import os

from .. import _native
from .._array.conversion import asarray
from .._functions.creation import empty_like
from .._ufunc.ufunc import one_stack
from .runtime import using

ndarray = _native.ndarray

_NUMBERS = (bool, int, float, complex)


class extension_method:
    """Registers a function of a shared library, or a kernel of a file, as an operation on arrays.

    A call of the object records the operation; it runs with the operations around it, in their order, when a result is needed. The
    engine that loads the function runs it, between kernels.

    Parameters
    ----------
    name : str
        The name of the function or of the kernel.
    library : path
        A shared library for the component `ve-cpu`, with a function in C; a file of OpenCL C for `opencl`, or of CUDA C++ for `cuda`.
    component : str
        The component of the stack that runs the function.

    Raises
    ------
    bh.Error
        If the library or its function cannot be loaded, or if the stack has no such component.

    See Also
    --------
    vectorize : the same for functions of scalars in Python.

    Examples
    --------
    >>> twice = bh.extension_method("twice", "twice.so")                # doctest: +SKIP
    >>> twice(bh.arange(3.0))                                           # doctest: +SKIP
    array([0., 2., 4.])
    """

    def __init__(self, name, library, component="ve-cpu"):
        for what, word in (("name", name), ("component", component)):
            if not word or any(map(str.isspace, word)):
                raise ValueError(f"{word!r} is no {what}: it must be a word")
        self.__name__, self.library, self.component = name, os.path.abspath(os.fsdecode(library)), component
        self._stacks = set()
        self._register(_native.Stack())

    def __repr__(self):
        return f"<extension method {self.__name__!r} of {self.library}>"

    def __call__(self, *inputs, out=None):
        """Calls the function on arrays and numbers.

        Parameters
        ----------
        *inputs : array_like
            Numbers take the type of the first output.
        out : ndarray or tuple of ndarrays, optional
            The arrays that the function writes; by default one new array with the shape and the type of the first input. They share no
            memory with each other; if one shares memory with an input, the function reads a copy of that input.

        Returns
        -------
        ndarray or tuple of ndarrays
            `out`.
        """
        inputs = [value if isinstance(value, _NUMBERS) else self._array(asarray(value)) for value in inputs]
        outs = None if out is None else out if isinstance(out, tuple) else (out,)
        if outs is None:
            like = next((value for value in inputs if type(value) is ndarray), None)
            if like is None:
                raise TypeError(f"{self.__name__} needs an array among its inputs, or out=")
            with using(like._stack):
                out = empty_like(like)
            outs = (out,)
        stacks = {self._array(array)._stack for array in outs}
        if len(stacks) != 1:
            raise ValueError(f"{self.__name__} needs one output or more, all on one stack")
        self._register(_native.Stack(stacks.pop()))
        _native.extension(self.__name__, list(outs), one_stack([outs[0], *inputs])[1:])
        return out

    def _array(self, value):
        """The value, which must be an array of bh."""
        if type(value) is not ndarray:
            raise TypeError(f"{self.__name__} takes arrays of bh, not {type(value).__name__}")
        return value

    def _register(self, stack):
        """Has a stack load the function, once."""
        if stack.name in self._stacks:
            return
        if not stack.message(f"extmethod-library {self.component} {self.__name__} {self.library}"):
            raise _native.Error(f"stack {stack.name!r} has no component {self.component!r} that runs extension methods of programs")
        self._stacks.add(stack.name)
