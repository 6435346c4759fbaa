"""Reads objects with attributes and methods: each attribute is a variable, and a method is chosen by an object's class."""

import ast
import dataclasses
import inspect
import types

from .forms import LOST, MISSING, NONE, Number, Objects, View, described, is_instance, method_of
from .ir import Const, Mistyped, Unsupported
from .names import Static

_BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow",
    ast.LShift: "lshift", ast.RShift: "rshift", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.MatMult: "matmul",
}  # fmt: skip
_COMPARISONS = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
UNARY = {ast.USub: "__neg__", ast.UAdd: "__pos__", ast.Invert: "__invert__"}


class Bound:
    """A method with the object whose it is."""

    def __init__(self, function, value):
        self.function, self.value, self.__name__ = function, value, function.__name__


class Above:
    """`super()` in a method."""

    def __init__(self, cls, value):
        self.cls, self.value = cls, value


class Things:
    """The part of a reader that reads objects."""

    def is_object(self, value):
        """Has the value attributes of its own?"""
        return type(value) is View and type(value.form) is Objects or type(value) is Static and value is not MISSING and is_instance(value.value)

    # Attributes and methods

    def attribute(self, value, name, line):
        """An attribute of an object, or what a property of this name gives."""
        if type(value) is Static:
            return self._attribute_of_known(value, name, line)
        view = View(self.form(value), value.name, value.key, value.steps, value.fresh, value.copied)
        classes = [cls for cls in view.form.classes() if name in view.form.attributes(cls) or method_of(cls, name) is not None]
        if not classes:
            return self.missing(f"{described(view.form)} has no attribute '{name}'", line)
        return self.by_class(view, classes, lambda one, cls: self._attribute(one, cls, name, line), line)

    def _attribute_of_known(self, value, name, line):
        written = method_of(type(value.value), name)
        if isinstance(written, property):
            return self.called(self.names.attribute(type(value.value), name).value.fget, (value,), {}, line)
        if isinstance(written, types.FunctionType) and name not in getattr(value.value, "__dict__", {}):
            self.names.attribute(type(value.value), name)
            return Static(Bound(written, value))
        if not hasattr(value.value, name):
            raise Unsupported(f"attribute '{name}'", line)
        return self.names.attribute(value.value, name)

    def _attribute(self, view, cls, name, line):
        written = method_of(cls, name)
        if isinstance(written, property):
            return self.called(self.names.attribute(cls, name).value.fget, (view,), {}, line)
        if name not in view.form.attributes(cls):
            found = self.names.attribute(cls, name)
            return Static(Bound(written, view)) if isinstance(written, types.FunctionType) else self._method_of_class(found, cls)
        place = self.part(view, cls, name)
        if place.form is LOST:
            raise Unsupported(f"attribute '{name}' is of one kind here and of another one elsewhere", line)
        value = self.value_at(place, copied=view.copied)
        return self.settled(value, line) if cls in self.facts.mutable or self._is_made(view) else value

    def _method_of_class(self, found, cls):
        value = getattr(found, "value", None)
        return Static(Bound(value.__func__, Static(cls))) if isinstance(value, types.MethodType) else found

    def method(self, value, name, args, keywords, line):
        """The result of a method, which the object's class decides."""
        if type(value) is Static:
            return self.result(self._attribute_of_known(value, name, line), args, keywords, line)
        view = View(self.form(value), value.name, value.key, value.steps, value.fresh, value.copied)
        classes = [cls for cls in view.form.classes() if name in view.form.attributes(cls) or method_of(cls, name) is not None]
        classes = [cls for cls in classes if cls is not NONE]
        if not classes:
            return self.missing(f"{described(view.form)} has no method '{name}'", line)
        return self.by_class(view, classes, lambda one, cls: self.result(self._attribute(one, cls, name, line), args, keywords, line), line)

    def has_method(self, value, name):
        """Has one of the classes of an object this method?"""
        if not self.is_object(value):
            return False
        classes = value.form.classes() if type(value) is View else [type(value.value)]
        return any(isinstance(method_of(cls, name), types.FunctionType) for cls in classes)

    def store_attribute(self, value, name, stored, line):
        """Gives an attribute of an object a value."""
        if value is MISSING:
            return
        if type(value) is not View or type(value.form) is not Objects:
            if type(value) is Static and is_instance(value.value):
                # It must not be called to see what it does, either.
                raise Mistyped(f"an assignment to attribute '{name}' of an object from outside of the function", line)
            raise Unsupported(f"an assignment to attribute '{name}' of a value that is no object", line)
        if value.copied:
            raise Unsupported(f"an assignment to attribute '{name}' of an object that is one of several", line)
        view = View(self.form(value), value.name, value.key, value.steps, value.fresh)
        classes = [cls for cls in view.form.classes() if cls is not NONE]
        if not classes:
            self.missing(f"None has no attribute '{name}'", line)
            return
        if len(classes) > 1:
            stored = self.settled(stored, line)
        self.by_class(view, classes, lambda one, cls: self._store_attribute(one, cls, name, stored, line), line)

    def _store_attribute(self, view, cls, name, stored, line):
        self.effects += 1
        written = method_of(cls, name)
        if isinstance(written, property):
            if written.fset is None:
                raise Unsupported(f"property '{name}' cannot be assigned to", line)
            return self.called(written.fset, (view, stored), {}, line)
        if not self._is_made(view):
            self.facts.changes(cls)
        self.owned(stored, line)
        place = self.part(view, cls, name)
        place.form = self.grown(place, stored, f"attribute '{name}'", line)
        self.put(place, stored, line)
        return Static(None)

    def _is_made(self, view):
        return view.name in self.making

    # Making objects

    def construct(self, cls, args, keywords, line):
        """A new object of a class of the program."""
        key = self.key("new", cls)
        view = View(Objects(((cls, ()),)), self.fresh("o"), key, fresh=True)
        self.facts.learn(key, view.form)
        self.facts.least(self.facts.depths, key, len(self.around))
        self.making.append(view.name)
        try:
            self._construct(cls, view, args, keywords, line)
        finally:
            self.making.remove(view.name)
        return View(self.form(view), view.name, key, fresh=True)

    def _construct(self, cls, view, args, keywords, line):
        if method_of(cls, "__new__") is not method_of(object, "__new__") and not issubclass(cls, tuple):
            raise Unsupported(f"class {cls.__name__} has a '__new__' of its own", line)
        # Methods of the class are of this function from now on.
        written = self.names.attribute(cls, "__new__" if issubclass(cls, tuple) else "__init__").value
        if issubclass(cls, tuple):
            parameters = [inspect.Parameter(one, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=cls._field_defaults.get(one, inspect.Parameter.empty)) for one in cls._fields]
            self._set_fields(cls, view, inspect.Signature(parameters), args, keywords, line)
        elif dataclasses.is_dataclass(cls) and written.__code__.co_filename == "<string>":
            parameters = inspect.signature(written).parameters
            self._set_fields(cls, view, inspect.Signature([*parameters.values()][1:]), args, keywords, line)
            if isinstance(method_of(cls, "__post_init__"), types.FunctionType):
                self.called(self.names.attribute(cls, "__post_init__").value, (view,), {}, line)
        elif isinstance(written, types.FunctionType):
            self.called(written, (view, *args), keywords, line)
        elif args or keywords:
            raise Unsupported(f"{cls.__name__}() takes no arguments", line)

    def _set_fields(self, cls, view, signature, args, keywords, line):
        """The attributes that a class gets without a function written for it."""
        try:
            bound = signature.bind(*args, **keywords)
        except TypeError as reason:
            raise Unsupported(f"'{cls.__name__}': {reason}", line) from None
        factories = {} if issubclass(cls, tuple) else {field.name: field.default_factory for field in dataclasses.fields(cls)}
        for name, parameter in signature.parameters.items():
            if name in bound.arguments:
                value = bound.arguments[name]
            elif factories.get(name, dataclasses.MISSING) is not dataclasses.MISSING:
                before, self.at = self.at, (*self.at, name)
                value = self.result(Static(factories[name]), (), {}, line)
                self.at = before
            else:
                value = self.lifted(parameter.default)
            self._store_attribute(view, cls, name, value, line)

    def above(self, line):
        """`super()`: the object of the method that is read, and the class that has the method."""
        names = [argument.arg for argument in self.scope.tree.args.args]
        code = getattr(self.scope.function, "__code__", None)
        if code is None or "__class__" not in code.co_freevars or not names:
            raise Unsupported("'super()' outside of a method", line)
        cls = self.scope.function.__closure__[code.co_freevars.index("__class__")].cell_contents
        return Static(Above(cls, self.scope.same[names[0]]))

    def of_above(self, above, name, line):
        """A method of the classes behind one."""
        view = above.value
        for cls in view.form.classes() if type(view) is View else [type(view.value)]:
            order = cls.__mro__
            for base in order[order.index(above.cls) + 1 :]:
                if isinstance(written := vars(base).get(name), types.FunctionType):
                    self.names.attribute(base, name)
                    return Static(Bound(written, view))
        if name == "__init__":
            return Static(_nothing)
        raise Unsupported(f"'super()' has no method '{name}'", line)

    # Operators, truth, and questions about classes

    def object_binary(self, sign, left, right, line):
        """An operator between objects, or an object and a number; None if no class has it."""
        name = _BINARY.get(type(sign))
        if name and self.has_method(left, f"__{name}__"):
            return self.method(left, f"__{name}__", (right,), {}, line)
        if name and self.has_method(right, f"__r{name}__"):
            return self.method(right, f"__r{name}__", (left,), {}, line)
        raise Unsupported(f"operator '{type(sign).__name__}' of {named(left)} and {named(right)}", line)

    def object_compared(self, sign, left, right, line):
        """A comparison with an object."""
        name = _COMPARISONS.get(type(sign))
        for one, other, method in ((left, right, name), (right, left, _MIRRORED.get(name))):
            written = self.is_object(one) and method_of(_classes(one)[0], f"__{method}__")
            if isinstance(written, types.FunctionType) and written.__code__.co_filename != "<string>":
                return self.method(one, f"__{method}__", (other,), {}, line)
        fields = [self.fields(value, line) for value in (left, right)]
        if name in ("eq", "ne") and None not in fields and _classes(left) == _classes(right):
            return self._comparison(sign, *fields, line)
        raise Unsupported(f"a comparison of {named(left)} and {named(right)}", line)

    def fields(self, value, line):
        """The attributes of a data class or a named tuple as a tuple; None for other objects."""
        if type(value) is not View or type(value.form) is not Objects:
            return None
        # None has no attributes where these are asked for.
        cls, *others = [cls for cls in value.form.classes() if cls is not NONE] or [NONE]
        if others:
            return None
        if issubclass(cls, tuple):
            names = cls._fields
        elif dataclasses.is_dataclass(cls):
            names = [field.name for field in dataclasses.fields(cls) if field.compare]
        else:
            return None
        return tuple(self.attribute(value, name, line) for name in names)

    def is_of(self, value, classes, line):
        """`isinstance`."""
        classes = tuple(one.value for one in classes) if type(classes) is tuple else classes.value
        if value is MISSING:
            return self.truth(MISSING, line)
        if type(value) is not View or type(value.form) is not Objects:
            if type(value) is not Static:
                raise Unsupported("'isinstance' of a number", line)
            return Const(isinstance(value.value, classes))
        return self.is_one_of(value, [cls for cls in self.form(value).classes() if issubclass(cls, classes)], line)

    def is_one_of(self, view, wanted, line):
        """Is an object of one of these classes?"""
        form = self.form(view)
        view = View(form, view.name, view.key, view.steps)
        if len(wanted) in (0, len(form.variants)):
            return Const(bool(wanted))
        result = Const(False)
        for cls in wanted:
            test = self.operation("equal", (self.tag(view), Const(self.facts.number(cls))), line)
            result = test if result == Const(False) else self.operation("either", (result, test), line)
        return result

    def object_truth(self, value, line):
        """The truth value of an object: None is false."""
        for name in ("__bool__", "__len__"):
            if self.has_method(value, name):
                return self.truth(self.method(value, name, (), {}, line), line)
        if type(value) is Static:
            return Const(True)
        number = self.plain(value)
        if number is not value:
            there = self.is_one_of(value, [Number], line)
            return self.operation("both", (there, self.truth(number, line)), line)
        return self.is_one_of(value, [cls for cls in self.form(value).classes() if cls is not NONE], line)


def _classes(value):
    return value.form.classes() if type(value) is View else [type(value.value)]


def named(value):
    return described(value.form) if type(value) is View else type(value.value).__name__ if type(value) is Static else "a tuple" if type(value) is tuple else "a number"


def _nothing():
    """Does nothing, as `object.__init__` does."""
