"""The wheel in an environment of its own, made of the libraries that were built for the tests."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy
import pytest
from conftest import LIMIT

ROOT = Path(__file__).resolve().parents[2]

# What every system with glibc has, and what comes with an MPI.
EVERYWHERE = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}
MPI = {"libbh_cluster_openmpi.so": {"libmpi.so.40"}, "libbh_cluster_mpich.so": {"libmpich.so.12"}}


def needed(library):
    """The libraries that this one is loaded with."""
    text = subprocess.run(["readelf", "--dynamic", library], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))


def test_a_python_without_a_global_lock_is_refused_with_the_reason(tmp_path):
    pytest.importorskip("setuptools")
    free = "import runpy, sys, sysconfig\nreal = sysconfig.get_config_var\n"
    free += "sysconfig.get_config_var = lambda name: 1 if name == 'Py_GIL_DISABLED' else real(name)\n"
    free += f"sys.argv = ['setup.py', '-q', 'build_py', '--build-lib', {str(tmp_path)!r}]\nrunpy.run_path('setup.py', run_name='__main__')"
    environment = {**os.environ, "CARGO_TARGET_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", free], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode != 0 and "free-threaded" in done.stderr, done.stderr


@pytest.mark.skipif("BH_WHEEL_LIBRARIES" not in os.environ, reason="BH_WHEEL_LIBRARIES names no libraries to pack")
def test_wheel_runs_the_first_example(tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", tmp_path, ROOT]
    subprocess.run(build, check=True, timeout=LIMIT)
    (name,) = (file.name for file in tmp_path.glob("*.whl"))
    assert re.fullmatch(r"bh-[\d.]+-cp311-abi3-manylinux_2_\d+_\w+\.whl", name)
    with zipfile.ZipFile(tmp_path / name) as wheel:
        packed = {Path(entry).name for entry in wheel.namelist()}
    components = {f"libbh_{component}.so" for component in "filter fuser vem_cluster vem_node ve_cpu ve_cuda ve_opencl".split()}
    assert components | {"_native.abi3.so", "METADATA", "RECORD", "py.typed", "LICENSE-MIT"} <= packed
    assert (tmp_path / name).stat().st_size < 40e6
    with zipfile.ZipFile(tmp_path / name) as wheel:
        wheel.extractall(tmp_path / "unpacked")
    for library in (tmp_path / "unpacked/bh").glob("*.so"):
        assert needed(library) <= EVERYWHERE | MPI.get(library.name, set()), library.name
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True, timeout=LIMIT)
    python = environment / "bin" / "python"
    version = "python{}.{}".format(*sys.version_info)
    packages = environment / "lib" / version / "site-packages"
    # NumPy is the tests' own.
    (packages / "numpy.pth").write_text(str(Path(numpy.__file__).parents[1]))
    install = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", tmp_path / name]
    subprocess.run(install, check=True, timeout=LIMIT)
    plain = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[1]
    done = subprocess.run([python, "-c", example], capture_output=True, text=True, env=plain, timeout=LIMIT)
    assert done.stdout.strip() == "0.52533", done.stderr
    script = tmp_path / "main.py"
    script.write_text("import numpy as np\nprint(type(np.ones(3)).__module__, float(np.ones(3).sum()))\n")
    done = subprocess.run([environment / "bin" / "bh-python", script], capture_output=True, text=True, env=plain, timeout=LIMIT)
    assert done.stdout.split() == ["bh", "3.0"], done.stderr
