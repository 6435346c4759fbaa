"""Reads the statements of a function: its syntax tree becomes a program of few kinds of statements."""

import ast
import inspect

from ... import _native
from . import source
from .expressions import Expressions
from .ir import Assign, Block, Const, Count, Function, If, Leave, Loop, Store, Unsupported, goes_on
from .names import Names, Static, is_array, lifted

# Calls in calls of functions of the program.
_DEEPEST = 40


class Scope:
    """The names of one call of a function. `around`: the call in which the function was defined, if it was defined in one."""

    def __init__(self, function, tree, prefix, label, around=None):
        self.function, self.tree, self.prefix, self.label, self.around = function, tree, prefix, label, around
        # What the function assigns is its own, everywhere in it.
        self.own = set(source.parameters(tree)) | set(_names_of(tree.body if isinstance(tree.body, list) else [tree.body]))
        # Of names that had a value: None for numbers, else tuples of such, or what is known.
        self.forms = {}
        # The same of what it returns, once that was read.
        self.result = _NOTHING
        # The labels that `break` and `continue` go to.
        self.loops = []


_NOTHING = object()


def _names_of(nodes):
    """The names that statements assign, without those of functions in them."""
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef):
            yield node.name
        elif not isinstance(node, ast.Lambda):
            yield from _names_of(ast.iter_child_nodes(node))


class Local:
    """A function that is defined in the function that is read."""

    def __init__(self, tree, scope):
        self.tree, self.scope, self.__name__ = tree, scope, getattr(tree, "name", "<lambda>")


