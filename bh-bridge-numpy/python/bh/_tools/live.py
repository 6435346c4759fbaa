"""`bh.live()`: the page of this process, served while it runs; a widget in notebooks."""

import atexit
import os
import shutil
import sys
import tempfile

from .. import _native

_shown = None


class Live:
    """Where the page of this process is."""

    def __init__(self):
        if _native.Stack.is_begun():
            raise RuntimeError("bh.live() has to come before the first array: restart the program or kernel and call it first, or run `python -m bh --live` with the script")
        directory = tempfile.mkdtemp(prefix="bh-live-")
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        self._server = _native.LiveReport(directory, " ".join(sys.argv))
        variables = {name: os.fspath(path) for name, path in _native.report_environment(directory)} | dict([self._server.variable()])
        os.environ.update(variables)
        try:
            _native.Stack()
        finally:
            # Processes that this one starts are not shown.
            for name in variables:
                os.environ.pop(name, None)

    @property
    def address(self):
        """The page's address, on this machine."""
        return self._server.address

    def __repr__(self):
        return f"<bh.live: {self.address}>"

    def _repr_html_(self):
        return f'<iframe src="{self.address}" width="100%" height="600" style="border: 1px solid #8888"></iframe>'


def live():
    """Serves a page that shows what this process computes while it runs: kernels with their lines, what fused, memory.

    Call it before the first array. The result is a widget in notebooks, and has the `address` of the page
    for browsers on the same machine.

    Raises
    ------
    RuntimeError
        If the process has made arrays before.

    Examples
    --------
    >>> watching = bh.live()  # doctest: +SKIP
    >>> watching.address  # doctest: +SKIP
    'http://127.0.0.1:41267/71c0…'
    """
    global _shown
    if _shown is None:
        _shown = Live()
    return _shown
