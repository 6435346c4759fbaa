"""Results without dimensions that are still pending pass for numbers where programs take numbers."""

import datetime
import fractions
import json
import math
import numbers
import sqlite3
import statistics
import subprocess
import sys
import time

import numpy
import pytest
from pytest import approx

import bh as np


def mean():
    """A number that waits to be computed: 49999.5."""
    result = (np.arange(100000.0) * 1.0).mean()
    assert type(result) is np.ndarray
    return result


def count():
    """A whole number that waits to be computed: 3."""
    result = np.sum(np.arange(100000) < 3)
    assert type(result) is np.ndarray
    return result


@pytest.mark.parametrize("options", [{}, {"indent": 1}, {"sort_keys": True}])
def test_json_writes_them(options, tmp_path):
    written = json.dumps({"a": mean(), "b": [1, mean(), {"c": (mean(),)}]}, **options)
    assert json.loads(written) == {"a": 49999.5, "b": [1, 49999.5, {"c": [49999.5]}]}
    with open(tmp_path / "a.json", "w") as file:
        json.dump([mean()], file, **options)
    assert json.loads((tmp_path / "a.json").read_text()) == [49999.5]


def test_json_knows_no_more_than_before():
    for value in (object(), numpy.int64(3), count(), np.ones(3), np.float32(2)):
        with pytest.raises(TypeError, match="is not JSON serializable"):
            json.dumps([value])


def test_approx_takes_them():
    assert mean() == approx(49999.5) and 49999.5 == approx(mean()) and mean() == approx(mean(), rel=1e-3)
    assert 49998 != approx(mean()) and [49999.5, 1.0] == approx([mean(), 1.0]) and {"a": mean()} == approx({"a": mean()})
    assert "49999.5" in repr(approx(mean()))


def test_what_asks_for_numbers_takes_them():
    assert isinstance(mean(), float) and isinstance(mean(), numbers.Real) and isinstance(count(), numbers.Integral)
    assert round(mean(), 1) == 49999.5 and math.trunc(mean()) == 49999 and math.fsum([mean()] * 2) == 99999.0
    assert [0] * count() == [0, 0, 0] and "ab" * count() == "ababab" and list(range(count())) == [0, 1, 2]
    assert "%d %.1f" % (mean(), mean()) == "49999 49999.5" and f"{mean():.2f} {count():d}" == "49999.50 3"
    assert numpy.float64(mean()) == 49999.5 and fractions.Fraction(count(), 2) == fractions.Fraction(3, 2)
    assert datetime.timedelta(seconds=float(mean())) == datetime.timedelta(seconds=1) * mean()


@pytest.mark.parametrize("order", ["import bh, pytest", "import pytest, bh"])
def test_approx_knows_pending_results_whoever_is_imported_first(order):
    lines = f"{order}; s = bh.ones(100000).sum(); assert 1e5 == pytest.approx(s); assert s == pytest.approx(1e5); print('fine')"
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True)
    assert done.stdout == "fine\n", done.stderr


def test_elements_of_an_array_that_is_iterated_over_are_numbers():
    for made in (lambda: np.arange(100.0) * 2 + 1, lambda: (np.arange(100.0) + 1)[::3], lambda: (np.arange(100.0).reshape(10, 10) + 1).T.flat):
        values, host = list(made()), numpy.asarray(made())
        assert all(type(value) is numpy.float64 for value in values) and values == host.tolist()
    assert list(reversed(np.arange(100.0) + 1)) == list(range(100, 0, -1)) and type(next(reversed(np.arange(100.0) + 1))) is numpy.float64
    rows = list((np.arange(40.0) + 1).reshape(20, 2))
    assert [type(row) for row in rows] == [np.ndarray] * 20 and sum(x * y for x, y in rows) == sum((2 * k + 1) * (2 * k + 2) for k in range(20))
    assert list(np.zeros((20, 0)) + 1)[19].shape == (0,)


def test_what_an_iteration_over_flat_changes_is_seen_by_what_follows():
    a = np.arange(6.0).reshape(2, 3).T + 0
    flat, seen = a.flat, []
    for value in flat:
        seen.append(float(value))
        if flat.index < 6:
            a[numpy.unravel_index(flat.index, a.shape)] += 10
    assert seen == [0.0, 13.0, 11.0, 14.0, 12.0, 15.0] and flat.index == 6


def pending(value=2.5, dtype=float):
    """A number that waits to be computed."""
    many = np.full(200_000, value, dtype)
    # The largest complex number is chosen by its position, which is waited for.
    result = many.sum() - many[1:].sum() if many.dtype.kind == "c" else many.max()
    assert type(result) is np.ndarray
    return result


def stored(value):
    """The value that SQLite stores for a value."""
    database = sqlite3.connect(":memory:")
    database.execute("create table t (x)")
    database.execute("insert into t values (?)", (value,))
    database.executemany("insert into t values (:x)", [{"x": value}])
    rows = database.execute("select x, typeof(x) from t").fetchall()
    assert rows[0] == rows[1]
    return rows[0]


