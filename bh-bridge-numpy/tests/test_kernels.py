"""Programs of courses and benchmarks, at small sizes: bh's results are NumPy's, on the default stack and on others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LIMIT

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from soaking import kernels, settings  # noqa: E402

pytestmark = pytest.mark.falls_back


@pytest.mark.parametrize("size", kernels.SIZES)
@pytest.mark.parametrize("name", kernels.KERNELS)
def test_programs_of_courses(name, size):
    assert kernels.difference(name, size) is None


@pytest.mark.parametrize("stacks", [["full", "direct", "two-threads", "small-caches"], ["cluster-2", "cluster-3", "cluster-8"]])
def test_programs_of_courses_on_other_stacks(stacks, tmp_path):
    (tmp_path / "config.toml").write_text(settings.configuration({name: settings.NAMED[name] for name in stacks}))
    path = os.pathsep.join(map(os.path.abspath, [HERE, *filter(None, sys.path)]))
    environment = {**os.environ, "BH_CONFIG": str(tmp_path / "config.toml"), "BH_LOG": "error", "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-m", "soaking.kernels", *stacks], env=environment, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout + done.stderr
