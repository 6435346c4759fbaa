"""Results of all functions lie in memory as NumPy's do, so that what is made of them by `ravel` and `reshape` shares their memory, or
does not, as with NumPy."""

import itertools
import os
import re
import subprocess
import sys

import numpy
import pytest

import bh as np
from conftest import LIMIT

CALLS = r"""
{a + b|a * 2.5|a - a[0]|-a|a > b|abs(a)|a ** 2|a // 2}
np.{sqrt|negative|signbit|isnan|modf|frexp|spacing|fix|square|degrees|sinc|round|isreal|real_if_close|nan_to_num}(a)
np.{add|maximum|divmod|hypot|copysign|fmax|nextafter|heaviside|isclose}(a, b)
np.{gcd|lcm|bitwise_xor}(a.astype(int), b.astype(int))
np.add(a, b, order={'C'|'F'|'A'|'K'})
np.sqrt(a, order={'C'|'F'})
a.astype('i4'{|, order='C'|, order='F'|, order='A'})
{a.copy|a.flatten|a.ravel}({|'C'|'F'|'A'|'K'})
np.{copy|array|asarray|ascontiguousarray|asfortranarray}(a)
np.array(a, order={'C'|'F'|'A'|'K'})
np.{zeros_like|ones_like|empty_like}(a{|, order='C'|, order='F'|, order='A'})
a.reshape({-1|(-1, 2)|(2, -1)}{|, order='F'|, order='A'})
{a.T|a.mT|a.swapaxes(0, 1)|np.moveaxis(a, 0, -1)|a[None]|a[..., None]|a.squeeze()|np.rot90(a)|np.flip(a)|np.diagonal(a)}
{a[v]|a[v, :]|a[:, v]|a[..., v]|a[v, v]|a[:, v, v[0]]|a[v, ..., v]|a[v[:, None], v]|a[:, None, v]|a[None, v]|a[v, None]|a[::2, v]|a[v, 1:]}
{a[i]|a[:, i]|a[..., i]|a[i, i]|a[i, 0]|a[0, i]|a[f]|a[:, f]|a[f, f]|a[t]|a[:, t]|a[np.ix_([0, 2], [1, 0])]}
{a[:, [0, 2]]|a[[0, 2]]|a[[0, 2], 1:3]|a[1:3, [0, 2]]|a[:, a[0, :].reshape(-1)[:a.shape[1]] > 3]}
{a[w]|a[w, :]|a[w, 1:3]|a[w, 0]|a[k]|a[a > 3]|a[True]|a[False]|a[np.array(True)]|a[np.array(0)]}
np.take(a, {v|i|[0, 1]|1}{|, axis=0|, axis=1|, axis=-1})
a.take([0, 1], 1, mode='clip')
np.compress([True, False, True], a, axis={0|1|-1})
np.take_along_axis(a, np.argsort(a, axis={0|1}), {0|1})
{np.argwhere(a > 3)|np.nonzero(a)|a.nonzero()|np.where(a > 3)|np.flatnonzero(a)|np.unravel_index(v, (4, 5))|np.extract(k, a)}
{np.where(k, a, b)|np.where(k, a, 0.0)|np.select([k, ~k], [a, b])|np.choose(k.astype(int), [a, b])|np.clip(a, 1, b)|np.clip(a, 1, None)}
np.{sort|argsort}(a, axis={0|1|-1})
np.{partition|argpartition}(a, 1, axis={0|1})
np.{cumsum|cumprod|nancumsum}(a{|, axis=0|, axis=1})
np.cumulative_sum(a, axis={0|1}{|, include_initial=True})
np.{maximum|subtract}.accumulate(a, axis={0|1|-1})
np.add.reduceat(a, [0, 2], axis={0|1})
np.{add|maximum|logical_or|subtract|bitwise_or}.reduce({a|k}, {0|1|-1}{|, keepdims=True})
np.{sum|prod|max|min|mean|std|var|any|all|ptp|nansum|nanmax|nanmean|median|argmax|argmin|count_nonzero|average}(a, axis={0|1|-1})
np.{sum|mean}(a, {0|1}, where=k)
np.average(a, axis=0, weights=b)
np.{percentile|nanpercentile}(a, [20, 50], axis={0|1})
np.{dot|matmul|inner|vecdot}(a, {b|a[0]})
np.{tensordot(a, b, ([0], [0]))|tensordot(a, b, ([1], [1]))|outer(a, v)|kron(a, v)|add.outer(a, v)|cross(a[..., :3], b[..., :3])|matmul(a, b.mT)}
np.einsum({'ij,kj->ik'|'ij,kj->ki'|'ij,ij->ij'|'ij,ij->ji'|'ijk,ijk->kji'}, a, b)
np.einsum({'ij->ji'|'ij->j'|'ijk->kij'|'ijk->ki'}, a)
np.{concatenate|stack}([a, b]{|, axis=1|, axis=-1})
np.{vstack|hstack|dstack|column_stack}([a, b])
np.{block([[a, b], [b, a]])|append(a, b, axis=0)|tile(a, 2)|tile(a, (1, 1))|repeat(a, 2, axis=1)|pad(a, 1)|pad(a, 1, mode='edge')|resize(a, (3, 3))}
np.roll(a, 1{|, axis=0|, axis=1})
np.{insert(a, 1, 0, axis=1)|insert(a, [0, 2], 0, axis=0)|delete(a, 1, axis=1)|delete(a, [0, 1], axis=0)|trim_zeros(a)|tril(a)|diff(a, axis=0)}
np.{gradient(a)|unwrap(a)|split(a, 2)|unstack(a, axis=1)|unique(a, axis=0)|histogram2d(a.ravel(), b.ravel())|cov(a)|digitize(a, [1, 4])}
np.{real(a)|imag(a)|isin(a, b)|interp(a, [0, 5], [1, 2])|apply_along_axis(np.sum, 0, a)|apply_over_axes(np.sum, a, [0])|meshgrid(v, v)}
np.{real|imag|conj|abs|angle}(a.astype(complex))
{a.astype(complex).real|a.byteswap()|a.compress(w, 0)|a.repeat(2, 1)|a.round(1)|a.round()|np.round(a.astype(int), -1)}
np.fft.{fft|ifft|rfft|irfft|ihfft|hfft}(a{|, axis=0})
np.fft.{fft2|ifft2|fftn|rfft2|irfft2|rfftn|fftshift}(a)
np.linalg.{qr|svd|pinv}(a)
np.linalg.{inv|cholesky|eigh|eig}(a[..., :3, :3] @ a[..., :3, :3].mT + 20 * np.eye(3))
np.linalg.norm(a, axis={0|1})
np.lib.stride_tricks.{as_strided(a, (2, 2))|sliding_window_view(a, 2, axis=1)}
""".strip().splitlines()