class Reader(Expressions):
    """Reads a function and what it calls."""

    def __init__(self, names, writes=False):
        self.names, self.arrays, self.tables, self._writes = names, {}, {}, writes
        self.scope, self.out, self._serial, self._locals, self._running = None, [], 0, {}, []

    def fresh(self, stem):
        """A new name."""
        self._serial += 1
        return f"{stem}{self._serial}"

    def emit(self, statement):
        self.out.append(statement)

    def assign(self, target, value, line):
        self.emit(Assign(target, "copy", (value,), line))

    def captured(self, work):
        """The statements that this work writes."""
        before, self.out = self.out, []
        try:
            work()
            return self.out
        finally:
            self.out = before

    # Functions

    def call(self, function, bind, line):
        """Reads a call of a function of the program; `bind` gives its parameters their values. Returns its result."""
        if len(self._running) >= _DEEPEST or function in self._running:
            raise Unsupported(f"'{function.__name__}' calls itself", line)
        outer, around = self.scope, getattr(function, "scope", None)
        try:
            tree = function.tree if around else source.tree_of(function)
            prefix = self.fresh("f") + "_" if outer else "v_"
            scope = Scope(around.function if around else function, tree, prefix, self.fresh("return"), around)
        except Unsupported as reason:
            raise Unsupported(f"'{function.__name__}': {reason}", line) from None
        self.scope = scope
        self._running.append(function)
        try:
            bind(scope)
            body = [ast.Return(tree.body, lineno=tree.body.lineno)] if isinstance(tree, ast.Lambda) else tree.body
            statements = self.captured(lambda: self.statements(body))
            self._check_end(scope, statements)
            self.emit(Block(scope.label, statements, tree.lineno))
            return self._named(scope.result, f"{scope.prefix}result")
        except Unsupported as reason:
            if outer is None or str(reason).startswith("in '"):
                raise
            raise Unsupported(f"in '{function.__name__}', {reason}") from None
        finally:
            self.scope = outer
            self._running.pop()

    def _check_end(self, scope, statements):
        """Fails where a function may end without the result that it has elsewhere; one that writes needs none."""
        name, line = scope.function.__name__, scope.tree.lineno
        ends = goes_on(statements)
        if scope.result is _NOTHING and ends and self._writes:
            scope.result = ()
        if ends and scope.result != ():
            raise Unsupported(f"'{name}' may end without a result", line)
        if scope.result is _NOTHING:
            raise Unsupported(f"'{name}' never ends", line)

    def called(self, function, args, keywords, line):
        """The result of a call with values as operands."""
        try:
            bound = _signature(function).bind(*args, **keywords)
        except TypeError as reason:
            raise Unsupported(f"'{function.__name__}': {reason}", line) from None

        def bind(scope):
            for name, parameter in bound.signature.parameters.items():
                value = bound.arguments[name] if name in bound.arguments else lifted(parameter.default)
                self.store(scope, name, value, line)

        return self.call(function, bind, line)

    # Names

    def store(self, scope, name, value, line):
        """Gives a name of a call a value."""
        form = _form(value)
        if scope.forms.setdefault(name, form) != form:
            raise Unsupported(f"'{name}' is a tuple or a function here and something else elsewhere", line)
        self._store(f"{scope.prefix}{name}", value, line)

    def _store(self, target, value, line):
        if type(value) is tuple:
            for place, part in enumerate(value):
                self._store(f"{target}_{place}", part, line)
        elif type(value) is not Static:
            self.assign(target, value, line)

    def _read_FunctionDef(self, node):
        if node.decorator_list:
            raise Unsupported("a function with decorators in a function", node.lineno)
        self.store(self.scope, node.name, Static(self.local(node)), node.lineno)

    def local(self, node):
        """The function that a definition in the function that is read gives."""
        return self._locals.setdefault((node, self.scope), Local(node, self.scope))

    # Statements

    def statements(self, nodes):
        for node in nodes:
            read = getattr(self, f"_read_{type(node).__name__}", None)
            if read is None:
                raise Unsupported(f"'{type(node).__name__.lower()}' is not understood", node.lineno)
            read(node)
            if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
                # What follows is never reached.
                return

    def _read_Pass(self, node):
        pass

    def _read_Expr(self, node):
        if isinstance(node.value, ast.Call) and self._writes:
            self.expression(node.value)
        elif not isinstance(node.value, ast.Constant):
            raise Unsupported("an expression whose value is not used", node.lineno)

    def _read_Assign(self, node):
        value = self.expression(node.value)
        for target in node.targets:
            self._assign_to(target, value)

    def _read_AnnAssign(self, node):
        if node.value is not None:
            self._assign_to(node.target, self.expression(node.value))

    def _read_AugAssign(self, node):
        if isinstance(node.target, ast.Subscript) and isinstance(node.op, (ast.Add, ast.Sub)):
            value = self.expression(node.value)
            value = value if isinstance(node.op, ast.Add) else self.operation("negative", (value,), node.lineno)
            self._store_element(node.target, value, True)
            return
        if not isinstance(node.target, ast.Name):
            raise Unsupported("an assignment to what is no variable", node.lineno)
        before = self.expression(ast.Name(node.target.id, ast.Load(), lineno=node.lineno))
        self._assign_to(node.target, self.binary(node.op, before, self.expression(node.value), node.lineno))

    def _assign_to(self, target, value):
        line = target.lineno
        if isinstance(target, ast.Name):
            self.store(self.scope, target.id, value, line)
        elif isinstance(target, (ast.Tuple, ast.List)):
            if type(value) is not tuple or len(value) != len(target.elts):
                raise Unsupported(f"{len(target.elts)} variables for another number of values", line)
            # All values are there before a variable changes.
            value = [self._kept(part, line) for part in value]
            for part, inner in zip(target.elts, value):
                self._assign_to(part, inner)
        elif isinstance(target, ast.Subscript):
            self._store_element(target, value, False)
        else:
            raise Unsupported("an assignment to what is no variable", line)

    def _store_element(self, target, value, adds):
        array, line = self.expression(target.value), target.lineno
        if not self._writes or not is_array(array) or type(array.value) is not _native.ndarray:
            raise Unsupported("an assignment to an element of what is no array of bh, or not in bh.parallel", line)
        key = self.expression(target.slice)
        key = tuple(self.number(part, line) for part in (key if type(key) is tuple else (key,)))
        self.emit(Store(self.table(array, key, line), key, self.number(value, line), adds, line))

    def _kept(self, value, line):
        if type(value) is tuple:
            return tuple(self._kept(part, line) for part in value)
        return value if type(value) in (Static, Const) else self.operation("copy", (value,), line)

    def _read_Return(self, node):
        if node.value is None and not self._writes:
            raise Unsupported("a return without a value", node.lineno)
        value = self.expression(node.value) if node.value is not None else ()
        form = _form(value)
        if self.scope.result is _NOTHING:
            self.scope.result = form
        if self.scope.result != form or type(value) is Static:
            raise Unsupported("a result of another kind than numbers, or than elsewhere in the function", node.lineno)
        self._store(f"{self.scope.prefix}result", value, node.lineno)
        self.emit(Leave(self.scope.label, node.lineno))

    def _read_If(self, node):
        condition = self.truth(self.expression(node.test), node.lineno)
        known = self.known(condition)
        if known is not None:
            self.statements(node.body if known else node.orelse)
            return
        then, orelse = (self.captured(lambda part=part: self.statements(part)) for part in (node.body, node.orelse))
        self.emit(If(condition, then, orelse, node.lineno))

    def _read_While(self, node):
        def turn():
            condition = self.truth(self.expression(node.test), node.lineno)
            known = self.known(condition)
            if known is None:
                self.emit(If(condition, [], [Leave(ended, node.lineno)], node.lineno))
            elif not known:
                self.emit(Leave(ended, node.lineno))
                return
            self._body(node, broken)

        broken, ended = self.fresh("broken"), self.fresh("ended")
        loop = Block(ended, [Loop(self.captured(turn), node.lineno)], node.lineno)
        self._with_else(node, loop, broken)

    def _read_For(self, node):
        broken = self.fresh("broken")
        bounds = self._range(node.iter)
        if bounds is None:
            items = self.expression(node.iter)
            if type(items) is not tuple:
                raise Unsupported("'for' over what is neither a range nor a tuple", node.lineno)
            turns = self.captured(lambda: [self._turn(node, item, broken) for item in items])
            self._with_else(node, Block(self.fresh("ended"), turns, node.lineno), broken)
            return
        index = self.fresh("i")
        body = self.captured(lambda: self._turn(node, self.variable(index), broken))
        self._with_else(node, Count(index, *bounds, body, node.lineno), broken)

    def _turn(self, node, value, broken):
        self._assign_to(node.target, value)
        self._body(node, broken)

    def _range(self, node):
        """The bounds of a call of `range`, or None."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
            return None
        if getattr(self.expression(node.func), "value", None) is not range:
            return None
        bounds = [self._whole(self.expression(arg), node.lineno) for arg in node.args]
        if not 1 <= len(bounds) <= 3:
            raise Unsupported(f"'range' with {len(bounds)} arguments", node.lineno)
        bounds = [Const(0), *bounds] if len(bounds) == 1 else bounds
        start, stop, step = bounds if len(bounds) == 3 else (*bounds, Const(1))
        if step == Const(0):
            raise Unsupported("a range with step 0", node.lineno)
        return start, stop, step

    def _whole(self, value, line):
        if type(value) is Const and not isinstance(value.value, int):
            raise Unsupported("a range has whole numbers as bounds", line)
        return self.number(value, line)

    def _body(self, node, broken):
        """The statements of a loop."""
        again = self.fresh("again")
        self.scope.loops.append((broken, again))
        statements = self.captured(lambda: self.statements(node.body))
        self.scope.loops.pop()
        self.emit(Block(again, statements, node.lineno))

    def _with_else(self, node, loop, broken):
        """A loop and what follows it where it is not broken off."""
        orelse = self.captured(lambda: self.statements(node.orelse))
        self.emit(Block(broken, [loop, *orelse], node.lineno))

    def _read_Break(self, node):
        self.emit(Leave(self.scope.loops[-1][0], node.lineno))

    def _read_Continue(self, node):
        self.emit(Leave(self.scope.loops[-1][1], node.lineno))


def _form(value):
    """The form of a value: None for a number."""
    if type(value) is tuple:
        return tuple(map(_form, value))
    return value if type(value) is Static else None


def _signature(function):
    """The parameters of a function of the program, or of one that is defined in such."""
    if not isinstance(function, Local):
        return inspect.signature(function)
    if function.tree.args.defaults or any(function.tree.args.kw_defaults):
        raise Unsupported("default arguments of a function in a function", function.tree.lineno)
    kinds = inspect.Parameter
    arguments = function.tree.args
    listed = [(arguments.posonlyargs, kinds.POSITIONAL_ONLY), (arguments.args, kinds.POSITIONAL_OR_KEYWORD), (arguments.kwonlyargs, kinds.KEYWORD_ONLY)]
    return inspect.Signature([kinds(one.arg, kind) for many, kind in listed for one in many])


def read(function, given, indices=False):
    """The program of a function, of whose parameters those named are given; and what its names mean. Functions of indices may
    write to elements of arrays."""
    names = Names(function)
    reader = Reader(names, indices)

    def bind(scope):
        parameters = inspect.signature(function).parameters
        for name in given:
            scope.forms[name] = None
        for name, parameter in parameters.items():
            if name not in given:
                reader.store(scope, name, lifted(parameter.default), scope.tree.lineno)

    try:
        result = reader.call(function, bind, None)
        values = result if type(result) is tuple else (result,)
        if not values and not indices or any(type(value) is tuple for value in values):
            raise Unsupported("a result of tuples of tuples")
    except RecursionError:
        raise Unsupported("expressions nested too deeply") from None
    results = [value.name for value in values]
    parameters = [f"v_{name}" for name in given]
    single, line = type(result) is not tuple, function.__code__.co_firstlineno
    program = Function(function.__name__, parameters, reader.out, results, single, reader.tables, line, indices)
    names.forget()
    return program, names
