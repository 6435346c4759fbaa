"""Tracebacks that nothing has caught: the program's frames without bh's."""

import os
import subprocess
import sys
import traceback

import pytest

import bh as np
from bh._tools import tracebacks
from conftest import LIMIT

SHAPES = "import {} as np\n\n\ndef added():\n    return np.ones((3, 4)) + np.ones(10)\n\n\nadded()\n"


def failed(tmp_path, text, *options, **environment):
    """The output of a script that ends with an error."""
    script = tmp_path / "main.py"
    script.write_text(text)
    command = [sys.executable, *options, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, timeout=LIMIT)
    assert done.returncode == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize("name, options", [("bh", ()), ("numpy", ("-m", "bh"))])
def test_a_script_shows_its_own_lines_as_with_numpy(tmp_path, name, options):
    assert failed(tmp_path, SHAPES.format(name), *options) == failed(tmp_path, SHAPES.format("numpy"))


def test_the_environment_asks_for_all_frames(tmp_path):
    shown = failed(tmp_path, "import bh as np\nnp.flip(np.ones(3), 1)\n", BH_TRACEBACK="full")
    assert os.path.join("bh", "_functions", "arrangement.py") in shown and shown.endswith("dimension 1\n")


def test_threads_show_their_own_lines(tmp_path):
    text = "import threading\nimport bh as np\nthread = threading.Thread(target=lambda: np.concatenate([]))\nthread.start()\nthread.join()\nraise SystemExit(1)\n"
    shown = failed(tmp_path, text)
    assert f"{tmp_path / 'main.py'}\", line 3" in shown and f"{os.sep}bh{os.sep}_" not in shown


def trimmed(function):
    """The lines that show the error of a function."""
    try:
        function()
    except Exception as error:
        tracebacks.trim(error)
        return "".join(traceback.format_exception(error))
    raise AssertionError("it raises nothing")


def test_functions_that_bh_calls_are_shown():
    @np.jit
    def called(x):
        return x + np.ones(7)

    lines = trimmed(lambda: called(np.ones(3)))
    assert "return x + np.ones(7)" in lines and "recording.py" not in lines


def test_errors_that_bh_caught_are_left_out():
    lines = trimmed(lambda: np.einsum("ij,jk", np.ones((3, 4)), np.ones((3, 4))))
    assert "During handling" not in lines and lines.count("Error") == 1


def test_errors_that_the_program_caught_are_shown():
    def again():
        try:
            np.concatenate([])
        except ValueError:
            np.ones(3)[5]

    lines = trimmed(again)
    assert "During handling" in lines and "need at least one array" in lines and "fallback.py" not in lines


def test_an_error_without_lines_of_a_program_keeps_its_own():
    error = compile("1 / 0", tracebacks._BH + "any.py", "eval")
    try:
        exec(error, {})
    except ZeroDivisionError as caught:
        caught.__traceback__ = caught.__traceback__.tb_next
        before = caught.__traceback__
        tracebacks.trim(caught)
        assert caught.__traceback__ is before


CELLS = [
    "import bh as np",
    "a = np.arange(100_000)\nb = a[np.arange(100_000) * 2]",
    "print(b.sum())",
    "np.ones((3, 4)) + np.ones(10)",
    "np.doctor(watch=True)\nx = np.ones(100_000)\nfor i in range(20):\n    x *= 2\n    print(x[:2])",
    "print(np.doctor())",
    "y = x + 1",
    "z = y * 2\nprint(np.explain())",
]
SESSION = f"""
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance(colors="NoColor")
for cell in {CELLS}:
    shell.run_cell(cell, store_history=True)
"""


def test_cells_show_their_own_lines_and_name_those_of_other_cells(tmp_path):
    pytest.importorskip("IPython")
    command = [sys.executable, "-c", SESSION]
    shown = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=os.environ | {"HOME": str(tmp_path)}, timeout=LIMIT).stdout
    assert "size 100000 (recorded at Cell In[2], line 2)" in shown and "----> 1 np.ones((3, 4)) + np.ones(10)" in shown
    assert f"{os.sep}bh{os.sep}_" not in shown and "ipython-input" not in shown
    assert "Cell In[5], line 5: reads in a loop, 20 times" in shown
    assert "(Cell In[7], line 1)" in shown and "(Cell In[8], line 1)" in shown


# Calls in a plain script that other packages refuse, and the line that the note says.
REFUSED = {
    "torch.sum(x)": "Write: torch.sum(torch.as_tensor(x))",
    "torch.nn.functional.relu(x * 2 - 1)": "Write: torch.nn.functional.relu(torch.as_tensor(x * 2 - 1))",
    "torch.nn.Linear(4, 1)(x)": "Write: torch.nn.Linear(4, 1)(torch.as_tensor(x))",
    "pyarrow.compute.add(x, 1)": "Write: pyarrow.compute.add(pyarrow.array(x), 1)",
    "pyarrow.Tensor.from_numpy(x)": "or write: pyarrow.Tensor.from_numpy(numpy.asarray(x))",
    "pyarrow.array([x, x])": "or write: pyarrow.array([numpy.asarray(x), numpy.asarray(x)])",
    "h5py.File('a.h5', 'w').create_dataset('x', data=x).write_direct(np.ones(4))": "or write: h5py.File('a.h5', 'w').create_dataset('x', data=x).write_direct(numpy.asarray(np.ones(4)))",
    "jax.numpy.sum(x)": "Write: jax.numpy.sum(jax.numpy.asarray(x))",
    "pykdtree.kdtree.KDTree(x.reshape(2, 2))": "or write: pykdtree.kdtree.KDTree(numpy.asarray(x.reshape(2, 2)))",
    "sep.Background(np.outer(x, x)[:, ::2])": "or write: sep.Background(numpy.asarray(np.outer(x, x)[:, ::2]))",
}


@pytest.mark.parametrize("call", REFUSED)
def test_errors_of_other_packages_name_the_line_to_write(tmp_path, monkeypatch, call):
    package = call.partition(".")[0]
    pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    modules = {"pyarrow": "pyarrow.compute", "jax": "jax.numpy", "pykdtree": "pykdtree.kdtree"}
    shown = failed(tmp_path, f"import bh as np\nimport {modules.get(package, package)}\nx = np.arange(4.0)\n{call}\n").strip()
    assert shown.endswith(REFUSED[call]), shown


def test_errors_of_memory_say_what_to_do(tmp_path):
    text = "import bh as np\nx = np.ones((1000, 4000), np.float32)\nprint(np.sort(x + 1, axis=0)[0])\n"
    shown = failed(tmp_path, text, BH_MEMORY_LIMIT="10MiB")
    assert "main.py:2" in shown
    note = shown.strip().splitlines()[-1]
    assert note.startswith("bh: the operation needs an array of float32 with shape (1000, 4000), 15.26 MiB, at once. Arrays take ")
    assert "may take 10 MiB (BH_MEMORY_LIMIT)" in note and note.endswith("(bh.stream), or set a higher limit.")
