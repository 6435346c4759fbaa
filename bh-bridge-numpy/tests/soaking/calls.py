"""Single random calls of NumPy's public functions, on NumPy and on bh: `python -m soaking.calls FIRST COUNT` prints what differs.

Compared are values, types, shapes, strides, what is a scalar, what shares memory with the arguments, what may be assigned to, what
becomes of the arguments, what becomes of both if a view of the result is written, and how the call fails. Calls are recorded as those
of large arrays are where BH_CONFIG names a configuration with `immediate_bytes = 0` in its section `recorder`.
"""

import random
import re
import sys
import warnings

import numpy

import bh

# Arguments by name; the text in braces of a call names one, or lists some.
SETS = {
    "number": "2 -1 0 1.5 2.0 True np.float32(1.5) np.int8(3) (3+1j) 30 -2.5 numpy.float64(2)".split(),
    "other": "b b b c 2 -1 1.5 np.float32(1.5) (3+1j) True".split(),
    "type": ["'f4'", "float", "int", "'i2'", "complex", "bool"],
    "axis": "None 0 1 -1 (0,1) () 2 (0,-1) -2".split(),
}
KEYS = (
    "0;-1;1:;::-1;...;None;[0, 1];[0, -1], [1, 0];np.array([True, False, True]);a > 0;b > 0;:, 0;0, 0;..., 0;[[0, 1], [1, 0]];:, [0, 1];[0], :;"
    "np.array(1);5;[];(0,);0, ...;None, 0;[True, False];np.array([0, 1])[:, None], [0, 1];1.0;b;'x';True;5:1:-1;::2, ::-1"
)
SETS["key"] = KEYS.split(";")
SETS["anytype"] = [f"'{kind}'" for kind in "? i1 u1 i2 u2 i4 u4 i8 u8 f4 f8 c8 c16".split()]
SETS["picked"] = (
    ":, np.array([0, 1]);:, [0, 0, 1];np.array([0, 1]);:, np.array([True, False, True]);..., np.array([1, 0]);np.array([[0, 1], [1, 0]]);:, [[0, 1], [1, 0]]"
    ";..., [0, 1], :;[0, 1], :, [0, 1];:, [1];[1, 0];np.array([4]);np.array([-1, 7]);5;-9;:, 9;9223372036854775807;-9223372036854775808;np.array([2**62]);a > 0;mask(a)"
).split(";")

# Options after the arguments, each with a chance of its own.
OPTIONS = {
    "axis": ["axis={axis}"], "one": ["axis={0|1|-1|None}"], "keepdims": ["keepdims=True"], "dtype": ["dtype={type}"],
    "casting": ["casting='unsafe'", "casting='no'", "casting='same_kind'"],
    "out": ["out=np.zeros(3)", "out=np.zeros((2, 3))", "out=np.zeros(2, 'i8')", "out=np.zeros((2, 3), 'f4')", "out=np.zeros(3, complex)"],
    "like": ["out=np.zeros(a.shape)", "out=np.zeros(a.shape, 'f4')", "out=np.zeros(a.shape, 'c16')"],
    "into": ["out=np.zeros(())", "out=np.zeros((), 'f4')", "out=np.zeros((), 'c16')", "out=np.zeros(3)", "out=np.zeros(2, 'f4')", "out=np.zeros(2, 'c16')"],
    "where": ["out=np.ones(3), where=np.array([True, False, True])", "out=np.ones((2, 3)), where=np.array([True, False, True])"],
    "some": ["where=np.array([True, False, True])"], "initial": ["initial=2", "initial=5.5"], "order": ["order='F'", "order='K'", "order='C'"],
    "copy": ["copy=True", "copy=None"], "mode": ["mode='wrap'", "mode='clip'"], "kind": ["kind='stable'"], "counts": ["return_counts=True"],
    "places": ["return_index=True", "return_inverse=True"], "n": ["n=2", "n=0", "n=4"], "ddof": ["ddof=1"],
    "method": ["method='{lower|higher|nearest|midpoint|weibull|median_unbiased}'"], "pad": ["mode='{edge|wrap|reflect|symmetric|mean|maximum|linear_ramp}'"],
    "convolution": ["mode='same'", "mode='valid'"], "norm": ["ord={1|2|'fro'|numpy.inf|0}"], "fft": ["norm='ortho'", "axis=0", "n=4"],
    "endpoint": ["endpoint=False", "retstep=True"], "grid": ["indexing='ij'", "sparse=True", "copy=False"], "side": ["side='right'"],
    # Places for the results of the call so far, of any type, and masks of their shape.
    "onto": ["out=room(@, {anytype})"], "elsewhere": ["out=room(@, {anytype}), where=mask(@)", "out=room(@, {anytype}), where=False"],
    "masked": ["where=mask(a)"], "initials": [f"initial={number}" for number in "2 2.5 9.5 .5 1j -1 True np.float32(1.5)".split()],
    "ends": ["to_begin=0", "to_end=[1, 2]"], "period": ["period=2", "left=0", "right=-1"], "nan": ["nan=1.5", "posinf=9"],
}  # fmt: skip

