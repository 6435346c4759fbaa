"""The registry: one row for each public name of NumPy, which says how bh provides it.

The names of the package, the methods of arrays, the calls that NumPy computes at once, the type stubs and the coverage page follow
from these rows. A row holds facts only: `namespace` and `methods` act on them, and a test checks each one by running the function.
"""


class Row:
    """How bh provides one name."""

    # One of the kinds below.
    kind = ""
    # The module of this package that has the object.
    module = ""
    # The parameters that may be arrays, or lists of arrays, and those that the function writes to: `out`, or one that it changes.
    arrays = writes = ""
    # The native module serves common calls: True, or the universal function from which it composes them.
    native = False
    # Arrays have it as a method with the same parameters. `METHODS` has the others.
    method = False
    # When NumPy computes a call at once (see below), and how many of the leading arguments may be arrays then: all `arrays` by default.
    by_numpy, operands = "", 0
    # Only calls whose options have names are computed at once, as options without names may have it change its operand.
    named = False
    # Of sums of products: NumPy computes those of this many products of an element of each array, at most, at once.
    products = 0
    # The function serves every call: it never raises `Fallback`.
    complete = False
    # NumPy leaves objects of other classes to their method of this name; True stands for the same name.
    delegates = False
    # NumPy's LAPACK does the work, where arrays are in the memory of this process.
    lapack = False

    def __init__(self, kind, facts):
        self.kind = kind
        self.__dict__.update(facts)
        self.operands = self.operands or len(self.arrays.split())

    @property
    def changes(self):
        """The parameter that the function changes in place, if any."""
        return "" if self.writes == "out" else self.writes


# Kinds: functions and classes of this package; NumPy's own code over functions of this package; universal functions; NumPy's code that
# looks at types, shapes and options; NumPy's code whose elements come from, or go to, files and text; texts of arrays; objects whose
# brackets make arrays; types, constants and modules of NumPy; functions that bh leaves to NumPy with a warning.
OWN, ADAPTED, UNIVERSAL, QUESTION, HOST, TEXT, BRACKETS, NUMPYS, LEFT = (
    "own", "adapted", "universal", "question", "host", "text", "brackets", "numpys", "left",
)  # fmt: skip

# When NumPy computes a call at once. Results have the same bits either way.
# Functions that change an argument get its memory, if it is little and computed.
# COMPUTED: if the operands are little and computed already. MOVED: the same, with 16 times as many elements, as NumPy moves each once.
# AWAITED: after waiting for little operands, as recording the function costs more. SORTED: after waiting for operands of any size, as one
# thread of NumPy sorts faster than several of bh. COUNTED: the same, unless the stack has many threads, which share the work.
COMPUTED, MOVED, AWAITED, SORTED, COUNTED = "computed", "moved", "awaited", "sorted", "counted"


def own(module, arrays="", writes="", **facts):
    """A function or class of a module of this package."""
    return Row(OWN, {"module": module, "arrays": arrays, "writes": writes, **facts})


def adapted(arrays="", writes="", **facts):
    """NumPy's own code over functions of this package."""
    return Row(ADAPTED, {"arrays": arrays, "writes": writes, **facts})


def question(arrays=""):
    """NumPy's code, which looks at no element."""
    return Row(QUESTION, {"arrays": arrays})


def host(arrays="", **facts):
    """NumPy's code, whose elements come from, or go to, files."""
    return Row(HOST, {"arrays": arrays, **facts})


def text(arrays):
    """NumPy's code, which shows an array."""
    return Row(TEXT, {"arrays": arrays})


def written(arrays="", writes="", **facts):
    """A method that `_array.methods` has."""
    return Row(OWN, {"module": "_array.methods", "arrays": arrays, "writes": writes, **facts})


def each(kind, names):
    """Rows that tell no more than the kind."""
    row = Row(kind, {})
    return dict.fromkeys(names.split(), row)


