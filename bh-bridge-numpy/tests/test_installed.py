"""Missing parts that `bh.info` reports."""

import ctypes
import os
import warnings

import bh
import numpy
import pytest
from bh._tools import installation

LIBRARIES = [installation.COMPILER, "libbh_ve_opencl.so", "libbh_ve_cuda.so", "libbh_cluster_openmpi.so"]


@pytest.fixture
def whole(tmp_path, monkeypatch):
    """A directory in which every library is, and a system that has everything."""
    for name in (*LIBRARIES, "mpirun", "driver.icd"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(installation, "HERE", tmp_path)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: name)
    monkeypatch.setattr(installation, "devices", lambda stack: (["a device"], "0: a device"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    monkeypatch.delenv("BH_LIBRARY_PATH", raising=False)
    return tmp_path


def test_nothing_is_missing(whole):
    assert installation.missing() == []


@pytest.mark.parametrize(
    "file, brought",
    [
        (LIBRARIES[0], "llvm-19-dev"),
        (LIBRARIES[1], "built without"),
        (LIBRARIES[2], "stack cuda"),
        (LIBRARIES[3], "libopenmpi-dev"),
        ("mpirun", "openmpi-bin"),
        ("driver.icd", "pocl-opencl-icd"),
    ],
)
def test_each_part_names_what_brings_it(whole, file, brought):
    (whole / file).unlink()
    (line,) = installation.missing()
    assert line.startswith("missing: ") and brought in line
    assert line in bh.info()


@pytest.mark.parametrize("library, named", [("libOpenCL.so.1", "ocl-icd-libopencl1"), ("libcuda.so.1", "NVIDIA's driver (libcuda.so.1)")])
def test_no_library_of_a_driver(whole, monkeypatch, library, named):
    def open_(name):
        if name == library:
            raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", open_)
    (line,) = installation.missing()
    assert named in line


def test_no_device_of_cuda_gives_the_engine_s_reason(whole, monkeypatch):
    monkeypatch.setattr(installation, "devices", lambda stack: ([], "NVIDIA's compiler NVRTC is not installed"))
    assert installation.missing() == ["missing: a device for stack cuda: NVIDIA's compiler NVRTC is not installed"]


def test_devices_log_nothing(capfd):
    names = {stack: installation.devices(stack) for stack in ("cuda", "opencl")}
    assert all(found or reason for found, reason in names.values())
    assert capfd.readouterr().err == "" and bh.devices() == {stack: found for stack, (found, _) in names.items() if found}


def test_a_newer_numpy_is_warned_of():
    with pytest.warns(RuntimeWarning, match=r"NumPy 99\.0\.1 changed"):
        installation.warn_of_newer_numpy("99.0.1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for version in ("2.2.6", f"{installation.TESTED[0]}.{installation.TESTED[1]}.0rc1", numpy.__version__):
            installation.warn_of_newer_numpy(version)


def test_libraries_beside_numpy_are_installed():
    beside = os.path.dirname(os.path.dirname(os.path.abspath(numpy.__file__)))
    assert not bh._numpy.imports.is_own({"__name__": "library", "__file__": os.path.join(beside, "library.py")})
    assert bh._numpy.imports.is_own({"__name__": "program", "__file__": "/program.py"})
