"""`python -m bh --report` and `--live`, and `bh.live()`: one page with the script's kernels, lines and findings."""

import json
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from conftest import LIMIT

PAGE = Path(__file__).resolve().parents[2] / "bh-report/src/page/page.js"

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
    found = {finding["what"]: finding.get("place") for finding in data["findings"]}
    assert found["reads in a loop, 20 times"].endswith("main.py:7")
    assert found["element loop, 20 times"].endswith("main.py:9")
    assert max(level[2] for level in data["memory"]) >= 8 * 200_001
    assert data["timeline"]["rows"] and data["counters"][0]["ve-cpu.kernels"] > 0


def test_a_failing_script_still_gets_its_page_and_keeps_its_exit_status(tmp_path):
    done, data = reported(tmp_path, "import numpy as np\nprint(np.ones(10000).sum())\nraise SystemExit(3)\n", "--profile")
    assert done.returncode == 3
    assert "exit status 3" in data["failure"]
    assert "ve-cpu" in done.stderr


def test_a_page_that_cannot_be_written_is_an_error_before_the_script_runs(tmp_path):
    script = tmp_path / "main.py"
    script.write_text("print('it runs')\n")
    for page, reason in ((tmp_path / "nowhere" / "page.html", "there is no folder"), (tmp_path, "it is a folder")):
        command = [sys.executable, "-m", "bh", "--report", str(page), str(script)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 2 and f"error: --report {page}: {reason}" in done.stderr and not done.stdout


@pytest.mark.parametrize("form", ["profile", "doctor"])
def test_findings_are_counted_once_beside_other_options(tmp_path, form):
    done, data = reported(tmp_path, SCRIPT, f"--{form}")
    assert "element loop, 20 times" in {finding["what"] for finding in data["findings"]}, done.stderr


LONG = """
import sys
import numpy as np

x = np.linspace(0, 1, 200_001)
while float((np.sqrt(x) * x).sum()) > 0:
    if open(sys.argv[1]).read() == "end":
        break
"""


def asked(address, path=""):
    with urllib.request.urlopen(address + path, timeout=LIMIT) as answer:
        return answer.read().decode()


def until(address, holds):
    """The data of a page when this holds of it."""
    while True:
        data = json.loads(asked(address, "/data"))
        if holds(data):
            return data


def at_end(address, word):
    """The answer that an open page gets when the script ends."""
    with urllib.request.urlopen(address + "/end", timeout=LIMIT) as answer:
        word.write_text("end")
        return json.load(answer)


def test_the_page_is_served_while_the_script_runs_and_shows_its_end(tmp_path):
    script, word = tmp_path / "main.py", tmp_path / "word"
    script.write_text(LONG)
    word.write_text("go on")
    command = [sys.executable, "-m", "bh", "--live", str(script), str(word)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        address = process.stderr.readline().removeprefix("watch: ").strip()
        data = until(address, lambda data: data.get("kernels"))
        assert data["running"] and any("sqrt" in kernel["operations"] for kernel in data["kernels"])
        assert "watch();" in asked(address)
        with pytest.raises(urllib.error.HTTPError):
            asked(address[:-4] + "0000")
        data = at_end(address, word)
        assert not data["running"] and data["failure"] is None and data["roof"]["bytes"] > 0
        assert process.wait(LIMIT) == 0, process.stderr.read()


LONG_BATCH = """
import sys
import numpy as np

x = np.linspace(0, 1, 2_000_001)
while open(sys.argv[1]).read() != "end":
    y = x
    for step in range(400):
        y = np.sqrt(y) + step
    assert float(y.sum()) > 0
"""


def test_the_page_shows_how_far_a_long_batch_is(tmp_path):
    script, word = tmp_path / "main.py", tmp_path / "word"
    script.write_text(LONG_BATCH)
    word.write_text("go on")
    command = [sys.executable, "-m", "bh", "--stack", "cpu-plain", "--live", str(script), str(word)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        address = process.stderr.readline().removeprefix("watch: ").strip()
        batch = until(address, lambda data: data.get("batch"))["batch"]
        assert batch["kernels"] > 100 and 0 <= batch["done"] <= batch["kernels"]
        data = at_end(address, word)
        assert not data["running"] and data["batch"] is None
        assert process.wait(LIMIT) == 0, process.stderr.read()


WATCHED = """
import bh

watching = bh.live()
assert bh.live() is watching and watching.address in watching._repr_html_()
import json, os, urllib.request
assert "BH_TRACE" not in os.environ
assert float(bh.sqrt(bh.arange(100_000.0)).sum()) > 0
while True:
    data = json.load(urllib.request.urlopen(watching.address + "/data"))
    if any("sqrt" in kernel["operations"] for kernel in data.get("kernels", ())):
        break
print("seen")
"""


def test_a_process_shows_itself():
    done = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True, timeout=LIMIT)
    assert done.stdout == "seen\n", done.stderr


def test_a_process_that_has_arrays_is_too_late_to_show_itself():
    late = "import bh\nbh.ones(3).sum()\nbh.live()"
    done = subprocess.run([sys.executable, "-c", late], capture_output=True, text=True, timeout=LIMIT)
    assert "before the first array" in done.stderr


FINDINGS = """
const said = [];
globalThis.document = { querySelector: () => ({ append: (part) => said.push(part) }), createElement: () => ({ append(text) { this.text = text; } }) };
for (const running of [true, false]) showFindings([], running);
console.log(said.map((part) => part.text).join("|"));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node.js")
def test_the_page_of_a_running_program_does_not_say_that_nothing_was_found():
    done = subprocess.run(["node", "-e", PAGE.read_text() + FINDINGS], capture_output=True, text=True, timeout=LIMIT)
    assert done.stdout == "The doctor's findings follow when the program has ended.|Nothing found that slows the program down.\n", done.stderr


TITLES = """
const kernel = (...lines) => titleOf({ label: "sqrt, add", lines });
const line = { place: "/home/a/main.py:2", text: "y = np.sqrt(x) + 1" };
console.log([kernel(), kernel({ place: "main.c:4", text: null }), kernel(line), kernel(line, { place: "/home/a/main.py:3", text: "z = y * 2" })].join("|"));
console.log([counted(1, "run"), counted(1200, "run")].join("|"));
const own = { "recorder.record_ns": 5e8, "filter.own_ns": 1e8, "fuser.own_ns": 2e8, "ve-cpu.own_ns": 3e9, "opencl#2.own_ns": 1e9, "ve-cpu.kernels": 7 };
console.log(partsOf(own, 6, false).map(([name, value]) => `${name} ${value.toFixed(1)}`).join("|"));
console.log(partsOf(own, 6, true).length);
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node.js")
def test_the_page_names_kernels_by_their_lines_and_parts_the_wall_clock():
    done = subprocess.run(["node", "-e", PAGE.read_text() + TITLES], capture_output=True, text=True, timeout=LIMIT)
    assert done.stdout == "sqrt, add|sqrt, add|main.py:2: y = np.sqrt(x) + 1|main.py:2: y = np.sqrt(x) + 1 and 1 more line\n1 run|1.20 K runs\nrecording 0.5|planning 0.3|engines 4.0|program, Python 1.2\n0\n", done.stderr
