"""The registry: one row for each public name of NumPy, and each row tells the truth, which running the function shows."""

import ast
import inspect
import re
import types
from pathlib import Path

import numpy
import pytest

import bh
from bh import _native
from bh._numpy import fallback, immediate, lapack as _lapack, registry
from bh._tools import coverage
from bh._numpy.registry import ADAPTED, BRACKETS, FFT, FUNCTIONS, HOST, LEFT, LINALG, METHODS, NUMPYS, OWN, QUESTION, TEXT, UFUNC_METHODS, UNIVERSAL
from bh._ufunc.ufunc import UFUNCS
from conftest import same

KNOWN = numpy.__version__.startswith("2.4.")
ROWS = {"numpy": FUNCTIONS, "numpy.linalg": LINALG, "numpy.fft": FFT}

# Arguments of the examples: ordered and unordered floats, indices, truth values, matrices, complex numbers; `o` to `r` are outputs.
ARGUMENTS = {
    "a": numpy.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0]), "b": numpy.array([3.0, 1.0, 2.0, 0.5, 4.0, 2.5]), "i": numpy.array([0, 2, 1, 4, 3, 5]),
    "t": numpy.array([True, False, True, True, False, True]), "m": numpy.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]]),
    "w": numpy.array([1, 2, 1, 1, 2, 1]), "x": numpy.array([1.0, 2.0, 4.0]), "z": numpy.array([1 + 2j, 3 - 1j]), "q": numpy.array([0.25, 0.5]), "u": numpy.array([3, 200], "u1"), "one": numpy.array(1.5), "two": numpy.array(2.5),
    "o": numpy.zeros(6), "n": numpy.zeros(6, int), "l": numpy.zeros(6, bool), "s": numpy.zeros(()), "k": numpy.zeros((), int), "v": numpy.zeros((), bool), "p": numpy.zeros(2), "r": numpy.zeros((3, 3)),
}  # fmt: skip

