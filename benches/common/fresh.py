"""Runs of programs on an OpenCL device, from nothing: no kernels kept on disk, by bh or by the driver."""

import os
from pathlib import Path


def enable_driver():
    """Tells libOpenCL of NVIDIA's driver where nobody has."""
    vendors = Path("/etc/OpenCL/vendors")
    if not list(vendors.glob("*.icd")) and os.access("/etc", os.W_OK):
        vendors.mkdir(parents=True, exist_ok=True)
        (vendors / "nvidia.icd").write_text("libnvidia-opencl.so.1\n")


def environment(device, kept, counters, stack="opencl"):
    """The settings: all work on the device, kernels timed and kept in a folder, and counters in the program's line. `stack` is
    `opencl` or `cuda`."""
    driver = {"CUDA_CACHE_DISABLE": "1", "POCL_CACHE_DIR": str(kept), "POCL_KERNEL_CACHE": "0"}
    keys = {"PLACEMENT": "device", "DEVICE": device, "CACHE_DIR": str(kept), "PROFILE": "true"}
    own = {f"BH_{stack.upper()}_{key}": value for key, value in keys.items()}
    return {**driver, **own, "BH_STACK": stack, "BENCH_COUNTERS": ",".join(counters)}
