"""Task graphs: order, rates, kinds of pieces, several stacks at the same time, bounded queues, memory, and failures."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import numpy
import pytest

import bh
from conftest import LIMIT

OTHER = "cpu-plain"
LARGE = 50_000


def pieces(number, size=LARGE):
    """Pieces that tell by their numbers which they are."""
    return (numpy.full(size, float(at)) for at in range(number))


def collected(graph):
    """The pieces that leave a graph, as numbers."""
    return [float(piece) for piece in graph]


def test_pieces_come_in_order_through_several_stacks():
    found = []
    graph = (
        bh.source(lambda: pieces(20)) >> bh.task(lambda x: x * 2) >> bh.task(lambda x: x + 1, stack=OTHER)
        >> bh.task(lambda x: x.sum() / LARGE, ahead=1) >> bh.sink(lambda value: found.append((type(value), float(value))))
    )  # fmt: skip
    for _ in range(2):
        found.clear()
        counters = graph.run()
        assert found == [(bh.ndarray, at * 2 + 1.0) for at in range(20)]
    assert [counted["pieces"] for counted in counters.values()] == [20] * 5


def test_tasks_on_one_stack_fuse():
    graph = bh.source(pieces(4)) >> bh.task(lambda x: x * 2) >> bh.task(lambda x: x + 1) >> bh.task(bh.sum)
    before = bh.profile()["fuser.contracted"]
    assert collected(graph) == [LARGE * (2 * at + 1.0) for at in range(4)]
    # Neither of the two arrays between the tasks is ever stored.
    assert bh.profile()["fuser.contracted"] - before == 8
    assert list(graph.counters) == [
        "source '<genexpr>'", "task '<lambda>' >> task '<lambda>' >> task 'sum'", "sink of the program",
    ]  # fmt: skip


def test_rates():
    halves = lambda x: (x[: LARGE // 2], x[LARGE // 2 :])
    graph = bh.source(pieces(6)) >> bh.task(lambda a, b, c: (a + b + c).sum(), rate=(3, 1))
    assert collected(graph) == [LARGE * 3.0, LARGE * 12.0]
    graph = bh.source(pieces(3)) >> bh.task(halves, rate=(1, 2)) >> bh.task(lambda x: x.sum() / x.size)
    assert collected(graph) == [0, 0, 1, 1, 2, 2]
    graph = bh.source(pieces(5)) >> bh.task(lambda a, b: a + b, rate=(2, 1), name="pairs")
    with pytest.raises(bh.GraphError, match="task 'pairs' failed at piece 4.*takes 2 pieces a call, and the stream ended with 1 left"):
        list(graph)
    with pytest.raises(bh.GraphError, match="gives 2 pieces a call"):
        list(bh.source(pieces(1)) >> bh.task(lambda x: x, rate=(1, 2)))


def test_kinds_of_pieces():
    gives = bh.source(pieces(2), gives="float64[:]") >> bh.task(lambda x: x.astype("f4"), takes="f8[:]", gives=("f4"))
    with pytest.raises(TypeError, match=r"task '<lambda>' gives float32, and task 'g' takes float64\[:, 3\]"):
        gives >> bh.task(lambda x: x, takes="float64[:, 3]", name="g")
    assert len(list(gives >> bh.task(lambda x: (x, 3), takes=f"f4[{LARGE}]", gives=("f4", int)) >> bh.task(lambda both: both[0]))) == 2
    with pytest.raises(bh.GraphError, match=r"what source '<genexpr>' gives is float64\[50000\], not int64"):
        list(bh.source(pieces(1), gives="i8") >> bh.task(bh.sum))
    with pytest.raises(bh.GraphError, match=r"what task 'g' gives is str, not dict"):
        list(bh.source(["a"]) >> bh.task(lambda x: x, gives=dict, name="g"))
    with pytest.raises(TypeError, match="comes before a source"):
        gives >> bh.source([])


def test_pieces_of_several_arrays_and_numpys_stage():
    found = []
    graph = (
        bh.source(({"x": at, "name": str(index)}, 3) for index, at in enumerate(pieces(3)))
        >> bh.task(lambda piece: {**piece[0], "x": piece[0]["x"] + piece[1]})
        >> bh.task(lambda piece: (piece["name"], type(piece["x"]), piece["x"][0]), stack="numpy")
        >> bh.sink(found.append)
    )
    graph.run()
    assert found == [(str(at), numpy.ndarray, at + 3.0) for at in range(3)]


def until(holds):
    """Waits until this holds."""
    end = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def waits_for(file):
    """Waits until another stage has made a file."""
    until(file.exists)


def test_stages_are_at_work_at_the_same_time(tmp_path):
    begun, goes_on, number = tmp_path / "begun", tmp_path / "goes on", lambda x: int(x[0])

    def quick(x):
        # The other stage is at its first piece when this one begins with its fourth one, and goes on only then.
        if number(x) == 2:
            waits_for(begun)
        if number(x) == 3:
            goes_on.touch()
        return x + 1

    def slow(x):
        begun.touch()
        waits_for(goes_on)
        return x.sum()

    graph = bh.source(lambda: pieces(6)) >> bh.task(quick) >> bh.task(slow, stack=OTHER)
    assert collected(graph) == [LARGE * (at + 1.0) for at in range(6)]
    assert graph.counters["task 'quick'"]["beside"]["task 'slow'"] >= 1
    for file in (begun, goes_on):
        file.unlink()
    # The same for two stages of this process, one of them NumPy's.
    graph = bh.source(lambda: pieces(6)) >> bh.task(quick) >> bh.task(slow, stack="numpy")
    assert collected(graph) == [LARGE * (at + 1.0) for at in range(6)]
    assert graph.counters["task 'quick'"]["beside"]["task 'slow'"] >= 1


@pytest.mark.parametrize("stack", [None, OTHER])
def test_what_is_slow_holds_up_what_comes_before(stack):
    read, taken = [], []

    def source():
        for at, piece in enumerate(pieces(50)):
            read.append(at)
            yield piece

    graph = bh.source(source) >> bh.task(lambda x: x + 1, ahead=1) >> bh.task(lambda x: x * 2, stack=stack) >> bh.sink(taken.append, ahead=1)
    going = iter(bh.source(source) >> bh.task(lambda x: x + 1, ahead=1, name="f") >> bh.task(lambda x: x * 2, stack=stack, name="g"))
    next(going)
    # Nobody takes the second piece: the source ends where all places are full, and stays there.
    until(lambda: len(read) >= 5)
    time.sleep(0.3)
    settled = len(read)
    # At most: one in the source's hand, one before the first task and two in it, two before the second and two in it, two before the end,
    # and the one that was taken.
    assert 5 <= settled <= 11
    assert len(list(going)) == 49
    counters = graph.run()
    assert len(taken) == 50 and counters["sink 'append'"]["most_waiting"] == 1
    assert all(counted["most_waiting"] <= 2 for counted in counters.values())


def test_full_and_empty_queues_are_counted():
    taken = threading.Event()

    def source():
        yield from pieces(8)
        assert taken.wait(LIMIT)
        yield from pieces(1)

    going = iter(graph := bh.source(source) >> bh.task(lambda x: x + 1, stack="numpy", name="f"))
    found = [next(going)]
    # One piece is here, one in the task, and four fit the queues: the source is held up with the rest before this one goes on.
    until(lambda: graph.counters["source 'source'"]["held"] >= 1)
    found += [next(going) for _ in range(7)]
    # The task waits for the last piece.
    until(lambda: graph.counters["task 'f'"]["starved"] >= 1)
    taken.set()
    found += list(going)
    assert len(found) == 9
    assert graph.counters["source 'source'"]["held"] >= 1 and graph.counters["task 'f'"]["starved"] >= 1


FILE = """
import sys
import numpy, bh
rows, limit = 1 << 13, int(sys.argv[2])
whole = numpy.load(sys.argv[1], mmap_mode="r")
assert whole.nbytes >= 10 * limit
try:
    bh.asarray(whole).sum().item()
