"""Threads of a program that share arrays: views of NumPy, files, full queues; none waits for another one that waits for it."""

import os
import subprocess
import sys

import pytest

BEGIN = '''
import faulthandler, threading, numpy
import bh as np
faulthandler.dump_traceback_later(250, exit=True)

def together(*works):
    failed = []
    def guarded(work):
        try: work()
        except BaseException as error: failed.append(repr(error))
    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert not failed, failed
'''


def run(program, **environment):
    command = [sys.executable, "-c", BEGIN + program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **environment})
    assert done.returncode == 0 and done.stdout.endswith("done\n"), (done.stdout, done.stderr)


# An array of the recorder's own memory, one of the stack's, and one that only batches change.
@pytest.mark.parametrize("settings", [{}, {"BH_RECORDER_IMMEDIATE_BYTES": "0"}])
@pytest.mark.parametrize("width", [8, 64, 4096])
def test_threads_write_their_rows_while_others_look_at_the_array(width, settings):
    run(
        f"a = np.zeros((64, {width}))\n"
        "def work(k):\n"
        "    def rows():\n"
        "        for i in range(60):\n"
        "            v = a[8 * k:8 * k + 8]\n"
        "            v += 1\n"
        "            assert (numpy.asarray(a)[8 * k:8 * k + 8] == i + 1).all()\n"
        "    return rows\n"
        "together(*map(work, range(8)))\n"
        "assert (numpy.asarray(a) == 60).all()\nprint('done')\n",
        **settings,
    )


def test_threads_write_while_others_save_and_share(tmp_path):
    run(
        f"a = np.zeros((8, 100_000))\nfile = {str(tmp_path / 'a.npy')!r}\n"
        "def write():\n"
        "    for _ in range(60): a[0] += 1\n"
        "def save():\n"
        "    for _ in range(60): np.save(file, a)\n"
        "def share():\n"
        "    for _ in range(60): memoryview(a).release(); numpy.from_dlpack(a); numpy.array(a)\n"
        "together(write, save, share, share)\n"
        "assert (np.load(file)[1:] == 0).all() and (a[0] == 60).all()\nprint('done')\n"
    )


def test_full_queues_and_views_of_numpy_hold_nobody_up():
    """Operations wait for a full queue, or, where NumPy looks at the memory, for themselves; other threads run them."""
    run(
        "def queue():\n"
        "    x = np.ones(200_000)\n"
        "    for _ in range(200):\n        x = np.sin(x) + 1\n        np.flush(wait=False)\n"
        "    assert 0 < float(x[0]) < 3\n"
        "def view():\n"
        "    y = np.zeros(200_000)\n    seen = numpy.asarray(y)\n"
        "    for i in range(200):\n        y += 1\n        assert seen[-1] == i + 1\n"
        "def read():\n"
        "    for i in range(200): assert float((np.ones(50_000) + i).sum()) == 50_000 * (1 + i)\n"
        "together(queue, view, read, queue, view, read)\nprint('done')\n"
    )
