"""Calls in the program's own modules, written as `see(f)(x)` when they are compiled, so that functions of other packages get NumPy's
arrays: the syntax trees. `loading` compiles modules so."""

import ast
import builtins
import sys

from .hidden import ANSWERING, ASSIGNED, OWNER, PREFIX, SEE, SITES, SUBSCRIPTED, TYPE

# Builtin functions that call the functions that they get: the number of the argument, and the name of it.
_CALLING = {"filter": (0, None), "map": (0, None), "max": (None, "key"), "min": (None, "key"), "sorted": (None, "key")}

_LITERALS = (ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# Names that are bound so mean the same object whenever they are called.
_LASTING = {"class", "def", "import"}


class _Scope:
    """A scope, and how its names are bound: by `def` and `class` without decorators and bases, by imports, or otherwise."""

    def __init__(self, node, parent):
        self.parent, self.is_class = parent, isinstance(node, ast.ClassDef)
        self.is_comprehension = isinstance(node, _COMPREHENSIONS)
        self.bound, self.elsewhere = {}, {}

    def bind(self, name, how):
        """Notes how a name is bound."""
        scope = self.elsewhere.get(name)
        (self.bound if scope is None else scope.bound).setdefault(name, set()).add(how if scope is None else "other")

    def find(self, name):
        """How a name is bound where it is looked up; nothing if it is not."""
        scope, inner = self, True
        while scope is not None:
            if name in scope.elsewhere:
                scope = scope.elsewhere[name]
            if name in scope.bound and (inner or not scope.is_class):
                return scope.bound[name]
            scope, inner = scope.parent, inner and scope.is_comprehension
        return set()


class _Scopes(ast.NodeVisitor):
    """Finds the scopes of a module's tree, by their nodes, and how names are bound."""

    def __init__(self, tree):
        self.of = {tree: _Scope(tree, None)}
        self._module = self._scope = self.of[tree]
        self.generic_visit(tree)

    def _within(self, node, *parts):
        before = self._scope
        self._scope = self.of[node] = _Scope(node, before)
        # Names that are bound elsewhere are known first.
        for part in ast.walk(node):
            if isinstance(part, (ast.Global, ast.Nonlocal)):
                self._elsewhere(part)
        for part in parts:
            self.visit(part)
        self._scope = before

    def _elsewhere(self, node):
        for name in node.names:
            scope = self._module
            if isinstance(node, ast.Nonlocal):
                scope = self._scope.parent
                while scope.parent is not None and (scope.is_class or name not in scope.bound):
                    scope = scope.parent
            self._scope.elsewhere[name] = scope

    def visit_FunctionDef(self, node):
        self._scope.bind(node.name, "other" if node.decorator_list else "def")
        for part in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(part)
        self._within(node, *_arguments(node.args), *node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node):
        for part in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(part)
        self._within(node, *_arguments(node.args), node.body)

    def visit_ClassDef(self, node):
        self._scope.bind(node.name, "other" if node.decorator_list or node.bases or node.keywords else "class")
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        self._within(node, *node.body)

    def _comprehension(self, node):
        self._within(node, *ast.iter_child_nodes(node))

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_arg(self, node):
        self._scope.bind(node.arg, "other")

    def visit_Name(self, node):
        if not isinstance(node.ctx, ast.Load):
            self._scope.bind(node.id, "other")

    def visit_For(self, node):
        iterator = node.iter.func.id if isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name) else None
        number = node.target if iterator == "range" else None
        if iterator == "enumerate" and isinstance(node.target, ast.Tuple) and node.target.elts:
            number = node.target.elts[0]
        for part in ast.walk(node.target):
            if isinstance(part, ast.Name):
                self._scope.bind(part.id, "number" if part is number else "other")
        for part in (node.iter, *node.body, *node.orelse):
            self.visit(part)

    def visit_NamedExpr(self, node):
        scope = self._scope
        while scope.is_comprehension:
            scope = scope.parent
        scope.bind(node.target.id, "other")
        self.visit(node.value)

    def visit_Import(self, node):
        for name in node.names:
            self._scope.bind(name.asname or name.name.partition(".")[0], "import")

    visit_ImportFrom = visit_Import

    def visit_ExceptHandler(self, node):
        if node.name:
            self._scope.bind(node.name, "other")
        self.generic_visit(node)

    def visit_MatchAs(self, node):
        if node.name:
            self._scope.bind(node.name, "other")
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node):
        if node.rest:
            self._scope.bind(node.rest, "other")
        self.generic_visit(node)


def _arguments(args):
    return (*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, (args.vararg, args.kwarg)))


