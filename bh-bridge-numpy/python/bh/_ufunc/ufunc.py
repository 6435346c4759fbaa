"""Universal functions: types as NumPy resolves them, then an operation of the stack, a composition of such, or NumPy."""

import operator
import threading

import numpy as np

from .. import _native
from .._array import conversion
from .._array.conversion import assigned, astype, decides, in_order, mask_from, moved, native, order_of, warn
from .._array.element_types import BOOL, CODE, MOST_DIMENSIONS, WEAK, WEAK_TYPES, is_complex, is_inexact, is_integer, is_real
from .._array.layout import repeats
from .._jit.symbols import Symbol, refuse
from .._numpy import fallback, floating_point
from .._numpy.fallback import Fallback
from .compositions import BOOLEAN, COMPOSED, DIRECT, FORMS, OPERATORS
from .operands import BINARY, comes_first, defers, overrides, settled, wraps_own

ndarray = _native.ndarray
_NO_VALUE = np._NoValue


def operand_of(value):
    """The value as an array of bh or a number, with its code."""
    kind = type(value)
    if kind is ndarray:
        return value, value._code
    weak = WEAK.get(kind)
    if weak is not None:
        return value, weak
    if kind is bool:
        return value, BOOL
    if isinstance(value, np.generic) or kind is np.ndarray and value.ndim == 0:
        code = CODE.get(value.dtype)
        if code is None:
            raise Fallback(f"bh has no element type {value.dtype}")
        return value.item(), code
    if overrides(value) or hasattr(kind, "__array_wrap__") and not isinstance(value, np.ndarray):
        raise Fallback(f"{kind.__name__} has universal functions or results of its own")
    value = native(value)
    return value, value._code


def _lists_as_arrays(args):
    """The operands with arrays in the places of lists of numbers; themselves if there are none, or no array among them."""
    if ndarray not in map(type, args) or not any(map(fallback.is_of_numbers, args)):
        return args
    made = [np.asarray(value) if fallback.is_of_numbers(value) else value for value in args]
    if any(type(value) is np.ndarray and (value.dtype not in CODE or value.ndim > MOST_DIMENSIONS) for value in made):
        return args
    return [fallback.from_host(value, CODE[value.dtype]) if type(value) is np.ndarray else value for value in made]


class _Here(threading.local):
    """Has the table of known calls served the last call of this thread?"""

    served = False


here = _Here()


def resolution_type(code):
    """The operand that NumPy's resolution gets for this code."""
    return WEAK_TYPES[code] if code in WEAK_TYPES else _DTYPES[code]


_DTYPES = list(CODE)


class _UfuncClass(type):
    """The class of the class of universal functions, which NumPy's are instances of too."""

    def __instancecheck__(cls, value):
        return isinstance(value, np.ufunc) or type.__instancecheck__(cls, value)


class _Documentation:
    """The text of a function, which programs may change: NumPy's by default; of the class, what its functions are."""

    def __get__(self, function, owner):
        if function is None:
            return "A function that works element by element on arrays that broadcast against each other."
        return vars(function).get("__doc__", function._np.__doc__)

    def __set__(self, function, text):
        vars(function)["__doc__"] = text

    def __delete__(self, function):
        vars(function).pop("__doc__", None)


