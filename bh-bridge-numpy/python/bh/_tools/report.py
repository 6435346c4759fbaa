"""`python -m bh --report PAGE script.py`, and `--live`: the script runs in a process of its own, and what it leaves becomes one page
of HTML, which is written at the end or served while it runs."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .. import _native
from . import digits as _digits
from . import doctor

# As bh's other programs name it: where a script leaves what only Python knows.
_VARIABLE = "BH_REPORT_DIRECTORY"


def obstacle(page):
    """Why a page cannot be written, or None."""
    folder = os.path.dirname(os.path.abspath(page))
    if os.path.isdir(page):
        return "it is a folder"
    if not os.path.isdir(folder):
        return f"there is no folder {folder}"
    return None if os.access(page if os.path.exists(page) else folder, os.W_OK) else "it may not be written"


def run(page, live, arguments):
    """Runs `python -m bh` with these arguments, serves the page meanwhile and writes it, and returns the exit status."""
    program = " ".join(["python -m bh", *arguments])
    with tempfile.TemporaryDirectory(prefix="bh-report-") as directory:
        variables = {name: os.fspath(path) for name, path in _native.report_environment(directory)}
        server = _native.LiveReport(directory, program) if live else None
        if server:
            variables |= [server.variable()]
            print(f"watch: {server.address}", file=sys.stderr)
        begin = time.perf_counter()
        ended = subprocess.run([sys.executable, "-m", "bh", *arguments], env=os.environ | variables).returncode
        seconds = time.perf_counter() - begin
        failure = f"the script failed with exit status {ended}" if ended else None
        if server:
            server.end(seconds, failure)
        if page:
            _native.write_report(directory, page, program, seconds, failure)
            print(f"report: {page}", file=sys.stderr)
    return ended if ended >= 0 else 128 - ended


class Leaving:
    """Leaves a script's results for the page that another process makes; nothing if no process wants them."""

    def __init__(self):
        # Processes that the script starts are not it.
        self._directory = os.environ.pop(_VARIABLE, None)
        if self._directory:
            doctor.begin()

    def end(self, digits):
        """Writes the doctor's findings and, if they are counted, the digits of lines."""
        if self._directory:
            Path(self._directory, "doctor.json").write_text(doctor.report("json"))
            if digits:
                Path(self._directory, "digits.json").write_text(json.dumps(_digits.digits()))
