"""Ends that nobody planned: Ctrl-C in a wait, forks and threads with pending work, exceptions, and the interpreter's end."""

import os
import signal
import subprocess
import sys

import pytest
from conftest import LIMIT

# Where the tests run in the background, Ctrl-C is ignored, which programs inherit.
HEARS = "signal.signal(signal.SIGINT, signal.default_int_handler)"
BEGIN = f"import os, signal, sys, threading, time; {HEARS}\nimport bh as np\n"


def run(program, timeout=LIMIT, **environment):
    """The output of a program, and how it ends."""
    command = [sys.executable, "-c", BEGIN + program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env={**os.environ, **environment})
    return done.returncode, done.stdout, done.stderr


# Takes a second or more at any speed, in many small steps.
LONG = "x = np.ones(200_000)\ndef work():\n    y = x\n    for _ in range(2000): y = np.sin(y) + np.sqrt(np.abs(y))\n    return y\n"


def test_an_interrupt_ends_the_wait_and_the_work_goes_on():
    code, out, err = run(
        LONG + "y = work()\n"
        "try:\n"
        "    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "    while True: np.flush(); y = work()\n"
        "except KeyboardInterrupt: print('interrupted')\n"
        "print(float((np.ones(3) * 2).sum()))\nprint(bool((y > 0).all()))\n"
    )
    assert code == 0 and out.split() == ["interrupted", "6.0", "True"], err


def test_an_interrupt_ends_the_program_as_in_numpy():
    command = [sys.executable, "-c", BEGIN + LONG + "print('begun', flush=True)\nwhile True: float(work()[0])\n"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline().strip() == "begun"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=LIMIT)
    assert process.returncode in (-signal.SIGINT, 130) and "KeyboardInterrupt" in err


def test_handlers_of_signals_run_in_waits_and_may_raise():
    code, out, err = run(
        LONG + "def handler(*_): raise TimeoutError('late')\n"
        "signal.signal(signal.SIGALRM, handler)\n"
        "try:\n    signal.setitimer(signal.ITIMER_REAL, 0.2)\n    while True: float(work()[0])\n"
        "except TimeoutError as error: print(error)\nprint(float(np.ones(2).sum()))\n"
    )
    assert code == 0 and out.split() == ["late", "2.0"], err


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_processes_have_the_arrays():
    code, out, err = run(
        "import multiprocessing\ncontext = multiprocessing.get_context('fork')\n"
        "a = np.arange(1000.0)\nb = a * 2\n"  # pending in the parent
        "def total(i): return float((b + i).sum())\n"
        "with context.Pool(2) as pool: print(pool.map(total, range(3)))\n"
        "print([total(i) for i in range(3)])\n"
    )
    assert code == 0, err
    first, second = out.splitlines()
    assert first == second == str([999000.0 + 1000 * i for i in range(3)])


def test_spawned_processes_get_arrays_by_pickle(tmp_path):
    (tmp_path / "main.py").write_text(
        "import multiprocessing\nimport bh as np\ndef double(x): return x * 2\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.apply(double, (np.arange(3.0),)))\n"
    )
    done = subprocess.run([sys.executable, tmp_path / "main.py"], capture_output=True, text=True, timeout=LIMIT)
    assert done.stdout.strip() == "[0. 2. 4.]", done.stderr


def test_threads_record_and_read_at_once():
    code, out, err = run(
        "shared = np.arange(100.0)\nsums = []\n"
        "def work(i):\n    for k in range(50):\n        y = shared * i + k\n        if k % 10 == 0: sums.append(float(y.sum()) - 4950 * i - 100 * k)\n"
        "all = [threading.Thread(target=work, args=(i,)) for i in range(6)]\n"
        "[t.start() for t in all]\n[t.join() for t in all]\nprint(len(sums), set(sums))\n"
    )
    assert code == 0 and out.split() == ["30", "{0.0}"], err