# A call, or some, for each function: all parameters that may be arrays are.
EXAMPLES = """
np.all(t) | np.all(t, where=t) | np.all(t, out=v) | np.allclose(a, b, one, two) | np.amax(a) | np.amax(a, where=t, initial=0.0, out=s) | np.amin(a, where=t, initial=9.0, out=s) | np.angle(z)
np.any(t) | np.any(t, where=t) | np.any(t, out=v) | np.append(a, b) | np.apply_along_axis(lambda line: line.sum(), 0, m) | np.apply_over_axes(np.sum, m, [0])
np.arange(3.0) | np.argmax(a) | np.argmax(a, out=k) | np.argmin(a) | np.argmin(a, out=k) | np.argpartition(a, 2) | np.argsort(a) | np.argwhere(a)
np.around(a, 1) | np.around(a, 1, out=o) | np.array(a) | np.array2string(a) | np.array_equal(a, b) | np.array_equiv(a, b) | np.array_repr(a) | np.array_split(a, 4)
np.array_str(a) | np.asanyarray(a) | np.asarray(a) | np.asarray_chkfinite(a) | np.ascontiguousarray(a) | np.asfortranarray(a) | np.asmatrix(m) | np.astype(a, 'f4')
np.atleast_1d(one) | np.atleast_2d(a) | np.atleast_3d(a) | np.average(a, weights=b) | np.bartlett(5) | np.bincount(i) | np.bincount(i, weights=a) | np.blackman(5)
np.block([a, b]) | np.bmat([m, m]) | np.broadcast_arrays(a, one) | np.broadcast_to(a, (2, 6)) | np.choose(t, [a, b]) | np.choose(t, [a, b], out=o)
np.clip(a, 1.0, 2.5) | np.clip(a, one, two) | np.clip(a, min=one, max=two, out=o) | np.column_stack([a, b]) | np.common_type(a, z) | np.compress(t, a) | np.compress(t[:2], a, out=p[:1]) | np.concatenate([a, b])
np.concatenate([a[:3], b[:3]], out=o) | np.convolve(a, b) | np.copy(a) | np.copyto(o, a, where=t) | np.corrcoef(a, b) | np.correlate(a, b) | np.count_nonzero(i) | np.count_nonzero(t) | np.cov(a, b, fweights=w, aweights=b)
np.cross(x, m[0]) | np.cumprod(a) | np.cumprod(a, out=o) | np.cumsum(a) | np.cumsum(a, out=o) | np.cumulative_prod(a) | np.cumulative_prod(a, out=o) | np.cumulative_sum(a) | np.cumulative_sum(a, out=o)
np.delete(a, 2) | np.delete(a, i[:2]) | np.diag(m) | np.diag_indices(3) | np.diag_indices_from(m) | np.diagflat(x) | np.diagonal(m) | np.diff(a) | np.diff(a, prepend=one, append=two) | np.digitize(a, np.sort(b))
np.dot(a, b) | np.dot(m, m, out=r) | np.dsplit(m[:, :, None], 1) | np.dstack([a, b]) | np.ediff1d(a) | np.ediff1d(a, to_begin=b, to_end=b) | np.einsum('i,i', a, b) | np.einsum('ij->ji', m, out=r)
np.einsum_path('ij,jk', m, m) | np.empty(0) | np.empty_like(a[:0]) | np.expand_dims(a, 0) | np.extract(t, a) | np.eye(3) | np.fill_diagonal(r, x) | np.fill_diagonal(r, 2.0) | np.fix(a) | np.fix(a, out=o)
np.flatnonzero(a) | np.flatnonzero(t) | np.flip(a) | np.fliplr(m) | np.flipud(m) | np.from_dlpack(a) | np.frombuffer(b'12345678') | np.fromfunction(lambda k: k + 1, (3,)) | np.fromiter([1, 2], float)
np.fromstring('1 2', sep=' ') | np.full(3, 2.0) | np.full((2, 6), a) | np.full_like(a, 2.0) | np.full_like(a, one) | np.geomspace(1.0, 8.0, 4) | np.geomspace(one, two, 3) | np.gradient(a) | np.gradient(a, np.sort(b))
np.hamming(5) | np.hanning(5) | np.histogram(a, 3) | np.histogram(a, np.sort(b), weights=b) | np.histogram2d(a, b, 3) | np.histogram2d(a, b, np.sort(b), weights=b) | np.histogram_bin_edges(a, 3, weights=b) | np.histogramdd(m, 2)
np.histogramdd(m, 2, weights=x) | np.hsplit(a, 2) | np.hstack([a, b]) | np.i0(a) | np.identity(3) | np.imag(z) | np.indices((2, 3)) | np.inner(a, b) | np.insert(a, 2, 9.0) | np.insert(a, i[:2], b[:2])
np.interp(b, a, a) | np.intersect1d(a, b) | np.isclose(a, b, one, two) | np.iscomplex(z) | np.iscomplexobj(z) | np.isfortran(m) | np.isin(a, b) | np.isneginf(a) | np.isneginf(a, out=l) | np.isposinf(a) | np.isposinf(a, out=l)
np.can_cast(a, "f4") | np.isreal(z) | np.isrealobj(z) | np.isscalar(a) | np.iterable(a) | np.ix_(i, i) | np.kaiser(5, 2.0) | np.kron(a, b) | np.lexsort((a, b)) | np.linspace(0.0, 1.0, 5) | np.linspace(one, two, 3)
np.logspace(0.0, 1.0, 4) | np.logspace(one, two, 3, base=two) | np.mask_indices(3, np.triu) | np.matmul(m, m) | np.matmul(m, m, out=r) | np.matrix_transpose(m) | np.matvec(m, x) | np.matvec(m, x, out=r[0]) | np.max(a) | np.max(a, where=t, initial=0.0, out=s)
np.may_share_memory(a, b) | np.mean(a) | np.mean(a, where=t, out=s) | np.median(a) | np.median(a, out=s) | np.meshgrid(a, b) | np.min(a) | np.min(a, where=t, initial=9.0, out=s) | np.min_scalar_type(a) | np.moveaxis(m, 0, 1)
np.nan_to_num(a) | np.nanargmax(a) | np.nanargmax(a, out=k) | np.nanargmin(a) | np.nanargmin(a, out=k) | np.nancumprod(a) | np.nancumprod(a, out=o) | np.nancumsum(a) | np.nancumsum(a, out=o) | np.nanmax(a) | np.nanmax(a, where=t, initial=0.0, out=s)
np.nanmean(a) | np.nanmean(a, where=t, out=s) | np.nanmedian(a) | np.nanmedian(a, out=s) | np.nanmin(a) | np.nanmin(a, where=t, initial=9.0, out=s) | np.nanpercentile(a, 30.0) | np.nanpercentile(a, q, out=p, weights=None)
np.nanprod(a) | np.nanprod(a, where=t, out=s) | np.nanquantile(a, 0.3) | np.nanquantile(a, q, out=p) | np.nanstd(a) | np.nanstd(a, where=t, mean=one, out=s) | np.nansum(a) | np.nansum(a, where=t, out=s) | np.nanvar(a) | np.nanvar(a, where=t, mean=one, out=s)
np.ndim(a) | np.nonzero(a) | np.nonzero(t) | np.ones(3) | np.ones_like(a) | np.outer(x, x) | np.outer(x, x, out=r) | np.packbits(t) | np.pad(a, 2) | np.partition(a, 2)
np.percentile(a, 30.0) | np.percentile(a, q, out=p) | np.piecewise(a, [t], [1.0, 2.0]) | np.place(o, t, a) | np.poly(x) | np.polyadd(a, b) | np.polyder(a) | np.polydiv(a, x) | np.polyfit(a, b, 1, w=w) | np.polyint(a) | np.polymul(a, b)
np.polysub(a, b) | np.polyval(a, b) | np.prod(a) | np.prod(a, where=t, out=s) | np.ptp(a) | np.ptp(a, out=s) | np.put(o, i, a) | np.put_along_axis(o, i, a, 0) | np.putmask(o, t, a) | np.quantile(a, 0.3) | np.quantile(a, q, out=p)
np.ravel(m) | np.ravel_multi_index((i, i), (9, 9)) | np.real(z) | np.real_if_close(z) | np.repeat(a, 2) | np.repeat(a, i) | np.require(a) | np.reshape(a, (2, 3)) | np.resize(a, 9) | np.result_type(a, z) | np.roll(a, 2)
np.rollaxis(m, 1) | np.roots(x) | np.rot90(m) | np.round(a, 1) | np.round(a, 1, out=o) | np.searchsorted(a, b) | np.searchsorted(b, a, sorter=np.argsort(b)) | np.select([t, t], [a, b], one)
np.setdiff1d(a, b) | np.setxor1d(a, b) | np.shape(a) | np.shares_memory(a, b) | np.sinc(a) | np.size(a) | np.sort(a) | np.sort_complex(b) | np.split(a, 2) | np.squeeze(m[:1]) | np.stack([a, b]) | np.stack([x, x, x], out=r)
np.std(a) | np.std(a, where=t, mean=one, out=s) | np.sum(a) | np.sum(a, where=t, out=s) | np.swapaxes(m, 0, 1) | np.take(a, i) | np.take(a, i, out=o, mode='clip') | np.take_along_axis(a, i, 0) | np.tensordot(m, m) | np.tile(a, 2) | np.trace(m) | np.trace(m, out=s)
np.transpose(m) | np.trapezoid(a, np.sort(b)) | np.tri(3) | np.tril(m) | np.tril_indices(3) | np.tril_indices_from(m) | np.trim_zeros(a) | np.triu(m) | np.triu_indices(3) | np.triu_indices_from(m)
np.union1d(a, b) | np.unique(a) | np.unique_all(a) | np.unique_counts(a) | np.unique_inverse(a) | np.unique_values(a) | np.unpackbits(u) | np.unravel_index(i, (3, 4)) | np.unstack(m) | np.unwrap(a) | np.vander(x)
np.var(a) | np.var(a, where=t, mean=one, out=s) | np.vdot(a, b) | np.vecdot(a, b) | np.vecdot(a, b, out=s) | np.vecmat(x, m) | np.vecmat(x, m, out=r[0]) | np.vsplit(m, 3) | np.vstack([a, b]) | np.where(t, a, b) | np.zeros(3) | np.zeros_like(a)
"""
OF_LINALG = """
np.linalg.cholesky(m) | np.linalg.cond(m) | np.linalg.cross(x, x) | np.linalg.det(m) | np.linalg.diagonal(m) | np.linalg.eig(m) | np.linalg.eigh(m) | np.linalg.eigvals(m) | np.linalg.eigvalsh(m) | np.linalg.inv(m) | np.linalg.lstsq(m, x)
np.linalg.matmul(m, m) | np.linalg.matrix_norm(m) | np.linalg.matrix_power(m, 2) | np.linalg.matrix_rank(m) | np.linalg.matrix_transpose(m) | np.linalg.multi_dot([m, m]) | np.linalg.norm(m) | np.linalg.outer(x, x) | np.linalg.pinv(m) | np.linalg.qr(m)
np.linalg.slogdet(m) | np.linalg.solve(m, x) | np.linalg.svd(m) | np.linalg.svdvals(m) | np.linalg.tensordot(m, m) | np.linalg.tensorinv(m, 1) | np.linalg.tensorsolve(m, x) | np.linalg.trace(m) | np.linalg.vecdot(x, x) | np.linalg.vector_norm(x)
"""
OF_FFT = " | ".join(f"np.fft.{name}({'m' if name.endswith(('2', 'n')) else 7 if name.endswith('freq') else 'a'})" for name in FFT if name != "test")


