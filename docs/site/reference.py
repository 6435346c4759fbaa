"""The lists from which Sphinx makes a page for each function of the package, and what NumPy's docstrings become on these pages."""

import importlib
import re

import bh
import numpy
from bh._numpy import registry
from bh._numpy.documentation import HEADING
from bh._tools import coverage

# The lists of names that have no module of their own, by kind.
KINDS = {
    registry.UNIVERSAL: "Universal functions",
    registry.ADAPTED: "Functions that NumPy composes of others",
    registry.BRACKETS: "Arrays by brackets",
    registry.QUESTION: "Types, shapes and options",
    registry.HOST: "Files and texts",
    registry.TEXT: "Texts of arrays",
    registry.LEFT: "Functions that run in NumPy, with a warning",
}
NUMPYS = "https://numpy.org/doc/stable/reference/generated"
# Sections of NumPy's docstrings that lead to places which these pages do not have.
LEFT_OUT = {"See Also", "References", "Notes"}
HOW = {
    "native": "The stack runs it",
    "on the host": "NumPy runs it on the host, because it needs no stack",
    "falls back": "NumPy runs it: bh counts the call, and a warning names its line",
}


def _subject(row):
    """The heading of the list in which a name stands."""
    if row.kind != registry.OWN:
        return KINDS.get(row.kind)
    return importlib.import_module(f"bh.{row.module}").__doc__.splitlines()[0].rstrip(".")


def _is_function(module):
    """Whether a name is a function of a module, in this version of NumPy."""
    return lambda name: callable(value := getattr(module, name, None)) and not isinstance(value, type) and name != "test"


def _lists():
    """Headings, modules and names, in the order of the pages."""
    found = {}
    for name in filter(_is_function(bh), registry.FUNCTIONS):
        row = registry.FUNCTIONS[name]
        # Functions about the stack have their page among bh's own functions.
        if (subject := _subject(row)) and row.module != "_tools.runtime":
            found.setdefault(subject, []).append(name)
    yield from ((subject, "bh", names) for subject, names in sorted(found.items(), key=lambda one: -len(one[1])))
    for part, rows in ((bh.linalg, registry.LINALG), (bh.fft, registry.FFT)):
        yield part.__name__, part.__name__, list(filter(_is_function(part), rows))


def write(folder):
    """Writes the page of lists into a folder, with a directive for each."""
    folder.mkdir(exist_ok=True)
    title = "NumPy's functions"
    lines = [title, "=" * len(title), "", f"bh has these functions of NumPy {numpy.__version__}. The page of each says how bh runs it, and what differs from NumPy.", ""]
    for subject, module, names in _lists():
        lines += [subject, "-" * len(subject), "", f".. currentmodule:: {module}", ".. autosummary::", "   :toctree: names", "   :nosignatures:", "   :template: function", ""]
        lines += [f"   {name}" for name in names] + [""]
    text = "\n".join(lines)
    page = folder / "index.rst"
    if not page.exists() or page.read_text() != text:
        page.write_text(text)


def _sections(lines):
    """The parts of a docstring in NumPy's form: pairs of a heading, "" for the first one, and the lines below it."""
    found = [("", [])]
    for line, below in zip(lines, [*lines[1:], ""]):
        if re.fullmatch("[A-Z][A-Za-z ]*", line) and re.fullmatch("-{3,}", below):
            found.append((line, []))
        elif not (found[-1][1] == [] and found[-1][0] and re.fullmatch("-{3,}", line)):
            found[-1][1].append(line)
    return found


def _plain(lines):
    """Lines without references into NumPy's own pages."""
    text = re.sub(r":(?:ref|doc|term|any|py:\w+):`([^`<]*?)\s*(?:<[^`]*>)?`", r"\1", "\n".join(lines))
    return re.sub(r"(?<!`)`~(?:numpy\.)?", "`", re.sub(r"[ \t]*\[\w+\]_", "", text)).split("\n")


def _without_bars(lines):
    """Lines whose bars are no names of texts, unless they define such names."""
    if any(line.lstrip().startswith(".. |") for line in lines):
        return lines
    return [line if line.lstrip().startswith((">>>", "|", "+")) else line.replace("|", r"\|") for line in lines]


def _without_plots(lines):
    """Lines without directives that draw with NumPy's extensions."""
    kept, inside = [], None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if inside is not None and (not line.strip() or indent > inside):
            continue
        inside = indent if re.match(r"\s*\.\. (plot|only|index|legacy)::", line) else None
        if inside is None:
            kept.append(line)
    return kept


def _without_signature(lines):
    """The lines below those at the begin that repeat the parameters, as in docstrings of functions in C."""
    if not (lines and re.match(r"\w+\(", lines[0])):
        return lines
    last = next(number for number, line in enumerate(lines) if line.rstrip().endswith(")"))
    return _without_signature(lines[last + 1 :])


def adapt(_, what, name, value, options, lines):
    """For Sphinx: of a function of NumPy's name the docstring begins with what bh does, and leaves out what leads nowhere here."""
    package, _, function = name.rpartition(".")
    module = "numpy" + package.removeprefix("bh")
    if package not in ("bh", "bh.linalg", "bh.fft") or function not in (registry.FUNCTIONS if package == "bh" else {**registry.LINALG, **registry.FFT}):
        return
    sections = dict(_sections(_without_signature(lines)))
    own = sections.pop(HEADING, [])
    kind, remark = coverage.kind_of(module, function)
    how = HOW.get(kind, kind) + (f" ({remark})." if remark else ".")
    adapted = [*sections.pop("", []), f".. admonition:: {HEADING}", "", f"   {how}", "", *(f"   {line}" for line in own), ""]
    adapted += [f"   `numpy.{(package + '.').removeprefix('bh').removeprefix('.')}{function} in NumPy's reference <{NUMPYS}/{module}.{function}.html>`__", ""]
    for heading, text in sections.items():
        if heading not in LEFT_OUT:
            adapted += [heading, "-" * len(heading), *(line for line in text if not re.fullmatch(r"\s*-{4,}\s*", line)), ""]
    lines[:] = _without_bars(_plain(_without_plots(adapted)))
