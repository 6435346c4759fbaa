"""The modules of the package import each other in one direction, also within functions."""

import ast
import graphlib
import importlib.util
from pathlib import Path

import bh


def test_modules_have_no_circles():
    folder = Path(bh.__file__).parent
    paths = {"bh." + ".".join(path.relative_to(folder).with_suffix("").parts): path for path in folder.rglob("*.py")}
    paths = {name.removesuffix(".__init__"): path for name, path in paths.items() if name != "bh.__init__"}
    graph = {}
    for name, path in paths.items():
        room = name if path.stem == "__init__" else name.rpartition(".")[0]
        graph[name] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                source = importlib.util.resolve_name("." * node.level + (node.module or ""), room)
                parts = {f"{source}.{alias.name}" for alias in node.names}
                graph[name] |= (parts & paths.keys() or {source} & paths.keys()) - {name}
    graphlib.TopologicalSorter(graph).prepare()


def test_rooms_say_what_belongs_there():
    for path in Path(bh.__file__).parent.rglob("__init__.py"):
        assert len(ast.get_docstring(ast.parse(path.read_text()))) > 40, path
