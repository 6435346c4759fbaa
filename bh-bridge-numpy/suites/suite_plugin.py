"""A pytest plugin: test modules' `import numpy` means bh, and each test's outcome becomes a line of JSON.

`BH_SUITE_LIBRARY` is `bh`, or `numpy` for what the suite's own library makes of the tests listed in the file
`BH_SUITE_TESTS`; `BH_SUITE_RESULTS` is the file of outcomes. The helpers of `numpy.testing` stay NumPy's either way. With
`BH_SUITE_CUPY`, a checkout of CuPy, it is `import cupy` that means the library; with `BH_SUITE_SCIPY`, array-api-strict.
"""

import importlib
import importlib.abc
import importlib.util
import json
import os
import pathlib
import sys
import types

_results = open(os.environ["BH_SUITE_RESULTS"], "a")


def pytest_load_initial_conftests(early_config):
    if "BH_SUITE_SCIPY" in os.environ:
        sys.modules["array_api_strict"] = _unknown(importlib.import_module(os.environ["BH_SUITE_LIBRARY"]))


def _unknown(library):
    """The library under the name of the one that SciPy takes for any."""
    module = types.ModuleType("array_api_strict")
    module.__getattr__ = lambda name: getattr(library, name)
    module.__version__ = "2.4"
    module.set_array_api_strict_flags = lambda **flags: None
    return module


class _Copies(importlib.abc.MetaPathFinder):
    """Finds the copies of NumPy's test modules, where one takes something from another one."""

    def find_spec(self, name, path, target=None):
        parts = name.split(".")
        if parts[0] != "numpy" or "tests" not in parts[:-1]:
            return None
        copy = pathlib.Path.cwd().parent.joinpath(*parts[1 : parts.index("tests")], f"{parts[-1]}.py")
        return importlib.util.spec_from_file_location(name, copy) if copy.exists() else None


def pytest_configure(config):
    library = importlib.import_module(os.environ["BH_SUITE_LIBRARY"])
    if "BH_SUITE_CUPY" in os.environ:
        import cupy_stand_in

        cupy_stand_in.install(library, os.environ["BH_SUITE_CUPY"])
    elif library.__name__ == "bh" and "BH_SUITE_SCIPY" not in os.environ:
        library._numpy.imports.install()
        sys.meta_path.insert(0, _Copies())


def pytest_runtest_logstart(nodeid, location):
    _write(nodeid, "started", "the process died")


def pytest_collection_modifyitems(config, items):
    if "BH_SUITE_SKIPPED" in os.environ:
        with open(os.environ["BH_SUITE_SKIPPED"]) as file:
            skipped = set(json.load(file))
        items[:] = [item for item in items if item.nodeid not in skipped]
    if "BH_SUITE_TESTS" in os.environ:
        with open(os.environ["BH_SUITE_TESTS"]) as file:
            wanted = set(json.load(file))
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in wanted])
        items[:] = [item for item in items if item.nodeid in wanted]


def pytest_runtest_logreport(report):
    if report.when != "call" and report.outcome == "passed":
        return
    expected = hasattr(report, "wasxfail")
    outcome = "skipped" if expected else report.outcome
    _write(report.nodeid, outcome, "" if outcome != "failed" else _reason(report.longrepr))


def pytest_collectreport(report):
    if report.failed:
        _write(report.nodeid, "failed", _reason(report.longrepr))


def _reason(longrepr):
    """The exception's text, and where in bh or NumPy it was raised."""
    crash = getattr(longrepr, "reprcrash", None)
    return f"{crash.message} @ {crash.path.rpartition('/')[2]}:{crash.lineno}" if crash else str(longrepr)[-400:]


def _write(test, outcome, reason):
    print(json.dumps([test, outcome, reason]), file=_results, flush=True)
