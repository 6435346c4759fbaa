"""A newcomer's first steps with other libraries: arrays of bh given to Matplotlib, SciPy and pandas, and taken from them."""

import copy
import functools
import importlib
import importlib.machinery
import inspect
import operator
import os
import pickle
import subprocess
import sys
import types

import numpy
import pytest

import bh
from bh._numpy import libraries
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
    columns = bh.arange(12.0).reshape(4, 3)
    assert len(axes[1, 1].boxplot(columns)["boxes"]) == len(axes[1, 1].violinplot(columns)["bodies"]) == len(axes[1, 1].hist(columns)[0]) == 3
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


LOOKING = '''
"""A library that looks at the class of arrays itself."""
import sys
import numpy as np

def kind(value, *others, key=None):
    return type(value)

def inner(value):
    return type(value["a"][0]), type(value["b"])

def _private(value):
    return type(value)

class Sealed(type):
    def __setattr__(cls, name, value):
        raise TypeError("sealed")

class Closed(metaclass=Sealed):
    def put(self, key):
        return type(key)

class Lazy:
    def __getattr__(self, name):
        raise RuntimeError("nobody may ask yet")

later = Lazy()

class Keeping(dict):
    def put(self, key):
        return type(key)

class Table:
    def __init__(self, values=None):
        self.values = values
    def __getitem__(self, key):
        return type(key)
    def put(self, key, *, value=None):
        return type(key), type(value)
    def eval(self, name):
        return sys._getframe(1).f_locals[name]
    @classmethod
    def of(cls, values):
        return cls(values)
    @staticmethod
    def same(function):
        return function is np.median or function is np.add
    @property
    def kept(self):
        return type(self.values)
    @kept.setter
    def kept(self, values):
        self.values = values
    def _hidden(self, value):
        return type(value)
'''