def of_function(text):
    """The functions of the calls in a text, with the calls."""
    found = {}
    for call in filter(None, re.split(r" \| |\n", text)):
        found.setdefault(re.match(r"np\.([\w.]+)\(", call)[1], []).append(call)
    return found


CALLS = of_function(EXAMPLES + OF_LINALG + OF_FFT)
# The rows of functions that have examples; those that read files, and those that are asked about options, have none.
EXEMPLARY = {name: FUNCTIONS[name] for name in CALLS if "." not in name}
EXEMPLARY |= {f"linalg.{name}": row for name, row in LINALG.items()} | {f"fft.{name}": row for name, row in FFT.items()}
EXEMPLARY = {name: row for name, row in EXEMPLARY.items() if name in CALLS and hasattr(numpy, name.partition(".")[0])}


class Called:
    """A module whose function of one name notes the arguments of the last call."""

    def __init__(self, module, name):
        self._module, self._name, self.arguments = module, name, None

    def __getattr__(self, name):
        value = getattr(self._module, name)
        if name in ("linalg", "fft") and self._name.startswith(name + "."):
            inner = Called(value, self._name.partition(".")[2])
            inner._outer = self
            return inner
        return self._noted(value) if name == self._name else value

    def _noted(self, function):
        def call(*args, **kwargs):
            getattr(self, "_outer", self).arguments = args, kwargs
            return function(*args, **kwargs)

        return call


