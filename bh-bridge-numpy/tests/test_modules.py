"""The modules of the package import each other in one direction, also within functions."""

import ast
import graphlib
from pathlib import Path

import bh


def test_modules_have_no_circles():
    paths = {path.stem: path for path in Path(bh.__file__).parent.glob("*.py") if path.stem != "__init__"}
    graph = {}
    for name, path in paths.items():
        imports = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom) and node.level == 1]
        named = {part for node in imports for part in ([node.module] if node.module else [alias.name for alias in node.names])}
        graph[name] = (named & paths.keys()) - {name}
    graphlib.TopologicalSorter(graph).prepare()
