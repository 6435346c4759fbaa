"""The program's own modules, compiled with their calls written anew: the loader, its cache, and the script itself."""

import ast
import builtins
import importlib.machinery
import importlib.util
import marshal
import os
import runpy
import sys
import types

from . import after_import, imports
from .rewriting import rewrite

# The format of compiled modules. The cache ignores files of another format.
_FORM = 4


def compiled(source, path, optimize=-1):
    """The code of a module of the program."""
    tree = compile(source, path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True, optimize=optimize)
    try:
        tree = rewrite(tree)
    except RecursionError:
        # Too deep for a walk.
        return compile(source, path, "exec", dont_inherit=True, optimize=optimize)
    return compile(tree, path, "exec", dont_inherit=True, optimize=optimize)


class Loader(importlib.machinery.SourceFileLoader):
    """Loads a module of the program. Its code is kept beside that of Python's own loader, under a name with the form."""

    def source_to_code(self, data, path, *, _optimize=-1):
        return compiled(data, path, _optimize)

    def get_code(self, fullname):
        """The code of the module, from its file in the cache if that is of this source."""
        path = self.get_filename(fullname)
        cached = _cached(path)
        try:
            state = os.stat(path)
            head = importlib.util.MAGIC_NUMBER + b"\0\0\0\0" + _four(int(state.st_mtime)) + _four(state.st_size)
            data = self.get_data(cached)
            if data[:16] == head:
                return marshal.loads(memoryview(data)[16:])
        except (OSError, EOFError, ValueError, TypeError):
            head = head if "head" in locals() else None
        code = self.source_to_code(self.get_data(path), path)
        if head is not None and not sys.dont_write_bytecode:
            self.set_data(cached, head + marshal.dumps(code))
        return code


def _cached(path):
    """Where the code of a module is kept."""
    return importlib.util.cache_from_source(path, optimization=f"{sys.flags.optimize}bh{_FORM}")


def _four(number):
    return (number & 0xFFFFFFFF).to_bytes(4, "little")


class _Finder(importlib.machinery.PathFinder):
    """Finds the program's own modules among all."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        spec = super().find_spec(name, path, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            package = name.partition(".")[0]
            if package != "bh" and package not in sys.stdlib_module_names and _is_of_program(spec.origin, package):
                spec.loader = Loader(spec.loader.name, spec.loader.path)
                spec.cached = _cached(spec.origin)
        return spec


def _is_of_program(file, package):
    return package not in imports.shown and (package in imports.named or not imports.is_installed(file))


def is_on():
    """Are calls written anew? `BH_SEE=off` leaves all code as it is."""
    return os.environ.get("BH_SEE", "on") != "off"


def install():
    """Has the program's own modules compiled so from now on."""
    if is_on() and _Finder not in sys.meta_path:
        # After finders of other packages, as pytest's, and before Python's own.
        sys.meta_path.insert(sys.meta_path.index(importlib.machinery.PathFinder), _Finder)
        after_import.add("_pytest.assertion.rewrite".__eq__, lambda name: _with_pytest(sys.modules[name]))


def remove():
    """Has modules compiled as they are from now on."""
    if _Finder in sys.meta_path:
        sys.meta_path.remove(_Finder)


def _with_pytest(module):
    """Has pytest, which compiles modules of tests itself, write their calls, too; its files in the cache get names with the form."""
    asserts, tail = module.rewrite_asserts, module.PYC_TAIL

    def both(tree, source, path=None, *rest):
        asserts(tree, source, path, *rest)
        # Plugins that are installed are other packages.
        if path is None or not imports.is_installed(path):
            rewrite(tree)

    module.rewrite_asserts, module.PYC_TAIL = both, f"-bh{_FORM}".join(os.path.splitext(tail))


def run(path):
    """Runs a script as `__main__`; the result is its names."""
    if not is_on() or _Finder not in sys.meta_path or not os.path.isfile(path) or path.endswith(".pyc"):
        return runpy.run_path(path, run_name="__main__")
    with open(path, "rb") as file:
        code = compiled(file.read(), path)
    module, before = types.ModuleType("__main__"), sys.modules.get("__main__")
    vars(module).update(__file__=path, __cached__=None, __package__="", __builtins__=builtins)
    sys.modules["__main__"] = module
    try:
        exec(code, vars(module))
        return dict(vars(module))
    finally:
        sys.modules["__main__"] = before