UNARY = (
    "negative|positive|absolute|fabs|rint|sign|conj|exp|exp2|log|log2|log10|expm1|log1p|sqrt|square|cbrt|reciprocal|sin|cos|tan|arcsin|arccos|arctan|sinh"
    "|cosh|tanh|arcsinh|arccosh|arctanh|degrees|radians|invert|logical_not|isfinite|isinf|isnan|floor|ceil|trunc|modf|frexp|bitwise_count|spacing"
)
BINARY = (
    "add|subtract|multiply|divide|floor_divide|remainder|fmod|divmod|power|float_power|arctan2|hypot|logaddexp|maximum|minimum|fmax|fmin|greater|less"
    "|equal|not_equal|logical_and|logical_or|logical_xor|bitwise_and|bitwise_or|bitwise_xor|left_shift|right_shift|gcd|lcm|nextafter|heaviside|ldexp"
)
ELEMENTWISE = re.compile(rf"np\.({UNARY}|{BINARY})\(")
FOLDED = "sum|prod|nansum|nanprod|mean|nanmean|var|std|nanvar"
CHOSEN = "max|min|nanmax|nanmin|amax|ptp|median|nanmedian"

# The calls; what follows the semicolon are the options.
CALLS = f"""
np.{{{UNARY}}}(a; where out)
np.{{{UNARY}}}(a; dtype casting)
np.{{{BINARY}}}(a, {{other}}; where casting)
np.{{{BINARY}}}({{number}}, a; out)
np.{{{BINARY}}}.reduce(a; one keepdims out)
np.{{add|multiply|maximum|logical_and}}.reduce(a; axis keepdims dtype initial some)
np.{{add|multiply|maximum|minimum|fmax}}.reduce(a; one into initial)
np.{{{BINARY}}}.accumulate(a)
np.{{{BINARY}}}.outer(a, b)
np.{{{BINARY}}}.reduceat(a, [0, 1])
np.{{add|multiply|maximum|power}}.at(a.copy(), [0, 0], {{other}})
np.{{{FOLDED}}}(a; axis keepdims)
np.{{sum|prod}}(a; one dtype out)
np.{{{FOLDED}|{CHOSEN}}}(a; one into)
np.{{cumsum|cumprod}}(a; one dtype)
np.{{cumsum|nancumsum}}(a[None], {{0|-1}}, out=np.zeros((1, *a.shape), {{'f4'|'f8'|'c16'}}))
np.round(a; like)
np.{{{CHOSEN}}}(a; axis keepdims)
np.{{any|all}}(a; axis keepdims some)
np.{{argmax|argmin|nanargmax|nanargmin|count_nonzero}}(a; one keepdims)
np.{{mean|std|var}}(a; axis keepdims ddof)
np.average(a, weights=b; one)
a.{{sum|prod|max|min|mean|std|var|all|any|argmax|argmin|cumsum|cumprod}}(*(); one keepdims)
a.sort({{0|-1|1}})
a.{{squeeze|transpose|ravel|flatten|copy|conj|nonzero|tolist|tobytes|item|diagonal|trace|byteswap}}()
a.{{ravel|flatten|copy}}({{'C'|'F'|'A'|'K'}})
a.reshape({{-1|(-1, 1)|(3, 2)|6|(1, -1, 1)|(2, -1)|()}}; order)
a.astype({{type}}; order copy casting)
a.repeat({{2|[1, 2, 0]|0|b}}; one)
a.take({{[0, 1]|0|[[0], [-1]]|[5]}}; one mode)
a.clip({{0|1.5|-1}}, {{2|3|7.5}})
a.put({{0, 5|[0, 1], [7, 8]|[-1], b|9, 1}}; mode)
a.fill({{number}})
a.compress({{[True, False, True]|[1, 0]|b}}; one)
a.item({{0|1, 1|-1|(0, 1)}})
a.transpose({{1, 0|(1, 0)|None|0|(0, 2, 1)}})
a.view({{np.ndarray|float|'i8'}})
a {{+|-|*|/|//|%|**|@|&|^|<<|<|<=|==|!=|>}} {{other}}
{{number}} {{+|-|*|/|//|%|**|@|&|^|<<|<|==|>=}} a
a {{+|-|*|/|//|%|**|&|^|<<|@}}= {{other}}
a[{{key}}]
a[{{key}}] = {{other}}
a[{{key}}] += {{other}}
np.concatenate([a, {{a|b}}]; axis dtype casting)
np.{{stack|vstack|hstack|dstack|column_stack}}([a, {{a|b}}])
np.{{append}}(a, b; one)
np.{{split|array_split}}(a, {{2|3|[1]}}; one)
np.block({{[a, b]|[[a, b]]|[[a], [a]]}})
np.insert(a, {{0|1|-1|[0, 1]|9}}, {{other}}; one)
np.delete(a, {{0|1|[0, 1]|-1|slice(0, 2)|9}}; one)
np.{{repeat|tile}}(a.copy(), 2)
np.roll(a, {{1|-2|(1, 2)}}; axis)
np.{{flip|squeeze}}(a; axis)
np.{{flipud|fliplr|rot90|atleast_1d|atleast_2d|atleast_3d|trim_zeros|unstack|matrix_transpose|ravel|nan_to_num|real|imag|angle|sinc|i0|fix|unwrap}}(a)
np.{{moveaxis|swapaxes|rollaxis}}(a, 0, {{1|-1|0}})
np.expand_dims(a, {{axis}})
np.broadcast_to(a, {{(3,)|(2, 3)|(4, 2, 3)|()}})
np.broadcast_arrays(a, b)
np.resize(a, (3, 2))
np.pad(a, {{1|(1, 2)|((1, 0), (0, 2))}}; pad)
np.sort(a; one kind)
np.argsort(a, kind='stable'; one)
np.unique(a; one counts places)
np.{{isin|intersect1d|union1d|setdiff1d|setxor1d|array_equal|array_equiv|allclose|isclose}}(a, b)
np.searchsorted(np.sort(a.ravel()), b; side)
np.{{nonzero|argwhere|flatnonzero|isreal|iscomplex|isneginf|isposinf|real_if_close|iterable|size|shape|ndim}}(a)
np.where(a > 0, {{other}}, {{other}})
np.{{extract|compress}}([1, 0, 1], a)
np.select([a > 0, a < 0], [a, b], {{number}})
np.choose(abs(a.astype(int)), [a, a + 1]; mode)
np.take_along_axis(a, np.argsort(a, axis=0), 0)
np.piecewise(a, [a > 0], [{{1|lambda x: x * 2}}, 0])
np.digitize(a, {{[0, 1, 2]|[3, 1]}})
np.histogram(a, {{3|[0, 1, 2]}})
np.{{percentile|nanpercentile}}(a, {{50|[10, 90]|0}}; one keepdims method)
np.dot(a, {{other}})
np.{{matmul|inner|outer|vdot|kron|cross|vecdot|matvec|vecmat}}(a, b)
np.tensordot(a, b, {{1|0|([0], [0])}})
np.einsum({{'ij->ji', a|'i,i->', a, b|'ij,jk', a, b|'...i->...', a|'ii', a}})
np.{{diag|diagonal|diagflat|trace|cov|corrcoef}}(a)
np.{{tril|triu}}(np.atleast_1d(a), {{0|1}})
np.linalg.norm(a; one norm keepdims)
np.linalg.{{det|inv|matrix_rank|slogdet|eigvalsh}}(a)
np.{{convolve|correlate}}(a, b; convolution)
np.{{polyval|polyadd|polymul|polydiv}}(a, b)
np.fft.{{fft|ifft|rfft|irfft}}(a; fft)
np.{{zeros_like|ones_like}}(a; dtype order)
np.full_like(a, {{number}}; dtype)
np.full({{3|(2, 2)|()}}, {{other}}; dtype)
np.arange({{5|0, 5, 2|5, 0, -1|0., 1., .3|1, 1|3.5|np.int8(3)}}; dtype)
np.linspace({{a, b|0, 2|1.5, a}}, 3; endpoint)
np.{{array|asarray}}(a; copy dtype order)
np.array([a, {{a|b}}])
np.meshgrid(a.ravel(), b.ravel(); grid)
np.{{asfortranarray|ascontiguousarray|copy|asanyarray}}(a)
np.result_type(a, {{other}})
np.vectorize(lambda x: x + 1)(a)
np.apply_along_axis(np.sum, 0, a)
np.clip(a, {{b|2|0}}, {{c|3|7.5}}; out)
np.round(a, {{0|1|-1}})
np.diff(a; n one)
np.ediff1d(a; ends)
np.gradient(a; one)
np.trapezoid(a; one)
np.interp(a, [0, 1, 2], [5, 6, 9]; period)
np.nan_to_num(a; nan)
np.copyto(a, {{other}}; casting)
np.putmask(a, a > 0, {{[1, 2]|5}})
np.put(a, [0, 1], {{number}})
np.fill_diagonal(a, {{number}})
np.lib.stride_tricks.sliding_window_view(a, 2)
np.{{sum|prod|max|min|nansum|nanmax}}(a; axis keepdims initials masked onto)
np.{{sum|prod|any|all|mean|std|var|median|ptp|argmax|argmin|count_nonzero}}(a; one keepdims dtype onto)
np.{{add|multiply|maximum|minimum|logical_or|bitwise_and|hypot}}.reduce(a; axis keepdims dtype initials masked onto)
np.{{cumsum|cumprod|nancumsum|add.accumulate|multiply.accumulate|maximum.accumulate}}(a; one dtype onto)
np.{{{UNARY}}}(a; elsewhere)
np.{{{UNARY}}}(a; onto)
np.{{{BINARY}}}(a, {{other}}; elsewhere)
np.{{{BINARY}}}(a, {{other}}; onto)
np.{{{BINARY}}}({{number}}, a; elsewhere)
np.{{power|floor_divide|remainder|divide|left_shift|float_power|lcm}}(a, b, out=room(a + b, {{anytype}}), where={{b >= 0|b != 0|mask(a + b)}})
np.{{sqrt|log|reciprocal|arccos}}(a, out=room(a, {{anytype}}), where={{a > 0|a != 0|mask(a)}})
np.{{clip|round}}(a, {{1|0}}, {{2|1}}; onto)
np.{{dot|matmul|outer|inner}}(a, b; onto)
np.{{concatenate|stack}}([a, {{a|b}}]; one onto)
np.take(a, {{0|[0, 1]|[5]}}; one mode onto)
a[{{picked}}]
a[{{picked}}]
a.T[{{picked}}]
np.copy(a, 'F')[{{picked}}]
a[{{picked}}] = {{number}}
a[{{picked}}] += {{number}}
a[{{0|1|-1|0, 0}}] {{+|-|*|/|**}}= {{number}}
a[{{0|1|-1|0, 0}}] = a[{{0|1|-1|0, 0}}] {{+|-|*|/|**}} {{number}}
np.{{argwhere|nonzero|flatnonzero}}(a)
np.{{sort|argsort|cumsum|roll|flip|diff|unique|repeat|tile|delete|insert|pad|rot90|take_along_axis}}(a.T, {{0|1|2}}; one)
np.{{einsum|moveaxis|rollaxis}}({{a, 0, -1|'ij->ji', a|'ij,jk->ki', a, a|'ijk->kij', a|'ij,k->kij', a, b}})
np.{{where|copysign}}(a.T > 0, a.T, {{1|a.T|b}})
np.{{linalg.inv|linalg.cholesky|linalg.qr|linalg.svd|linalg.eigh|linalg.solve|fft.fft2|apply_over_axes|nan_to_num|tril|kron|cov|corrcoef|meshgrid|broadcast_arrays}}(a)
""".strip().splitlines()