class ufunc(_native.Ufunc, metaclass=_UfuncClass):
    __doc__ = _Documentation()
    # Attributes that programs read, and may change, are in a dictionary beside these, as NumPy's are.
    __slots__ = "__name__ nin nout nargs types ntypes identity signature _np _bh_numpy _loops __dict__ __weakref__".split()

    def __new__(cls, function):
        _, reflected = BINARY.get(function.__name__, (None, None))
        return super().__new__(cls, function.nin, function, reflected)

    def __init__(self, function):
        self._np = self._bh_numpy = function
        self.__name__ = function.__name__
        vars(self).update(function.__dict__)
        self.nin, self.nout, self.nargs = function.nin, function.nout, function.nargs
        self.types, self.ntypes = function.types, function.ntypes
        self.identity, self.signature = function.identity, function.signature
        self._loops = {}

    def __repr__(self):
        return f"<ufunc '{self.__name__}'>"

    __signature__ = property(lambda self: vars(self).setdefault("__signature__", self._np.__signature__))

    def __getattr__(self, name):
        # NumPy's own ways to its loops.
        if name.startswith("__") or name == "_np":
            raise AttributeError(f"'ufunc' object has no attribute {name!r}")
        return getattr(self._np, name)

    def __eq__(self, other):
        return other is self or other is self._np

    def __hash__(self):
        return hash(self._np)

    def __reduce__(self):
        return named, (self.__name__,)

    def resolve_dtypes(self, *args, **kwargs):
        """The types of a call's operands, as in NumPy."""
        return self._np.resolve_dtypes(*args, **kwargs)

    def _resolve(self, codes, signature=None, casting=None):
        """The codes of inputs and outputs of the loop for operands of these codes."""
        key = (codes, signature, casting)
        loop = self._loops.get(key)
        if loop is None:
            types = tuple(resolution_type(code) for code in codes) + (None,) * self.nout
            if signature is None:
                resolved = self._np.resolve_dtypes(types)
            else:
                resolved = self._np.resolve_dtypes(types, signature=signature, casting=casting)
            loop = self._loops[key] = tuple(CODE.get(dtype) for dtype in resolved)
        if None in loop:
            raise Fallback("bh lacks one of the types")
        return loop

    def _call(self, args, kwargs):
        """Any call that the table of known calls does not serve."""
        here.served, kwargs = False, kwargs or {}
        if Symbol in map(type, args):
            refuse(self, args)
        if type(kwargs.get("where")) is ndarray and (result := self._within_little(args, **kwargs)) is not None:
            return result
        if len(args) > self.nin:
            if "out" in kwargs:
                raise TypeError("cannot specify 'out' as both a positional and keyword argument")
            if len(args) > self.nargs:
                return self._np(*fallback.lower(args), **fallback.lower(kwargs))
            outs = args[self.nin :] + (None,) * (self.nargs - len(args))
            if any(target is ... for target in outs):
                raise TypeError("out=... is only allowed as a keyword argument.")
            kwargs = {**kwargs, "out": outs if self.nout > 1 else outs[0]}
            args = args[: self.nin]
        out = kwargs.get("out")
        if isinstance(out, tuple) and all(target is None for target in out) and len(out) == self.nout:
            kwargs = {name: value for name, value in kwargs.items() if name != "out"}
            out = None
        if isinstance(out, tuple) and any(target is ... for target in out):
            raise TypeError("must use `...` as `out=...` and not per-operand/in a tuple")
        fits = len(out) == self.nout if isinstance(out, tuple) else self.nout == 1 or out is None or out is ...
        if not fits or not self.nin <= len(args) or "subok" in kwargs and type(kwargs["subok"]) is not bool:
            # NumPy says what is wrong, unless an operand has universal functions of its own.
            return self._np(*fallback.lower(args), **fallback.lower(kwargs))
        if not kwargs and all(type(a) is not ndarray and isinstance(a, (int, float, complex, np.generic)) for a in args):
            return self._np(*args)
        if kwargs.get("where", True) is not True and "out" not in kwargs:
            warn("'where' used without 'out', expect uninitialized memory in output. If this is intentional, use out=None.", UserWarning)
        if not kwargs.keys() <= _KEYWORDS:
            raise TypeError(f"{self.__name__}() got an unexpected keyword argument {min(kwargs.keys() - _KEYWORDS)!r}")
        if floating_point.asked_here():
            return self._tell(args, kwargs)
        if (arrays := _lists_as_arrays(args)) is not args:
            return self._on_arrays(arrays, kwargs)
        kept = floating_point.kept(args, kwargs.get("out"))
        try:
            result = self._record(args, **kwargs)
        except Fallback as reason:
            if wraps_own(args):
                return self._wrapped(args, kwargs)
            if any(map(decides, args)) or any(map(decides, kwargs.values())):
                return fallback.call_beside(self._np, args, kwargs, f"numpy.{self.__name__}", str(reason))
            return fallback.call(self._np, args, kwargs, f"numpy.{self.__name__}", str(reason))
        floating_point.after(self._np, kept, kwargs, result)
        return fallback.given(result)

    def _on_arrays(self, args, kwargs):
        """A call with arrays in the places of lists, which the table of known calls may serve. That tells of no errors, as the program has not
        called it."""
        here.served = True
        kept = floating_point.kept(args, kwargs["out"]) if "out" in kwargs else args
        result = self(*args, **kwargs)
        if here.served:
            floating_point.after(self._np, kept, kwargs, result)
        return fallback.given(result)

    def _within_little(self, args, where, out=None, **options):
        """NumPy's work into `out` where a mask is true, if the arrays are little and computed, and the function rounds in one way."""
        arrays = [value for value in (*args, where, out) if type(value) is ndarray]
        fits = not options and self.__name__ in _EXACT and type(out) is ndarray and out._writeable and not out._scalar
        if not fits or not all(is_real(value._code) and _native.is_little(value) and _native.comes_to_hand(value) for value in arrays):
            return None
        if not all(type(value) in (ndarray, int, float) for value in args) or len(args) != self.nin or repeats(out):
            return None
        made = fallback.lower(out)
        floating_point.compute(self._np, args, out=made, where=fallback.lower(where))
        fallback.overwrite(out, made)
        return out

    def _tell(self, args, kwargs):
        """A call that tells itself of the errors that it meets."""
        if kwargs:
            # The result may replace operands, so NumPy tries it before.
            out = {"out": None} if "out" in kwargs or "where" in kwargs else {}
            floating_point.again(self._np, args, **{**kwargs, **out})
        with np.errstate(all="ignore"):
            result = self._call(args, kwargs)
        if not kwargs:
            floating_point.examine(self._np, args, result if isinstance(result, tuple) else (result,))
        return fallback.given(result)

    def _wrapped(self, args, kwargs):
        """A call with operands that show themselves as arrays of bh, of which one takes the results into objects of its own."""
        shown = [value.__array__() if wraps_own([value]) else value for value in args]
        makers = [value for value in args if wraps_own([value])]
        maker = max(makers, key=lambda value: getattr(value, "__array_priority__", 0.0))
        results = self._call(tuple(shown), kwargs)
        made = results if isinstance(results, tuple) else (results,)
        wrapped = [maker.__array_wrap__(one, (self, args, place), np.ndim(one) == 0) for place, one in enumerate(made)]
        return tuple(wrapped) if isinstance(results, tuple) else wrapped[0]

    def _record(self, args, out=None, where=True, casting="same_kind", order="K", dtype=None, subok=True, signature=None, sig=None):
        if signature is not None or sig is not None or self.signature is not None:
            raise Fallback("loops by signature and functions of whole axes")
        where = True if where is _NO_VALUE else where
        if out is ...:
            result = self._record(args, None, where, casting, order, dtype, subok)
            for array in result if isinstance(result, tuple) else (result,):
                array._scalar = False
            return result
        operands, codes = zip(*map(operand_of, args))
        outs = out if isinstance(out, tuple) else (out,) * self.nout if out is None else (out,)
        if any(target is not None and type(target) is not ndarray for target in outs):
            if not all(target is None or isinstance(target, (ndarray, np.ndarray)) or overrides(target) for target in outs):
                raise TypeError("return arrays must be of ArrayType")
            raise Fallback("the output is an array of NumPy")
        for target in outs:
            if target is not None and not target._writeable:
                raise ValueError("output array is read-only")
            if target is not None:
                target._warn_of_write()
        if dtype is not None:
            # A class of types, as numpy.dtypes has them, stands for its type.
            named = dtype() if isinstance(dtype, type) and issubclass(dtype, np.dtype) else np.dtype(dtype)
            signature = (None,) * self.nin + (named,) * self.nout
        stack_of = [value for value in (*operands, *outs) if type(value) is ndarray]
        if not stack_of:
            raise Fallback("no operand is an array")
        operands = one_stack(operands)
        if self.__name__ in OPERATORS:
            given, (operands, codes) = codes, within(operands, codes)
            if codes != given and casting not in ("same_kind", "unsafe"):
                raise Fallback("a number beyond the type's")
        loop = self._resolve(codes, signature, casting if signature else None)
        if where is not True:
            where = mask_from(where)
            if where._code != BOOL:
                raise TypeError("Cannot cast array data from %s to dtype('bool') according to the rule 'safe'" % where.dtype.__repr__())
        check_casts(self._np, codes, loop, outs, casting)
        if where is not True:
            operands = [_within_mask(self.__name__, value, code, where) for value, code in zip(operands, loop)]
        results = self._loop(operands, loop)
        if order != "K":
            results = [result if target is not None else _ordered(result, order, operands) for result, target in zip(results, outs)]
        if where is True and all(target is None for target in outs):
            return results[0] if self.nout == 1 else tuple(results)
        stored = tuple(store(result, target, where) for result, target in zip(results, outs))
        return stored[0] if self.nout == 1 else stored

    def _plan(self, loop):
        """The opcode that is the loop of these codes, with the types of its inputs and its output; None if there is none."""
        name, kind, output = self.__name__, loop[0], loop[-1]
        if name in BOOLEAN:
            return BOOLEAN[name], BOOL, BOOL
        opcode = DIRECT.get(name)
        fits = opcode is not None and loop[: self.nin] == (kind,) * self.nin
        return (opcode, kind, output) if fits and _native.is_legal(opcode, kind, output, self.nin) else None

    def _loop(self, operands, loop):
        """Results of the function on operands, in the types of the loop."""
        name, plan = self.__name__, self._plan(loop)
        if plan is not None:
            opcode, kind, _ = plan
            if name == "power" and is_integer(kind):
                check_exponent(operands[0], converted_to(operands[1], kind))
            converted = [converted_to(operand, kind) for operand in operands]
            if not any(type(operand) is ndarray for operand in converted):
                converted[0] = _native.full((), kind, converted[0])
            return [_native.operate(opcode, converted)]
        compose = COMPOSED.get(name)
        if compose is None:
            raise Fallback("")
        kind, inputs = loop[0], loop[: self.nin]
        converted = [converted_to(operand, code) for operand, code in zip(operands, inputs)]
        axes = _native.memory_order([operand for operand in converted if type(operand) is ndarray])
        results = compose(kind, *converted) if axes is None else _turned(compose, kind, converted, axes)
        results = results if isinstance(results, tuple) else (results,)
        return [astype(result, _DTYPES[code]) for result, code in zip(results, loop[self.nin :])]


