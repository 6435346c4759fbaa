"""Reads the statements of a function: its syntax tree becomes a program of few kinds of statements."""

import ast
import inspect

from ... import _native
from . import source
from .expressions import Expressions
from .forms import MISSING, NONE, Conflict, Facts, Objects, View, form_of, unsupported
from .ir import Assign, Block, Const, Function, If, Leave, Store, TooLarge, Unsupported, Var, goes_on
from .lists import ListsOf
from .names import Names, Static, is_array, lifted
from .objects import Things
from .places import Places
from .repeated import Loops
from .scopes import NOTHING, Local, Scope

# Calls in calls of functions of the program.
_DEEPEST = 40
# How often a function is read before the forms of its values are known to grow for ever.
_ROUNDS = 24
# The most operations and names of a function.
_LARGEST = 30_000


class Reader(Expressions, Loops, Things, ListsOf, Places):
    """Reads a function and what it calls."""

    def __init__(self, names, writes=False, facts=None):
        self.names, self.arrays, self.tables, self.writes = names, {}, {}, writes
        self.scope, self.out, self._serial, self._locals, self._running = None, [], 0, {}, []
        self.facts, self.gaps, self.at = facts or Facts(), [], None
        # The objects that are being made, the lists that loops go through and those whose items they have already, and how much was changed besides
        # variables.
        self.making, self.passed, self.frozen, self.effects = [], [], [], 0
        # The loops around: their most iterations, None if these depend on data, and lines. Least and greatest values of variables.
        self.around, self.bounds = [], {}
        # The variables of lists that have names, by these.
        self.rooms = {}
        # How often the current statements are written down.
        self.copies = 1
        # Tests of lengths around, the most items of lists that are appended to under such, and items that are appended to lists otherwise.
        self.guards, self.guarded, self.appended = [], {}, {}
        # Comprehensions as functions; the lists whose subscripts are tested, and the tests; was there an item of an empty list?
        self.comprehensions, self.labels, self.tests, self.empty = {}, {}, [], False

    def fresh(self, stem):
        """A new name."""
        self._serial += 1
        if self._serial > _LARGEST:
            raise TooLarge(f"more than {_LARGEST} operations, as it is read with the loops over tuples and lists and the calls in it")
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
        if len(self._running) >= _DEEPEST or any(function is one for one in self._running):
            raise Unsupported(f"'{function.__name__}' calls itself", line)
        outer, around = self.scope, getattr(function, "scope", None)
        try:
            tree = function.tree if around else source.tree_of(function)
            prefix = self.fresh("f") + "_" if outer else "v_"
            identity = (tree.lineno, tree.col_offset) if around else function.__code__
            path = (*outer.path, (self.at, identity)) if outer else ()
            scope = Scope(around.function if around else function, tree, prefix, self.fresh("return"), around, path)
        except Unsupported as reason:
            raise Unsupported(f"'{function.__name__}': {reason}", line) from None
        self.scope = scope
        self._running.append(function)
        try:
            bind(scope)
            body = [ast.copy_location(ast.Return(tree.body), tree.body)] if isinstance(tree, ast.Lambda) else tree.body
            statements = self.captured(lambda: self.statements(body))
            self._check_end(scope, statements)
            self.emit(Block(scope.label, statements, tree.lineno))
            return self.made(scope.result, f"{scope.prefix}result", (*scope.path, "return"), fresh=True)
        except Unsupported as reason:
            if outer is None or str(reason).startswith("in '"):
                raise
            raise Unsupported(f"in '{function.__name__}', {reason}") from None
        finally:
            self.scope = outer
            self._running.pop()

    def _check_end(self, scope, statements):
        """Fails where a function may end without the result that it has elsewhere; those that are called give None."""
        name, line = scope.function.__name__, scope.tree.lineno
        ends = goes_on(statements)
        if scope.result is NOTHING and ends and (self.writes or scope.path):
            scope.result = () if self.writes else Static(None)
        if type(scope.result) is Objects and ends:
            place = self._result(Static(None), line)
            statements += self.captured(lambda: self.put(place, Static(None), line))
        elif ends and not (scope.result == () or type(scope.result) is Static and scope.result.value is None):
            raise Unsupported(f"'{name}' may end without a result", line)
        if scope.result is NOTHING:
            raise Unsupported(f"'{name}' never ends", line)

    def called(self, function, args, keywords, line):
        """The result of a call with values as operands."""
        try:
            bound = _signature(function).bind(*args, **keywords)
        except TypeError as reason:
            raise Unsupported(f"'{function.__name__}': {reason}", line) from None

        def bind(scope):
            for name, parameter in bound.signature.parameters.items():
                self.bind(scope, name, bound.arguments[name] if name in bound.arguments else lifted(parameter.default), line)

        return self.call(function, bind, line)

    def bind(self, scope, name, value, line):
        """Gives a parameter its value: lists and objects are those of the caller."""
        has_view = lambda value: type(value) is View or type(value) is tuple and any(map(has_view, value))
        if scope.stored[name] or not (type(value) in (Const, Static) or has_view(value)):
            self.store(scope, name, value, line)
        else:
            scope.forms[name], scope.same[name] = form_of(value), value

    # Names

    def store(self, scope, name, value, line):
        """Gives a name of a call a value."""
        key = (*scope.path, name)
        try:
            form = self.facts.learn(key, form_of(value))
        except Conflict:
            raise unsupported(form_of(value), self.facts.forms[key], f"'{name}'", line) from None
        scope.forms[name] = form
        self.owned(value, line)
        self.facts.least(self.facts.depths, key, len(self.around))
        self.put(View(form, f"{scope.prefix}{name}", key), value, line)
        if scope.stored[name] == 1 and type(value) is Var and value.name in self.bounds:
            self.bounds[f"{scope.prefix}{name}"] = self.bounds[value.name]

    def grown(self, place, value, what, line):
        """The form of a part of an object or list that gets this value, too."""
        try:
            self.facts.grow(place, form_of(value))
        except Conflict:
            raise unsupported(form_of(value), self.facts.form(place), what, line) from None
        return self.facts.form(place)

    def lifted(self, value):
        return lifted(value)

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
            self.at = _place(node)
            read(node)
            if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
                # The statements after it are never reached.
                return

    def _read_Pass(self, node):
        pass

    def _read_Expr(self, node):
        if isinstance(node.value, ast.Call):
            self.expression(node.value)
        elif not isinstance(node.value, ast.Constant):
            raise Unsupported("an expression whose value is not used", node.lineno)

    def _read_Assign(self, node):
        if self._is_longer(node):
            # No other name has the list: it may be made longer in place.
            target = node.targets[0]
            self.method_of_list(self.expression(node.value.left), "extend", (self.expression(node.value.right),), node.lineno, target.id)
            return
        value = self.expression(node.value)
        for target in node.targets:
            self._assign_to(target, value)
        (target, *others), scope = node.targets, self.scope
        if type(value) is Const and not others and isinstance(target, ast.Name) and scope.stored[target.id] == 1 and id(node) in scope.first:
            # It has no other value, wherever it is read.
            scope.same[target.id] = value

    def _is_longer(self, node):
        """Does a list get its own items and some more?"""
        (target, *others), value = node.targets, node.value
        if others or not isinstance(target, ast.Name) or not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
            return False
        return isinstance(value.left, ast.Name) and value.left.id == target.id and self.is_list(self.glimpse(value.left))

    def _read_AnnAssign(self, node):
        if node.value is not None:
            self._assign_to(node.target, self.expression(node.value))

    def _read_AugAssign(self, node):
        target, line = node.target, node.lineno
        if isinstance(target, ast.Subscript):
            owner = self.expression(target.value)
            if is_array(owner):
                self._add_to_element(node, owner)
                return
            key = self.settled(self.expression(target.slice), line)
            value = self.binary(node.op, self.subscripted(owner, key, target), self.expression(node.value), line)
            self._store_at(owner, key, value, target)
        elif isinstance(target, ast.Attribute):
            owner = self.expression(target.value)
            value = self._updated(node.op, self.attribute_of(owner, target.attr, line), self.expression(node.value), line)
            if value is not None:
                self.store_attribute(owner, target.attr, value, line)
        else:
            before = self.expression(ast.copy_location(ast.Name(target.id, ast.Load()), target))
            value = self._updated(node.op, before, self.expression(node.value), line)
            if value is not None:
                self._assign_to(target, value)

    def _updated(self, sign, before, value, line):
        """The value of a variable after an operator in place; None where a list was changed in place."""
        if self.is_list(before) and isinstance(sign, ast.Add):
            self.method_of_list(before, "extend", (value,), line, "list")
            return None
        method = f"__i{type(sign).__name__.lower()}__"
        if self.has_method(before, method):
            raise Unsupported(f"'{method}' of an object", line)
        return self.binary(sign, before, value, line)

    def _add_to_element(self, node, array):
        if not isinstance(node.op, (ast.Add, ast.Sub)):
            raise Unsupported("an assignment to something that is no variable", node.lineno)
        key, value = self.expression(node.target.slice), self.expression(node.value)
        value = value if isinstance(node.op, ast.Add) else self.operation("negative", (value,), node.lineno)
        self._store_element(array, key, value, True, node.lineno)

    def _assign_to(self, target, value):
        line = target.lineno
        if isinstance(target, ast.Name):
            self.store(self.scope, target.id, value, line)
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = [MISSING] * len(target.elts) if value is MISSING else self.sequence(value, line)
            if values is None or len(values) != len(target.elts):
                raise Unsupported(f"{len(target.elts)} variables for another number of values", line)
            # All values are there before a variable changes.
            values = [self.settled(part, line) for part in values]
            for part, inner in zip(target.elts, values):
                self._assign_to(part, inner)
        elif isinstance(target, ast.Subscript):
            self._store_at(self.expression(target.value), self.expression(target.slice), value, target)
        elif isinstance(target, ast.Attribute):
            self.store_attribute(self.expression(target.value), target.attr, value, line)
        else:
            raise Unsupported("an assignment to something that is no variable", line)

    def _store_at(self, owner, key, value, target):
        """Gives an element of an array, an item of a list, or what an object makes of a subscript a value."""
        line = target.lineno
        if owner is MISSING:
            return
        if self.is_list(owner) and owner.copied and isinstance(target.value, ast.Subscript):
            # An item of one of several lists: that list is changed, and put back.
            several, place = self.expression(target.value.value), self.settled(self.expression(target.value.slice), line)
            one = self.item(several, place, line, _label(target.value.value))
            one.fresh, one.copied = True, False
            self.store_item(one, key, value, line)
            self._store_at(several, place, self.present(one), target.value)
        elif self.is_list(owner):
            self.store_item(owner, key, value, line, _label(target.value))
        elif self.has_method(owner, "__setitem__"):
            self.method(owner, "__setitem__", (key, value), {}, line)
        else:
            self._store_element(owner, key, value, False, line)

    def _store_element(self, array, key, value, adds, line):
        if not self.writes or not is_array(array) or type(array.value) is not _native.ndarray:
            raise Unsupported("an assignment to an element of a value that is no array of bh, or not in bh.parallel", line)
        key = tuple(self.number(part, line) for part in (key if type(key) is tuple else (key,)))
        self.emit(Store(self.table(array, key, line), key, self.number(value, line), adds, line))

    def _read_Return(self, node):
        if node.value is None and not self.writes and not self.scope.path:
            raise Unsupported("a return without a value", node.lineno)
        value = self.expression(node.value) if node.value is not None else () if self.writes else Static(None)
        if not self.scope.path:
            value = self._numbers(value, node.lineno)
        place = self._result(value, node.lineno)
        dies = lambda key: key[: len(self.scope.path)] == self.scope.path
        self.owned(self._freed(value, dies), node.lineno)
        self.put(place, value, node.lineno)
        self.emit(Leave(self.scope.label, node.lineno))

    def _numbers(self, value, line):
        """Results of the whole function: numbers; one that is None is an error when it is read."""
        if type(value) is tuple:
            return tuple(self._numbers(part, line) for part in value)
        number = self.plain(value)
        if number is value:
            return value
        absent = self.is_one_of(value, [NONE], line) if NONE in self.form(value).classes() else Const(False)
        return self.operation("add", (number, self.failing(self.operation("int", (absent,), line), "result_that_is_None", line)), line)

    def _result(self, value, line):
        """The place of the result of the function that is read."""
        key = (*self.scope.path, "return")
        try:
            self.scope.result = self.facts.learn(key, form_of(value))
        except Conflict:
            raise Unsupported("a result of another kind than numbers, or than elsewhere in the function", line) from None
        self.facts.least(self.facts.depths, key, len(self.around))
        return View(self.scope.result, f"{self.scope.prefix}result", key)

    def _freed(self, value, dies):
        """A value as one that has no other name, if the place that has it ends with the call."""
        if type(value) is tuple:
            return tuple(self._freed(part, dies) for part in value)
        if type(value) is not View or value.copied or not dies(value.key):
            return value
        return View(value.form, value.name, value.key, value.steps, fresh=True)

    def _read_If(self, node):
        condition = self.truth(self.expression(node.test), node.lineno)
        known = self.known(condition)
        if known is not None:
            self.statements(node.body if known else node.orelse)
            return
        then = self.captured(lambda: self._guarded(node.test, lambda: self.statements(node.body)))
        orelse = self.captured(lambda: self.statements(node.orelse))
        self.emit(If(condition, then, orelse, node.lineno))

    def _read_Break(self, node):
        self.emit(Leave(self.scope.loops[-1][0], node.lineno))

    def _read_Continue(self, node):
        self.emit(Leave(self.scope.loops[-1][1], node.lineno))