TYPES = "? i1 u1 i2 i4 i8 i8 u8 f4 f8 f8 f8 c8 c16".split()
SHAPES = [(), (0,), (1,), (3,), (5,), (2, 3), (3, 1), (1, 3), (2, 0), (2, 3, 2), (3, 3), (4,), (0, 3), (1, 1), (2, 2, 2)]
LAYOUTS = ["{}"] * 4 + ["{}.T", "{}[::-1]", "{}[..., ::2]", "np.broadcast_to({}, {shape})", "{}.copy('F')", "{}[...]", "{}[None][0]"]
NUMBERS = {"?": [True, False], "u": [0, 1, 2, 3, 5, 200], "i": [-3, -1, 0, 1, 2, 3, 7, 100], "f": [-2.5, -1.0, -0.0, 0.0, 0.1, 0.5, 1.0, 1.5, 2.0, 7.0]}
# Statements that write into a view of a result.
WRITES = ["r[...] = 1", "r.reshape(-1)[:1] = 1", "r.ravel()[-1:] = 1", "r.T.reshape(-1)[:1] = 1", "r.reshape(-1, 1)[:1] = 1", "r.T.ravel()[:1] = 1",
          "r.swapaxes(0, -1).reshape(-1)[:1] = 1", "r += 1", "r.view().T[...] = 1", "np.asarray(r).flat[:1] = 1"]  # fmt: skip
