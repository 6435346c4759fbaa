"""Programs on ranks, simulated and started by launchers: moves, reports, blocks and checkpoints."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import bh
from conftest import LIMIT

LIBRARIES = os.environ.get("BH_TEST_LIBRARIES", "")
LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"], "mpich": ["mpirun.mpich"]}
THERE = [
    name for name, line in LAUNCHERS.items() if shutil.which(line[0]) and (Path(LIBRARIES) / f"libbh_cluster_{name}.so").is_file()
]

SIMULATED = """
[stacks]
default = "simulated"
simulated = ["filter", "cluster", "fuser", "node", "ve-cpu"]
[components.cluster]
ranks = 4
"""


def run(command, tmp_path, program, **variables):
    (tmp_path / "main.py").write_text(program)
    environment = {**os.environ, "BH_VE_CPU_THREADS": "1", **variables}
    return subprocess.run([*command, sys.executable, "main.py"], capture_output=True, text=True, env=environment, timeout=LIMIT, cwd=tmp_path)


SIBLINGS = """
[stacks]
default = "siblings"
siblings = ["filter", "cluster", [["fuser", "node", "ve-cpu"], ["fuser", "node", "ve-cpu"], ["fuser", "node", "ve-cpu"]]]
[components.cluster]
weights = [1, 2, 1]
"""


def simulated(tmp_path, program, stacks=SIMULATED):
    (tmp_path / "simulated.toml").write_text(stacks)
    done = run([], tmp_path, program, BH_CONFIG=str(tmp_path / "simulated.toml"))
    assert done.returncode == 0, done.stderr
    return done


def launched(name, tmp_path, program, ranks=3, **variables):
    variables = {"BH_STACK": "cluster", "BH_LIBRARY_PATH": LIBRARIES, **variables}
    variables |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return run([*LAUNCHERS[name], "-n", str(ranks)], tmp_path, program, **variables)


ALL_KNOW = """
import json, bh as np
a = np.arange(90_000.0).reshape(300, 300) + np.eye(300) * 1e6
x = np.linalg.eigvals(a)
for _ in range(5):
    a[1:-1] = (a[2:] + a[:-2]) / 2
print(float(a.sum()), np.ranks())
print(np.doctor())
print(np.info())
print(json.dumps(np.profile()))
"""


def test_siblings_are_in_profile_trace_information_and_findings(tmp_path):
    alone = run([], tmp_path, ALL_KNOW, BH_STACK="cpu").stdout.splitlines()[0].split()
    (tmp_path / "siblings.toml").write_text(SIBLINGS)
    trace = tmp_path / "trace.json"
    done = run([], tmp_path, ALL_KNOW, BH_CONFIG=str(tmp_path / "siblings.toml"), BH_TRACE=str(trace))
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[0].split()[1] == "3", done.stderr
    assert float(lines[0].split()[0]) == pytest.approx(float(alone[0]), rel=1e-12)
    assert any("one rank's work" in line and "main.py:4" in line for line in lines), done.stdout
    assert "cluster: 3 ranks, shares 25.0%, 50.0%, 25.0%" in done.stdout
    counts = json.loads(lines[-1])
    assert all(counts[f"ve-cpu{which}.kernels"] > 0 for which in ("", "#2", "#3")), counts
    assert counts["cluster.bytes"] > 0 and counts["cluster.compute_ns"] > 0 and counts["cluster.pack_ns"] > 0
    kernels = [event for event in json.loads(trace.read_text())["traceEvents"] if "ve-cpu" in json.dumps(event)]
    assert kernels, trace.read_text()[:1000]


@pytest.mark.parametrize("program", ["READS", "SLICES"])
def test_siblings_read_and_write_what_is_asked(tmp_path, program):
    done = simulated(tmp_path, globals()[program], SIBLINGS)
    assert done.stdout.strip() == "equal" or sum(json.loads(done.stdout)[:3]) <= 1024 * 8 + 256 * 8 + 8, done.stdout


READS = """
import json, numpy, bh as np
a = np.arange(1 << 20).reshape(1024, 1024) * 1.0
np.flush()
sent = []
def bytes_of(read):
    before = np.profile()["cluster.bytes"]
    value = read()
    sent.append(np.profile()["cluster.bytes"] - before)
    return value