FUNCTIONS = {
    **each(NUMPYS, """
    bool bool_ busdaycalendar byte bytes_ cdouble character clongdouble complex128 complex256 complex64 complexfloating csingle
    datetime64 double dtype finfo flatiter flexible float128 float16 float32 float64 floating generic half iinfo inexact int16 int32
    int64 int8 int_ intc integer intp long longdouble longlong memmap ndenumerate nditer number object_ poly1d recarray record short
    signedinteger single str_ timedelta64 ubyte uint uint16 uint32 uint64 uint8 uintc uintp ulong ulonglong unsignedinteger ushort void
    False_ ScalarType True_ e euler_gamma index_exp inf little_endian nan newaxis pi s_ sctypeDict typecodes
    char core ctypeslib dtypes emath exceptions f2py fft lib linalg ma polynomial random rec strings testing typing
    matrix ndindex
    """),
    **each(UNIVERSAL, """
    abs absolute acos acosh add arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh bitwise_and
    bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor cbrt ceil conj conjugate
    copysign cos cosh deg2rad degrees divide divmod equal exp exp2 expm1 fabs float_power floor floor_divide fmax fmin fmod gcd greater
    greater_equal heaviside hypot invert isfinite isinf isnan lcm left_shift less less_equal log log10 log1p log2 logaddexp logaddexp2
    logical_and logical_not logical_or logical_xor maximum minimum mod modf multiply negative nextafter not_equal positive pow power
    rad2deg radians reciprocal remainder right_shift rint sign signbit sin sinh spacing sqrt square subtract tan tanh true_divide trunc
    """),
    **each(LEFT, """
    busday_count busday_offset datetime_as_string datetime_data frexp frompyfunc is_busday isnat ldexp nested_iters
    """),
    **each(QUESTION, """
    base_repr binary_repr broadcast_shapes format_float_positional format_float_scientific get_include get_printoptions getbufsize geterr
    geterrcall isdtype issubdtype mintypecode printoptions promote_types set_printoptions setbufsize seterrcall show_runtime
    test typename
    """),
    **each(BRACKETS, "c_ mgrid ogrid r_"),
    "all": own("_functions.reductions", "a where", "out", native="logical_and", method=True, by_numpy=COMPUTED, complete=True),
    "allclose": own("_functions.reductions", "a b rtol atol", by_numpy=COMPUTED),
    "amax": own("_functions.reductions", "a where", "out", complete=True),
    "amin": own("_functions.reductions", "a where", "out", complete=True),
    "angle": own("_functions.complex_parts", "z"),
    "any": own("_functions.reductions", "a where", "out", native="logical_or", method=True, by_numpy=COMPUTED, complete=True),
    "append": own("_functions.arrangement", "arr values", by_numpy=MOVED),
    "apply_along_axis": adapted("arr"),
    "apply_over_axes": adapted("a"),
    "arange": own("_functions.creation", native=True, complete=True),
    "argmax": own("_functions.reductions", "a", "out", native=True, method=True, by_numpy=COMPUTED, delegates=True),
    "argmin": own("_functions.reductions", "a", "out", native=True, method=True, by_numpy=COMPUTED, delegates=True),
    "argpartition": own("_functions.sorting", "a", method=True, by_numpy=SORTED, delegates=True),
    "argsort": own("_functions.sorting", "a", native=True, method=True, by_numpy=SORTED, delegates=True),
    "argwhere": own("_functions.search", "a", by_numpy=COMPUTED),
    "around": own("_functions.search", "a", "out", delegates="round"),
    "array": own("_array.conversion", "object", native=True, complete=True),
    "array2string": text("a"),
    "array_equal": own("_functions.reductions", "a1 a2", by_numpy=COMPUTED),
    "array_equiv": own("_functions.reductions", "a1 a2"),
    "array_repr": text("arr"),
    "array_split": own("_functions.joining", "ary"),
    "array_str": text("a"),
    "asanyarray": own("_array.conversion", "a", native=True, complete=True),
    "asarray": own("_array.conversion", "a", native=True, complete=True),
    "asarray_chkfinite": own("_array.conversion", "a"),
    "ascontiguousarray": own("_array.conversion", "a", complete=True),
    "asfortranarray": own("_array.conversion", "a", complete=True),
    "asmatrix": question("data"),
    "astype": own("_functions.inspection", "x", complete=True),
    "atleast_1d": own("_functions.joining", "arys", native=True),
    "atleast_2d": own("_functions.joining", "arys", native=True),
    "atleast_3d": own("_functions.joining", "arys", native=True),
    "average": own("_functions.reductions", "a weights"),
    "bartlett": adapted(),
    "bincount": own("_functions.sorting", "x weights", by_numpy=SORTED),
    "blackman": adapted(),
    "block": adapted("arrays", by_numpy=MOVED),
    "bmat": own("_functions.joining", "obj", complete=True),
    "broadcast": own("_functions.broadcasting"),
    "broadcast_arrays": own("_functions.manipulation", "args"),
    "broadcast_to": own("_functions.manipulation", "array"),
    "can_cast": own("_functions.inspection", "from_", complete=True),
    "choose": own("_functions.search", "a choices", "out", by_numpy=COMPUTED, delegates=True),
    "clip": own("_functions.search", "a a_min a_max min max", "out", native=True, delegates=True),
    "column_stack": own("_functions.joining", "tup", native=True, by_numpy=COMPUTED),
    "common_type": question("arrays"),
    "compress": own("_functions.search", "condition a", "out", by_numpy=COMPUTED),
    "concatenate": own("_functions.joining", "arrays", "out", native=True, by_numpy=COMPUTED),
    "convolve": own("_functions.numeric", "a v", by_numpy=AWAITED),
    "copy": own("_array.conversion", "a", native=True),
    "copyto": own("_functions.search", "src where", "dst", by_numpy=COMPUTED),
    "corrcoef": adapted("x y"),
    "correlate": own("_functions.numeric", "a v", by_numpy=AWAITED),
    "count_nonzero": own("_functions.reductions", "a", native="add", by_numpy=COMPUTED),
    "cov": adapted("m y fweights aweights"),
    "cross": own("_functions.products", "a b", by_numpy=COMPUTED),
    "cumprod": own("_functions.reductions", "a", "out", native=True, method=True, delegates=True),
    "cumsum": own("_functions.reductions", "a", "out", native=True, method=True, delegates=True),
    "cumulative_prod": own("_functions.reductions", "x", "out"),
    "cumulative_sum": own("_functions.reductions", "x", "out"),
    "delete": adapted("arr obj", by_numpy=MOVED),
    "diag": own("_functions.arrangement", "v", native=True),
    "diag_indices": adapted(),
    "diag_indices_from": adapted("arr"),
    "diagflat": own("_functions.arrangement", "v"),
    "diagonal": own("_functions.arrangement", "a", native=True, method=True),
    "diff": own("_functions.sorting", "a prepend append"),
    "digitize": own("_functions.sorting", "x bins", by_numpy=AWAITED),
    "dot": own("_functions.products", "a b", "out", native=True, method=True),
    "dsplit": own("_functions.joining", "ary"),
    "dstack": own("_functions.joining", "tup", by_numpy=COMPUTED),
    "ediff1d": own("_functions.sorting", "ary to_end to_begin", by_numpy=COMPUTED),
    "einsum": own("_functions.einsum", "operands", "out", products=1 << 16),
    "einsum_path": question("operands"),
    "empty": own("_functions.creation", native=True, complete=True),
    "empty_like": own("_functions.creation", "prototype", native=True),
    "errstate": own("_numpy.floating_point"),
    "expand_dims": own("_functions.manipulation", "a", native=True),
    "extract": own("_functions.search", "condition arr", by_numpy=COMPUTED),
    "eye": own("_functions.creation", native=True, complete=True),
    "fill_diagonal": own("_functions.arrangement", "val", "a", native=True),
    "fix": adapted("x", "out", by_numpy=COMPUTED),
    "flatnonzero": own("_functions.arrangement", "a", native=True, by_numpy=COMPUTED),
    "flip": own("_functions.arrangement", "m", native=True),
    "fliplr": own("_functions.arrangement", "m", native=True),
    "flipud": own("_functions.arrangement", "m", native=True),
    "from_dlpack": own("_functions.creation", "x", complete=True),
    "frombuffer": own("_functions.creation"),
    "fromfile": host(),
    "fromfunction": own("_functions.creation"),
    "fromiter": host(),
    "fromregex": host(),
    "fromstring": host(),
    "full": own("_functions.creation", "fill_value", native=True, complete=True),
    "full_like": own("_functions.creation", "a fill_value", native=True),
    "genfromtxt": host(),
    "geomspace": adapted("start stop"),
    "gradient": adapted("f varargs", native=True, by_numpy=COMPUTED),
    "hamming": adapted(),
    "hanning": adapted(),
    "histogram": own("_functions.numeric", "a bins weights", by_numpy=COUNTED, operands=1),
    "histogram2d": adapted("x y bins weights", by_numpy=SORTED, operands=2),
    "histogram_bin_edges": adapted("a weights"),
    "histogramdd": adapted("sample weights", by_numpy=SORTED, operands=1),
    "hsplit": own("_functions.joining", "ary"),
    "hstack": own("_functions.joining", "tup", native=True, by_numpy=COMPUTED),
    "i0": adapted("x"),
    "identity": own("_functions.creation", complete=True),
    "imag": own("_functions.complex_parts", "val"),
    "in1d": adapted("ar1 ar2"),
    "indices": own("_functions.creation"),
    "info": own("_tools.runtime", "object", complete=True),
    "show_config": own("_tools.runtime", complete=True),
    "inner": own("_functions.products", "a b", native=True),
    "insert": adapted("arr obj values", by_numpy=MOVED),
    "interp": own("_functions.numeric", "x xp fp", native=True, by_numpy=COUNTED),
    "intersect1d": adapted("ar1 ar2", by_numpy=SORTED),
    "isclose": own("_functions.reductions", "a b rtol atol", by_numpy=COMPUTED),
    "iscomplex": adapted("x", by_numpy=COMPUTED),
    "iscomplexobj": question("x"),
    "isfortran": own("_functions.numeric", "a"),
    "isin": adapted("element test_elements", by_numpy=SORTED),
    "isneginf": adapted("x", "out", by_numpy=COMPUTED),
    "isposinf": adapted("x", "out", by_numpy=COMPUTED),
    "isreal": adapted("x", by_numpy=COMPUTED),
    "isrealobj": question("x"),
    "isscalar": own("_functions.inspection", "element", complete=True),
    "iterable": question("y"),
    "ix_": own("_functions.search", "args"),
    "kaiser": adapted(),
    "kron": own("_functions.products", "a b", by_numpy=COMPUTED),
    "lexsort": own("_functions.numeric", "keys", by_numpy=SORTED),
    "linspace": own("_functions.creation", "start stop", native=True),
    "load": own("_functions.files"),
    "loadtxt": host(),
    "logspace": adapted("start stop base"),
    "mask_indices": adapted(),
    "matmul": own("_functions.products", "x1 x2", "out", native=True),
    "matrix_transpose": own("_functions.manipulation", "x"),
    "matvec": own("_functions.products", "x1 x2", "out"),
    "max": own("_functions.reductions", "a where", "out", native="maximum", method=True, complete=True),
    "may_share_memory": own("_functions.inspection", "a b", complete=True),
    "mean": own("_functions.reductions", "a where", "out", native=True, method=True, delegates=True),
    "median": adapted("a", "out", by_numpy=SORTED),
    "meshgrid": own("_functions.creation", "xi", native=True),
    "min": own("_functions.reductions", "a where", "out", native="minimum", method=True, complete=True),
    "min_scalar_type": question("a"),
    "moveaxis": own("_functions.manipulation", "a"),
    "nan_to_num": adapted("x", by_numpy=AWAITED, named=True),
    "nanargmax": adapted("a", "out", by_numpy=AWAITED),
    "nanargmin": adapted("a", "out", by_numpy=AWAITED),
    "nancumprod": adapted("a", "out", by_numpy=COMPUTED),
    "nancumsum": adapted("a", "out", native=True),
    "nanmax": adapted("a where", "out", by_numpy=COMPUTED, operands=1),
    "nanmean": adapted("a where", "out", native=True),
    "nanmedian": adapted("a", "out", by_numpy=SORTED),
    "nanmin": adapted("a where", "out", by_numpy=COMPUTED, operands=1),
    "nanpercentile": adapted("a q weights", "out", by_numpy=SORTED, operands=2),
    "nanprod": adapted("a where", "out", native="multiply"),
    "nanquantile": adapted("a q weights", "out", by_numpy=SORTED, operands=2),
    "nanstd": own("_functions.reductions", "a where mean", "out", native="sqrt"),
    "nansum": adapted("a where", "out", native="add"),
    "nanvar": adapted("a where mean", "out", native=True),
    "ndarray": own("_native"),
    "ndim": question("a"),
    "nonzero": own("_functions.search", "a", native=True, method=True, by_numpy=COMPUTED, delegates=True),
    "ones": own("_functions.creation", native=True, complete=True),
    "ones_like": own("_functions.creation", "a", native=True),
    "outer": own("_functions.products", "a b", "out", native="multiply"),
    "packbits": own("_functions.packing", "a", by_numpy=SORTED),
    "pad": own("_functions.padding", "array pad_width", native=True, by_numpy=MOVED),
    "partition": own("_functions.sorting", "a", by_numpy=SORTED),
    "percentile": adapted("a q weights", "out", by_numpy=SORTED, operands=2),
    "piecewise": adapted("x condlist"),
    "place": own("_functions.search", "mask vals", "arr", by_numpy=COMPUTED),
    "poly": adapted("seq_of_zeros", lapack=True),
    "polyadd": adapted("a1 a2", by_numpy=COMPUTED),
    "polyder": adapted("p"),
    "polydiv": adapted("u v", by_numpy=COMPUTED),
    "polyfit": adapted("x y w", lapack=True),
    "polyint": adapted("p"),
    "polymul": adapted("a1 a2", by_numpy=COMPUTED),
    "polysub": adapted("a1 a2", by_numpy=COMPUTED),
    "polyval": adapted("p x", by_numpy=COMPUTED),
    "prod": own("_functions.reductions", "a where", "out", native="multiply", method=True, complete=True),
    "ptp": own("_functions.reductions", "a", "out", by_numpy=COMPUTED),
    "put": own("_functions.search", "ind v", "a", method=True, by_numpy=COMPUTED),
    "put_along_axis": own("_functions.search", "indices values", "arr", by_numpy=COMPUTED),
    "putmask": own("_functions.search", "mask values", "a", by_numpy=COMPUTED),
    "quantile": adapted("a q weights", "out", by_numpy=SORTED, operands=2),
    "ravel": own("_functions.manipulation", "a", native=True, method=True),
    "ravel_multi_index": own("_functions.numeric", "multi_index", by_numpy=COMPUTED),
    "real": own("_functions.complex_parts", "val"),
    "real_if_close": adapted("a"),
    "repeat": own("_functions.arrangement", "a repeats", native=True, method=True, by_numpy=MOVED, delegates=True),
    "require": adapted("a"),
    "reshape": own("_functions.manipulation", "a", native=True, delegates=True),
    "resize": own("_functions.arrangement", "a", by_numpy=COMPUTED),
    "result_type": own("_functions.inspection", "arrays_and_dtypes", complete=True),
    "roll": own("_functions.arrangement", "a", native=True),
    "rollaxis": own("_functions.manipulation", "a"),
    "roots": adapted("p", lapack=True),
    "rot90": own("_functions.arrangement", "m"),
    "round": own("_functions.search", "a", "out", method=True, delegates=True),
    "row_stack": own("_functions.numeric", "tup"),
    "save": own("_functions.files", "arr"),
    "savetxt": host("X"),
    "savez": host("args kwds"),
    "savez_compressed": host("args kwds"),
    "searchsorted": own("_functions.sorting", "a v sorter", method=True, by_numpy=AWAITED, operands=2, delegates=True),
    "select": own("_functions.search", "condlist choicelist default", by_numpy=COMPUTED),
    "setdiff1d": adapted("ar1 ar2", by_numpy=SORTED),
    "seterr": own("_numpy.floating_point", complete=True),
    "setxor1d": adapted("ar1 ar2", by_numpy=SORTED),
    "shape": question("a"),
    "shares_memory": own("_functions.inspection", "a b", complete=True),
    "sinc": adapted("x"),
    "size": question("a"),
    "sort": own("_functions.sorting", "a", native=True, by_numpy=SORTED),
    "sort_complex": adapted("a", by_numpy=SORTED),
    "split": own("_functions.joining", "ary"),
    "squeeze": own("_functions.manipulation", "a", native=True, method=True, delegates=True),
    "stack": own("_functions.joining", "arrays", "out", native=True),
    "std": own("_functions.reductions", "a where mean", "out", native="sqrt", method=True, delegates=True),
    "sum": own("_functions.reductions", "a where", "out", native="add", method=True, complete=True),
    "swapaxes": own("_functions.manipulation", "a", native=True, method=True, delegates=True),
    "take": own("_functions.search", "a indices", "out", native=True, method=True, by_numpy=COMPUTED, delegates=True),
    "take_along_axis": own("_functions.search", "arr indices", by_numpy=COMPUTED),
    "tensordot": own("_functions.products", "a b"),
    "tile": own("_functions.arrangement", "A", by_numpy=MOVED),
    "trace": own("_functions.reductions", "a", "out", native="add", method=True),
    "transpose": own("_functions.manipulation", "a", native=True, delegates=True),
    "trapezoid": adapted("y x"),
    "tri": own("_functions.creation"),
    "tril": own("_functions.arrangement", "m", by_numpy=MOVED),
    "tril_indices": adapted(),
    "tril_indices_from": adapted("arr"),
    "trim_zeros": adapted("filt"),
    "triu": own("_functions.arrangement", "m", by_numpy=MOVED),
    "triu_indices": adapted(),
    "triu_indices_from": adapted("arr"),
    "ufunc": own("_ufunc.ufunc"),
    "union1d": adapted("ar1 ar2", by_numpy=SORTED),
    "unique": adapted("ar", by_numpy=SORTED),
    "unique_all": adapted("x", by_numpy=SORTED),
    "unique_counts": adapted("x", by_numpy=SORTED),
    "unique_inverse": adapted("x", by_numpy=SORTED),
    "unique_values": adapted("x", by_numpy=SORTED),
    "unpackbits": own("_functions.packing", "a", by_numpy=SORTED),
    "unravel_index": own("_functions.numeric", "indices", by_numpy=COMPUTED),
    "unstack": own("_functions.joining", "x"),
    "unwrap": adapted("p", by_numpy=COMPUTED),
    "vander": adapted("x", by_numpy=COMPUTED),
    "var": own("_functions.reductions", "a where mean", "out", native=True, method=True, delegates=True),
    "vdot": own("_functions.products", "a b", native=True),
    "vecdot": own("_functions.products", "x1 x2", "out"),
    "vecmat": own("_functions.products", "x1 x2", "out"),
    "vectorize": own("_jit.vectorize"),
    "vsplit": own("_functions.joining", "ary"),
    "vstack": own("_functions.joining", "tup", native=True, by_numpy=COMPUTED),
    "where": own("_functions.search", "condition x y", native=True),
    "zeros": own("_functions.creation", native=True, complete=True),
    "zeros_like": own("_functions.creation", "a", native=True),
}  # fmt: skip

