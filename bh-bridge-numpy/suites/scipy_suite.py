"""SciPy's tests of the array API: functions on arrays of any library, with bh as the library.

They come with the installed SciPy. To it bh is one of the libraries that it does not know, as array-api-strict is.
"""

import os
import re
import subprocess
import sys

VERSION = "1.17.1"


def prepare(directory):
    """Installs SciPy; returns the test files that ask for the fixture of array libraries by their names."""
    target = directory / "packages"
    if not target.is_dir():
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(target), f"scipy=={VERSION}"]
        subprocess.run(command, check=True)
    # SciPy's tests look its functions up by their identity, which a taught function does not have.
    os.environ |= {"BH_SUITE_SCIPY": "1", "SCIPY_ARRAY_API": '["array_api_strict"]', "BH_TEACH": "off"}
    os.environ["BH_SUITE_MARKS"] = "array_api_backends and not slow and not xslow"
    os.environ["PYTHONPATH"] = os.pathsep.join([str(target), os.environ.get("PYTHONPATH", "")])
    root = target / "scipy"
    found = {}
    for file in sorted(root.glob("**/tests/test_*.py")):
        if re.search(r"\bxp\b", file.read_text()):
            found[str(file.relative_to(root).with_suffix("")).replace("/tests/", "/")] = file
    return found
