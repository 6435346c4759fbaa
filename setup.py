"""Builds the wheel: setuptools packs it, and `cargo xtask libraries` makes the libraries and the program that lie beside Python's files.

`BH_WHEEL_LIBRARIES` names a directory with libraries that are built already, by cargo, from the same sources.
"""

import os
import re
import subprocess
import sysconfig
import tomllib
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent


class Bh(Distribution):
    """A distribution with machine code, although setuptools compiles nothing itself."""

    def has_ext_modules(self):
        return True


class Libraries(build_py):
    """Python's files, and beside them the native module, the components, and what C and C++ need."""

    def run(self):
        if sysconfig.get_config_var("Py_GIL_DISABLED"):
            raise SystemExit("bh needs a Python with a global lock: free-threaded builds have another binary interface")
        super().run()
        package = Path(self.build_lib).resolve() / "bh"
        built = os.environ.get("BH_WHEEL_LIBRARIES")
        options = ["--built", os.path.abspath(built)] if built else []
        subprocess.run(["cargo", "xtask", "libraries", "--out", package, *options], cwd=ROOT, check=True)


class Wheel(bdist_wheel):
    """A wheel for the stable interface, and for systems with the glibc that its libraries ask for, or a newer one."""

    def get_tag(self):
        package = Path(self.bdist_dir) / "bh"
        version = max(map(newest_glibc, filter(is_machine_code, package.iterdir())), default=(2, 17))
        machine = sysconfig.get_platform().split("-")[-1]
        return "cp311", "abi3", f"manylinux_{version[0]}_{version[1]}_{machine}"


def is_machine_code(path):
    """Whether a file is a library or a program."""
    return path.is_file() and path.read_bytes().startswith(b"\x7fELF")


def newest_glibc(library):
    """The newest version of glibc's symbols that a library or program names."""
    names = re.findall(rb"GLIBC_(\d+)\.(\d+)", library.read_bytes())
    return max(((int(major), int(minor)) for major, minor in names), default=(2, 17))


def version():
    """That of the workspace."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def scratch():
    """Setuptools' own files go where cargo's do."""
    directory = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "python-build"
    directory.mkdir(parents=True, exist_ok=True)
    return {"build": {"build_base": str(directory)}, "egg_info": {"egg_base": str(directory)}}


setup(
    version=version(),
    distclass=Bh,
    # Installers write the environment's interpreter into their first lines.
    scripts=[f"bh-bridge-numpy/scripts/{name}" for name in ("bh", "bh-config")],
    cmdclass={"build_py": Libraries, "bdist_wheel": Wheel},
    options=scratch(),
)