NUMBERS |= {"c": [-1.0, 1j, 1 - 1.5j, 2 + 1j, 0j]}


def array(chance, shape, signed, special):
    """The text of an array."""
    kind = chance.choice([one for one in TYPES if one[0] != "u"] if signed else TYPES)
    values = [chance.choice(NUMBERS[kind[0]]) for _ in range(int(numpy.prod(shape)))]
    if kind[0] == "f" and values and special and chance.random() < 0.3:
        values[chance.randrange(len(values))] = chance.choice([numpy.nan, numpy.inf, -numpy.inf])
    layout = chance.choice(LAYOUTS if shape else LAYOUTS[:5])
    listed = re.sub("nan|inf", r"numpy.\g<0>", repr(values))
    return layout.format(f"np.array({listed}, '{kind}').reshape({shape})", shape=shape)


def filled(call, chance):
    """The text of a call with arguments and options chosen."""
    text, _, names = call.partition(";")
    if names:
        # Results go into places of theirs more often than not.
        wanted = [name for name in names.rstrip(")").split() if chance.random() < (0.8 if name in ("onto", "elsewhere") else 0.3)]
        for name in wanted:
            text = _settled(text, chance)
            text += ", " + chance.choice(OPTIONS[name]).replace("@", text + ")")
        text += ")"
    return _settled(text, chance)


