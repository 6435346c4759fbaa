"""Ten programs with a planted bad number, each on the stack that it is about: the check names the line, and finds nothing if nothing is planted."""

import os
import subprocess
import sys

import pytest

import bh
from conftest import LIMIT

BENCHES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "benches")
sys.path.insert(0, BENCHES)
from planted import PROGRAMS, environment, place  # noqa: E402

sys.path.remove(BENCHES)

DRIVER = """
import sys
sys.path.insert(0, {benches!r})
import numpy
import bh
import planted
name, check = {name!r}, {check!r}
numpy.seterr(all="ignore")
for checks, plant in (([check], False), ([check], True), ([], True)):
    bh.check(*checks)
    try:
        planted.execute(name, 40_000, plant)
        print("ran")
    except bh.Error as error:
        print(error)
        # Batches that were recorded meanwhile fail, too, one error each.
        while True:
            try:
                bh.flush()
                break
            except bh.Error:
                pass
print("tilings", dict(bh.Stack().counters()).get("ve-cpu.tilings", 0))
"""

FOUND = {"nan": "nan, but no NaN went into it", "inf": "inf, but only finite numbers went into it", "overflow": "is beyond its type", "cancellation": "has lost 40 of its 53 bits by cancellation"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_planted_number_is_found_with_its_line(name, tmp_path):
    if name == "on a device" and not bh.devices().get("opencl"):
        pytest.skip("there is no device of OpenCL")
    check = PROGRAMS[name][0]
    program = DRIVER.format(benches=BENCHES, name=name, check=check)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment(name, tmp_path), timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    healthy, found, unchecked, tilings = done.stdout.splitlines()
    assert healthy == unchecked == "ran", done.stdout
    assert found.startswith(f"planted.py:{place(name)}: ") and FOUND[check] in found, found
    assert name != "in a tile" or int(tilings.split()[1]) > 0, tilings