LAYOUTS = {
    "C": lambda a: a.copy("C"),
    "Fortran": lambda a: a.copy("F"),
    "rows apart": lambda a: a.repeat(2, 0)[::2],
    "elements apart": lambda a: a.repeat(2, -1)[..., ::2],
    "rows of more": lambda a: a.repeat(2, -1)[..., : a.shape[-1]],
    "Fortran, rows apart": lambda a: a.repeat(2, 0).copy("F")[::2],
    "backwards": lambda a: a[::-1],
    "rows backwards": lambda a: a[..., ::-1],
    "Fortran, backwards": lambda a: a.copy("F")[::-1],
    "repeated": None,
    "last first": lambda a: a.transpose(2, 0, 1).copy("C").transpose(1, 2, 0),
    "middle first": lambda a: a.transpose(1, 0, 2).copy("C").transpose(1, 0, 2),
    "last two exchanged": lambda a: a.transpose(0, 2, 1).copy("C").transpose(0, 2, 1),
}
# Little ones are computed at once, others are recorded.
SHAPES = [(4, 5), (3, 4, 5), (90, 100), (21, 20, 22)]


def filled(text):
    """The calls that a text with alternatives stands for."""
    parts = [part[1:-1].split("|") if part[:1] == "{" else [part] for part in re.split(r"(\{[^{}]*\})", text)]
    return list(map("".join, itertools.product(*parts)))


def operand(m, shape, layout):
    array = m.array((numpy.arange(numpy.prod(shape)) * 7 % 11).reshape(shape).astype(float))
    return m.broadcast_to(array[:1], shape) if layout == "repeated" else LAYOUTS[layout](array)


def arrays(result):
    """The arrays of a result."""
    if isinstance(result, (tuple, list)):
        return [array for part in result for array in arrays(part)]
    is_array = isinstance(result, (numpy.ndarray, np.ndarray)) and not getattr(result, "_scalar", False)
    return [result] if is_array and result.ndim else []


def layout_of(array, operands):
    """The layout of an array: strides where there is more than one element, its flags, and whose memory it shares."""
    strides = [stride for stride, extent in zip(array.strides, array.shape) if extent > 1] if array.size else None
    flags = [bool(getattr(array.flags, name)) for name in ("c_contiguous", "f_contiguous", "writeable")]
    shared = [bool(array.size and (np if type(array) is np.ndarray else numpy).shares_memory(array, one)) for one in operands]
    return array.shape, strides, flags, shared


def written(array, operands):
    """Values after writing into what `ravel` and `reshape` make of a result, and the operands' then."""
    for flat in (array.ravel(), array.reshape(-1)):
        if flat.flags.writeable and flat.size:
            flat[0] = 77
    return [numpy.array(one) for one in (array, *operands)]