assert bytes_of(lambda: a[:, 7].tolist()) == [7.0 + 1024 * row for row in range(1024)]
assert bytes_of(lambda: a[::64, ::64].tolist())[1][1] == 64.0 * 1024 + 64
assert bytes_of(lambda: float(a[1000, 3])) == 1000.0 * 1024 + 3
assert "1.048575e+06" in bytes_of(lambda: repr(a))
assert repr(a) == repr(numpy.asarray(a)) and str(a[:, 0]) == str(numpy.asarray(a[:, 0]))
assert bytes_of(lambda: a[1020:0:-300, ::-200].T.tolist())[1][2] == 420.0 * 1024 + 823
print(json.dumps(sent))
"""


def test_reads_move_what_is_asked(tmp_path):
    sent = json.loads(simulated(tmp_path, READS).stdout)
    assert sent[0] <= 1024 * 8 and sent[1] <= 256 * 8 and sent[2] <= 8 and sent[3] <= 4096 and sent[4] <= 4 * 6 * 8, sent


def test_assignments_move_what_is_assigned(tmp_path):
    program = """
import bh as np, numpy
a = np.zeros((1000, 1000)); a += 1; np.flush()
before = np.profile()["cluster.bytes"]
a[:, 3] = numpy.arange(1000.0)
a[5::100, ::10] = numpy.ones((10, 100)) * 7
np.flush()
print(np.profile()["cluster.bytes"] - before)
want = numpy.ones((1000, 1000)); want[:, 3] = numpy.arange(1000.0); want[5::100, ::10] = 7
assert (numpy.asarray(a) == want).all()
b = a[1:] + a[:-1]
assert (numpy.asarray(b) == want[1:] + want[:-1]).all()
"""
    assert int(simulated(tmp_path, program).stdout) <= 2 * 8 * 2000


SLICES = """
import numpy, bh as np
random = numpy.random.default_rng(5)
want = random.random((120, 90))
a = np.array(want)
def part(extent):
    first, last = sorted(random.integers(0, extent + 1, 2).tolist())
    step = int(random.integers(1, 7))
    return slice(first, last, step) if random.random() < 0.6 else slice(last - 1 if last else None, None, -step)
for turn in range(60):
    key = (part(120), part(90))
    assert (numpy.array(a[key]) == want[key]).all() and (numpy.asarray(a[key].T) == want[key].T).all(), (turn, key)
    key = (part(120), int(random.integers(90)))
    a[key] = value = random.random(want[key].shape)
    want[key] = value
    assert a[key].tolist() == want[key].tolist(), (turn, key)
    a[1:] += a[:-1] * 0.5
    want[1:] += want[:-1] * 0.5
assert numpy.allclose(numpy.asarray(a), want)
print("equal")
"""


@pytest.mark.parametrize("name", [None, *THERE])
def test_slices_are_read_and_assigned_as_numpy_does(tmp_path, name):
    done = launched(name, tmp_path, SLICES) if name else simulated(tmp_path, SLICES)
    assert done.stdout.strip() == "equal", done.stderr


def test_what_one_rank_does_is_told_with_its_line(tmp_path):
    program = """
import bh as np
a = np.arange(90_000.0).reshape(300, 300) + np.eye(300) * 1e6
for _ in range(3):
    x = np.linalg.eigvals(a)  # this line
    np.flush()
print(np.doctor())
print(np.profile()["cluster.operations brought to one rank"])
"""
    done = simulated(tmp_path, program)
    line = next(line for line in done.stdout.splitlines() if "one rank's work" in line)
    assert "main.py:5" in line and int(done.stdout.splitlines()[-1]) >= 3, done.stdout
    assert sum("done by one rank" in line and "main.py:5" in line for line in done.stderr.splitlines()) >= 1, done.stderr


def test_little_arrays_that_numpy_shares_are_read_by_all_ranks(tmp_path):
    program = """
