"""The parts of this system that the package can use, and how to install the missing ones."""

import os
import warnings

HERE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
COMPILER = "libbh_ve_cpu_jit.so"
LAUNCHERS = {"openmpi": ("mpirun.openmpi", "mpirun"), "mpich": ("mpirun.mpich", "mpirun")}


# The newest version of NumPy with which the tests pass.
TESTED = (2, 5)


def warn_of_newer_numpy(version):
    """Says that bh may not do what a version of NumPy does that is newer than what the tests know."""
    if tuple(map(int, version.split(".")[:2])) > TESTED:
        known = ".".join(map(str, TESTED))
        text = f"bh is tested with NumPy up to {known}; what NumPy {version} changed may work as before"
        warnings.warn(text, RuntimeWarning, stacklevel=3)


def missing():
    """A line for each part that does not work here, with what brings it."""
    return [line for line in (_compiler(), _opencl(), _cuda(), _cluster()) if line]


def _directories():
    """Where bh looks for libraries."""
    further = os.environ.get("BH_LIBRARY_PATH", "")
    return [HERE, *filter(None, further.split(os.pathsep))]


def _has(library):
    return any(os.path.isfile(os.path.join(directory, library)) for directory in _directories())


def _loads(library):
    """Whether the system has a shared library."""
    import ctypes

    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def devices(stack):
    """The devices that the engine of a stack finds, as texts; and the engine's own text, which gives the reason if there are none."""
    from .. import _native

    # The text has what the log would say, too.
    quiet = "BH_LOG" not in os.environ
    if quiet:
        os.environ["BH_LOG"] = "error"
    try:
        text = _native.Stack(stack).message_first("devices")
    except _native.Error as error:
        return [], str(error)
    finally:
        if quiet:
            del os.environ["BH_LOG"]
    lines = [line.partition(": ") for line in text.splitlines()]
    return [device for number, _, device in lines if number.isdecimal()], text


def _compiler():
    if not _has(COMPILER):
        return (
            "missing: the kernel compiler; without it kernels run more slowly, as precompiled operations on blocks of elements"
            " (build the wheel where llvm-19-dev is installed)"
        )


def _opencl():
    if not _has("libbh_ve_opencl.so"):
        return "missing: the engine for stack opencl; this package was built without it"
    if not _loads("libOpenCL.so.1"):
        return "missing: OpenCL for stack opencl (Debian: ocl-icd-libopencl1, and the GPU's driver or pocl-opencl-icd)"
    # Imported here and below, because most programs never ask.
    from pathlib import Path

    vendors = Path(os.environ.get("OCL_ICD_VENDORS") or "/etc/OpenCL/vendors")
    if not vendors.is_file() and not any(vendors.glob("*.icd")):
        return f"missing: an OpenCL driver in {vendors} for stack opencl (the GPU's, or Debian's pocl-opencl-icd)"


def _cuda():
    if not _has("libbh_ve_cuda.so"):
        return "missing: the engine for stack cuda; this package was built without it"
    if not _loads("libcuda.so.1"):
        return "missing: NVIDIA's driver (libcuda.so.1) for stack cuda (only on machines with an NVIDIA GPU)"
    # The driver is there, so the engine may start it. It also looks for the compiler.
    found, reason = devices("cuda")
    if not found:
        return f"missing: a device for stack cuda: {reason}"


def _cluster():
    connected = [name for name in LAUNCHERS if _has(f"libbh_cluster_{name}.so")]
    if not connected:
        return "missing: the connection to MPI for ranks; build the wheel where libopenmpi-dev or libmpich-dev is installed"
    import shutil

    if not any(shutil.which(program) for name in connected for program in LAUNCHERS[name]) and not shutil.which("srun"):
        packages = " or ".join({"openmpi": "openmpi-bin", "mpich": "mpich"}[name] for name in connected)
        return f"missing: mpirun for several ranks of stack cluster (Debian: {packages})"