def evaluated(call, module, name):
    """The result of a call, and its arguments by the names of NumPy's parameters."""
    noted = Called(module, name)
    given = {key: value.copy() if module is numpy else bh.array(value) for key, value in ARGUMENTS.items()}
    result = eval(call, {"np": noted, **given})
    original = numpy
    for part in name.split("."):
        original = getattr(original, part)
    return result, bound(original, *noted.arguments)


def bound(original, args, kwargs):
    """Arguments by the names of parameters."""
    try:
        signature = inspect.signature(original)
    except ValueError:
        return {**{str(place): value for place, value in enumerate(args)}, **kwargs}
    found = signature.bind(*args, **kwargs)
    keywords = [name for name, parameter in signature.parameters.items() if parameter.kind is parameter.VAR_KEYWORD]
    return {name: value for name, value in found.arguments.items() if name not in keywords} | dict.fromkeys(keywords, ()) | {
        name: value for keyword in keywords for name, value in found.arguments.get(keyword, {}).items()
    }  # fmt: skip


def holds(value):
    """Is it an array of bh, or does it hold one?"""
    return fallback.holds_array(value)


def test_each_name_has_one_row():
    written = {}
    for node in ast.parse(Path(registry.__file__).read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            names = []
            for key, value in zip(node.value.keys, node.value.values):
                if key is not None:
                    names.append(key.value)
                elif isinstance(value, ast.Call):
                    names += value.args[1].value.split()
            written[node.targets[0].id] = names
    for names in written.values():
        assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
    facts = {name for name in vars(registry.Row) if not name.startswith("_")}
    for rows in (*ROWS.values(), METHODS):
        assert all(set(vars(row)) <= facts for row in rows.values())


@pytest.mark.skipif(not KNOWN, reason="the rows are those of NumPy 2.4")
@pytest.mark.parametrize("module", ROWS)
def test_each_public_name_has_a_row(module):
    names = {name for name in dir(coverage._module(numpy, module)) if not name.startswith("_")}
    # Names of other versions.
    others = {"numpy": {"in1d"}}.get(module, set())
    assert names == set(ROWS[module]) - others


def test_functions_and_methods_have_examples():
    missing = [name for name, row in FUNCTIONS.items() if row.kind in (OWN, ADAPTED, TEXT) and name not in CALLS]
    aliases = {"concat", "permute_dims"}
    # Classes, options, files, and what other versions of NumPy have.
    assert set(missing) - aliases == {"broadcast", "ndarray", "ufunc", "vectorize", "errstate", "seterr", "info", "show_config", "load", "save", "in1d", "row_stack"}


def test_kinds():
    for name, row in FUNCTIONS.items():
        if not hasattr(numpy, name):
            continue
        original, mine = getattr(numpy, name), getattr(bh, name)
        if row.kind == NUMPYS:
            assert not callable(original) or isinstance(original, type) or isinstance(original, types.ModuleType), name
            assert mine is original or isinstance(original, types.ModuleType), name
        elif row.kind == UNIVERSAL:
            assert isinstance(original, numpy.ufunc) and type(mine) is bh.ufunc, name
        elif row.kind == OWN:
            module = __import__(f"bh.{row.module}", fromlist=["bh"])
            home = getattr(module, name)
            # The class of arrays is the package's, wherever it is made.
            assert getattr(home, "__module__") in (module.__name__, "bh") and home is not original, name
        elif row.kind in (QUESTION, HOST, TEXT, LEFT, ADAPTED):
            assert callable(original) and mine is not None, name
        else:
            assert row.kind == BRACKETS and type(mine).__name__ == type(original).__name__


@pytest.mark.parametrize("name", EXEMPLARY)
def test_arrays_are_arguments_and_results_are_numpys(name):
    row, given = EXEMPLARY[name], set()
    for call in CALLS[name]:
        expected, theirs = evaluated(call, numpy, name)
        result, arguments = evaluated(call, bh, name)
        if isinstance(expected, (str, type, numpy.dtype, list)) and row.kind in (QUESTION, TEXT) or isinstance(expected, numpy.dtype):
            assert result == expected, call
        elif expected is not None and type(expected) is not numpy.matrix:
            same(result, expected, ulps=256, check_type=not isinstance(expected, bool))
        used = {parameter for parameter, value in arguments.items() if holds(value)}
        given |= used
        for parameter in used:
            if parameter not in ("out", row.changes):
                pairs = zip(flat(arguments[parameter]), flat(theirs[parameter]))
                assert all(numpy.array_equal(numpy.asarray(mine), its) for mine, its in pairs), (call, parameter)
        if row.changes:
            target, reference = arguments[row.changes], theirs[row.changes]
            assert result is None and numpy.array_equal(numpy.asarray(target), reference) and numpy.asarray(target).any(), call
        elif "out" in used:
            assert result is arguments["out"], call
    # Older versions of NumPy do not tell the names of some functions' parameters.
    if not any(parameter.isdigit() or parameter == "args" for parameter in given):
        assert given == {*row.arrays.split(), *row.writes.split()} - UNSEEN.get(name, set()), name


# Parameters of which an example in which they are arrays is of no use: NumPy's functions of these weights need a method that no other
# example needs, and Python's own objects are the usual case.
UNSEEN = {name: {"weights"} for name in ("percentile", "quantile", "nanpercentile", "nanquantile")} | {"pad": {"pad_width"}}


def flat(value):
    """The arrays in a value."""
    if isinstance(value, (list, tuple)):
        return [one for part in value for one in flat(part)]
    return [value] if isinstance(value, (numpy.ndarray, _native.ndarray)) else []


@pytest.mark.falls_back
def test_what_is_left_to_numpy_falls_back():
    calls = {
        "frexp": lambda a: bh.frexp(a), "ldexp": lambda a: bh.ldexp(a, 2),
    }  # fmt: skip
    for name, call in calls.items():
        assert FUNCTIONS[name].kind == LEFT
        before = fallback.counts.total()
        call(bh.array(ARGUMENTS["a"]))
        assert fallback.counts.total() == before + 1, name


@pytest.mark.parametrize("name", [name for name, row in FUNCTIONS.items() if row.kind == UNIVERSAL and hasattr(numpy, name)])
def test_universal_functions_are_native(name):
    function, original = getattr(bh, name), getattr(numpy, name)
    for kind in (float, int):
        hosts = [numpy.array([0.5, 1.0, 2.0] if kind is float else [1, 0, 3], kind) for _ in range(original.nin)]
        try:
            with numpy.errstate(all="ignore"):
                expected = original(*hosts)
        except TypeError:
            continue
        # A fallback is an error here.
        with bh.errstate(all="ignore"):
            same(function(*map(bh.array, hosts)), expected, ulps=256)
        return
    raise AssertionError("it takes neither floats nor integers")


def served(name, row, method):
    """How many examples the native module serves."""

    def refuse(*args, **kwargs):
        raise LookupError

    ufunc, count = UFUNCS.get(row.native), 0
    function = _native.Method(name, refuse, ufunc) if method else _native.Function(name, refuse, ufunc, False)
    for call in CALLS[name]:
        noted = Called(bh, name)
        eval(call, {"np": noted, **{key: bh.array(value) for key, value in ARGUMENTS.items()}})
        args, kwargs = noted.arguments
        try:
            function(*args, **kwargs)
            count += 1
        except LookupError:
            continue
    return count


def test_who_serves_natively():
    functions, methods = map(set, _native.served())
    of_linalg = {f"linalg.{name}" for name, row in LINALG.items() if row.native}
    of_fft = {f"fft.{name}" for name, row in FFT.items() if row.native}
    of_ufuncs = {f"ufunc.{name}" for name, row in UFUNC_METHODS.items() if row.native}
    assert functions - of_ufuncs == {name for name, row in FUNCTIONS.items() if row.native} - {"concat", "permute_dims"} | of_linalg | of_fft
    assert methods == {name for name, row in METHODS.items() if row.native}
    # Recorded natively only on devices, or if large (`test_recorded_calls`).
    rows = {name: FUNCTIONS[name] for name in functions - of_linalg - of_fft - of_ufuncs - {"argsort", "gradient"}}
    assert not [name for name, row in rows.items() if not served(name, row, False)]
    assert not [name for name, row in rows.items() if row.method and not served(name, row, True)]
    kinds = {name: type(vars(_native.ndarray)[name]) is _native.Method for name in vars(_native.ndarray) if hasattr(numpy.ndarray, name)}
    for name, is_served in kinds.items():
        row = METHODS.get(name) or FUNCTIONS.get(name)
        assert is_served == bool(row is not None and (row.native or row.by_numpy) and (row.method or name in METHODS)), name


def test_methods_are_numpys():
    methods = {name for name in dir(numpy.ndarray) if not name.startswith("_") and callable(getattr(numpy.ndarray, name))}
    assert methods == {name for name, row in FUNCTIONS.items() if row.method} | set(METHODS)
    assert not {name for name, row in FUNCTIONS.items() if row.method} & set(METHODS)
    for name in methods:
        assert callable(getattr(_native.ndarray, name)), name


@pytest.mark.parametrize("name", [name for name, row in FUNCTIONS.items() if row.method])
def test_methods_give_what_functions_give(name):
    for call in CALLS[name]:
        noted = Called(bh, name)
        expected = eval(call, {"np": noted, **{key: bh.array(value) for key, value in ARGUMENTS.items()}})
        (array, *args), kwargs = noted.arguments
        result = getattr(array, name)(*args, **kwargs)
        assert type(result) is type(expected), call
        if expected is not None:
            same(result, expected)


@pytest.mark.parametrize("name", [name for name, row in FUNCTIONS.items() if row.kind in (OWN, ADAPTED) and name in EXEMPLARY])
def test_which_calls_numpy_computes_at_once(name, monkeypatch):
    row, taken = FUNCTIONS[name], []
    original = immediate.taken
    monkeypatch.setattr(immediate, "taken", lambda *call: taken.append(call[0]) or original(*call))
    before = _native.set_shortcuts(False)
    try:
        evaluated(CALLS[name][0], bh, name)
    finally:
        _native.set_shortcuts(before)
    # Calls that change an argument are computed in its memory, and by the native half only.
    assert (getattr(numpy, name) in taken) == bool(row.by_numpy and not row.changes)


@pytest.mark.falls_back
def test_complete_functions_raise_no_fallback():
    for name, row in FUNCTIONS.items():
        if row.kind != OWN or not row.complete or not hasattr(numpy, name) or name in ("seterr", "bmat", "info", "show_config"):
            continue
        function = getattr(__import__(f"bh.{row.module}", fromlist=["bh"]), name)
        for strange in (numpy.array([1, 2], object), numpy.array([1, 2], "g"), numpy.ones((1,) * 20), numpy.ma.array([1, 2])):
            try:
                function(strange)
            except fallback.Fallback:
                raise AssertionError(name) from None
            except (TypeError, ValueError, BufferError):
                continue


@pytest.mark.parametrize("name", [name for name, row in FUNCTIONS.items() if row.delegates])
def test_objects_are_asked_for_their_methods(name):
    called = FUNCTIONS[name].delegates
    kind = type("Asked", (), {getattr(numpy, name).__name__ if called is True else called: lambda self, *args, **kwargs: "asked"})
    rest = {"searchsorted": (1,), "reshape": ((3, 1),), "repeat": (2,), "take": ([0],), "clip": (1, 2), "swapaxes": (0, 1), "choose": ([1],), "argpartition": (1,)}
    for module in (numpy, bh):
        assert getattr(module, name)(kind(), *rest.get(name, ())) == "asked"


@pytest.mark.skipif(_lapack.LINALG == "stack", reason="LAPACK is not asked")
@pytest.mark.parametrize("name", [name for name, row in EXEMPLARY.items() if row.lapack or name.startswith("linalg.")])
def test_what_lapack_does(name, monkeypatch):
    taken, original = [], _lapack.taken
    monkeypatch.setattr(_lapack, "taken", lambda *call: taken.append(call[0]) or original(*call))
    natively, _ = evaluated(CALLS[name][0], bh, name)
    before = _native.set_shortcuts(False)
    try:
        same(evaluated(CALLS[name][0], bh, name)[0], natively)
    finally:
        _native.set_shortcuts(before)
    assert bool(taken) == EXEMPLARY[name].lapack


def test_the_page_of_coverage_follows():
    page = coverage.table()
    for name, row in FUNCTIONS.items():
        if hasattr(numpy, name):
            assert f"| `{name}` | {coverage.kind_of('numpy', name)[0]} |" in page