import numpy, bh as np
values, mask = np.arange(3000.0), np.arange(3000) % 2 == 0
np.flush()
shown = numpy.asarray(mask)
assert float((mask * values).sum()) == 1499 * 3000 / 2
shown[:10] = True
want = numpy.arange(3000.0) * shown
assert (numpy.asarray(mask * values) == want).all() and (numpy.asarray(mask[::-1] * values) == numpy.arange(3000.0) * shown[::-1]).all()
print("equal")
"""
    assert simulated(tmp_path, program).stdout.strip() == "equal"


SYSTEMS = """
import numpy, bh as np
r = numpy.random.default_rng(1)
for n, kind in [(200, float), (150, complex), (300, numpy.float32)]:
    a = (r.random((n, n)) + (1j * r.random((n, n)) if kind is complex else 0)).astype(kind)
    b = r.random((n, 7)).astype(kind)
    A, B = np.array(a), np.array(b)
    limit = 2e-2 if kind is numpy.float32 else 1e-8
    near = lambda x, y: numpy.allclose(numpy.asarray(x), y, rtol=limit, atol=limit)
    assert near(np.linalg.solve(A, B), numpy.linalg.solve(a, b)), n
    assert near(np.linalg.solve(A.T, B[:, 0]), numpy.linalg.solve(a.T, b[:, 0])), n
    assert near(A @ np.linalg.inv(A), numpy.eye(n)), n
    for found, want in zip(np.linalg.slogdet(A), numpy.linalg.slogdet(a)):
        assert near(found, want), n
    p = a @ a.conj().T + n * numpy.eye(n, dtype=kind)
    P = np.array(p)
    assert near(np.linalg.cholesky(P), numpy.linalg.cholesky(p)), n
    for call, text in [(lambda: np.linalg.solve(0 * A, B), "Singular"), (lambda: np.linalg.cholesky(-P), "positive")]:
        try:
            call()
        except np.linalg.LinAlgError as error:
            assert text in str(error)
        else:
            raise AssertionError(text)
assert np.profile()["cluster.operations brought to one rank"] == 0
print("equal")
"""


@pytest.mark.parametrize("name", [None, *THERE])
def test_systems_are_solved_by_all_ranks(tmp_path, name):
    done = launched(name, tmp_path, SYSTEMS) if name else simulated(tmp_path, SYSTEMS)
    assert done.stdout.strip() == "equal", done.stderr


TRANSFORMS = """
import numpy, bh as np
random = numpy.random.default_rng(3)
for shape in [(1 << 17,), (1, 90_000), (66_000,)]:
    line = random.random(shape) + 1j * random.random(shape)
    for name in ["fft", "ifft"]:
        a = np.array(line)
        np.flush()
        before = np.profile()
        made = getattr(np.fft, name)(a)
        np.flush()
        after = np.profile()
        assert after["cluster.operations brought to one rank"] == 0, shape
        # There, between, and back.
        assert after["cluster.bytes"] - before["cluster.bytes"] <= 3.5 * line.nbytes, shape
        want = getattr(numpy.fft, name)(line)
        assert made.shape == shape and numpy.allclose(numpy.asarray(made), want, rtol=1e-9, atol=1e-12 * abs(want).max()), (shape, name)
assert numpy.allclose(np.fft.fft(np.arange(131101.0)), numpy.fft.fft(numpy.arange(131101.0)))
print("equal")
"""


@pytest.mark.parametrize("name", [None, *THERE])
def test_lines_are_transformed_by_all_ranks(tmp_path, name):
    done = launched(name, tmp_path, TRANSFORMS) if name else simulated(tmp_path, TRANSFORMS)
    assert done.stdout.strip() == "equal", done.stderr


BLOCKS = """
import bh as np, numpy
a = np.arange(100_000.0).reshape(1000, 100)
factor = 3
def shifted(block):
    return numpy.roll(block, 1, axis=0) * factor
b = np.map_blocks(shifted, a, halo=1)
want = numpy.asarray(a) * 0
want[1:] = numpy.asarray(a)[:-1] * 3
got = numpy.asarray(b)
assert (got[1:] == want[1:]).all()
who = np.map_blocks(lambda x, y: np.zeros(x.shape) + np.rank() + 0 * y, a, a, dtype=int)
found = sorted(set(numpy.asarray(who).ravel().tolist()))
try:
    np.map_blocks(lambda x: 1 / 0 if np.rank() == np.ranks() - 1 else x, a).sum().item()
except Exception as error:
    print(found, np.rank(), np.ranks(), "ZeroDivisionError" in str(error) + type(error).__name__)
assert float((a + 1).sum()) == 100_000 * 99_999 / 2 + 100_000
"""


# Batches that call functions of Python run on any thread, while other threads wait for them with the interpreter's lock.
CALLS_AMONG_THREADS = """
import faulthandler, threading, bh as np, numpy
faulthandler.dump_traceback_later(100, exit=True)
a, failed = np.arange(4000.0).reshape(1000, 4), []
def guarded(work):
    try: work()
    except BaseException as error: failed.append(repr(error))