def test_databases_store_numbers_as_numpys():
    assert stored(pending()) == (2.5, "real")
    for kind in ("i8", "f4", "?", "c16"):
        assert stored(pending(3, kind)) == stored(numpy.full(1, 3, kind).max())
    assert stored(np.arange(3.0)) == stored(numpy.arange(3.0))
    # Adapters that programs register for NumPy's classes count.
    sqlite3.register_adapter(numpy.int64, int)
    sqlite3.register_adapter(numpy.ndarray, lambda array: str(array.tolist()))
    try:
        assert stored(pending(3, "i8")) == (3, "integer") and stored(np.arange(3)) == ("[0, 1, 2]", "text")
    finally:
        for kind in (numpy.int64, numpy.ndarray):
            del sqlite3.adapters[kind, sqlite3.PrepareProtocol]


class Collected:
    """An aggregate of SQLite: its result is the argument of the class."""

    def __init__(self, result):
        self.step = self.inverse = lambda value: None
        self.value = self.finalize = lambda: result


class Named(sqlite3.Connection):
    """A program's own class of connections."""


@pytest.mark.parametrize("connect", [
    lambda: sqlite3.connect(":memory:"), lambda: sqlite3.dbapi2.connect(":memory:", factory=Named),
    lambda: sqlite3.connect(":memory:", 5.0, 0, None, True, Named),
])  # fmt: skip
def test_databases_take_results_of_functions_as_numpys(connect):
    def given(value):
        database = connect()
        assert isinstance(database, sqlite3.Connection)
        database.create_function("f", 1, lambda one: value, deterministic=True)
        database.create_function("g", -1, lambda *all: value)
        database.create_aggregate("h", 1, lambda: Collected(value))
        database.create_window_function("w", 1, lambda: Collected(value))
        database.execute("create table t (x)")
        database.execute("insert into t values (1)")
        return database.execute("select f(x), typeof(f(x)), g(x, x), h(x), typeof(h(x)), (select w(x) over () from t) from t").fetchall()

    for kind in ("f8", "f4", "i8", "c16"):
        assert given(pending(3, kind)) == given(numpy.full(1, 3, kind).max())
    assert given(pending())[0][:2] == (2.5, "real")
    with pytest.raises(sqlite3.OperationalError, match="user-defined function raised exception"):
        connection = connect()
        connection.create_function("f", 0, lambda: 1 / 0)
        connection.execute("select f()").fetchall()


def test_squares_of_truth_values_that_wait_have_numpys_type():
    assert (pending(1, "?") ** 2).dtype == (numpy.bool(True) ** 2).dtype and (np.ones(3, bool) ** 2).dtype == (numpy.ones(3, bool) ** 2).dtype


def test_numbers_that_wait_do_what_numbers_do():
    for names in ("mean fmean median".split(), "pstdev pvariance stdev variance".split()):
        for function in (getattr(statistics, name) for name in names):
            assert function([pending(), 1.0, pending(3)]) == function([numpy.float64(2.5), 1.0, numpy.float64(3)]), function
    with pytest.warns(numpy.exceptions.ComplexWarning):
        assert (float(pending(4 + 1j, complex)), math.sqrt(pending(4 + 1j, complex))) == (4, 2)
    with pytest.warns(numpy.exceptions.ComplexWarning):
        assert (int(pending(4 + 1j, complex)), "%d" % pending(4 + 1j, complex)) == (4, "4")
    assert json.dumps({pending(): [pending()]}) == '{"2.5": [2.5]}'
    assert isinstance(pending().imag, float) and isinstance(pending().real, float)
    for sequence in ([1, 2], (1,), "ab"):
        for make in (lambda: sequence * pending(), lambda: pending() * sequence):
            with pytest.raises(TypeError, match="can't multiply sequence by non-int of type 'numpy.float64'"):
                make()
    for function in (time.sleep, range, [1, 2].__getitem__):
        with pytest.raises(TypeError, match="'numpy.float64' object cannot be interpreted as an integer"):
            function(pending(0.0))
    with pytest.raises(TypeError, match="'numpy.float32' object cannot be interpreted as an integer$"):
        range(pending(2, "f4"))


def test_numbers_that_wait_are_packed():
    orjson, msgpack = pytest.importorskip("orjson"), pytest.importorskip("msgpack")
    packed = orjson.dumps({"a": pending(), "b": [np.arange(3)]}, option=orjson.OPT_SERIALIZE_NUMPY)
    assert packed == b'{"a":2.5,"b":[[0,1,2]]}' and orjson.loads(packed)["a"] == 2.5
    assert msgpack.unpackb(msgpack.packb({"a": pending()})) == {"a": 2.5} and msgpack.dumps([pending()]) == msgpack.packb([2.5])


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "?", "c16"])
@pytest.mark.parametrize("name", ["tolist", "tobytes", "item"])
def test_methods_that_numpys_numbers_have_take_those_that_are_computed_already(name, dtype):
    value = pending(1, dtype)
    wanted = getattr(numpy.dtype(dtype).type(value), name)()
    for number in (value, value, pending(1, dtype)):
        assert getattr(number, name)() == wanted and type(getattr(number, name)()) is type(wanted)