class _Calls(ast.NodeTransformer):
    """Writes the calls of a module's tree."""

    def __init__(self, tree, sites):
        self._place = sites
        self._scopes = _Scopes(tree).of
        self._scope = self._scopes[tree]
        self._has_star = "*" in self._scope.bound
        self._stores = False
        self._imports_others = any(map(_imports_others, ast.walk(tree)))
        # The kind of each site: `f` notes a function or an owner, `.` the classes of owners.
        self.sites = []

    def _within(self, node):
        before, self._scope = self._scope, self._scopes[node]
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                value[:] = [self.visit(one) if isinstance(one, ast.AST) else one for one in value]
            elif isinstance(value, ast.AST) and name not in ("returns", "args"):
                setattr(node, name, self.visit(value))
        self._scope = before
        return node

    def _function(self, node):
        # Annotations may be kept as text.
        node.args.defaults[:] = map(self.visit, node.args.defaults)
        node.args.kw_defaults[:] = [one and self.visit(one) for one in node.args.kw_defaults]
        if self._scope.is_class and getattr(node, "name", "") == "__array__" and not node.decorator_list:
            # NumPy's functions in C refuse an answer that is not NumPy's array.
            node.decorator_list.append(_at(node, _name(ANSWERING)))
        return self._within(node)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function
    visit_ClassDef = visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _within

    def visit_AnnAssign(self, node):
        node.target, node.value = self.visit(node.target), node.value and self.visit(node.value)
        return node

    def visit_TypeAlias(self, node):
        return node

    def visit_Assign(self, node):
        # Whether the value may be an array decides about subscripts of numbers, too.
        node.value = self.visit(node.value)
        before, self._stores = self._stores, not _is_constant(node.value)
        node.targets[:] = map(self.visit, node.targets)
        self._stores = before
        return node

    def visit_Attribute(self, node):
        stores, self._stores = self._stores and isinstance(node.ctx, ast.Store), False
        self.generic_visit(node)
        self._stores = stores
        return self._foreign(node, ASSIGNED, ast.Constant(node.attr)) if stores and not _is_self(node.value) else node

    def visit_AugAssign(self, node):
        node.value, node.target = self.visit(node.value), self.visit(node.target)
        return node

    def visit_Subscript(self, node):
        stores, self._stores = self._stores and isinstance(node.ctx, ast.Store), False
        self.generic_visit(node)
        self._stores = stores
        return self._foreign(node, SUBSCRIPTED) if stores or not self._is_index(node.slice) else node

    def _is_index(self, key):
        """Is a key a number, text, or made of these? Names that loops over ranges bind are numbers."""
        if isinstance(key, ast.Name):
            return self._scope.find(key.id) == {"number"}
        if isinstance(key, ast.BinOp):
            return self._is_index(key.left) and self._is_index(key.right)
        if isinstance(key, ast.Slice):
            return True
        return all(map(self._is_index, key.elts)) if isinstance(key, ast.Tuple) else _is_constant(key)

    def _foreign(self, node, function, *arguments):
        """A subscript or an attribute whose owner may be an object of another package, in modules that import such: the function
        returns the owner, or a substitute for it."""
        owner = node.value
        known = isinstance(owner, ast.Name) and (owner.id.startswith(("@", PREFIX)) or self._is_builtin(owner.id))
        if not self._imports_others or known or isinstance(owner, _LITERALS):
            return node
        place = self._site(".")
        again = _name(owner.id) if isinstance(owner, ast.Name) else owner
        made = ast.Call(_name(function), [again, *arguments, _name(self._place), place.slice], [])
        node.value = _at(owner, self._of_known_class(owner, place, made) if isinstance(owner, ast.Name) else made)
        return node

    def _of_known_class(self, owner, place, other):
        """The owner of this name if its class is noted at its site, otherwise something else."""
        # A module that lists its classes finds `type` only if it gives this name another meaning.
        kind = _name("type" if self._is_builtin("type") else TYPE)
        known = ast.Compare(ast.Call(kind, [_name(owner.id)], []), [ast.In()], [place])
        return ast.IfExp(known, _name(owner.id), other)

    def visit_Call(self, node):
        self._hand_functions(node)
        own = self.generic_visit(node)
        own.func = self._called(own.func, all(map(_is_constant, (*own.args, *(keyword.value for keyword in own.keywords)))))
        return own

    def _hand_functions(self, node):
        """Writes functions that a builtin function calls as functions that are called here."""
        if not isinstance(node.func, ast.Name) or node.func.id not in _CALLING or not self._is_builtin(node.func.id):
            return
        at, name = _CALLING[node.func.id]
        if at is not None and len(node.args) > at and isinstance(node.args[at], (ast.Name, ast.Attribute, ast.Call)):
            node.args[at] = self._seen(node.args[at])
        for keyword in node.keywords:
            if keyword.arg == name is not None:
                keyword.value = self._seen(keyword.value)

    def _is_builtin(self, name):
        return hasattr(builtins, name) and not self._scope.find(name) and not self._has_star

    def _seen(self, function):
        return _at(function, ast.Call(_name(SEE), [function], []))

    def _site(self, kind):
        self.sites.append(kind)
        return ast.Subscript(_name(self._place), ast.Constant(len(self.sites) - 1), ast.Load())

    def _called(self, function, without_arrays):
        """The callee of a call; attributes as they are if no argument can be an array."""
        if isinstance(function, ast.Name):
            return self._named(function)
        if isinstance(function, ast.Attribute):
            return function if without_arrays else self._attribute(function)
        return function if isinstance(function, ast.Lambda) else self._seen(function)

    def _named(self, function):
        how = self._scope.find(function.id)
        if how in ({"def"}, {"class"}) or self._is_builtin(function.id) or function.id.startswith(("@", PREFIX)):
            return function
        place = self._site("f")
        other = ast.Call(_name(SEE), [_name(function.id), _name(self._place), place.slice], [])
        known = ast.Compare(_name(function.id), [ast.Is()], [place])
        return _at(function, ast.IfExp(known, _name(function.id), other))

    def _attribute(self, function):
        path, owner = [function.attr], function.value
        while isinstance(owner, ast.Attribute):
            path.append(owner.attr)
            owner = owner.value
        if isinstance(owner, _LITERALS) and len(path) == 1:
            return function
        if any(name.startswith("__") for name in path):
            # Names that classes change.
            return self._seen(function)
        if isinstance(owner, ast.Name) and (owner.id.startswith(("@", PREFIX)) or self._is_builtin(owner.id)):
            return function
        lasting = isinstance(owner, ast.Name) and self._scope.find(owner.id) & _LASTING
        if not lasting:
            path, owner = path[:1], function.value
        place = self._site("f" if lasting else ".")
        again = _name(owner.id) if isinstance(owner, ast.Name) else owner
        made = ast.Call(_name(OWNER), [again, ast.Constant(tuple(reversed(path))), _name(self._place), place.slice], [])
        if lasting:
            made = ast.IfExp(ast.Compare(_name(owner.id), [ast.Is()], [place]), _name(owner.id), made)
        elif isinstance(owner, ast.Name):
            made = self._of_known_class(owner, place, made)
        inner = function
        while inner.value is not owner:
            inner = inner.value
        inner.value = _at(owner, made)
        return function