def blocks():
    for _ in range(20): assert (numpy.asarray(np.map_blocks(lambda x: x + 1, a)) == numpy.asarray(a) + 1).all()
def view():
    y = np.zeros(100_000)
    seen = numpy.asarray(y)
    for i in range(60):
        y += 1
        assert seen[-1] == i + 1
def queue():
    x = np.ones(100_000)
    for _ in range(60):
        x = np.sin(x) + 1
        np.flush(wait=False)
def begin():
    for i in range(60): assert float((np.ones(10) + i).sum()) == 10 + 10 * i
threads = [threading.Thread(target=guarded, args=(work,)) for work in (blocks, view, queue, begin, view)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(failed, "done", flush=True)
"""


FORKED = """
import os, signal, bh as np
a = np.arange(100_000.0)
assert float(a.sum()) > 0
process = os.fork()
if process == 0:
    signal.alarm(60)
    try: os._exit(7 if float((a * 2).sum()) == 100_000 * 99_999 else 1)
    finally: os._exit(1)
print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
"""


@pytest.mark.parametrize("stacks", [SIMULATED, SIBLINGS], ids=["simulated", "siblings"])
def test_a_forked_child_has_ranks_of_its_own(stacks, tmp_path):
    assert simulated(tmp_path, FORKED, stacks).stdout == "7\n"


def test_threads_wait_for_batches_that_call_functions_of_python(tmp_path):
    assert simulated(tmp_path, CALLS_AMONG_THREADS).stdout == "[] done\n"


@pytest.mark.parametrize("name", THERE)
def test_threads_wait_for_ranks_that_call_functions_of_python(name, tmp_path):
    done = launched(name, tmp_path, CALLS_AMONG_THREADS)
    assert done.returncode == 0 and done.stdout == "[] done\n", done.stderr


def test_functions_run_on_blocks(tmp_path):
    assert simulated(tmp_path, BLOCKS).stdout.strip() == "[0, 1, 2, 3] 0 4 True"
    assert run([], tmp_path, BLOCKS).stdout.strip() == "[0] 0 1 True"


@pytest.mark.parametrize("name", THERE)
def test_functions_run_on_blocks_in_the_ranks_own_processes(tmp_path, name):
    done = launched(name, tmp_path, BLOCKS)
    assert done.stdout.strip() == "[0, 1, 2] 0 3 True", done.stderr


def test_blocks_without_a_cluster():
    a = bh.arange(12.0).reshape(4, 3)
    assert (numpy.asarray(bh.map_blocks(lambda x: x + 1, a, halo=2)) == numpy.arange(12.0).reshape(4, 3) + 1).all()
    assert (bh.rank(), bh.ranks()) == (0, 1)
    with pytest.raises(ValueError, match="shape"):
        bh.map_blocks(lambda x: x[:, :2], a)
    with pytest.raises(ValueError, match="as many rows"):
        bh.map_blocks(lambda x, y: x, a, a[:2])


def test_checkpoints_keep_values_by_name(tmp_path):
    values = {"a": bh.arange(300_000.0).reshape(300, 1000), "step": 3, "name": "x", "none": None, "n": numpy.float32(2.5)}
    bh.checkpoint(tmp_path / "run", values, flags=bh.ones(3, bool), plain=numpy.arange(3))
    bh.checkpoint(tmp_path / "run", values, flags=bh.ones(3, bool), plain=numpy.arange(3))
    found = bh.restore(tmp_path / "run")
    assert list(found) == ["a", "step", "name", "none", "n", "flags", "plain"]
    assert type(found["a"]) is bh.ndarray and bool((found["a"] == values["a"]).all()) and found["flags"].dtype == bool
    assert (found["step"], found["name"], found["none"]) == (3, "x", None)
    assert type(found["n"]) is numpy.float32 and type(found["plain"]) is numpy.ndarray
    assert len(list((tmp_path / "run").glob("checkpoint-*"))) == 1
    # A checkpoint whose writer was killed is ignored.
    (tmp_path / "run" / "checkpoint-3").mkdir()
    assert bh.restore(tmp_path / "run")["step"] == 3
    bh.checkpoint(tmp_path / "run", step=4)
    assert bh.restore(tmp_path / "run") == {"step": 4}
    with pytest.raises(FileNotFoundError):
        bh.restore(tmp_path / "other")
    with pytest.raises(TypeError):
        bh.checkpoint(tmp_path / "run", what=object())
    assert bh.restore(tmp_path / "run") == {"step": 4}


STEPS = """
import os, signal, sys, bh as np
try:
    state = np.restore("run")
except FileNotFoundError:
    state = {"u": np.ones((400, 500)), "step": 0}
u, step = state["u"], state["step"]
while step < 20:
    u[1:-1] = (u[:-2] + u[2:]) / 2 + u[1:-1] * step
    u /= u.max()
    step += 1
    if step % 4 == 0:
        np.checkpoint("run", u=u, step=step)
    if step == int(os.environ.get("END", 0)):
        os.kill(os.getpid(), signal.SIGKILL)
print(step, float(u.sum()))
"""


@pytest.mark.parametrize("name", THERE)
def test_a_killed_job_goes_on_from_its_checkpoint_on_other_ranks(tmp_path, name):
    (tmp_path / "whole").mkdir()
    want = run([], tmp_path / "whole", STEPS).stdout.split()
    killed = launched(name, tmp_path, STEPS, ranks=3, END="10")
    assert killed.returncode != 0 and not killed.stdout.startswith("20")
    assert json.loads((tmp_path / "run" / (tmp_path / "run" / "latest").read_text() / "names.json").read_text())["step"] == {"value": 8}
    done = launched(name, tmp_path, STEPS, ranks=2)
    got = done.stdout.split()
    assert got[0] == want[0] == "20" and float(got[1]) == pytest.approx(float(want[1]), rel=1e-12), done.stderr


@pytest.mark.skipif("mpich" not in THERE, reason="there is no MPICH, or BH_TEST_LIBRARIES has no library for it")
def test_an_interrupt_ends_all_ranks(tmp_path):
    program = "import bh as np\na = np.ones((1000, 1000))\nfloat((a + 1).sum())\nprint('ready', flush=True)\nwhile True:\n    float((a + 1).sum())\n"
    (tmp_path / "main.py").write_text(program)
    environment = {**os.environ, "BH_STACK": "cluster", "BH_LIBRARY_PATH": LIBRARIES, "BH_VE_CPU_THREADS": "1"}
    for _ in range(3):
        command = ["mpirun.mpich", "-n", "3", sys.executable, "main.py"]
        started = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path, start_new_session=True
        )
        assert started.stdout.readline() == "ready\n"
        os.killpg(started.pid, signal.SIGINT)
        _, error = started.communicate(timeout=LIMIT)
        # The code is the launcher's: MPICH's ends with 130, 6 or 0, as its own signal handling happens to go.
        assert "KeyboardInterrupt" in error, (started.returncode, error)


FIRST_USE = """
import numpy, bh as np
def sent():
    np.flush()
    return np.profile().get("cluster.bytes", 0)
shape = 16384, 64
numbers = numpy.random.default_rng(0).random(shape)
numpy.save("a.npy", numbers)
begins = {
    "random": lambda: np.random.default_rng(1).random(shape), "normal": lambda: np.random.default_rng(1).normal(size=shape),
    "rand": lambda: np.random.rand(*shape), "integers": lambda: np.random.default_rng(1).integers(0, 99, shape),
    "zeros": lambda: np.zeros(shape), "arange": lambda: np.arange(16384 * 64.0).reshape(shape),
    "memory": lambda: np.array(numbers), "file": lambda: np.load("a.npy"),
}
uses = {
    "sort": lambda a: np.sort(a, axis=1), "sums": lambda a: a.sum(axis=1), "product": lambda a: a @ np.ones((64, 8)),
    "stencil": lambda a: a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:],
    "transpose": lambda a: a.T + 0, "fft": lambda a: np.fft.fft(a, axis=1), "multiple": lambda a: a * 2,
}
for how, begin in begins.items():
    for name, use in uses.items():
        a = begin()
        np.flush()
        before = sent()
        kept = use(a)
        first = sent()
        again = use(a)
        print(how, name, first - before, sent() - first)
