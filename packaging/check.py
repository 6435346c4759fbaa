"""Checks the recipes of package managers and the citation, with their own tools: `cargo xtask packaging` runs it.

`xtask/src/packages.rs` has the tools' versions. Versions, licences and requirements are those of `Cargo.toml` and `pyproject.toml`.
"""

import json
import sys
import tomllib
import types
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
VERSION = WORKSPACE["version"]
PYTHON = PROJECT["requires-python"].removeprefix(">=")
NUMPY = PROJECT["dependencies"][0].removeprefix("numpy>=")
SETUPTOOLS = PYPROJECT["build-system"]["requires"][0].removeprefix("setuptools>=")


def equal(what, found, wanted):
    """Ends the program unless what a file says is what the others say."""
    if found != wanted:
        raise SystemExit(f"{what} is {found!r} instead of {wanted!r}")


def has(what, found, wanted):
    """Ends the program unless a file has all of these."""
    if lacking := set(wanted) - set(found):
        raise SystemExit(f"{what} lacks {', '.join(sorted(lacking))}")


def conda():
    """The recipe, rendered by rattler-build for Linux."""
    import rattler_build

    settings = {name: [value] for name, value in COMPILERS.items()}
    recipe = rattler_build.Stage0Recipe.from_file(HERE / "conda/recipe.yaml")
    (rendered,) = recipe.render(rattler_build.VariantConfig(settings))
    made = rendered.recipe.to_dict()
    equal("the version of conda's recipe", made["package"]["version"], VERSION)
    equal("the licence of conda's recipe", made["about"]["license"], PROJECT["license"])
    requirements = made["requirements"]["host"] + made["requirements"]["run"]
    has("conda's recipe", requirements, {f"numpy >={NUMPY}", f"setuptools >={SETUPTOOLS}", f"python {PYTHON}.*"})
    return f"rendered by rattler-build {rattler_build.rattler_build_version()}"


# The packages that conda-forge pins.
COMPILERS = {"c_compiler": "gcc", "cxx_compiler": "gxx", "rust_compiler": "rust", "c_stdlib": "sysroot", "c_stdlib_version": "2.28"}


def easybuild():
    """The easyconfig, read by EasyBuild's parser; all parameters are known to EasyBuild and to the easyblock."""
    from easybuild.framework.easyconfig.default import DEFAULT_CONFIG
    from easybuild.framework.easyconfig.easyconfig import get_easyblock_class
    from easybuild.framework.easyconfig.parser import EasyConfigParser
    from easybuild.tools.options import set_up_configuration
    from easybuild.tools.version import FRAMEWORK_VERSION

    set_up_configuration(args=["--allow-use-as-root-and-accept-consequences"], silent=True)
    (file,) = (HERE / "easybuild").glob("*.eb")
    config = EasyConfigParser(str(file)).get_config_dict()
    toolchain = config["toolchain"]
    equal("the name of EasyBuild's file", file.name, f"bh-{VERSION}-{toolchain['name']}-{toolchain['version']}.eb")
    equal("the version of EasyBuild's file", config["version"], VERSION)
    known = {*DEFAULT_CONFIG, *get_easyblock_class(config["easyblock"]).extra_options()}
    has("EasyBuild", known, config)
    return f"read by EasyBuild {FRAMEWORK_VERSION}, all parameters known"


def spack():
    """Spack's package, run with directives that write down their arguments: Spack itself is not on PyPI."""
    said = []
    names = "license version variant depends_on conflicts".split()
    directives = {name: lambda *arguments, _name=name, **_: said.append((_name, arguments[0])) for name in names}
    modules = {
        "spack": {},
        "spack.package": directives,
        "spack_repo": {},
        "spack_repo.builtin": {},
        "spack_repo.builtin.build_systems": {},
        "spack_repo.builtin.build_systems.python": {"PythonPackage": object},
    }
    for name, content in modules.items():
        sys.modules[name] = module = types.ModuleType(name)
        vars(module).update(content)
    file = HERE / "spack/package.py"
    exec(compile(file.read_text(), file, "exec"), {})
    needs = {f"py-numpy@{NUMPY}:", f"python@{PYTHON}:", f"py-setuptools@{SETUPTOOLS}:", f"rust@{WORKSPACE['rust-version']}:"}
    wanted = {("depends_on", text) for text in needs} | {("version", VERSION), ("license", PROJECT["license"])}
    has("Spack's package", map(" ".join, said), map(" ".join, wanted))
    return "run with directives of the check's own"


def citation():
    """`CITATION.cff` by its schema, and Zenodo's file beside it."""
    from cffconvert import Citation

    text = (ROOT / "CITATION.cff").read_text()
    citation = Citation(text, src="CITATION.cff")
    citation.validate()
    fields, zenodo = json.loads(citation.as_zenodo()), json.loads((ROOT / ".zenodo.json").read_text())
    equal("the cited version", fields["version"], VERSION)
    # Zenodo takes one licence of several.
    has("CITATION.cff", fields.pop("license")["id"], [zenodo["license"]])
    equal("Zenodo's file", {name: zenodo.get(name) for name in fields}, fields)
    return "valid by its schema, and Zenodo's file says the same"


if __name__ == "__main__":
    for check in (conda, easybuild, spack, citation):
        print(f"{check.__name__}: {check()}", flush=True)
