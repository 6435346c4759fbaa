"""Programs in Python that pages show: each runs, and prints the numbers that its comments promise."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LIMIT

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Sessions, with `>>>`, are tested page by page elsewhere.
PROGRAMS = {
    f"{page.name} {number}": text
    for page in PAGES
    for number, text in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.S | re.M), 1)
    if ">>> " not in text
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_pages(name, tmp_path):
    # Parts of programs have bh; what is large on the page is small here.
    text = "import bh\n" + PROGRAMS[name].replace("(4000, 5000)", "(40, 50)").replace("10_000_001", "1_000_001")
    done = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    for promised in re.findall(r"^print.*#.*?(\d+\.\d+)$", text, re.M):
        assert promised in done.stdout, (promised, done.stdout)


def test_pages_have_programs():
    assert len(PROGRAMS) >= 8
