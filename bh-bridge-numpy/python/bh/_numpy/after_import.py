"""Work that follows the import of a module of another package."""

import sys

# Which modules, by their names, are followed by what.
_following = []


class _Loader:
    """A module's loader that calls functions after the import."""

    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        # As Python does after this: later imports may look for the module there.
        package, _, name = module.__name__.rpartition(".")
        if package in sys.modules:
            setattr(sys.modules[package], name, module)
        _follow(module.__name__)

    def __getattr__(self, name):
        return getattr(self._loader, name)


class _Finder:
    """Finds such modules by the other finders."""

    def find_spec(self, name, path, target=None):
        if not any(is_meant(name) for is_meant, _ in _following):
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


def _follow(name):
    for is_meant, action in _following:
        if is_meant(name):
            action(name)


def add(is_meant, action):
    """Has `action(name)` follow the import of each module whose name is meant, and do it now for those that are imported."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    if (is_meant, action) not in _following:
        _following.append((is_meant, action))
    for name, module in list(sys.modules.items()):
        if is_meant(name) and getattr(module, "__spec__", None) is not None:
            action(name)
