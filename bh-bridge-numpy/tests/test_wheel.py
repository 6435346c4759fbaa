"""The wheel in an environment of its own, made of the libraries that were built for the tests."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import numpy
import pytest
from conftest import LIMIT

ROOT = Path(__file__).resolve().parents[2]

# Libraries of every system with glibc, and those of an MPI.
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


def test_the_source_distribution_has_all_crates():
    members = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["members"]
    grafted = set(re.findall(r"^graft (.*)$", (ROOT / "MANIFEST.in").read_text(), re.M))
    assert [member for member in members if not {member, *map(str, Path(member).parents)} & grafted] == []


class Installed:
    """The wheel, and an environment into which pip has installed it."""

    def __init__(self, folder, lock):
        build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, ROOT]
        # Each process of the tests builds a wheel, and all builds use one folder.
        with open(lock, "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            subprocess.run(build, check=True, timeout=LIMIT)
        (self.wheel,) = folder.glob("*.whl")
        environment = folder / "environment"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True, timeout=LIMIT)
        self.programs = environment / "bin"
        self.packages = environment / "lib/python{}.{}/site-packages".format(*sys.version_info)
        # NumPy is the tests' own.
        (self.packages / "numpy.pth").write_text(str(Path(numpy.__file__).parents[1]))
        pip = [sys.executable, "-m", "pip", "--python", self.programs / "python"]
        subprocess.run([*pip, "install", "-q", "--no-deps", "--no-index", self.wheel], check=True, timeout=LIMIT)

    def run(self, *command):
        """The output of a command; names of the environment's programs come without a folder."""
        plain = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        plain["PATH"] = os.pathsep.join([str(self.programs), plain["PATH"]])
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=plain, timeout=LIMIT)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    if "BH_WHEEL_LIBRARIES" not in os.environ:
        pytest.skip("BH_WHEEL_LIBRARIES names no libraries to pack")
    return Installed(tmp_path_factory.mktemp("wheel"), tmp_path_factory.getbasetemp().parent / "wheel.lock")


def test_the_wheel_has_all_files_and_needs_no_library_of_others(installed):
    assert re.fullmatch(r"bh_array-[\d.]+-cp311-abi3-manylinux_2_\d+_\w+\.whl", installed.wheel.name)
    with zipfile.ZipFile(installed.wheel) as wheel:
        packed = {Path(entry).name for entry in wheel.namelist()}
    components = {f"libbh_{component}.so" for component in "filter fuser vem_cluster vem_node ve_cpu ve_cuda ve_opencl".split()}
    others = {"_native.abi3.so", "METADATA", "RECORD", "py.typed", "LICENSE-MIT", "bh", "bh-config", "libbh_bridge_c.so.0", "bh.h", "bh.hpp", "bh.pc"}
    assert components | others <= packed
    assert installed.wheel.stat().st_size < 40e6
    package = installed.packages / "bh"
    for binary in [*package.glob("*.so"), package / "bh", package / "libbh_bridge_c.so.0"]:
        assert needed(binary) <= EVERYWHERE | MPI.get(binary.name, set()), binary.name


def test_the_wheel_runs_the_first_example(installed, tmp_path):
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[1]
    assert installed.run("python", "-c", example).strip() == "0.52533"
    script = tmp_path / "main.py"
    script.write_text("import numpy as np\nprint(type(np.ones(3)).__module__, float(np.ones(3).sum()))\n")
    assert installed.run("bh-python", script).split() == ["bh", "3.0"]


def test_the_wheel_has_the_program_bh(installed, tmp_path):
    script = tmp_path / "main.py"
    script.write_text("import bh as np\nx = np.arange(100_000.0)\nprint(float((x * x + 1).sum()))\n")
    assert str(installed.packages / "bh") in installed.run("bh", "info")
    explained = installed.run("bh", "explain", "--", "python", script)
    assert "main.py:3" in explained and "multiply" in explained


@pytest.mark.parametrize("tool", ["bh-config", "pkg-config", "cmake"])
def test_programs_in_c_find_the_wheel(installed, tmp_path, tool):
    if not (shutil.which("cc") and (tool == "bh-config" or shutil.which(tool))):
        pytest.skip(f"there is no compiler, or no {tool}")
    (tmp_path / "first.c").write_text(re.search(r"```c run\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[1])
    program = tmp_path / "first"
    if tool == "cmake":
        lists = "cmake_minimum_required(VERSION 3.16)\nproject(first C)\nfind_package(bh REQUIRED)\nadd_executable(first first.c)\ntarget_link_libraries(first bh::bh)\n"
        (tmp_path / "CMakeLists.txt").write_text(lists)
        installed.run("cmake", "-S", tmp_path, "-B", tmp_path, "-DCMAKE_PREFIX_PATH=" + installed.run("bh-config", "--prefix").strip())
        installed.run("cmake", "--build", tmp_path)
    else:
        options = installed.run("bh-config", "--cflags", "--libs")
        if tool == "pkg-config":
            file = Path(installed.run("bh-config", "--pkgconfigdir").strip()) / "bh.pc"
            options = installed.run("pkg-config", "--cflags", "--libs", file) + f"-Wl,-rpath,{installed.packages}/bh"
        installed.run("cc", tmp_path / "first.c", "-o", program, *options.split())
    assert installed.run(program).strip() == "0.3333"
