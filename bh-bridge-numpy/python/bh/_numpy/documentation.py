"""Help at the prompt: functions that are NumPy's by name have NumPy's documentation, with what bh adds at its end."""

import types

HEADING = "In bh"

# Functions that do something else than NumPy's of the same name.
_OTHERS = {"info"}


def show_parameters(function, original):
    """Gives a function the parameters that NumPy documents; `_own` is a function with its own parameters."""
    behind = getattr(original, "__wrapped__", None)
    if getattr(behind, "__text_signature__", None):
        # A function in C behind NumPy's dispatcher.
        function._own, function.__wrapped__ = getattr(function, "__wrapped__", function), behind
        return
    if not isinstance(function, types.FunctionType):
        return
    told, text = (getattr(original, name, None) for name in ("__signature__", "__text_signature__"))
    if isinstance(original, type) or not (told or text):
        return
    own = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    own.__kwdefaults__ = function.__kwdefaults__
    function._own = getattr(function, "__wrapped__", own)
    if told:
        function.__signature__ = told
    if text:
        function.__text_signature__ = text


def inherit(function, original):
    """Gives a function of this package the documentation of NumPy's, once; other objects keep theirs."""
    theirs, own = getattr(original, "__doc__", None), getattr(function, "__doc__", None) or ""
    if not isinstance(function, types.FunctionType) or function.__name__ in _OTHERS or not theirs or theirs == own or f"{HEADING}\n" in own:
        return
    # NumPy's text is indented as its last line is; readers of the text remove that, which is too slow to do here.
    indent = theirs[theirs.rfind("\n") + 1 :]
    indent = indent if indent.isspace() else ""
    notes = f"\n{indent}{HEADING}\n{indent}{'-' * len(HEADING)}\n{indent}{own}\n{indent}" if own else ""
    function.__doc__ = theirs.rstrip() + "\n" + notes