def entry(function, codes):
    """How calls of NumPy's function with operands of these codes are recorded without Python: the opcode, the types of its inputs and of
    its output, and the form of its operands. None if Python has to serve them, errors included."""
    mine = UFUNCS[function.__name__]
    try:
        loop = mine._resolve(codes)
        plan = mine._plan(loop)
    except (Fallback, TypeError):
        return None
    name, kind, output = mine.__name__, loop[0], loop[-1]
    if plan is None:
        fails = name == "reciprocal" and not is_inexact(kind) or name == "negative" and kind == BOOL
        if name not in FORMS or output != kind or fails:
            return None
        opcode, form = FORMS[name]
        return "logical_and" if (name, kind) == ("square", BOOL) else opcode, kind, output, form
    opcode, kind, output = plan
    if name == "power" and is_integer(kind) or kind == BOOL and any(code in WEAK_TYPES or is_complex(code) for code in codes):
        return None
    return opcode, kind, output, "plain"


# The number outside of a mask, for which functions have no error; functions that would have one of 1; and those that have some of numbers
# of Python.
_HARMLESS, _HARMFUL_ONE = 1, {"arctanh": 0}
_HAS_ERRORS = {"power", "float_power", "divide", "floor_divide", "remainder", "fmod", "divmod"}


def _within_mask(name, value, code, where):
    """An operand with other numbers where a mask is false, so that elements that are left out have no errors."""
    if type(value) is not ndarray:
        if name not in _HAS_ERRORS:
            return value
        value = _native.full((), code, value)
    shape = np.broadcast_shapes(value.shape, where.shape)
    number = _DTYPES[value._code].type(_HARMFUL_ONE.get(name, _HARMLESS)).item()
    return _native.operate("where", [_native.broadcast_to(where, shape), _native.broadcast_to(value, shape), _native.full((), value._code, number)])