except (MemoryError, bh.Error) as error:
    print("too large")
total = []
graph = (
    bh.source(sys.argv[1], rows=rows, gives="float64[:, 4]") >> bh.task(lambda x: bh.sqrt(x * x) + 1)
    >> bh.task(lambda x: x.sum(axis=0), stack="cpu-plain") >> bh.sink(lambda x: total.append(numpy.array(x)))
)
graph.run()
expected = [(numpy.abs(whole[at : at + rows]) + 1).sum(axis=0) for at in range(0, len(whole), rows)]
numpy.testing.assert_allclose(total, expected, rtol=1e-12)
assert bh.Stack().memory()[1] <= limit
print(len(total), "pieces")
"""


def test_a_file_ten_times_the_limit_of_memory(tmp_path):
    # Sixteen pieces: at most eleven are in flight, two in each queue and in each stage with what it makes of them.
    limit = 4 << 20
    made = numpy.lib.format.open_memmap(tmp_path / "a.npy", "w+", float, (160 * (1 << 13), 4))
    made[...] = numpy.arange(made.size).reshape(made.shape)
    made.flush()
    (tmp_path / "main.py").write_text(FILE)
    command = [sys.executable, str(tmp_path / "main.py"), str(tmp_path / "a.npy"), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env={**os.environ, "BH_MEMORY_LIMIT": str(limit)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["too large", "160 pieces"]


def broken(x):
    if x[0] == 3:
        raise KeyError("three")
    return x


def late(x):
    # Out of range at piece 3, which only the stack finds out.
    return x[(x[:LARGE] * LARGE / 3).astype(int)]


@pytest.mark.filterwarnings("ignore:what depends on a failed operation is lost")
@pytest.mark.parametrize("task", [broken, late])
@pytest.mark.parametrize("stack", [None, OTHER])
def test_failures_name_the_stage_and_the_piece(task, stack):
    found = []
    graph = bh.source(pieces(40)) >> bh.task(lambda x: x + 0) >> bh.task(task, stack=stack) >> bh.task(lambda x: x * 1) >> bh.sink(found.append)
    with pytest.raises(bh.GraphError, match=f"task '{task.__name__}' failed at piece 3 on stack {stack or bh.Stack().name}: ") as failure:
        graph.run()
    assert failure.value.stage == f"task '{task.__name__}'" and failure.value.piece == 3
    assert len(found) == 3 and threading.active_count() == 1
    assert isinstance(failure.value.__cause__, KeyError if task is broken else bh.Error | IndexError)


def test_failing_sources_and_sinks():
    closed = []

    def source():
        try:
            yield from pieces(2)
            raise OSError("no more")
        finally:
            closed.append(True)

    with pytest.raises(bh.GraphError, match="source 'source' failed at piece 2: OSError: no more"):
        list(bh.source(source) >> bh.task(bh.sum))

    def take(piece):
        raise ZeroDivisionError

    with pytest.raises(bh.GraphError, match="sink 'take' failed at piece 0: ZeroDivisionError"):
        (bh.source(source) >> bh.sink(take)).run()
    going = iter(bh.source(source) >> bh.task(bh.sum))
    next(going)
    going.close()
    assert len(closed) == 3 and threading.active_count() == 1
    with pytest.raises(bh.Error, match="nothing"):
        list(bh.source(source) >> bh.task(bh.sum, stack="nothing"))


def test_a_process_that_ends_is_a_failure_of_its_stage():
    def ends(x):
        if x[0] == 1:
            os._exit(7)
        return x

    with pytest.raises(bh.GraphError, match=f"task 'ends' failed at piece [01] on stack {OTHER}: .*ended with code 7"):
        list(bh.source(pieces(5)) >> bh.task(ends, stack=OTHER))


def test_what_a_process_gets():
    weights, scale = bh.arange(float(LARGE)), {"by": 2.0}

    @bh.jit
    def weighted(x):
        return (x * weights).sum() * scale["by"]

    graph = bh.source(pieces(3)) >> bh.task(lambda x: (x * weights).sum() * scale["by"], stack=OTHER)
    expected = [at * LARGE * (LARGE - 1.0) for at in range(3)]
    assert collected(graph) == expected
    assert collected(bh.source(pieces(3)) >> bh.task(weighted, stack=OTHER)) == expected
    assert collected(bh.source(pieces(3, 4)) >> bh.task(bh.linalg.norm, stack=OTHER)) == [0, 2, 4]


PROGRAM = """
import numpy as np
import bh
def where(x):
    assert bh.Stack().name == "cpu-plain" and type(x) is np.ndarray
    return np.zeros(4) + x