"""


def test_arrays_begin_in_rows_however_they_are_made(tmp_path):
    done = simulated(tmp_path, FIRST_USE, SIMULATED.replace("ranks = 4", "ranks = 16"))
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == 8 * 7, done.stderr
    for how, name, *sent in lines:
        first, again = map(int, sent)
        # An array that NumPy made goes to the ranks with its first use. Neighbours need rows of each other, a product all of its right
        # factor.
        most = {"stencil": 15 * 2 * 64 * 8, "product": 15 * 64 * 8 * 8}.get(name, 0)
        moves = 16384 * 64 * 8 * 15 // 16 if how in ("normal", "rand", "integers") else 0
        assert first <= most + moves and again <= most, (how, name, first, again)


DATASETS = """
import h5py, numpy, bh as np
u = numpy.arange(300_000.0).reshape(600, 500)
with h5py.File("run.h5", "w") as file:
    file["u"], file["small"] = u, u[:3]
    file.create_dataset("chunked", data=u.astype("f4"), chunks=(100, 100), compression="gzip")
    file.create_dataset("turned", data=u.astype(">i4"))
def sent():
    return np.profile().get("cluster.bytes", 0)
with h5py.File("run.h5", "r") as file:
    before = sent()
    read = np.load(file["u"])
    part = np.load(file["u"], part=np.s_[100:500])
    print(sent() - before)
    for name in file:
        read = np.load(file[name])
        assert type(read) is np.ndarray and read.dtype == file[name].dtype.newbyteorder("="), name
        assert (numpy.asarray(read) == file[name][...]).all(), name
        for key in [np.s_[1:], np.s_[:550:2, 3:], np.s_[..., 7], np.s_[1], np.s_[-500:, ::3], np.s_[[1, 2]], np.s_[2, 1]]:
            read = np.load(file[name], part=key)
            assert read.shape == file[name][key].shape and (numpy.asarray(read) == file[name][key]).all(), (name, key)
    before = sent()
    assert np.asarray(file["chunked"])[5:9].tolist() == u[5:9].tolist()
    # The numbers of rows, and what was read at last.
    assert sent() - before <= 600 * 8 + 4 * 500 * 4, sent() - before
