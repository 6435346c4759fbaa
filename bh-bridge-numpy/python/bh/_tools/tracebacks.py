"""Errors that nothing has caught, in scripts, threads and IPython: their tracebacks show the program's frames without bh's, unless
`BH_TRACEBACK` is `full`, and errors of other packages that got bh's arrays have a note with the line to write."""

import os
import re
import sys
import threading
import types

import numpy

# Where the modules of bh and NumPy are, as their code objects name it.
_BH = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_NUMPY = os.path.dirname(os.path.abspath(numpy.__file__)) + os.sep
_RUNPY = "<frozen runpy>"

# A file and a line in a text, such as the line that recorded a failed operation.
_PLACE = re.compile(r"([^\s()]+):(\d+)")


def _shown(traceback):
    """The entries of a traceback outside of bh. Code that bh calls counts as bh's if it is NumPy's or runs modules."""
    shown, inside = [], False
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if file.startswith(_BH):
            inside = True
            if all(entry.tb_frame.f_code.co_filename == _RUNPY for entry in shown):
                # They began `python -m bh`.
                shown.clear()
        elif not (inside and (file.startswith(_NUMPY) or file == _RUNPY)):
            inside = False
            shown.append(traceback)
        traceback = traceback.tb_next
    return shown


def _joined(entries):
    """A traceback of these entries, or None."""
    traceback = None
    for entry in reversed(entries):
        traceback = types.TracebackType(traceback, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return traceback


def trim(error):
    """Takes bh's frames out of the traceback of an error and of those that led to it, and leaves out those that bh itself has caught."""
    todo, seen = [error], set()
    while todo:
        error = todo.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        context = error.__context__
        if context is not None and context.__traceback__ is not None and not _shown(context.__traceback__):
            error.__suppress_context__ = True
        if shown := _shown(error.__traceback__):
            error.__traceback__ = _joined(shown)
        todo += [error.__cause__, context, *getattr(error, "exceptions", ())]


def _prepare(error):
    """Makes an error what the program's user should see."""
    try:
        from .._numpy import advice

        advice.advise(error)
    except Exception:
        # The program's own error counts.
        pass
    if os.environ.get("BH_TRACEBACK") != "full":
        trim(error)


def _in_scripts(before):
    def hook(kind, error, traceback):
        if error is not None:
            _prepare(error)
            traceback = error.__traceback__
        before(kind, error, traceback)

    return hook


def _in_threads(before):
    def hook(ended):
        if ended.exc_value is not None:
            _prepare(ended.exc_value)
            ended = threading.ExceptHookArgs((ended.exc_type, ended.exc_value, ended.exc_value.__traceback__, ended.thread))
        before(ended)

    return hook


def _shell():
    """The program's IPython, or None."""
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None


def with_cells(text):
    """A text whose lines of files are named as IPython does where they are of its cells: `Cell In[4], line 2`."""
    shell = _shell()
    if shell is None:
        return text

    def named(found):
        cell = shell.compile.format_code_name(found[1])
        return f"{' '.join(cell)}, line {found[2]}" if cell else found[0]

    return _PLACE.sub(named, text)


def _in_cells(shell, kind, error, traceback, tb_offset=None):
    """Shows an error of a cell."""
    _prepare(error)
    if error.args and isinstance(error.args[0], str):
        error.args = (with_cells(error.args[0]), *error.args[1:])
    shell.showtraceback((kind, error, error.__traceback__), tb_offset=tb_offset)


def install():
    """Has uncaught errors shown so."""
    sys.excepthook = _in_scripts(sys.excepthook)
    threading.excepthook = _in_threads(threading.excepthook)
    shell = _shell()
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((Exception,), _in_cells)
