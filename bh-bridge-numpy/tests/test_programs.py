"""Plain NumPy programs on bh: the papers' programs give NumPy's checksums, and none of their work goes to NumPy."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import bh
from conftest import LIMIT

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = {
    "heat_equation": (30, 5), "black_scholes": (1000, 3), "shallow_water": (20, 3), "nbody": (20, 2), "leibnitz_pi": (1000, 2),
    "rosenbrock": (1000, 2), "stencil_27_point": (10, 2), "game_of_life": (20, 3), "gauss": (12, 2), "lu": (12, 2), "heat_steps": (30, 5),
    "monte_carlo_options": (1000, 2), "nbody_collisions": (30, 2), "mvt": (30, 2), "mri_fhd": (30, 2),
}  # fmt: skip


def run(*arguments, **environment):
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("name", PROGRAMS)
def test_papers_programs(name):
    script = ROOT / "benches" / name / "numpy_version.py"
    size, iterations = PROGRAMS[name]
    plain = json.loads(run(script, size, iterations, "f64").stdout)
    mine = json.loads(run("-m", "bh", script, size, iterations, "f64", BH_FALLBACK="error").stdout)
    numpy.testing.assert_allclose(mine["checksum"], plain["checksum"], rtol=1e-11)


def test_import_means_bh_in_own_modules_only(tmp_path):
    (tmp_path / "part.py").write_text("import numpy\nfrom numpy import sqrt\nimport numpy.linalg as la\nkind = type(sqrt(numpy.ones(2)))\n")
    (tmp_path / "main.py").write_text(
        "import sys\nimport numpy as np\nfrom numpy.random import default_rng\nimport part, numpy.linalg\n"
        "import numpy.lib.stride_tricks\n"
        "print(np.__name__, part.kind.__module__, type(default_rng(1).random(3)).__module__, part.la.__name__)\n"
        "print(sys.argv[1:], __name__, type(np.lib).__name__)\n"
    )
    lines = run("-m", "bh", tmp_path / "main.py", "a", "--b").stdout.splitlines()
    assert lines == ["bh bh bh bh.linalg", "['a', '--b'] __main__ module"]


def test_packages_run_as_programs(tmp_path):
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "__init__.py").write_text("import numpy as np\nname = np.__name__\n")
    (tmp_path / "whole" / "__main__.py").write_text("import numpy as np\nfrom whole import name\nprint(name, np.__name__, __name__)\n")
    assert run("-m", "bh", "-m", "whole", PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path])).stdout.split() == ["bh", "bh", "__main__"]


def test_installed_packages_that_are_run_or_named(tmp_path):
    installed = run("-c", "import site; print(site.getusersitepackages())", PYTHONUSERBASE=str(tmp_path)).stdout.strip()
    for name in ("tool", "other"):
        (Path(installed) / name).mkdir(parents=True)
        (Path(installed) / name / "__init__.py").write_text("import numpy as np\nname = np.__name__\n")
    (Path(installed) / "tool" / "__main__.py").write_text("import numpy as np, other\nfrom tool import name\nprint(name, np.__name__, other.name)\n")
    settings = {"PYTHONUSERBASE": str(tmp_path), "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), installed])}
    done = run("-m", "bh", "--profile", "-m", "tool", **settings)
    assert done.stdout.split() == ["bh", "bh", "numpy"]
    assert "NumPy stays NumPy in other; --with NAME changes that" in done.stderr
    assert run("-m", "bh", "--with", "other", "-m", "tool", **settings).stdout.split() == ["bh", "bh", "bh"]


@pytest.mark.parametrize("option", ["--with", "--views"])
@pytest.mark.parametrize("name", ["nosuchpkg", "nosuchpkg.part", ""])
def test_packages_that_are_not_there_are_an_error(tmp_path, option, name):
    (tmp_path / "main.py").write_text("print('ran')\n")
    command = [sys.executable, "-m", "bh", option, name, str(tmp_path / "main.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    assert f"{option}: there is no package named {name!r}" in done.stderr
    # Beside the script counts.
    (tmp_path / "near.py").write_text("")
    assert run("-m", "bh", option, "near", str(tmp_path / "main.py")).stdout == "ran\n"


def test_packages_that_look_at_the_class_get_numpys_views(tmp_path):
    installed = Path(run("-c", "import site; print(site.getusersitepackages())", PYTHONUSERBASE=str(tmp_path)).stdout.strip())
    (installed / "strict").mkdir(parents=True)
    (installed / "strict" / "__init__.py").write_text("from . import inner\n")
    (installed / "strict" / "inner.py").write_text(
        "import numpy\nclass Kept: pass\ndef doubled(x, more=()):\n    for a in (x, *more):\n        if type(a) is not numpy.ndarray:\n"
        "            raise TypeError('PyArray_Check')\n        a *= 2\n    return x[:1]\n"
    )
    (tmp_path / "main.py").write_text(
        "import numpy as np\nimport strict.inner\nfrom strict.inner import doubled, Kept\nx, y = np.arange(3000.0), np.ones(3)\n"
        "doubled(x)\nr = strict.inner.doubled(x, more=[y])\nx += 1\nprint(float(x[2]), float(y.sum()), type(r).__module__, isinstance(Kept(), Kept))\n"
    )
    settings = {"PYTHONUSERBASE": str(tmp_path), "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), str(installed)])}
    for options in ((), ("--views", "strict")):
        assert run("-m", "bh", *options, tmp_path / "main.py", **settings).stdout == "9.0 6.0 bh True\n"
    # Without that, the package meets bh's arrays.
    command = [sys.executable, "-m", "bh", str(tmp_path / "main.py")]
    plain = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **settings, "BH_SEE": "off"})
    assert plain.returncode != 0 and "TypeError: PyArray_Check" in plain.stderr
    # A package in another place is the program's own, unless it is named.
    settings["PYTHONUSERBASE"] = str(tmp_path / "other")
    other = tmp_path / "elsewhere"
    shutil.copytree(installed, other)
    settings["PYTHONPATH"] = os.pathsep.join([*filter(None, sys.path), str(other)])
    assert run("-m", "bh", "--views", "strict", tmp_path / "main.py", **settings).stdout == "9.0 6.0 bh True\n"


def test_waiting_for_one_array():
    a = bh.arange(1000.0)
    b = bh.sqrt(a)
    bh.wait(b, bh.zeros(0), a.sum(), 3)
    assert float(b[4]) == 2.0


def test_profile_and_doctor(tmp_path):
    (tmp_path / "main.py").write_text(
        "import numpy as np\na = np.arange(30_000.0)\nfor i in range(30):\n    a *= 1.5\n    a[i] = i\n    float(a[i])\nnp.frexp(a)\n"
    )
    errors = run("-m", "bh", "--profile", "--doctor", tmp_path / "main.py", BH_FALLBACK="silent").stderr
    assert "main.py:5: element loop" in errors and "main.py:6: element loop, 30 times" in errors
    assert "fallback.numpy.frexp" in errors and "instructions" in errors


def test_the_doctor_of_a_plain_program_says_whether_it_watches(tmp_path):
    loop = "for i in range(30):\n    a *= 1.5\n    float(a[i])\n"
    (tmp_path / "main.py").write_text(f"import bh as np\na = np.arange(30_000.0)\n{loop}print(np.doctor())\nnp.doctor(watch=True)\n{loop}print(np.doctor())\n")
    before, after = run(tmp_path / "main.py").stdout.split("bh doctor:")[1:]
    assert "not watched" in before and "bh.doctor(watch=True)" in before
    assert "main.py:10: element loop, 30 times" in after and "not watched" not in after


LOOPS = """
import sys
import bh as np
import numpy
np.doctor(watch=True)
a = np.arange(30_001.0)
for step in range(20):
    a = a * 0.9
    if abs(a).max() < 0:
        break
    print(a + step, file=sys.stderr)
    b = numpy.asarray(a + 1)