with h5py.File("run.h5", "a") as file:
    a = np.array(u) * 3 + 1
    np.flush()
    file["u"][0, 0] = 1
    for name in ["u", "chunked", "turned"]:
        np.save(file[name], a)
        assert (file[name][...] == u * 3 + 1).all(), name
    new = file.create_dataset("new", u.shape, u.dtype)
    file.create_dataset("other", u.shape, u.dtype)
    before = sent()
    np.save(new, a)
    np.save(file["other"], a[50:450], part=np.s_[100:500])
    assert sent() == before
    assert (new[...] == u * 3 + 1).all() and new[7, 7] == u[7, 7] * 3 + 1
    other = u * 0
    other[100:500] = (u * 3 + 1)[50:450]
    assert (file["other"][...] == other).all()
    np.save(file["chunked"], a[:, 3:200:2], part=np.s_[:, :99])
    assert (file["chunked"][:, :99] == (u * 3 + 1)[:, 3:200:2]).all()
    file["u"][100:200] = a[:100]
    assert (np.load(file["u"])[100:200] == a[:100]).all()
with h5py.File("run.h5", "r") as file:
    assert (file["other"][...] == other).all() and (file["new"][...] == u * 3 + 1).all()
"""


def test_ranks_read_and_write_datasets_of_hdf5(tmp_path):
    pytest.importorskip("h5py")
    assert simulated(tmp_path, DATASETS).stdout == "0\n"
    done = run([], tmp_path, DATASETS)
    assert done.stdout == "0\n", done.stderr
    for name in THERE:
        done = launched(name, tmp_path, DATASETS)
        assert done.stdout == "0\n", done.stderr


CHUNKS = """
import numpy, zarr, bh as np
u = numpy.arange(300_000.0).reshape(600, 500)
a = np.array(u) * 2 + 1
np.flush()
def sent():
    return np.profile().get("cluster.bytes", 0)
