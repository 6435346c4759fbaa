"""`python -m bh --report`: one page with the script's kernels, lines and findings."""

import json
import subprocess
import sys

import pytest

SCRIPT = """
import numpy as np

x = np.linspace(0, 1, 200_001)
for step in range(20):
    y = np.sqrt(x) + step
    assert float((y * y).sum()) > 0
for at in range(20):
    x[at]
"""


def reported(tmp_path, text, *options):
    script, page = tmp_path / "main.py", tmp_path / "page.html"
    script.write_text(text)
    command = [sys.executable, "-m", "bh", *options, "--report", str(page), str(script)]
    done = subprocess.run(command, capture_output=True, text=True)
    if not page.exists():
        return done, None
    return done, json.loads(page.read_text().rsplit("show(", 1)[1].split(");\n</script>")[0])


def test_the_page_has_kernels_with_their_lines_and_the_doctors_findings(tmp_path):
    done, data = reported(tmp_path, SCRIPT, "--stack", "cpu")
    assert done.returncode == 0, done.stderr
    assert data["program"].endswith("main.py") and data["failure"] is None
    fused = [kernel for kernel in data["kernels"] if "sqrt" in kernel["operations"] and "add_reduce" in kernel["operations"]]
    assert fused, [kernel["operations"] for kernel in data["kernels"]]
    assert sum(kernel["count"] for kernel in fused) == 20
    assert {"y = np.sqrt(x) + step", "assert float((y * y).sum()) > 0"} <= {line["text"] for kernel in fused for line in kernel["lines"]}
    assert all(kernel["seconds"] > 0 and kernel["bytes"] >= 8 * 200_001 for kernel in fused)
    assert "sqrt" in fused[0]["code"]
    assert any("sqrt" in batch["text"] for batch in data["fusion"]["batches"])
    found = {finding["what"]: finding["place"] for finding in data["findings"]}
    assert found["reads in a loop, 20 times"].endswith("main.py:7")
    assert found["element loop, 20 times"].endswith("main.py:9")
    assert max(level[2] for level in data["memory"]) >= 8 * 200_001
    assert data["timeline"]["rows"] and data["counters"][0]["ve-cpu.kernels"] > 0


def test_a_failing_script_still_gets_its_page_and_keeps_its_exit_status(tmp_path):
    done, data = reported(tmp_path, "import numpy as np\nprint(np.ones(10000).sum())\nraise SystemExit(3)\n", "--profile")
    assert done.returncode == 3
    assert "exit status 3" in data["failure"]
    assert "ve-cpu" in done.stderr


def test_a_page_that_cannot_be_written_is_an_error(tmp_path):
    script = tmp_path / "main.py"
    script.write_text("import numpy as np\nprint(np.ones(10).sum())\n")
    command = [sys.executable, "-m", "bh", "--report", str(tmp_path / "nowhere" / "page.html"), str(script)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0 and "nowhere" in done.stderr


@pytest.mark.parametrize("form", ["profile", "doctor"])
def test_findings_are_counted_once_beside_other_options(tmp_path, form):
    done, data = reported(tmp_path, SCRIPT, f"--{form}")
    assert "element loop, 20 times" in {finding["what"] for finding in data["findings"]}, done.stderr