def _ordered(result, order, operands):
    """A result in an order in memory that a call asks for."""
    letter = order_of(order)
    if letter == "A":
        arrays = [operand for operand in operands if type(operand) is ndarray]
        letter = "F" if all(array.T._contiguous for array in arrays) and not all(array._contiguous for array in arrays) else "C"
    return result if letter == "K" or (result.T if letter == "F" else result)._contiguous else in_order(result, letter)


def _turned(compose, kind, operands, axes):
    """The results of a composition on operands whose dimensions are put into their order in memory, with the dimensions back in place."""
    rank = len(axes)
    wide = [_native.reshape(value, (1,) * (rank - value.ndim) + value.shape) if type(value) is ndarray else value for value in operands]
    made = compose(kind, *(_native.transpose(value, axes) if type(value) is ndarray else value for value in wide))
    back = lambda result: _native.turned_back(result, axes) if result.ndim == rank else result
    return tuple(map(back, made)) if isinstance(made, tuple) else back(made)


# Functions whose results are those of NumPy to the last bit, for numbers that are not complex.
_EXACT = frozenset("""
absolute add divide equal greater greater_equal less less_equal logical_and logical_not logical_or maximum minimum multiply negative
not_equal sqrt subtract
""".split())

# The keywords of calls.
_KEYWORDS = {"out", "where", "casting", "order", "dtype", "subok", "signature", "sig"}


