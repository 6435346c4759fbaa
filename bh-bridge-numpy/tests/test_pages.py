"""Programs on pages: each in Python runs and prints the promised output, and claims about others hold."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from bh.__main__ import _parser
from conftest import LIMIT

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Sessions, with `>>>`, are tested page by page elsewhere.
# By page and number, each with the block `output` that follows it, or "".
PROGRAMS = {
    f"{page.name} {number}": found
    for page in PAGES
    for number, found in enumerate(re.findall(r"^```python\n(.*?)^```\n(?:\n?```output\n(.*?)^```)?", page.read_text(), re.S | re.M), 1)
    if ">>> " not in found[0]
}


def run(text, directory):
    """The output of a program; its file is `first.py` of a directory, which is left out of names of files."""
    (directory / "first.py").write_text(text)
    done = subprocess.run([sys.executable, directory / "first.py"], cwd=directory, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    return done.stdout.replace(f"{directory}/", "")


@pytest.mark.parametrize("name", [name for name, (_, output) in PROGRAMS.items() if not output])
def test_programs_of_pages(name, tmp_path):
    # Parts of programs have bh; what is large on the page is small here.
    text = "import bh\n" + PROGRAMS[name][0].replace("(4000, 5000)", "(40, 50)").replace("10_000_001", "1_000_001")
    printed = run(text, tmp_path)
    for promised in re.findall(r"^print.*#.*?(\d+\.\d+)$", text, re.M):
        assert promised in printed, (promised, printed)


@pytest.mark.parametrize("name", [name for name, (_, output) in PROGRAMS.items() if output])
def test_output_of_pages(name, tmp_path):
    # Lines of dots stand for any lines, as in doctests.
    text, output = PROGRAMS[name]
    pattern = re.escape(output).replace(r"\.\.\.", ".*")
    printed = run(text, tmp_path)
    assert re.fullmatch(pattern, printed, re.S), printed


# Claims about programs in other languages, or of the gallery: the same operations from Python, and what is counted.
COUNTED = """
import bh as np

{text}
counters = np.profile()
import json
print(json.dumps(counters))
"""


def counted(text, directory):
    """The counters of a program."""
    return json.loads(run(COUNTED.format(text=text), directory).splitlines()[-1])


def test_the_sum_of_the_readme_stores_no_array(tmp_path):
    counters = counted("x = np.linspace(0.0, 1.0, 1000001)\ny = x * x\ndel x\ntotal = y.sum()\ndel y\nfloat(total)", tmp_path)
    assert counters["memory.allocations"] == 1


@pytest.mark.parametrize(
    "name, stored, size",
    [
        # The vectors between bodies, and a power of their lengths.
        ("nbody", 4, 900 * 900),
        # The result alone.
        ("image_filters", 1, 1494 * 1494),
    ],
)
def test_programs_of_the_gallery_store_few_arrays(name, stored, size, tmp_path):
    module = ast.parse((ROOT / f"docs/site/programs/{name}.py").read_text())
    (function,) = (part for part in module.body if isinstance(part, ast.FunctionDef))
    counters = counted(f"{ast.unparse(function)}\nnp.wait({function.name}())", tmp_path)
    assert stored <= counters["node.peak_bytes"] / (8 * size) < stored + 0.1


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "docs/site/programs").glob("*.py")))
def test_programs_of_the_gallery_are_explained(name, tmp_path):
    site = str(ROOT / "docs/site")
    text = f"import sys\nsys.path.append({site!r})\nimport beside, bh\nresult = beside.program({name!r}, bh)()\nprint(bh.explain())"
    printed = run(text, tmp_path)
    assert re.match(r"\d+ kernels? for |nothing new", printed), printed[:200]


def test_the_first_program_has_the_kernels_that_its_comment_counts(tmp_path):
    text = PROGRAMS["index.md 1"][0]
    assert "as four kernels" in text
    assert run(text.replace("print(", "mean = z.mean()\nprint(np.explain(), "), tmp_path).startswith("4 kernels for ")


def test_each_template_of_the_kit_has_what_checks_it():
    for makefile in (ROOT / "docs/engine-kit").glob("*/Makefile"):
        assert re.search(r"^check:", makefile.read_text(), re.M), makefile


# Variables between processes of bh itself.
INTERNAL = {"BH_REPORT_DIRECTORY", "BH_CHECK_RECORD"}


def test_the_page_of_variables_has_those_that_the_sources_read():
    calls = r"""(?:variable|variable_os|environ\.get|environ\.pop|getenv)\(\s*"(BH_(?!TEST_)[A-Z_]+)\""""
    read = set()
    for source in [*ROOT.glob("bh-*/src/**/*.rs"), *(ROOT / "bh-bridge-numpy/python").rglob("*.py"), ROOT / "setup.py"]:
        if "tests" not in source.parts and source.stem != "tests":
            read.update(re.findall(calls, source.read_text()))
    assert len(read) > 12
    page = (ROOT / "docs/environment.md").read_text()
    assert sorted(name for name in read - INTERNAL if f"| `{name}` |" not in page) == []


def test_the_page_of_options_has_those_of_the_command_line():
    page = (ROOT / "docs/environment.md").read_text().partition("## Variables")[0]
    options = {option for action in _parser()._actions for option in action.option_strings} - {"-h", "--help"}
    assert sorted(option for option in options if f"`{option}" not in page) == []


def test_pages_have_programs():
    assert len(PROGRAMS) >= 8