@pytest.mark.parametrize("end", [
    "", "sys.exit(0)", "kept = [a, b]; raise SystemExit(0)", "d = threading.Thread(target=lambda: time.sleep(9999), daemon=True); d.start()",
    "class Last:\n    def __init__(self, x): self.x = x\n    def __del__(self): self.x + 1\nlast = Last(b); sys.modules['last'] = last",
    "view = memoryview(a); c = np.asarray(a) + 1", "import atexit; atexit.register(lambda: print('sum', float(b.sum())))",
    "begun = threading.Event()\ndef loop():\n    while True: np.ones(100) + 1; begun.set()\nd = threading.Thread(target=loop, daemon=True); d.start(); begun.wait()",
])  # fmt: skip
def test_the_interpreter_ends_with_pending_work(end):
    code, out, err = run("a = np.arange(1000.0)\nb = a * 3\nprint('done')\n" + end + "\n")
    assert code == 0 and out.startswith("done"), (code, err)
    assert "Fatal" not in err and "panicked" not in err, err
    assert "atexit" not in end or "sum 1498500.0" in out


def test_failures_leave_the_runtime_usable():
    code, out, err = run(
        "x = np.arange(3.0)\n"
        "for _ in range(3):\n"
        "    y = np.take(x, np.asarray([9] * 300_000))\n"
        "    try: float(y[0])\n"
        "    except IndexError as error: print('line' if '<string>:5' in str(error) else error)\n"
        "    try: np.linalg.solve(np.zeros((2, 2)), np.ones(2))\n"
        "    except np.linalg.LinAlgError: print('singular')\n"
        "    try: x + np.ones(7)\n"
        "    except ValueError: print('shapes')\n"
        "print(float((x + 1).sum()))\n"
    )
    assert code == 0, err
    assert out.split() == ["line", "singular", "shapes"] * 3 + ["6.0"]


def test_memory_that_there_is_not_is_a_memory_error():
    code, out, err = run("try:\n    x = np.ones(1 << 50); float(x[5])\nexcept MemoryError: print('memory')\nprint(float(np.ones(3).sum()))\n")
    assert code == 0 and out.split() == ["memory", "3.0"], err


# Every read waits, and Ctrl-C ends each of them; NumPy drops what an array's buffer raises, and asks for the array otherwise.
READS = {
    "asarray": "numpy.asarray(r)", "array": "numpy.array(r)", "memoryview": "memoryview(r)", "float": "float(r.sum())",
    "copyto": "numpy.copyto(numpy.zeros(r.shape), r)", "from_dlpack": "numpy.from_dlpack(r)", "tolist": "r.tolist()", "repr": "repr(r)",
    "sum": "float(numpy.sum(r))", "nested": "numpy.array([r, r])", "flush": "np.flush()", "wait": "np.wait(r)", "threads": "np.threads()",
    "full queue": "y = np.ones(30_000)\nwhile True: y = np.sin(y) + 1; np.flush(wait=False)",
    "view": "y = np.ones(100_000); v = numpy.asarray(y)\nwhile True: y += r.sum()",
    "method": "np.sort(r).tolist()",
}  # fmt: skip


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("count", [4, 100_000])
def test_an_interrupt_ends_every_wait_and_then_the_process(read, count, tmp_path):
    """Loops that are given up only after minutes: all of them take longer than the limit of this test."""
    lines = "\n".join(f"    {line}" for line in READS[read].splitlines())
    # In a file, as functions without a readable source run in Python.
    (tmp_path / "main.py").write_text(
        BEGIN + "import numpy\n@np.vectorize\ndef forever(x):\n    while x > 0: x = x + 1 - 1\n    return x\n"
        f"for k in range(2):\n    r = forever(np.ones({count}) + k)\n    np.flush(wait=False)\n"
        "threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        f"try:\n{lines}\n    print('finished')\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    done = subprocess.run([sys.executable, tmp_path / "main.py"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr


def test_an_interrupt_is_raised_once():
    code, out, err = run(
        LONG + "import numpy\ny = work()\nthreading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "def read():\n"
        "    try: memoryview(y); print('read')\n"
        "    except KeyboardInterrupt: print('interrupted')\n"
        "read()\nread()\nprint(bool((numpy.asarray(y) > 0).all()))\n"
    )
    assert code == 0, err
    assert out.split() in (["interrupted", "read", "True"], ["read", "read", "True"])