# Two names of one function.
FUNCTIONS |= {"concat": FUNCTIONS["concatenate"], "permute_dims": FUNCTIONS["transpose"]}

# The methods of arrays that `_array.methods` has, because their parameters, or what they do, are not those of a function.
METHODS = {
    "astype": written(native=True),
    "byteswap": written(),
    "choose": written("a choices", "out", by_numpy=COMPUTED),
    "clip": written("min max", "out", native=True),
    "compress": written("a condition", "out", by_numpy=COMPUTED),
    "conj": written("", "out", native="conjugate"),
    "conjugate": written("", "out", native="conjugate"),
    "copy": written(native=True),
    "dump": written(),
    "dumps": written(),
    "fill": written(),
    "flatten": written(native=True),
    "getfield": written(),
    "item": written(native=True),
    "partition": written("", "self", by_numpy=SORTED),
    "reshape": written(native=True),
    "resize": written("", "self"),
    "setfield": written("val", "self"),
    "setflags": written(),
    "sort": written("", "self", by_numpy=SORTED),
    "to_device": written(),
    "tobytes": written("a", native=True, by_numpy=COMPUTED),
    "tofile": written(),
    "tolist": written("a", native=True, by_numpy=COMPUTED),
    "transpose": written(native=True),
    "view": written(),
}