def one_stack(operands):
    """The operands on one stack, the first array's; what has to move is counted."""
    first = next((value for value in operands if type(value) is ndarray), None)
    return tuple(moved(value, first) if type(value) is ndarray else value for value in operands)


def within(operands, codes):
    """The operands of a comparison; an integer beyond the other one's type stands as one beyond it on the same side."""
    pairs = list(zip(operands, codes))
    for place, (number, other) in enumerate(zip(operands, reversed(codes))):
        if type(number) is int and is_integer(other):
            limits = np.iinfo(_DTYPES[other])
            if not limits.min <= number <= limits.max:
                pairs[place] = (np.inf if number > 0 else -np.inf), CODE[np.dtype(float)]
    return tuple(zip(*pairs))


def converted_to(operand, code):
    """An array with elements of this type, or the number, if the type can hold it."""
    if type(operand) is ndarray:
        _native.warn_of_cast(operand, code)
        return astype(operand, _DTYPES[code])
    if code == BOOL:
        return bool(operand)
    if type(operand) is complex and not is_complex(code):
        raise TypeError(f"cannot convert complex to {_DTYPES[code]}")
    if type(operand) is int and is_integer(code):
        limits = np.iinfo(_DTYPES[code])
        if not limits.min <= operand <= limits.max:
            raise Fallback(f"{operand} is out of bounds for {_DTYPES[code]}")
    if type(operand) is int and not -(2**63) <= operand < 2**64:
        return float(operand)
    if type(operand) is float and is_integer(code):
        return int(operand)
    return operand


def check_exponent(base, exponent):
    """Whole numbers have no negative powers, as in NumPy."""
    if type(base) is ndarray and not base.size:
        return
    if type(exponent) is ndarray:
        negative = exponent.dtype.kind == "i" and bool((exponent < 0).any())
    else:
        negative = exponent < 0
    if negative:
        raise ValueError("Integers to negative integer powers are not allowed.")


def check_casts(function, codes, loop, outs, casting):
    """Fails as NumPy does where operands may not be converted, or results may not be stored in the given outputs."""
    if casting not in ("same_kind", "unsafe") and function.__name__ not in BOOLEAN:
        for place, (code, wanted) in enumerate(zip(codes, loop)):
            given = _DTYPES[wanted if code in WEAK_TYPES else code]
            if not np.can_cast(given, _DTYPES[wanted], casting):
                raise np._core._exceptions._UFuncInputCastingError(function, casting, given, _DTYPES[wanted], place)
    check_outputs(function, loop[function.nin :], outs, casting)