made = [zarr.create_array("plain.zarr", shape=u.shape, chunks=(7, 200), dtype="f8", overwrite=True)]
made.append(zarr.create_array("shards.zarr", shape=u.shape, chunks=(10, 50), shards=(40, 100), dtype="f4", overwrite=True))
made.append(zarr.open_group("group.zarr", mode="w").create_array("x/y", shape=u.shape, chunks=(600, 500), dtype="f8"))
made.append(zarr.create_array({}, shape=u.shape, chunks=(100, 100), dtype="f8"))
for number, array in enumerate(made):
    before = sent()
    np.save(array, a)
    # Numbers of rows, and the rows of files that two ranks have, of one rank each.
    moved = [600 * 8 + 3 * 12 * 4008, 600 * 8 + 3 * 78 * 4008, 600 * 4000, 600 * 4000][number]
    assert sent() - before <= moved, (number, sent() - before)
    assert (array[...] == u * 2 + 1).all(), number
    before = sent()
    read = np.load(array)
    assert sent() - before <= (600 * 8 if number < 3 else 600 * 4000), number
    assert type(read) is np.ndarray and read.dtype == array.dtype and (numpy.asarray(read) == u * 2 + 1).all(), number
    for key in [np.s_[13:], np.s_[:550:2, 3:], np.s_[..., 7], np.s_[1], np.s_[100:, ::3]]:
        assert (numpy.asarray(np.load(array, part=key)) == array[key]).all(), (number, key)
    np.save(array, a[:500, 100:], part=np.s_[33:533, :400])
    want = u * 2 + 1
    want[33:533, :400] = (u * 2 + 1)[:500, 100:]
    assert (array[...] == want).all(), number
    array[5:300] = a[:295] + 0
    assert (np.asarray(array)[5:300] == a[:295]).all(), number
"""


def test_ranks_read_and_write_arrays_of_zarr(tmp_path):
    pytest.importorskip("zarr")
    simulated(tmp_path, CHUNKS)
    for name in [None, *THERE]:
        done = launched(name, tmp_path, CHUNKS) if name else run([], tmp_path, CHUNKS)
        assert done.returncode == 0, done.stderr


# The device of the second rank has less memory than half of the arrays need.
UNEVEN_MEMORY = """
import os
if os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK")) == "1":
    os.environ["BH_OPENCL_MEMORY"] = "1MiB"
import bh as np
from bh import _native
if "OpenCL device: none" in np.info():
    print("no device")
    raise SystemExit
before = _native.Stack().message("cluster shares")
arrays = [np.ones((256, 256)) * k for k in range(4)]
for _ in range(3):
    for one, other in zip(arrays, arrays[1:]):
        other += one
print(before, "|", _native.Stack().message("cluster shares"), "|", [float(array.sum()) for array in arrays])
"""


@pytest.mark.parametrize("name", THERE)
def test_ranks_know_the_memory_of_each_others_devices(tmp_path, name):
    keys = {"BH_STACK": "cluster-opencl", "BH_OPENCL_DEVICE": "cpu", "BH_OPENCL_PLACEMENT": "device"}
    done = launched(name, tmp_path, UNEVEN_MEMORY, ranks=2, **keys)
    if done.stdout.strip() == "no device" or "OpenCL" in done.stderr:
        pytest.skip("no OpenCL")
    assert done.returncode == 0, done.stderr
    before, after, sums = done.stdout.strip().split(" | ")
    assert before == "cluster: 2 ranks, shares 50.0%, 50.0%" and after.startswith("cluster: 2 ranks, shares ") and after != before
    assert [value / 65536 for value in json.loads(sums)] == [0, 1, 5, 15]


# Calls on arrays that three ranks have. Work of one rank is reported, and the rest does not bring whole arrays to it.
SWEEP = """
import json, warnings, numpy, bh as np
from bh import _native
warnings.simplefilter("ignore")
rng = numpy.random.default_rng(1)
v, w, m, s, t, c = (np.array(rng.random(shape)) * 1 for shape in (60_000, 60_000, (300, 200), (200, 200), (4000, 10), (60, 30, 40)))
i, b = np.array(rng.integers(0, 50, 60_000)) * 1, v > 0.5
s = s + 20 * np.eye(200)
z, p = v + 1j * w, s @ s.T

def state():
    np.flush()
    sent = [json.loads(line.strip(" ,[]"))["bytes"] for line in _native.Stack().message("cluster traffic").splitlines() if "bytes" in line]
    return sent, np.profile().get("cluster.operations brought to one rank", 0)

for call in CALLS:
    (before, told), _ = state(), None
    result = eval(call)
    sent, after = state()
    print(json.dumps([call, after - told, [now - then for now, then in zip(sent, before)]]))
