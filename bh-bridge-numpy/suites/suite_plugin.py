"""A pytest plugin: test modules' `import numpy` means bh, and each test's outcome becomes a line of JSON.

`BH_SUITE_LIBRARY` is `bh`, or `numpy` for what the suite's own library makes of the tests listed in the file
`BH_SUITE_TESTS`; `BH_SUITE_RESULTS` is the file of outcomes. The helpers of `numpy.testing` stay NumPy's either way.
"""

import json
import os

_results = open(os.environ["BH_SUITE_RESULTS"], "a")


def pytest_configure(config):
    if os.environ["BH_SUITE_LIBRARY"] == "bh":
        from bh import _imports

        _imports.install()


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