def _settled(text, chance):
    """The text with one of each set of arguments chosen."""
    while found := re.search(r"\{([^{}]*)\}", text):
        among = SETS.get(found[1]) or found[1].split("|")
        text = text[: found.start()] + chance.choice(among) + text[found.end() :]
    return text


def case(seed):
    """The arrays and the call of a seed, as texts."""
    chance = random.Random(seed)
    text, shape = filled(chance.choice(CALLS), chance), chance.choice(SHAPES)
    alike = chance.random() < 0.6
    # The conversion of floats beyond integers is bh's own: nothing negative for unsigned elements, and no infinities where there may be
    # some.
    special = not re.search(r"\] .*= |insert|copyto|put|place|fill|dtype|type|tensordot|linalg|fft|matmul|inner|dot|kron|@", text)
    arrays = {name: array(chance, shape if alike or name == "a" else chance.choice(SHAPES), name == "a", special) for name in "abc"}
    if re.search(r"'[fc]\d+'", "".join(arrays.values())) or "nan" in text:
        text = re.sub(r"(room\(.*), '[iu?]\d?'\)", r"\1, 'f8')", text)
    return arrays, text


def described(value, inputs):
    """The properties of a result that are compared."""
    if type(value) in (tuple, list) or isinstance(value, tuple):
        return [isinstance(value, list), *(described(one, inputs) for one in value)]
    if type(value) not in (numpy.ndarray, bh.ndarray) and not isinstance(value, numpy.generic):
        return type(value).__name__, repr(value)
    host = numpy.array(value)
    if isinstance(value, numpy.generic) or type(value) is bh.ndarray and value._scalar:
        return "scalar", host
    shares = [bool(bh.shares_memory(value, one)) for one in inputs] if host.size else []
    steps = Steps(stride for stride, extent in zip(value.strides, value.shape) if extent > 1) if host.size else ()
    return "array", host, bool(value.flags.writeable), shares, steps