while a.max() > 1:
    a = a / 1.4
for step in range(20):
    if (a + step).sum() > 0:
        a = a + 1
for step in range(20):
    assert (a + step).all()
for step in range(20):
    a = a + 1
    float(a[step])
c = np.arange(30_001.0) + 1
for step in range(20):
    numpy.add(numpy.asarray(c), 1)
    float(c[step])
print(np.doctor())
"""


def test_the_doctor_names_what_reads_in_loops(tmp_path):
    (tmp_path / "main.py").write_text(LOOPS)
    found = dict(line.partition("main.py:")[2].split(": ", 1) for line in run(tmp_path / "main.py").stdout.splitlines()[1:])
    found = {int(line): text for line, text in found.items()}
    assert set(found) == {9, 11, 12, 13, 16, 19, 22}, found
    assert found[9].startswith("branch in a loop, 20 times") and found[9].endswith("test every tenth step only, as `if step % 10 == 0 and …`")
    assert found[11].startswith("prints in a loop, 20 times") and found[12].startswith("conversions in a loop, 20 times")
    assert found[13].startswith("branch in a loop") and "every tenth" in found[13]
    assert found[16].endswith("or choose with where()") and found[19].endswith("test after the loop")
    assert found[22].startswith("element loop, 20 times: each access is an operation, and its value is read at once")


def test_loops_over_data_at_hand_are_no_finding(tmp_path):
    (tmp_path / "main.py").write_text("import numpy as np\na = np.arange(30.0)\nfor i in range(30):\n    a[i] = float(a[i]) + 1\nprint(a.sum())\n")
    done = run("-m", "bh", "--profile", "--doctor", tmp_path / "main.py")
    assert done.stdout == "465.0\n" and "nothing found" in done.stderr and "immediate" in done.stderr


def test_fallbacks_warn_once_for_each_line_and_may_be_errors(tmp_path):
    (tmp_path / "main.py").write_text("import numpy as np\na = np.arange(4.0)\nfor _ in range(3):\n    np.frexp(a)\n")
    done = run("-m", "bh", tmp_path / "main.py")
    assert done.stderr.count("FallbackWarning") == 1 and "main.py:4" in done.stderr
    command = [sys.executable, "-m", "bh", str(tmp_path / "main.py")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "BH_FALLBACK": "error"})
    assert done.returncode != 0 and "FallbackError" in done.stderr and "numpy.frexp" in done.stderr


def test_fork_threads_and_exit(tmp_path):
    (tmp_path / "main.py").write_text(
        "import multiprocessing, threading\nimport bh as np\na = np.arange(1000.0)\nb = a + 1\n"
        "def work(q): q.put(float((a * 2).sum()))\n"
        "q = multiprocessing.get_context('fork').SimpleQueue()\n"
        "p = multiprocessing.get_context('fork').Process(target=work, args=(q,))\np.start()\nprint(q.get())\np.join()\n"
        "out = []\nts = [threading.Thread(target=lambda: out.append(float((b + i).sum()))) for i in range(4)]\n"
        "[t.start() for t in ts]\n[t.join() for t in ts]\nprint(len(out))\nc = a * 3  # pending at exit\n"
    )
    assert run(tmp_path / "main.py").stdout.split() == ["999000.0", "4"]


def test_explain_shows_kernels_with_lines(tmp_path):
    (tmp_path / "main.py").write_text("import bh\na = bh.arange(20_000.0)\nb = (a * 3 + 1).sum()\ne = bh.explain(b)\nprint(e)\nassert e._repr_svg_().startswith('<svg')\n")
    text = run(tmp_path / "main.py").stdout
    assert "add_reduce" in text and "kernel 0" in text and "main.py:3" in text


LIBRARIES = os.environ.get("BH_TEST_LIBRARIES", "")


@pytest.mark.skipif(
    not shutil.which("mpirun.openmpi") or not (Path(LIBRARIES) / "libbh_cluster_openmpi.so").is_file(),
    reason="there is no Open MPI, or BH_TEST_LIBRARIES has no library for it",
)
@pytest.mark.parametrize("arguments", [("-m", "bh", "--stack", "cluster"), ()])
def test_ranks_of_a_launcher(tmp_path, arguments):
    (tmp_path / "main.py").write_text(
        f"import {'numpy' if arguments else 'bh'} as np, sys\na = np.arange(100_000.0)\nnp.save('x.npy', a * 2)\n"
        "print(float((np.load('x.npy') + 1).sum()), type(a).__module__)\nsys.exit(7)\n"
    )
    environment = {"BH_STACK": "cluster", "BH_LIBRARY_PATH": LIBRARIES, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = ["mpirun.openmpi", "--oversubscribe", "-n", "2", sys.executable, *arguments, "main.py"]
    # Open MPI's launcher may wait for itself for ever when all of its ranks have ended.
    for last in (False, False, True):
        try:
            done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=LIMIT, cwd=tmp_path)
            break
        except subprocess.TimeoutExpired:
            if last:
                raise
    assert done.stdout.split() == [str(float(sum(range(100_000)) * 2 + 100_000)), "bh"], done.stderr
    assert done.returncode == 7


def test_cells_of_a_notebook(tmp_path):
    testing = pytest.importorskip("IPython.testing.globalipapp")
    shell = testing.start_ipython() or testing.get_ipython()
    shell.run_line_magic("load_ext", "bh")
    shell.run_cell("import numpy as np")
    shell.run_cell_magic("bh", "", "import numpy\nfrom numpy import sqrt\nx = np.ones(3) + numpy.arange(3)\nroot = sqrt(x)\n")
    names = shell.user_ns
    assert type(names["x"]) is type(names["root"]) is bh.ndarray and names["np"] is numpy
    assert "<table>" in bh.profile()._repr_html_()


OPTIONS = """
import bh
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
bh.load_ipython_extension(shell)
shell.run_cell_magic("bh", "--profile --doctor", "import numpy as np\\na = np.arange(3000.0)\\nfor i in range(30):\\n    a *= 1.5\\n    float(a[i])")
try:
    shell.run_cell_magic("bh", "--report", "pass")