print([float(x.sum()) for x in bh.source([np.ones(4), np.zeros(4)]) >> bh.task(where, stack="cpu-plain")], np.__name__)
"""


def test_programs_whose_numpy_is_bh(tmp_path):
    (tmp_path / "main.py").write_text(PROGRAM)
    done = subprocess.run([sys.executable, "-m", "bh", str(tmp_path / "main.py")], capture_output=True, text=True, timeout=LIMIT)
    assert done.stdout == "[4.0, 0.0] bh\n", done.stderr


def test_tasks_keep_no_state():
    count = 0

    def counts(x):
        nonlocal count
        count += 1
        return x

    def remembers(x):
        global remembered
        remembered = x
        return x

    def local(x):
        part = 0

        def inner():
            nonlocal part
            part += 1

        inner()
        return x + part

    for task, what in ((counts, "assigns count"), (remembers, "assigns remembered"), ([].append, "builtin"), (pieces(1).__next__, "builtin")):
        if what == "builtin":
            continue
        with pytest.raises(TypeError, match=f"keeps no state.*{what}"):
            bh.task(task)
    with pytest.raises(TypeError, match="method of an object"):
        bh.task(threading.Event().is_set)
    with pytest.raises(TypeError, match="generator"):
        bh.task(test_tasks_keep_no_state.__globals__["endless"])
    assert collected(bh.source(pieces(1)) >> bh.task(local) >> bh.task(bh.jit(lambda x: x.max()))) == [1]
    for wrong in (lambda: bh.task(3), lambda: bh.task(local, rate=(0, 1)), lambda: bh.sink(local, ahead=0)):
        with pytest.raises((TypeError, ValueError)):
            wrong()
    for wrong in (lambda: (bh.source([]) >> bh.task(local)).run(), lambda: iter(bh.source([]) >> bh.sink(local)), lambda: iter(bh.task(local))):
        with pytest.raises(TypeError):
            wrong()


def endless(x):
    while True:
        yield x


# Tasks with how many pieces they take and give; they tell the order of what they get.
STEPS = {
    "twice": (1, 1, lambda x: x * 2), "behind": (1, 1, lambda x: x - 0.5), "both": (2, 1, lambda x, y: x - 3 * y),
    "parts": (1, 2, lambda x: (x + 1, x[::-1] * 1)), "turned": (2, 2, lambda x, y: (y * 1, x + y)), "three": (3, 1, lambda x, y, z: x + 2 * y - z),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(25))
def test_random_graphs(seed):
    rng = numpy.random.default_rng(seed)
    size = int(rng.choice([3, 200, 5000]))
    number, steps, elsewhere = 1, [], 0
    for name in rng.choice(list(STEPS), int(rng.integers(1, 6))):
        stack = rng.choice([None, None, "numpy", bh.Stack().name, OTHER if seed % 5 == 0 and elsewhere < 1 else None])
        elsewhere += stack == OTHER
        steps.append((name, stack, int(rng.integers(1, 4)) if rng.random() < 0.3 else None))
        number *= STEPS[name][0]
    number *= int(rng.integers(1, 4))
    first = [rng.random(size) for _ in range(number)]
    graph, expected = bh.source(first), first
    for name, stack, ahead in steps:
        taken, given, function = STEPS[name]
        graph = graph >> bh.task(function, stack=stack, rate=(taken, given), ahead=ahead, name=name)
        calls = [function(*expected[at : at + taken]) for at in range(0, len(expected), taken)]
        expected = [piece for call in calls for piece in (call if given > 1 else (call,))]
    found = []
    graph = graph >> bh.sink(lambda piece: found.append(numpy.array(piece)), ahead=int(rng.integers(1, 4)))
    graph.run()
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        numpy.testing.assert_array_equal(one, other)
    assert threading.active_count() == 1


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy, bh
file = sys.argv[1]
def slow(x):
    open(file, "w").close()
    time.sleep(100)
def interrupt():
    while not os.path.exists(file):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
graph = bh.source(numpy.ones(3) for _ in range(9)) >> bh.task(slow, stack="cpu-plain") >> bh.sink(print)
try:
    graph.run()
except KeyboardInterrupt:
    print("interrupted")
try:
    os.waitpid(-1, 0)
except ChildProcessError:
    print("no process is left")
"""


