"""CuPy's tests, which compare what a function gives on CuPy and on NumPy, with bh in CuPy's place.

They come from a checkout of CuPy's repository, which is fetched below the target directory.
"""

import os
import subprocess

VERSION = "v14.2.0"
REPOSITORY = "https://github.com/cupy/cupy"

# Folders of tests about arrays, and files in them that are about GPUs, compilers and CuPy's own inner parts.
FOLDERS = """
binary core creation fft functional indexing io lib linalg logic manipulation math misc padding polynomial random sorting
statistics
""".split()
INTERNAL = """
core/test_array_function core/test_bfloat16 core/test_carray core/test_core core/test_cub_reduction core/test_elementwise
core/test_function core/test_gufuncs core/test_include core/test_internal core/test_mdspan core/test_multithreading
core/test_ndarray_cuda_array_interface core/test_ndarray_get core/test_ndarray_scatter core/test_raw core/test_reduction
core/test_scan core/test_syncdetect core/test_userkernel core/test_dlpack fft/test_cache fft/test_callback
random/test_bit_generator random/test_init random/test_permutations random/test_random random/test_generator
random/test_generator_api random/test_distributions
""".split()


def prepare(directory):
    """Fetches CuPy; returns the test files by their names."""
    checkout = directory / "checkout"
    if not checkout.is_dir():
        source = os.environ.get("BH_SUITE_CUPY_REPOSITORY", REPOSITORY)
        command = ["git", "-c", "advice.detachedHead=false", "clone", "-q", "--depth", "1", "--branch", VERSION, source, str(checkout)]
        subprocess.run(command, check=True)
        # It is about the machines of CuPy's developers, and fetches its tests' plugins.
        (checkout / "tests" / "conftest.py").unlink()
        (checkout / "tests" / "pytest.ini").write_text("[pytest]\n")
        loops = checkout / "cupy" / "testing" / "_loops.py"
        loops.write_text(loops.read_text().replace("cupy_r[mask].get()", "cupy.asnumpy(cupy_r[mask])"))
    os.environ |= {"BH_SUITE_CUPY": str(checkout), "BH_SUITE_MARKS": "not slow"}
    tests = checkout / "tests" / "cupy_tests"
    files = {f"{folder}/{file.stem}": file for folder in FOLDERS for file in sorted((tests / f"{folder}_tests").glob("test_*.py"))}
    files |= {name: tests / f"{name}.py" for name in ("test_ndim", "test_numpy_interop", "test_type_routines")}
    return {name: file for name, file in files.items() if name not in INTERNAL}
