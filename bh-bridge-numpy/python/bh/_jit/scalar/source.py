"""The syntax tree of a function, from the file that it stands in."""

import ast
import functools
import inspect
import types

from .ir import Unsupported


def tree_of(function):
    """The tree of a function or lambda."""
    if not isinstance(function, types.FunctionType):
        raise Unsupported("it is no function written in Python")
    try:
        lines, _ = inspect.findsource(function)
        whole = _parsed("".join(lines))
    except (OSError, TypeError, SyntaxError, IndexError):
        raise Unsupported("its source is not at hand") from None
    found = _found(whole, function.__code__)
    if found is None:
        raise Unsupported("its source has changed")
    return found


@functools.lru_cache(256)
def _found(whole, code):
    """The tree of the function with this code; of lambdas in lambdas, the innermost."""
    return next((node for node in reversed([*ast.walk(whole)]) if _is_of(node, code)), None)


@functools.lru_cache(16)
def _parsed(text):
    return ast.parse(text)


def _is_of(node, code):
    """Is it the tree of the function with this code?"""
    if isinstance(node, ast.FunctionDef):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        return node.name == code.co_name and first == code.co_firstlineno
    if not isinstance(node, ast.Lambda) or code.co_name != "<lambda>":
        return False
    names = [argument.arg for argument in _arguments(node)]
    if node.lineno != code.co_firstlineno or tuple(names) != code.co_varnames[: len(names)]:
        return False
    # Instructions that stand for text lie within the body.
    body = node.body
    first, last = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    places = [place for place in code.co_positions() if None not in place and place[3] > place[2]]
    return bool(places) and all(first <= (place[0], place[2]) and (place[1], place[3]) <= last for place in places)


def _arguments(node):
    return (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)


def parameters(node):
    """The names of a tree's parameters."""
    if node.args.vararg or node.args.kwarg:
        raise Unsupported("any number of arguments", node.lineno)
    return [argument.arg for argument in _arguments(node)]