def _imports_others(node):
    """Is it an import of a module that is none of Python's own library and NumPy?"""
    if isinstance(node, ast.ImportFrom):
        names = [node.module or ""] if not node.level else []
    else:
        names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
    packages = {name.partition(".")[0] for name in names}
    return bool(packages - sys.stdlib_module_names - {"numpy", "bh"})


def _is_constant(node):
    """Is it text or a number, or a tuple of these?"""
    if isinstance(node, ast.UnaryOp):
        return _is_constant(node.operand)
    return isinstance(node, (ast.Constant, ast.JoinedStr)) or isinstance(node, ast.Tuple) and all(map(_is_constant, node.elts))


def _is_self(node):
    """Is it the object of a method, which is of a class of the program?"""
    return isinstance(node, ast.Name) and node.id == "self"


def _name(name):
    return ast.Name(name, ast.Load())


def _at(place, made):
    """The nodes that stand for one, at its place."""
    for node in ast.walk(made):
        if not hasattr(node, "lineno"):
            ast.copy_location(node, place)
    return made


def rewrite(tree, place=SITES):
    """Writes the calls of a module's tree, which begins with what they need. `place` is the name of its sites."""
    calls = _Calls(tree, place)
    calls.visit(tree)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if not calls.sites and not names & {SEE, ANSWERING}:
        return tree
    at = 0
    while at < len(tree.body) and _comes_first(tree.body[at], at):
        at += 1
    alias = lambda name: ast.alias(name.removeprefix(PREFIX), name)
    used = [name for name in (ANSWERING, ASSIGNED, OWNER, SEE, SUBSCRIPTED) if name in names]
    made = [
        *([ast.ImportFrom("builtins", [alias(TYPE)], 0)] if TYPE in names else []),
        ast.ImportFrom("bh._numpy.foreign", [alias(name) for name in (SITES, *used)], 0),
        ast.Assign([ast.Name(place, ast.Store())], ast.Call(_name(SITES), [ast.Constant("".join(calls.sites))], [])),
    ]
    for statement in made:
        for node in ast.walk(statement):
            node.lineno = node.end_lineno = tree.body[at].lineno if at < len(tree.body) else 1
            node.col_offset = node.end_col_offset = 0
    tree.body[at:at] = made
    return tree


def _comes_first(statement, at):
    """Is a statement the text of a module, or an import that has to come first?"""
    if isinstance(statement, ast.Expr):
        return at == 0 and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


class Cells:
    """Rewrites the trees of IPython's cells, whose names share one scope."""

    def __init__(self):
        self._count = 0

    def visit(self, tree):
        self._count += 1
        return rewrite(tree, f"{SITES}{self._count}") if isinstance(tree, ast.Module) else tree