def called(m, call, shape, layout, other):
    names = {"np": m, "a": operand(m, shape, layout), "b": operand(m, shape, other), "v": m.array([2, 0, 1]), "w": m.arange(shape[0]) % 2 == 0}
    names |= {"i": m.array([[0, 2], [1, 0]]), "f": m.array([[0, 2, 1], [1, 0, 2]]).copy("F"), "t": m.arange(6).reshape(1, 3, 2).transpose(1, 2, 0) % 3}
    names["k"] = names["b"] % 2 == 0
    try:
        result = eval(call, names)
    except Exception as error:
        return type(error).__name__, None
    operands = [names["a"], names["b"]]
    found = [layout_of(array, operands) for array in arrays(result)]
    return found, [written(array, operands) for array in arrays(result)[:1] if array.dtype.kind == "f"]


def agree(mine, reference):
    return len(mine) == len(reference) and all(
        numpy.allclose(one, other, rtol=1e-9, atol=1e-9, equal_nan=True) for pair in zip(mine, reference) for one, other in zip(*pair)
    )


@pytest.mark.falls_back
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("text", CALLS)
def test_results_lie_in_memory_as_numpys(text, shape):
    layouts = [name for place, name in enumerate(LAYOUTS) if len(shape) == 3 or place < 10]
    for call, layout in itertools.product(filled(text), layouts):
        for other in ("C", layout) if re.search(r"\b[bk]\b", call) else ("C",):
            reference, theirs = called(numpy, call, shape, layout, other)
            if isinstance(reference, str):
                continue
            found, mine = called(np, call, shape, layout, other)
            assert found == reference, (call, layout, other)
            # Vectors of a decomposition have signs of their own, and new arrays have any elements.
            assert "linalg" in call or "empty" in call or agree(mine, theirs), (call, layout, other)


RANKS = """
[stacks]
default = ["filter", "cluster", "fuser", "node", "ve-cpu"]
[components.cluster]
transport = "in-process"
ranks = 3
small_bytes = 17
"""
# On ranks, results of these may have other strides than NumPy's, but share memory with the same arrays. Transforms stay on the ranks
# that made them.
ON_RANKS = [text for text in CALLS if not re.search(r"einsum|fft|linalg|unwrap|tensordot", text)]
ON_RANKS_LAYOUTS = ["C", "Fortran", "repeated", "last first", "middle first"]


def differences():
    """The calls whose results share memory with other arrays than NumPy's do, as writes into them show."""
    for text, shape in itertools.product(ON_RANKS, SHAPES[:2]):
        for call, layout in itertools.product(filled(text), ON_RANKS_LAYOUTS):
            if len(shape) < 3 and "first" in layout:
                continue
            reference, theirs = called(numpy, call, shape, layout, layout)
            if isinstance(reference, str):
                continue
            found, mine = called(np, call, shape, layout, layout)
            shared = [[part[3] for part in parts] for parts in (found, reference)] if not isinstance(found, str) else [found, None]
            if shared[0] != shared[1] or not ("empty" in call or agree(mine, theirs)):
                yield call, shape, layout


def test_results_on_ranks_share_memory_as_numpys(tmp_path):
    (tmp_path / "ranks.toml").write_text(RANKS)
    environment = {**os.environ, "BH_CONFIG": str(tmp_path / "ranks.toml"), "BH_FALLBACK": "silent", "BH_LOG": "error"}
    environment["PYTHONPATH"] = os.pathsep.join([os.path.dirname(__file__), *filter(None, sys.path)])
    program = "import test_layouts; print(*test_layouts.differences(), sep='\\n', end='all')"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], env=environment, capture_output=True, text=True, timeout=LIMIT)
    assert done.stdout == "all", done.stdout + done.stderr


def _kernels_of_flush():
    """How many kernels the recorded operations take."""
    count = lambda: dict(np._native.Stack().counters()).get("fuser.kernels", 0)
    before = count()
    np.flush()
    return count() - before


@pytest.mark.parametrize("shape, axes", [((300, 500), (1, 0)), ((40, 70, 90), (2, 0, 1)), ((40, 70, 90), (0, 2, 1))])
def test_folds_share_a_kernel_with_what_made_a_transposed_array(shape, axes):
    kinds = [None, 0, -1, (0, 1)]
    values = numpy.random.default_rng(3).standard_normal(shape)
    for axis in kinds:
        for fold in ("sum", "max"):
            a = np.asarray(values) + 0
            np.flush()
            folded = getattr(np.absolute(a.transpose(axes)), fold)(axis=axis)
            assert _kernels_of_flush() == 1, (axis, fold)
            numpy.testing.assert_allclose(folded, getattr(abs(values.transpose(axes)), fold)(axis=axis), rtol=1e-12)
            # The elements of a transposed array are folded in the order of the array itself.
            if axis is None:
                assert float(folded) == float(getattr(np.absolute(a), fold)())