def test_interrupts_end_all_stages(tmp_path):
    (tmp_path / "main.py").write_text(INTERRUPTED)
    command = [sys.executable, str(tmp_path / "main.py"), str(tmp_path / "begun")]
    # Tests that run in the background begin with interrupts ignored, and so would their children.
    listen = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, preexec_fn=listen)
    assert done.stdout.splitlines() == ["interrupted", "no process is left"], done.stderr


def test_nothing_is_left_open():
    open_files = lambda: sorted(os.listdir("/proc/self/fd"))

    def run():
        assert len(list(bh.source(pieces(2)) >> bh.task(bh.sum, stack=OTHER))) == 2
        with pytest.raises(bh.GraphError):
            list(bh.source(pieces(5)) >> bh.task(broken, stack=OTHER) >> bh.task(bh.sum, ahead=1))
        with pytest.raises(bh.Error):
            list(bh.source(pieces(1)) >> bh.task(bh.sum, stack=OTHER) >> bh.task(bh.sum, stack="nothing"))
        with pytest.raises(TypeError, match="pickle"):
            list(bh.source(pieces(1)) >> bh.task(bh.sum, stack=OTHER) >> bh.task(lambda x, lock=threading.Lock(): x, stack="opencl"))

    run()
    gc.collect()
    before = open_files()
    run()
    gc.collect()
    assert open_files() == before and threading.active_count() == 1