def _place(node):
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def _label(node):
    """The program's name of a list."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else "list"


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
    """The program of a function, of whose parameters those named are given; and what its names mean. A parameter may be a tuple of several numbers: its name
    and how many then. Functions of indices may write to elements of arrays. A function is read until the forms of its values no longer grow."""
    facts = Facts()
    for _ in range(_ROUNDS):
        facts.changed = False
        names = Names(function)
        reader = Reader(names, indices, facts)
        program = _read_once(reader, function, dict(one if type(one) is tuple else (one, None) for one in given))
        if not facts.changed and reader.empty and not facts.final:
            facts.final = True
        elif not facts.changed:
            break
    else:
        raise Unsupported("a list that gets ever longer: append where 'len(…)' is less than a constant")
    if reader.gaps:
        raise reader.gaps[0]
    names.forget()
    return program, names


def _read_once(reader, function, given):
    parts = {name: [f"v_{name}"] if count is None else [f"v_{name}_{at}" for at in range(count)] for name, count in given.items()}

    def bind(scope):
        for name, count in given.items():
            reader.facts.learn((name,), None if count is None else (None,) * count)
            scope.forms[name] = reader.facts.forms[name,]
        for name, parameter in inspect.signature(function).parameters.items():
            if name not in given:
                reader.store(scope, name, lifted(parameter.default), scope.tree.lineno)

    try:
        result = reader.call(function, bind, None)
    except RecursionError:
        raise Unsupported("expressions nested too deeply") from None
    form = form_of(result) if result is MISSING else reader.facts.forms.get(("return",), ())
    forms = form if type(form) is tuple else (form,)
    whole = all(one is None for one in forms) and (forms or reader.writes)
    if not whole and not (reader.facts.changed or reader.gaps):
        raise Unsupported("a result of tuples of tuples, or one that is no number")
    results = list(reader.leaves(form, "v_result")) if whole else []
    parameters, line = [name for names in parts.values() for name in names], function.__code__.co_firstlineno
    return Function(function.__name__, parameters, reader.out, results, type(form) is not tuple, reader.tables, line, reader.writes, reader.rooms)