# The methods of universal functions that NumPy computes at once, or that are served natively; the first argument is the function.
UFUNC_METHODS = {
    "accumulate": own("_ufunc.folds", "function array", "out", by_numpy=AWAITED),
    "at": own("_ufunc.folds", "function indices b", "a", by_numpy=COMPUTED),
    "outer": own("_ufunc.folds", "function A B", native=True),
    "reduceat": own("_ufunc.folds", "function array indices", "out", by_numpy=AWAITED),
}

# The names of `numpy.linalg` and `numpy.fft`.
LINALG = {
    **each(NUMPYS, "LinAlgError"),
    **each(LEFT, "test"),
    "cholesky": own("linalg", "a", lapack=True),
    "cond": adapted("x", lapack=True),
    "cross": own("linalg", "x1 x2"),
    "det": own("linalg", "a", lapack=True),
    "diagonal": own("linalg", "x"),
    "eig": own("linalg", "a", lapack=True),
    "eigh": own("linalg", "a", lapack=True),
    "eigvals": own("linalg", "a", lapack=True),
    "eigvalsh": own("linalg", "a", lapack=True),
    "inv": own("linalg", "a", lapack=True),
    "lstsq": own("linalg", "a b", lapack=True),
    "matmul": own("linalg", "x1 x2"),
    "matrix_norm": own("linalg", "x"),
    "matrix_power": own("linalg", "a"),
    "matrix_rank": adapted("A", lapack=True),
    "matrix_transpose": own("linalg", "x"),
    "multi_dot": own("linalg", "arrays"),
    "norm": own("linalg", "x", native="sqrt"),
    "outer": own("linalg", "x1 x2"),
    "pinv": adapted("a", lapack=True),
    "qr": own("linalg", "a", lapack=True),
    "slogdet": own("linalg", "a", lapack=True),
    "solve": own("linalg", "a b", lapack=True),
    "svd": own("linalg", "a", lapack=True),
    "svdvals": own("linalg", "x", lapack=True),
    "tensordot": own("linalg", "x1 x2"),
    "tensorinv": adapted("a", lapack=True),
    "tensorsolve": adapted("a b", lapack=True),
    "trace": own("linalg", "x"),
    "vecdot": own("linalg", "x1 x2"),
    "vector_norm": own("linalg", "x"),
}
FFT = {
    **each(NUMPYS, "test"),
    **{name: own("fft", "a", native=True) for name in "fft ifft rfft irfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn".split()},
    **{name: own("fft", "a") for name in ("hfft", "ihfft")},
    **{name: own("fft", "x") for name in ("fftshift", "ifftshift")},
    **{name: own("fft") for name in ("fftfreq", "rfftfreq")},
}  # fmt: skip