"""

ALL_RANKS = """
np.exp(m) | np.add(v, w) | np.sum(v) | np.sum(m, axis=0) | np.sum(m, axis=1) | np.mean(m, axis=0) | np.std(v) | np.var(m, axis=1) | np.min(v)
np.argmax(v) | np.argmax(m, axis=0) | np.all(b) | np.ptp(v) | np.median(v) | np.median(m, axis=1) | np.percentile(v, 30)
np.quantile(m, .3, axis=0) | np.average(v, weights=w) | np.nanmean(v) | np.nanmedian(v) | np.cumsum(v) | np.cumsum(m, axis=0)
np.cumprod(m, axis=1) | np.diff(v) | np.gradient(v) | np.trapezoid(v) | np.sort(v) | np.sort(m, axis=0) | np.argsort(v) | np.argsort(m, axis=1)
np.lexsort((v, i)) | np.searchsorted(np.sort(v), w) | np.unique(i) | np.unique(v) | np.bincount(i) | np.histogram(v, 20) | np.digitize(v, [.2, .5])
np.nonzero(b) | np.argwhere(b) | np.count_nonzero(b) | v[b] | v[i] | m[:, 3] | m[::3, ::2] | m[[1, 5, 7]] | m.T.copy() | m.reshape(200, 300)
np.transpose(c, (2, 0, 1)).copy() | np.roll(v, 100) | np.flip(v).copy() | np.rot90(m).copy() | np.concatenate([v, w]) | np.stack([v, w])
np.concatenate([m, m], axis=1) | np.tile(v, 2) | np.repeat(v, 2) | np.pad(m, 2) | np.insert(v, 5, 1.) | np.delete(v, 5) | np.split(v, 3)
np.where(b, v, w) | np.select([b], [v], 0) | np.choose(i % 2, [v, w]) | np.clip(v, .2, .6) | np.take(v, i) | np.compress(b, v)
np.interp(v, [0., .5, 1.], [0., 1., 4.]) | np.convolve(v, np.ones(5)) | np.outer(v[:300], v[:300]) | np.dot(v, w) | m @ m.T | m.T @ m
t.T @ t | np.einsum('ij,ij->i', m, m) | np.matmul(c, np.swapaxes(c, 1, 2)) | np.trace(s) | np.diag(s) | np.tril(s) | np.linalg.solve(s, v[:200])
np.linalg.inv(s) | np.linalg.det(s) | np.linalg.cholesky(p) | np.linalg.qr(t) | np.linalg.svd(t, full_matrices=False) | np.linalg.norm(m)
np.linalg.lstsq(t, t[:, 0]) | np.fft.fft(m, axis=0) | np.fft.fft(m, axis=1) | np.fft.fft2(m) | np.fft.rfft(m) | np.fft.irfft(m) | np.fft.fftshift(v) | np.cov(t, rowvar=False)
np.isin(i, [3, 5]) | np.allclose(v, w) | np.add.reduceat(v, [0, 100, 5000]) | np.add.outer(v[:200], v[:200]) | np.meshgrid(v[:200], v[:200])
np.linspace(0, 1, 60000) | np.random.default_rng(3).random(60000) | np.nan_to_num(v) | np.round(v, 2) | v.astype('f4')
"""

ONE_RANK = """
np.bincount(i, weights=v) | np.histogram2d(v, w, 20) | np.linalg.qr(s) | np.linalg.svd(s) | np.linalg.eig(s) | np.linalg.eigh(p) | np.linalg.eigvalsh(p * 2)
np.linalg.eigvals(s * 2) | np.linalg.pinv(s) | np.linalg.matrix_rank(s * 3) | np.linalg.cond(s * 4) | np.fft.fft(v) | np.fft.rfft(v)
"""


def test_what_goes_to_one_rank_is_told(tmp_path):
    every, alone = ([call.strip() for line in text.strip().splitlines() for call in line.split("|")] for text in (ALL_RANKS, ONE_RANK))
    done = simulated(tmp_path, SWEEP.replace("CALLS", repr(every + alone)), SIMULATED.replace("ranks = 4", "ranks = 3"))
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [call for call, _, _ in rows] == every + alone
    assert [call for call, told, _ in rows if told] == alone
    share = 60_000 // 3 * 8
    silent = [row for row in rows if not row[1] and min(row[2][1:]) >= share * 3 // 4 and row[2][0] < share // 4]
    assert not silent, silent
