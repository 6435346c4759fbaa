"""Runs the statements of one package, and writes their values: `run.py PACKAGE FILE`, with NumPy or, by `python -m bh`, with bh.
`run.py PACKAGE FILE MODULE [LIBRARY]` runs the statement of a library that bh teaches, as a script that imports NumPy or bh itself;
`LIBRARY` is taken out of the table of such libraries."""

import ast
import collections.abc
import importlib
import pathlib
import pickle
import sys
import tempfile
import tomllib

import numpy as np


def plain(value):
    """A value in a form that can be pickled and compared everywhere."""
    if isinstance(value, (np.ndarray, np.generic)):
        return repr(value.tolist()) if value.dtype.kind in "OV" else ("array", value.dtype.str, value.tolist())
    if isinstance(value, (tuple, list)):
        return [plain(one) for one in value]
    if isinstance(value, collections.abc.Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return value
    if hasattr(value, "__array__"):
        return plain(np.array(value))
    return type(value).__name__


def names():
    """The names that statements use."""
    x, m = np.arange(6.0), np.arange(12.0).reshape(4, 3) % 5
    row = np.arange(16)
    return {
        "x": x, "m": m, "i": np.arange(6), "b": x > 2, "g": ((row[:, None] * row * 37) % 256).astype(np.uint8),
        "p": np.random.default_rng(1).normal(size=(60, 3)), "s": np.ones(2000).sum() / 500,
    }  # fmt: skip


def run(statements, scope, rewritten):
    """Runs statements as those of a module of the program; the result is the value of the last expression."""
    tree = ast.parse(statements)
    if isinstance(tree.body[-1], ast.Expr):
        tree.body[-1] = ast.Assign([ast.Name("result", ast.Store())], tree.body[-1].value)
    if rewritten and "bh" in sys.modules:
        from bh._numpy import loading, rewriting

        tree = rewriting.rewrite(ast.fix_missing_locations(tree)) if loading.is_on() else tree
    exec(compile(ast.fix_missing_locations(tree), "statement", "exec"), scope)
    return scope.get("result")


def main(package, file, module=None, without=None):
    if module:
        globals()["np"] = importlib.import_module(module)
    if without:
        np._numpy.libraries.LIBRARIES.pop(without)
    with open(pathlib.Path(__file__).with_name("taught.toml" if module else "statements.toml"), "rb") as text:
        given = tomllib.load(text)[package]
    values = []
    for statement in given["statements"] if "statements" in given else [given["statement"]]:
        scope = {"__name__": "__main__", "np": np, "there": tempfile.mkdtemp(), **names()}
        try:
            values.append(("value", plain(run(given["imports"] + "\n" + statement, scope, not module))))
        except Exception as error:
            values.append(("error", f"{type(error).__name__}: {error}"))
    with open(file, "wb") as out:
        pickle.dump(values, out)


main(*sys.argv[1:])
