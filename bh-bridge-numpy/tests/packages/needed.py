"""Prints the packages of `statements.toml` as pip takes them: those that are tested with every change, or all with `--all`."""

import pathlib
import sys
import tomllib

PACKAGES = tomllib.loads(pathlib.Path(__file__).with_name("statements.toml").read_text())

for name, package in PACKAGES.items():
    if "version" in package and (package.get("often") or "--all" in sys.argv):
        print(f"{name}=={package['version']}", *package.get("needs", []), sep="\n")