except UsageError as error:
    print(error)
"""


def test_cells_take_options():
    pytest.importorskip("IPython")
    printed = run("-c", OPTIONS).stdout
    assert "instructions" in printed and "reads in a loop, 30 times" in printed
    assert printed.endswith("%%bh takes --profile and --doctor, and not --report\n")


def test_without_the_native_library_numpy_does_everything(tmp_path):
    shutil.copytree(Path(bh.__file__).parent, tmp_path / "bh", ignore=shutil.ignore_patterns("*.so"))
    (tmp_path / "main.py").write_text(
        "import numpy as np\nimport bh\nx = np.arange(6.0)\nwith bh.stack('opencl'):\n    y = (x * 2).sum()\n"
        "bh.flush()\nprint(y, type(x).__module__, np.__name__, bh.stack([x, x]).shape, np.linalg.det(np.eye(2)))\n"
        "print(bh.vectorize(lambda v: v + 1)(x)[0], bh.parallel(lambda i: i * 2, 3), list(bh.stream(np.sum, [[1.0, 2.0]])))\n"
        "print(bh.fold(lambda a, b: a * b + b, 1.0, np.ones((2, 3)), axis=1), [int(v) for v in bh.fold(lambda a, b: (a[0] + b[0], b[1]), (0, 0), 1, np.arange(4))])\n"
        "print(list(bh.source([x, y]) >> bh.task(np.sum, stack='opencl') >> bh.task(float)))\n"
        "from bh.backends import backend\nwork = backend('bh')\nthree = work.view(work.empty(3, np.dtype(float)), 0, (3,), (1,))\n"
        "work.method('arange', three)\nprint(three)\n"
    )
    # The other packages stay where they are found.
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = run("-m", "bh", "--doctor", "--profile", tmp_path / "main.py", PYTHONPATH=paths)
    assert done.stdout.splitlines() == ["30.0 numpy bh (2, 6) 1.0", "1.0 [0 2 4] [np.float64(3.0)]", "[4. 4.] [4, 3]", "[15.0, 30.0]", "[0. 1. 2.]"]
    assert done.stderr.count("FallbackWarning") == 1 and "native library cannot be loaded" in done.stderr


def test_the_stack_of_a_first_block_ends_with_it():
    program = "import bh\nwith bh.using('cpu-plain'):\n    x = bh.ones(3)\nprint(x._stack, bh.ones(3)._stack)"
    assert run("-c", program, BH_STACK="cpu").stdout.split() == ["cpu-plain", "cpu"]


def test_the_number_of_threads_changes_while_the_program_runs():
    before = bh.threads()
    try:
        a = bh.arange(200000.0)
        total = float((a * a).sum())
        assert bh.threads(1) == bh.threads() == 1
        assert float((a * a).sum()) == total
        assert bh.threads(3) == 3
        assert float((a * a).sum()) == total
        with pytest.raises(ValueError, match="no number of threads"):
            bh.threads(0)
    finally:
        assert bh.threads(before) == before
