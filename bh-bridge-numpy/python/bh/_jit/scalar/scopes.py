"""Functions while they are read: the names of a call, and functions that are defined in the function that is read."""

import ast
import collections

from . import source

NOTHING = object()


class Scope:
    """The names of one call of a function. `around`: the call in which the function was defined, if it was defined in one. `path`: the
    calls that lead to it."""

    def __init__(self, function, tree, prefix, label, around=None, path=()):
        self.function, self.tree, self.prefix, self.label, self.around, self.path = function, tree, prefix, label, around, path
        body = tree.body if isinstance(tree.body, list) else [tree.body]
        self.stored = collections.Counter(names_of(body))
        # A name that the function assigns is its own, everywhere in it.
        self.own = set(source.parameters(tree)) | set(self.stored)
        self.first = set(map(id, body))
        # Of names that had a value: its form; and the values of those that always have the same one.
        self.forms, self.same = {}, {}
        # The same of what it returns, once that was read.
        self.result = NOTHING
        # The labels that `break` and `continue` go to.
        self.loops = []


def names_of(nodes):
    """The names that statements assign, without those of functions in them."""
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef):
            yield node.name
        elif not isinstance(node, ast.Lambda):
            yield from names_of(ast.iter_child_nodes(node))


class Local:
    """A function that is defined in the function that is read."""

    def __init__(self, tree, scope):
        self.tree, self.scope, self.__name__ = tree, scope, getattr(tree, "name", "<lambda>")