# How NumPy names a wrong subscript; of several it may name another one. Recorded ones come with their place.
BOUNDS = re.compile(r"index -?\d+ is out of bounds for axis \d+ with size \d+( \(recorded at .*\))?")


class Failure:
    """How a call fails: by an exception of a class of Python's, whose text matters for subscripts."""

    def __init__(self, error):
        self.kind = next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
        self.error, self.text = error, str(error)

    def __repr__(self):
        return repr(self.error)

    def is_like(self, other):
        """Does a program that handles the other one handle this one?"""
        return isinstance(self.error, other.kind) and bool(BOUNDS.fullmatch(self.text) or not BOUNDS.fullmatch(other.text))


def _room(library):
    """Functions that make outputs for results, and masks of a value's shape."""
    room = lambda value, kind: library.full(numpy.shape(value), 1, kind)
    mask = lambda value: library.asarray(numpy.arange(numpy.size(value)).reshape(numpy.shape(value)) % 3 != 1)
    return {"room": room, "mask": mask}


def outcome(library, arrays, text, write):
    """The outcome of a call, and of a write to a view of its result."""
    names = {"np": library, "numpy": numpy, **_room(library)}
    try:
        names |= {name: eval(made, names) for name, made in arrays.items()}
    except Exception:
        return "no arrays"
    inputs = [names[name] for name in "abc"]
    try:
        if re.match(r"a(\[.*\])? ?\S*= ", text) and not re.match(r"a [=!<>]= ", text):
            exec(text, names)
            return [names["a"] is inputs[0], described(names["a"], []), *map(numpy.array, inputs)]
        result = eval(text, names)
        said = [described(result, inputs), *map(numpy.array, inputs)]
    except Exception as error:
        return Failure(error)
    result = result[0] if type(result) in (tuple, list) and result else result
    if type(result) in (numpy.ndarray, bh.ndarray) and result.ndim and result.flags.writeable:
        names["r"] = result
        try:
            exec(write, names)
        except Exception as error:
            said.append(Failure(error))
        said += [numpy.array(result), *map(numpy.array, inputs)]
    return said


class Steps(tuple):
    """The strides of a result."""


def same(one, other, tolerance=None, strict=True):
    """Are two outcomes the same, but for last bits, and, unless `strict`, for strides and the errors of calls that fail?"""
    if not strict and (isinstance(one, Steps) and isinstance(other, Steps) or isinstance(one, Failure) and isinstance(other, Failure)):
        return True
    if isinstance(one, numpy.ndarray) and isinstance(other, numpy.ndarray):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        if one.dtype.kind not in "fc":
            return bool((one == other).all())
        tolerance = tolerance or (3e-6 if one.dtype in ("f4", "c8") else 1e-12)
        return bool(numpy.allclose(one, other, rtol=tolerance, atol=10 * tolerance, equal_nan=True))
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(same(*pair, tolerance, strict) for pair in zip(one, other))
    if isinstance(one, Failure) and isinstance(other, Failure):
        return other.is_like(one)
    return type(one) is type(other) and one == other


def differences(first, count, strict=True):
    """The calls of these seeds whose outcomes differ: seeds, arrays, texts and both outcomes. Unless `strict`, strides may differ, and
    how a call fails, but not what becomes of the arguments if a view of the result is written."""
    with warnings.catch_warnings(), bh.fallback("silent"):
        warnings.simplefilter("ignore")
        for seed in range(first, first + count):
            arrays, text = case(seed)
            write = random.Random(seed).choice(WRITES)
            theirs, mine = (outcome(library, arrays, text, write) for library in (numpy, bh))
            # Elements that are computed in single precision may go into a wider place.
            is_rough = ELEMENTWISE.match(text) and re.search(r"'(f4|c8|[iu][12]|\?)'", "".join(arrays.values()))
            if not same(theirs, mine, 3e-6 if is_rough else None, strict):
                yield seed, arrays, f"{text}; {write}", theirs, mine


if __name__ == "__main__":
    for finding in differences(*map(int, sys.argv[1:3])):
        print(*finding, sep="\n    ")
