"""What a newcomer tries first with other libraries: arrays of bh given to Matplotlib, SciPy and pandas, and taken from them."""

import numpy
import pytest

import bh
from conftest import same

pytestmark = pytest.mark.falls_back


def test_plots(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    x = bh.linspace(0, 10, 200)
    figure, axes = pyplot.subplots(2, 2)
    (line,) = axes[0, 0].plot(x, bh.sin(x), label="sine")
    axes[0, 1].scatter(x, x**2, c=bh.cos(x))
    axes[1, 0].imshow(bh.outer(bh.sin(x), bh.cos(x)))
    counts, _, _ = axes[1, 1].hist(bh.random.default_rng(1).normal(size=500), bins=20)
    axes[0, 0].fill_between(x, bh.sin(x), 0)
    axes[1, 0].contour(bh.outer(x, x))
    figure.savefig(tmp_path / "plot.png")
    numpy.testing.assert_allclose(line.get_ydata(), numpy.sin(numpy.linspace(0, 10, 200)), rtol=1e-12, atol=1e-12)
    assert counts.sum() == 500 and (tmp_path / "plot.png").stat().st_size > 5000
    pyplot.close(figure)


def test_minimizers_in_c_take_gradients():
    optimize = pytest.importorskip("scipy.optimize")

    def slope(x):
        made = bh.zeros(3)
        made[...] = 2 * (x - 1)
        return made

    for method in ("L-BFGS-B", "SLSQP", "TNC", "BFGS", "CG"):
        found = optimize.minimize(lambda x: ((bh.asarray(x) - 1) ** 2).sum(), bh.zeros(3), jac=slope, method=method)
        numpy.testing.assert_allclose(found.x, 1, atol=1e-4)


def test_what_libraries_prepare_is_the_memory():
    library = {"__name__": "library", "__file__": numpy.__file__, "np": numpy}
    exec("def prepared(a): return np.atleast_1d(a), np.atleast_2d(a)", library)
    mine = bh.arange(4.0)
    for made in library["prepared"](mine):
        assert type(made) is numpy.ndarray and numpy.shares_memory(made, numpy.asarray(mine))
    assert type(numpy.atleast_1d(mine)) is bh.ndarray


def test_images_of_scipy():
    ndimage = pytest.importorskip("scipy.ndimage")
    image = bh.arange(100.0).reshape(10, 10) % 7
    plain = numpy.asarray(image).copy()
    for filtered in ("gaussian_filter(image, 2)", "sobel(image)", "label(image > 3)[0]", "zoom(image, 2)", "median_filter(image, 3)"):
        same(eval("ndimage." + filtered), eval("ndimage." + filtered, {"image": plain, "ndimage": ndimage}))


def test_linear_algebra_of_scipy():
    linalg = pytest.importorskip("scipy.linalg")
    a = bh.random.default_rng(3).normal(size=(5, 5))
    plain = numpy.asarray(a).copy()
    for function in (linalg.lu, linalg.expm, linalg.schur, linalg.inv, linalg.svdvals):
        same(function(a), function(plain))
    same(linalg.solve(a, bh.ones(5)), linalg.solve(plain, numpy.ones(5)))


def test_other_parts_of_scipy():
    pytest.importorskip("scipy")
    from scipy import integrate, interpolate, optimize, signal, sparse, stats

    x = bh.linspace(0, 3, 40)
    plain = numpy.linspace(0, 3, 40)
    same(interpolate.CubicSpline(x, bh.sin(x))(1.5), interpolate.CubicSpline(plain, numpy.sin(plain))(1.5))
    same(integrate.simpson(bh.sin(x), x=x), integrate.simpson(numpy.sin(plain), x=plain))
    same(signal.convolve(x, bh.ones(3)), signal.convolve(plain, numpy.ones(3)))
    assert stats.ttest_1samp(x, 1.5).pvalue == pytest.approx(1.0)
    found = optimize.minimize(lambda p: float(bh.sum((bh.asarray(p) - 3) ** 2)), numpy.zeros(2))
    numpy.testing.assert_allclose(found.x, [3, 3], atol=1e-4)
    curve, _ = optimize.curve_fit(lambda t, k: bh.exp(bh.asarray(t) * k), x, bh.exp(x * 0.5))
    assert curve[0] == pytest.approx(0.5)
    matrix = sparse.csr_matrix(bh.eye(4))
    same(matrix @ numpy.asarray(bh.arange(4.0)), numpy.arange(4.0))


def test_tables_of_pandas():
    pandas = pytest.importorskip("pandas")
    x = bh.arange(12.0).reshape(4, 3)
    table = pandas.DataFrame(x, columns=["a", "b", "c"])
    assert table["b"].tolist() == [1, 4, 7, 10]
    table["d"] = bh.arange(4) * 2
    assert table["d"].sum() == 12 and table["d"].dtype == numpy.int64
    same(bh.asarray(table["a"]), numpy.array([0.0, 3, 6, 9]))
    same(bh.asarray(table[["a", "b"]]) + 1, numpy.asarray(table[["a", "b"]]) + 1)
    same(bh.sqrt(bh.asarray(table["c"].to_numpy())), numpy.sqrt([2.0, 5, 8, 11]))
    series = pandas.Series(bh.linspace(0, 1, 5))
    assert series.mean() == 0.5 and series.rolling(2).mean().isna().sum() == 1
    assert table.groupby(pandas.Series(bh.asarray([0, 0, 1, 1])))["a"].sum().tolist() == [3, 15]


def test_functions_of_arrays_by_protocol():
    pytest.importorskip("scipy")
    from scipy import special

    x = bh.linspace(0.1, 2, 9)
    for function in (special.gamma, special.erf, special.jv):
        arguments = (1, x) if function is special.jv else (x,)
        plain = [numpy.asarray(value) if value is x else value for value in arguments]
        same(numpy.asarray(function(*arguments)), function(*plain))


def test_sparse_matrices_of_scipy():
    sparse = pytest.importorskip("scipy.sparse")
    from scipy.sparse import linalg

    made, reference = (sparse.random(9, 9, 0.3, random_state=m.random.default_rng(1)).toarray() for m in (bh, numpy))
    same(made, reference)
    same(sparse.random_array((9, 9), density=0.3, rng=bh.random.default_rng(1)).toarray(), reference)
    band = lambda m: sparse.diags([m.ones(5), m.arange(6.0) + 4, m.ones(5)], [-1, 0, 1]).tocsr()
    same(band(bh).toarray(), band(numpy).toarray())
    for matrix, plain in ((band(bh), band(numpy)), (bh.asarray(band(numpy).toarray()), band(numpy).toarray())):
        for solve in (linalg.cg, linalg.gmres, linalg.bicgstab):
            same(solve(matrix, bh.ones(6))[0], solve(plain, numpy.ones(6))[0])
        same(linalg.eigsh(matrix, 2, v0=bh.ones(6))[0], linalg.eigsh(plain, 2, v0=numpy.ones(6))[0])
        same(linalg.svds(matrix, 2, v0=bh.ones(6))[1], linalg.svds(plain, 2, v0=numpy.ones(6))[1], ulps=64)
