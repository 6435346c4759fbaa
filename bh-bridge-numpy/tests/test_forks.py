"""Forks while other threads are in the midst of everything: the child computes and ends."""

import os
import subprocess
import sys

import pytest

# A child that hangs is ended by an alarm, which the parent sees.
BEGIN = '''
import os, signal, sys, threading, time, numpy
import bh as np

@np.vectorize
def steps(n):
    count, x = 0, 1
    while count < n:
        x = (x * 3 + 1) % 1000003
        count += 1
    return x

def child(shared):
    signal.alarm(60)
    try:
        assert int(steps(np.arange(100) + 40000).max()) == 998304
        assert float((np.ones(300_003) * 2 + shared).sum()) == 5 * 300_003
        assert float((np.ones(5) + 1).sum()) == 10
        os._exit(7)
    finally:
        os._exit(1)

def fork(shared):
    process = os.fork()
    if process == 0:
        child(shared)
    status = os.waitpid(process, 0)[1]
    assert os.waitstatus_to_exitcode(status) == 7, hex(status)

shared = np.full(300_003, 3.0)
np.flush()
stop = False
'''


def run(tmp_path, program, **environment):
    # In a file, as functions without a readable source run in Python.
    (tmp_path / "main.py").write_text(program)
    command = [sys.executable, tmp_path / "main.py"]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, **environment})


# The work of a thread until `stop` is set, and how many forks there are meanwhile.
WORK = {
    "compile": "k = 0\nwhile not stop:\n    k += 1\n    y = np.linspace(.1, 1., 300_003)\n"
    "    for i in range(40 + k % 9): y = np.sin(y * (1 + .01 * i) + k) + np.exp(-y)\n"
    "    for _ in range(3): float((y + k).sum())",
    "batches": "while not stop:\n    y = np.ones(200_000)\n    for _ in range(20): y = np.sin(y)\n    float(y.sum())",
    "queue": "y = np.ones(100_000)\nwhile not stop:\n    y = np.sin(y) + 1\n    np.flush(wait=False)",
    "map": "while not stop:\n    y = np.arange(200_000.0)\n    view = numpy.asarray(y)\n    y += 1\n    assert view[-1] == 200_000",
    "small": "while not stop:\n    y = np.arange(8.0) + 1\n    y[3] = 5\n    assert float(y.sum()) == 37",
    "program": "while not stop: assert int(steps(np.arange(1000)).max()) > 0",
    "questions": "while not stop: np.threads()",
}


@pytest.mark.parametrize("name, jit", [*((name, "auto") for name in WORK), ("compile", "on"), ("program", "on")])
def test_a_child_of_a_fork_computes(name, jit, tmp_path):
    lines = "\n".join(f"    {line}" for line in WORK[name].splitlines())
    program = BEGIN + (
        f"def work():\n    global stop\n{lines}\n"
        "threads = [threading.Thread(target=work) for _ in range(2)]\n[t.start() for t in threads]\n"
        "for i in range(10):\n    time.sleep(.003 * (i % 5))\n    fork(shared)\n"
        "stop = True\n[t.join() for t in threads]\nprint('done')\n"
    )
    environment = {"BH_VE_CPU_JIT": jit, "BH_VE_CPU_JIT_CACHE_DIR": ""}
    done = run(tmp_path, program, **environment)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr


def test_a_child_needs_no_compiler_that_its_parent_is_using(tmp_path):
    """Deterministic where a program's kernel is hot in the child while the compiler's thread is at work in the parent."""
    program = BEGIN + (
        "import glob\n"
        "def compiles():\n"
        "    for task in glob.glob('/proc/self/task/*'):\n"
        "        try:\n"
        "            if open(task + '/comm').read() == 'bh-jit\\n': return open(task + '/stat').read().rsplit(')', 1)[1].split()[0] == 'R'\n"
        "        except OSError: pass\n"
        "met = 0\n"
        "for k in range(40):\n"
        "    y = np.linspace(.1, 1., 300_003)\n"
        "    for i in range(40 + k): y = np.sin(y * (1 + .01 * i) + k) + np.exp(-y) * np.cos(y * i)\n"
        "    float(y.sum())\n"
        "    for _ in range(40):\n"
        "        if compiles():\n            met += 1\n            fork(shared)\n            break\n"
        "        time.sleep(.001)\n"
        "    if met == 5: break\n"
        "print(met > 0)\n"
    )
    environment = {"BH_VE_CPU_JIT_CACHE_DIR": ""}
    done = run(tmp_path, program, **environment)
    assert done.returncode == 0, done.stderr
    if done.stdout != "True\n":
        pytest.skip("no kernel was being compiled when it was looked for")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_processes_of_multiprocessing_compute_while_threads_do(tmp_path):
    program = BEGIN + (
        "import multiprocessing\n"
        "def work():\n    while not stop: float(np.sin(np.ones(100_000)).sum())\n"
        "def total(i): return float((shared + i).sum())\n"
        "thread = threading.Thread(target=work)\nthread.start()\n"
        "with multiprocessing.get_context('fork').Pool(2) as pool: found = pool.map_async(total, range(8)).get(60)\n"
        "stop = True\nthread.join()\nprint(found == [300_003 * (3. + i) for i in range(8)])\n"
    )
    done = run(tmp_path, program)
    assert done.returncode == 0 and done.stdout == "True\n", done.stderr
