"""Builds the wheel of the Python package: cargo makes the native module and the components, which go into it together.

One run of cargo builds all of them, so that they share what they have in common. Components lie beside the native module,
where the loader looks first. The kernel compiler comes along where LLVM 19 is there to build it with.

`BH_WHEEL_PROFILE` names the cargo profile (release). `BH_WHEEL_LIBRARIES` names a directory with libraries that are built
already, by cargo, from the same sources; nothing is built then.
"""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
MODULE = "bh-bridge-numpy"
COMPONENTS = ["bh-filter", "bh-fuser", "bh-vem-node", "bh-ve-cpu"]
COMPILER = "bh-ve-cpu-jit"


def _library(crate):
    """The file name of a crate's library."""
    return f"lib{crate.replace('-', '_')}.so"


def _built():
    """The directory with the libraries, which are built unless somebody has done that, and the components that are there."""
    ready = os.environ.get("BH_WHEEL_LIBRARIES")
    if ready:
        compiler = [COMPILER] if (Path(ready) / _library(COMPILER)).exists() else []
        return Path(ready), COMPONENTS + compiler
    components = COMPONENTS + ([COMPILER] if shutil.which("llvm-config-19") else [])
    profile = os.environ.get("BH_WHEEL_PROFILE", "release")
    crates = [part for crate in (MODULE, *components) for part in ("-p", crate)]
    subprocess.run(["cargo", "build", "--profile", profile, *crates], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / ("debug" if profile == "dev" else profile), components


def _project():
    """The table of the project, with the version of the workspace."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    project["version"] = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    return project


def _tag():
    """The interpreters and the platform that the wheel is for: the stable interface from the oldest version on."""
    oldest = _project()["requires-python"].removeprefix(">=").replace(".", "")
    return f"cp{oldest}-abi3-{re.sub('[-.]', '_', sysconfig.get_platform())}"


def _metadata(project):
    lines = [
        "Metadata-Version: 2.3",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Classifier: {classifier}" for classifier in project["classifiers"]),
        *(f"Requires-Dist: {requirement}" for requirement in project["dependencies"]),
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(lines) + "\n\n" + (HERE / project["readme"]).read_text()


def _write_information(directory):
    """Writes the files that describe the distribution into a directory. Returns its name."""
    project = _project()
    name = f"{project['name']}-{project['version']}.dist-info"
    into = Path(directory) / name
    into.mkdir()
    into.joinpath("METADATA").write_text(_metadata(project))
    wheel = f"Wheel-Version: 1.0\nGenerator: bh\nRoot-Is-Purelib: false\nTag: {_tag()}\n"
    into.joinpath("WHEEL").write_text(wheel)
    scripts = "".join(f"{name} = {target}\n" for name, target in project["scripts"].items())
    into.joinpath("entry_points.txt").write_text(f"[console_scripts]\n{scripts}")
    return name


def _gather(directory):
    """Puts the package together in a directory: Python's files, the native module, the components."""
    package = Path(directory) / "bh"
    shutil.copytree(HERE / "python" / "bh", package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    libraries, components = _built()
    shutil.copyfile(libraries / _library(MODULE), package / "_native.abi3.so")
    for crate in components:
        shutil.copyfile(libraries / _library(crate), package / _library(crate))
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-debug", *map(str, package.glob("*.so"))], check=True)
    for file in package.glob("*.so"):
        file.chmod(0o755)


def _pack(directory, information, wheel):
    """Packs a directory, with a record of its files at the end."""
    record = f"{information}/RECORD"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        lines = []
        for file in sorted(path for path in Path(directory).rglob("*") if path.is_file()):
            name = file.relative_to(directory).as_posix()
            data = file.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(data)}\n")
            archive.write(file, name)
        archive.writestr(record, "".join(lines) + f"{record},,\n")


def get_requires_for_build_wheel(config_settings=None):
    """PEP 517: nothing but cargo, which pip cannot install."""
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """PEP 517: writes the metadata without building anything."""
    return _write_information(metadata_directory)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517: builds the wheel."""
    project = _project()
    name = f"{project['name']}-{project['version']}-{_tag()}.whl"
    with tempfile.TemporaryDirectory() as scratch:
        information = _write_information(scratch)
        _gather(scratch)
        _pack(scratch, information, Path(wheel_directory) / name)
    return name


def build_sdist(sdist_directory, config_settings=None):
    """PEP 517: there is no source distribution, as the package needs the whole workspace."""
    raise RuntimeError("bh has no source distribution: install it from the repository, by pip install ./bh-bridge-numpy")
