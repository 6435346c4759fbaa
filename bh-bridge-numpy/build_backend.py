"""Builds the wheel: cargo makes the components, maturin the native module and the wheel around both.

`BH_WHEEL_PROFILE` names the cargo profile of the components (release). Components lie beside the native module, where the
loader looks first. The kernel compiler comes along where LLVM 19 is there to build it with.
"""

import os
import shutil
import subprocess
from pathlib import Path

import maturin

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PACKAGE = HERE / "python" / "bh"
COMPONENTS = ["bh-filter", "bh-fuser", "bh-vem-node", "bh-ve-cpu"]

get_requires_for_build_wheel = maturin.get_requires_for_build_wheel
get_requires_for_build_sdist = maturin.get_requires_for_build_sdist
get_requires_for_build_editable = maturin.get_requires_for_build_editable
prepare_metadata_for_build_wheel = maturin.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = maturin.prepare_metadata_for_build_editable


def _components():
    """The crates whose libraries go into the wheel."""
    return COMPONENTS + (["bh-ve-cpu-jit"] if shutil.which("llvm-config-19") else [])


def _target():
    """Cargo's target directory."""
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def _build_components():
    """Builds the components and puts them beside the package's Python files. Returns the files that are new there."""
    profile = os.environ.get("BH_WHEEL_PROFILE", "release")
    crates = [part for crate in _components() for part in ("-p", crate)]
    subprocess.run(["cargo", "build", "--profile", profile, *crates], cwd=ROOT, check=True)
    built = _target() / ("debug" if profile == "dev" else profile)
    copied = []
    for crate in _components():
        name = f"lib{crate.replace('-', '_')}.so"
        shutil.copy2(built / name, PACKAGE / name)
        if profile == "release" and shutil.which("strip"):
            subprocess.run(["strip", "--strip-debug", str(PACKAGE / name)], check=True)
        copied.append(PACKAGE / name)
    return copied


def _with_components(build):
    copied = _build_components()
    # A module from a build in place would be packed instead of the new one.
    (PACKAGE / "_native.abi3.so").unlink(missing_ok=True)
    try:
        return build()
    finally:
        for file in copied:
            file.unlink(missing_ok=True)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517: builds the wheel."""
    return _with_components(lambda: maturin.build_wheel(wheel_directory, config_settings, metadata_directory))


def build_sdist(sdist_directory, config_settings=None):
    """PEP 517: builds the source distribution."""
    return maturin.build_sdist(sdist_directory, config_settings)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 660: builds an editable wheel; the components stay beside the Python files."""
    _build_components()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)