@pytest.fixture
def looking(tmp_path, monkeypatch):
    """A library of that kind, which is taught when it is imported."""
    (tmp_path / "looking.py").write_text(LOOKING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(libraries.LIBRARIES, "looking", ("looking", "looking.absent"))
    yield importlib.import_module("looking")
    del sys.modules["looking"]


def test_libraries_that_look_at_the_class_get_numpys_arrays(looking):
    x = bh.arange(3.0)
    assert looking.kind(x) is numpy.ndarray and looking.kind([x]) is list and looking.kind(2) is int
    assert looking.inner({"a": [x], "b": x}) == (numpy.ndarray, numpy.ndarray) and looking._private(x) is bh.ndarray
    table = looking.Table(x)
    assert type(table.values) is numpy.ndarray and numpy.shares_memory(table.values, numpy.asarray(x))
    assert table[x > 1] is numpy.ndarray and table[2] is int and table.put(x, value=x) == (numpy.ndarray, numpy.ndarray)
    assert type(looking.Table.of(x).values) is numpy.ndarray and table._hidden(x) is bh.ndarray
    table.kept = bh.ones(2)
    assert table.kept is numpy.ndarray
    assert looking.Closed().put(x) is bh.ndarray
    keeping = looking.Keeping(a=1)
    keeping["x"] = x
    assert keeping["x"] is x and keeping.put(x) is numpy.ndarray
    assert looking.Table.same(bh.median) and looking.Table.same(bh.add) and not looking.Table.same(lambda: 0)
    word = 7
    assert table.eval("word") == word
    assert issubclass(looking.kind(bh.arange(100_000.0).sum()), numpy.float64)


def test_taught_functions_are_shown_and_kept_like_others(looking):
    assert str(inspect.signature(looking.Table.put)) == "(self, key, *, value=None)"
    assert str(inspect.signature(looking.Table().put)) == "(key, *, value=None)"
    assert looking.kind.__name__ == "kind" and looking.kind.__module__ == "looking" and looking.kind.__code__.co_name == "kind"
    assert repr(looking.Table.put).startswith("<function Table.put at ")
    for one in (looking.kind, looking.Table.put):
        assert pickle.loads(pickle.dumps(one)) is one and copy.copy(one) is one
    assert looking.Table(3).put.__self__.values == 3


def test_taught_functions_stay_functions(looking):
    for function in (looking.kind, looking.Table.put, looking.Table.of.__func__, vars(looking.Table)["same"].__func__):
        assert isinstance(function, types.FunctionType) and inspect.isfunction(function) and inspect.isroutine(function)
        assert function.__code__ is function.__wrapped__.__code__ and function.__globals__ is vars(looking)
        assert inspect.getsource(function).startswith(("def ", "    def ", "    @"))
    assert looking.kind.__defaults__ is None and looking.kind.__kwdefaults__ == {"key": None}
    assert isinstance(looking.Table().put, types.MethodType) and inspect.ismethod(looking.Table.of)
    assert not isinstance(looking.kind, types.BuiltinFunctionType)


def test_libraries_that_derive_from_taught_classes_find_functions(looking):
    def checked(kind):
        for name in ("put", "kind_of"):
            method = getattr(kind, name)
            if not isinstance(method, types.FunctionType):
                raise ValueError(f"{name} is not a valid method")
            setattr(kind, name, functools.wraps(method)(lambda self, *args, _method=method, **named: _method(self, *args, **named)))
        return kind

    @checked
    class Derived(looking.Table):
        def kind_of(self, value):
            return type(value)

    x = bh.ones(2)
    assert Derived().put(x) == (numpy.ndarray, type(None)) and Derived().kind_of(x) is bh.ndarray
    before = looking.Table.put
    libraries._teach_class(looking.Table)
    assert looking.Table.put is before


def test_functions_in_c_stay_such(tmp_path, monkeypatch):
    (tmp_path / "inc.py").write_text("from _operator import length_hint as dumps")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(libraries.LIBRARIES, "inc", ("inc:dumps",))
    module = importlib.import_module("inc")
    assert isinstance(module.dumps, types.BuiltinFunctionType) and inspect.isbuiltin(module.dumps) and type(module.dumps) is not type(len)
    assert module.dumps(bh.ones(3)) == 3 and str(inspect.signature(module.dumps)) == "(obj, default=0, /)"
    del sys.modules["inc"]


def test_classes_of_tables_can_be_derived_from():
    pytest.importorskip("astropy")
    # In a process of its own, as the order of the imports counts.
    code = "import bh; import astropy.timeseries, astropy.table; print(astropy.table.QTable({'a': bh.arange(3.0)})['a'].sum())"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.stdout == "3.0\n", ended.stderr


def test_arguments_are_looked_into_as_deep_as_they_go(looking):
    endless = []
    endless.append(endless)
    with pytest.raises(RecursionError):
        looking.kind(endless)
    assert looking.inner({"a": [[[bh.ones(2)]]], "b": 1}) == (list, int)
    assert looking.kind([1.0] * 2000 + [bh.ones(2)]) is list


def test_libraries_are_left_alone_on_demand(tmp_path):
    (tmp_path / "plain.py").write_text("def kind(value): return type(value)")
    code = "import bh\nbh._numpy.libraries.LIBRARIES['plain'] = ('plain',)\nimport plain\nprint(plain.kind(bh.ones(2)) is bh.ndarray)"
    for teach, shown in (("off", "True"), ("on", "False")):
        environment = {**os.environ, "BH_TEACH": teach, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
        ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        assert ended.stdout.strip() == shown, ended.stderr


def test_a_library_that_is_there_already_is_taught(looking, monkeypatch):
    module = types.ModuleType("looking_too", None)
    exec(LOOKING, vars(module))
    for value in (module.kind, module.Table):
        value.__module__ = "looking_too"
    module.__spec__ = importlib.machinery.ModuleSpec("looking_too", None)
    monkeypatch.setitem(sys.modules, "looking_too", module)
    monkeypatch.setitem(libraries.LIBRARIES, "looking_too", ("looking_too:Table",))
    libraries.install()
    x = bh.arange(3.0)
    assert module.Table()[x] is numpy.ndarray and module.kind(x) is bh.ndarray
    method = module.Table.put
    libraries.install()
    assert module.Table.put is method


def test_every_module_of_a_library_is_taught(tmp_path, monkeypatch):
    (tmp_path / "whole").mkdir()
    for name in ("__init__", "part"):
        (tmp_path / "whole" / f"{name}.py").write_text("def kind(value): return type(value)")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(libraries.LIBRARIES, "whole", ())
    part = importlib.import_module("whole.part")
    assert part.kind(bh.ones(2)) is sys.modules["whole"].kind(bh.ones(2)) is numpy.ndarray
    for name in ("whole", "whole.part"):
        del sys.modules[name]


def test_masks_and_keys_of_pandas():
    pandas = pytest.importorskip("pandas")
    x = bh.arange(12.0).reshape(4, 3)
    table = pandas.DataFrame(x.copy(), columns=["a", "b", "c"])
    assert table[x[:, 0] > 2]["b"].tolist() == [4, 7, 10] and table.loc[bh.array([0, 2]), "a"].tolist() == [0, 6]
    table.loc[x[:, 0] > 5, "a"] = bh.array([10.0, 20.0])
    assert table["a"].tolist() == [0, 3, 10, 20]
    assert table.groupby(bh.array([0, 0, 1, 1]))["b"].agg(bh.sum).tolist() == [5, 17]
    assert pandas.unique(bh.array([2, 1, 2])).tolist() == [2, 1]
    assert (table + x).iloc[1].tolist() == [6, 8, 10] and type(x.T @ table) is pandas.DataFrame
    n = 4
    assert table.query("b > @n")["c"].tolist() == [8, 11]


def test_functions_compiled_by_numba():
    numba = pytest.importorskip("numba")
    program = {"np": bh, "numba": numba, "weights": bh.array([1.0, 2.0])}
    exec("def total(x):\n    y = np.zeros_like(x)\n    for i in range(len(x)):\n        y[i] = x[i] * weights[i % 2] + np.pi\n    return y.sum()", program)
    assert numba.njit(program["total"])(bh.arange(4.0)) == pytest.approx(program["total"](bh.arange(4.0)))


def test_pictures_of_opencv():
    cv2 = pytest.importorskip("cv2")
    picture = bh.zeros((20, 20), bh.uint8)
    cv2.rectangle(picture, (5, 5), (9, 9), 255, -1)
    assert picture.sum() == 25 * 255 and cv2.blur(picture, (3, 3)).shape == (20, 20)
    assert cv2.createCLAHE(2.0, (4, 4)).apply(picture).shape == (20, 20)


def test_what_tests_compare_with():
    for value in (bh.arange(4.0).sum(), bh.arange(100_000.0).mean() - 49_993.5):
        assert value == pytest.approx(6) and 6 == pytest.approx(value) and value == pytest.approx(value)
    assert bh.arange(3.0) == pytest.approx(bh.arange(3.0)) and [bh.arange(4.0).sum()] == pytest.approx([bh.ones(6).sum()])


def test_grids_of_parameters_of_scikit_learn():
    pytest.importorskip("sklearn")
    from sklearn import linear_model, model_selection

    x = bh.random.RandomState(0).rand(30, 3)
    search = model_selection.GridSearchCV(linear_model.Ridge(), {"alpha": bh.logspace(-2, 0, 3)}).fit(x, x[:, 0])
    assert search.best_params_["alpha"] == 0.01


def test_labels_of_scipy_go_into_the_array_that_is_given():
    ndimage = pytest.importorskip("scipy.ndimage")
    image, labels = bh.arange(100.0).reshape(10, 10) % 7 > 3, bh.zeros((10, 10), bh.int32)
    assert ndimage.label(image, output=labels) == labels.max() > 1


def test_functions_of_scikit_image():
    pytest.importorskip("skimage")
    from skimage import measure, morphology, transform, util

    image = bh.arange(100.0).reshape(10, 10) % 7 > 3
    assert util.view_as_windows(image, 3).shape == (8, 8, 3, 3) and transform.hough_line(image)[0].sum() > 0
    assert morphology.remove_small_objects(image, max_size=2).sum() > 0 and len(measure.marching_cubes(bh.random.rand(5, 5, 5), 0.5)) == 4


def test_tables_of_polars():
    polars = pytest.importorskip("polars")
    x = bh.arange(3.0)
    table = polars.DataFrame({"a": x, "b": bh.arange(3)})
    assert table.filter(x > 0)["a"].to_list() == [1, 2] and (polars.Series(x) + x).to_list() == [0, 2, 4]


def test_files_of_netcdf(tmp_path):
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(tmp_path / "file.nc", "w") as file:
        file.createDimension("x", 4)
        variable = file.createVariable("v", "f8", ("x",))
        variable[:] = bh.arange(4.0)
        variable[1:3] = bh.zeros(2)
        variable.mean = bh.arange(100_000.0).mean()
    with netcdf.Dataset(tmp_path / "file.nc") as file:
        assert file["v"][:].tolist() == [0, 0, 0, 3] and file["v"].mean == 49_999.5


def test_expressions_of_sympy():
    sympy = pytest.importorskip("sympy")
    x = sympy.symbols("x")
    a = bh.linspace(0, 1, 5)
    found = sympy.lambdify(x, sympy.Max(x, 0.3) + sympy.Abs(x), bh)(a)
    same(bh.asarray(found), numpy.maximum(numpy.linspace(0, 1, 5), 0.3) + numpy.linspace(0, 1, 5))
    assert sympy.sympify(bh.arange(3).sum()) == sympy.Integer(3) and sympy.sympify(bh.arange(3)).shape == (3,)


@pytest.mark.parametrize("number", ["Symbol('a')", "pi", "I", "Integer(2)", "Rational(1, 2)", "Float(1.5)"])
def test_expressions_of_sympy_are_operands_of_arrays(number):
    sympy = pytest.importorskip("sympy")
    value = eval(f"sympy.{number}")
    makers = (
        lambda np: np.arange(1.0, 4.0), lambda np: np.arange(6).reshape(2, 3)[:, ::2] + 1, lambda np: np.array([2.0]),
        lambda np: np.zeros((0, 2)), lambda np: np.ones(2000)[::500] * 3, lambda np: np.arange(1, 3, dtype=np.float32)[::-1],
    )  # fmt: skip
    calls = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow]
    calls += [operator.gt, operator.le] if value.is_real else []
    for call in calls:
        for maker in makers:
            for swap in (False, True):
                found, wanted = (call(a, value) if swap else call(value, a) for a in (maker(bh), maker(numpy)))
                assert numpy.shape(found) == wanted.shape and found.dtype == wanted.dtype and found.tolist() == wanted.tolist()
        number = call(value, bh.full(2000, 3.0).mean())
        assert number == call(value, numpy.float64(3.0)) and type(number) is type(call(value, numpy.float64(3.0)))


@pytest.mark.parametrize("at", [
    lambda np: np.array([0.5, 1.5]), lambda np: (np.arange(8.0) / 4)[::3], lambda np: np.array(0.5), lambda np: np.arange(3),
    lambda np: np.full(2000, 1.25).mean(), lambda np: np.arange(4, dtype=np.float32)[::-1],
])  # fmt: skip
def test_xarray_interpolates_at_coordinates_of_bh(at):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("scipy")
    table = lambda np: xarray.DataArray(np.arange(12.0).reshape(4, 3) ** 2, coords={"t": np.arange(4.0)}, dims=("t", "u"))
    found, wanted = (table(np).interp(t=at(np)) for np in (bh, numpy))
    assert found.dims == wanted.dims and numpy.asarray(found).tolist() == numpy.asarray(wanted).tolist()


def test_tensors_have_the_type_and_the_memory_of_arrays(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    x = bh.arange(5.0)
    for made in (torch.asarray(x), torch.as_tensor(x), torch.from_numpy(x), torch.from_dlpack(x)):
        assert made.dtype == torch.float64 and made.tolist() == x.tolist() and made.data_ptr() == x.ctypes.data
        made[0] += 1
    assert float(x[0]) == 4
    assert torch.asarray(x, dtype=torch.float32).tolist() == [4, 1, 2, 3, 4] and torch.asarray(bh.arange(3, dtype="i4")).dtype == torch.int32
    large = bh.arange(30_000.0) * 2
    assert torch.tensor(large).tolist() == large.tolist() and torch.tensor([x, x]).shape == (2, 5) and torch.asarray(x[:0]).shape == (0,)
    total = bh.ones(200_000).sum()
    assert type(total) is bh.ndarray and float(torch.tensor(total)) == 200_000 and torch.asarray(total).shape == ()
    made = torch.tensor(x)
    made += 1
    assert float(x[0]) == 4
    assert torch.utils.data.default_collate([x, x]).shape == (2, 5) and torch.utils.data.default_convert(x).dtype == torch.float64
    assert isinstance(torch.tensor, types.BuiltinFunctionType)
    (tmp_path / "scripted.py").write_text("import torch\ndef more(x):\n    return x + torch.tensor(1.0) + torch.as_tensor(1.0)")
    monkeypatch.syspath_prepend(tmp_path)
    assert torch.jit.script(importlib.import_module("scripted").more)(torch.ones(2)).tolist() == [3, 3]
    del sys.modules["scripted"]


def test_arrays_of_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    x = bh.arange(5.0)
    for made in (jax.numpy.asarray(x), jax.numpy.array(x), jax.numpy.from_dlpack(x)):
        assert made.dtype == numpy.float64 and made.tolist() == [0, 1, 2, 3, 4]


def test_arrays_of_arrow():
    arrow = pytest.importorskip("pyarrow")
    large = bh.arange(200_000.0) * 2
    assert arrow.array(large).type == arrow.float64() and arrow.array(large)[3].as_py() == 6
    assert arrow.array(bh.arange(3, dtype="i2")).type == arrow.int16() and arrow.array(bh.arange(3), type=arrow.int8()).to_pylist() == [0, 1, 2]
    assert arrow.table({"a": large}).num_rows == 200_000


def test_sound_keeps_its_type():
    soxr = pytest.importorskip("soxr")
    for kind in ("f8", "f4", "i2", "i4"):
        made = soxr.resample(bh.ones(800, kind), 2, 1)
        # Numbers of 16 bits are rounded at random.
        numpy.testing.assert_allclose(made, soxr.resample(numpy.ones(800, kind), 2, 1), atol=2 if kind == "i2" else 0)
        assert made.dtype == kind