def check_outputs(function, codes, outs, casting):
    """Fails as NumPy does where results of the types with these codes may not be stored in the given outputs."""
    for target, code in zip(outs, codes):
        if target is not None and not np.can_cast(_DTYPES[code], target.dtype, casting):
            raise np._core._exceptions._UFuncOutputCastingError(function, casting, _DTYPES[code], target.dtype, 0)


def store(result, target, where):
    """Writes a result where the mask is true; without a target into a new array, undefined elsewhere."""
    if target is None and (where is True or not result.ndim and not where.ndim):
        return result
    if target is None:
        shape = np.broadcast_shapes(result.shape, where.shape)
        if result.shape == shape:
            return result
        target = _native.empty(shape, result._code, None)
    elif np.broadcast_shapes(result.shape, target.shape) != target.shape:
        shapes = (str(shape).replace(", ", ",") for shape in (target.shape, np.broadcast_shapes(result.shape, target.shape)))
        raise ValueError("non-broadcastable output operand with shape {} doesn't match the broadcast shape {}".format(*shapes))
    if where is not True:
        kept = _native.broadcast_to(where, target.shape)
        result = _native.operate("where", [kept, astype(result, target.dtype), target])
    result = result if not is_complex(result._code) else assigned(result, target.dtype)
    conversion.store(target, result)
    return target


def binary(function, a, b):
    """A binary operator: NotImplemented leaves it to the other operand."""
    if Symbol in (type(a), type(b)):
        return function._call((a, b), None)
    if comes_first(b) or comes_first(a):
        return settled(function.__name__, a, b)
    if function.__name__ == "multiply" and (sequence := repeated(a, b)) is not None:
        return sequence
    if is_beside_number(a, b) or is_beside_number(b, a):
        # NumPy's number and the object know what to do with each other.
        return BINARY[function.__name__][0](fallback.lower(a), fallback.lower(b))
    if type(b) is int and b == 2 and function.__name__ == "power" and a._code == BOOL and not a._scalar:
        # As NumPy, which squares arrays then.
        return UFUNCS["square"](a)
    try:
        return fallback.given(function._call((a, b), None))
    except Fallback as reason:
        return fallback.call(function._np, (a, b), {}, f"numpy.{function.__name__}", str(reason))
    except np._core._exceptions._UFuncNoLoopError:
        # For operators, values that cannot be compared are not equal.
        comparison = {"equal": operator.eq, "not_equal": operator.ne}.get(function.__name__)
        if comparison is None:
            raise
        return fallback.lift(comparison(fallback.lower(a), fallback.lower(b)))


def repeated(a, b):
    """A sequence of Python repeated, if one operand is a sequence and the other one a number, which has to be whole; else None."""
    for sequence, times in ((a, b), (b, a)):
        if isinstance(sequence, (str, bytes, list, tuple)) and type(times) is ndarray and times._scalar:
            # NumPy's number says what it thinks of a sequence.
            return sequence * fallback.lower(times)
    return None


def is_beside_number(a, b):
    """Is the first one a result without dimensions, and the other one neither a number nor an array, such as a `timedelta`?"""
    if type(a) is not ndarray or not a._scalar or isinstance(b, (ndarray, np.ndarray, np.generic, int, float, complex)):
        return False
    return not isinstance(b, (list, tuple, str, bytes)) and not hasattr(type(b), "__array__")


def inplace(function, a, b):
    """An operator in place."""
    if defers(b) and type(b) is not Symbol:
        return NotImplemented
    return function._call((a, b), {"out": a})


UFUNCS = {}
# Modules that NumPy loads only on demand, such as `numpy.f2py`, are left alone.
for _name, _function in sorted(vars(np).items()):
    if isinstance(_function, np.ufunc) and _function.__name__ not in UFUNCS:
        UFUNCS[_function.__name__] = ufunc(_function)
UFUNCS["add"]._enter()

from . import compositions  # noqa: E402

compositions.use(UFUNCS)


def named(name):
    """The universal function of this name, for pickles."""
    return UFUNCS[name]


def public_ufuncs():
    """Names of numpy that are universal functions (several may be one), with bh's."""
    found = {}
    for name, function in vars(np).items():
        if isinstance(function, np.ufunc):
            found[name] = UFUNCS[function.__name__]
    return found
