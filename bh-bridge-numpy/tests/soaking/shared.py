"""Threads that share an array: `python -m soaking.shared FIRST COUNT` prints what goes wrong where each thread writes rows of its own,
while others read the whole array, look at it as NumPy's, and make arrays of theirs.
"""

import random
import sys
import threading

import numpy

import bh

WRITES = ("a[r] = x", "a[r] += x", "a[r] *= 2", "a[r, ::2] = x[::2]", "a[r, 1:] -= a[r, :-1]", "a[r] = np.sqrt(np.abs(a[r]))", "a[r][:, x > 0] = 1", "np.add(a[r], x, out=a[r])",
          "row = a[r]; row += 1", "a[r, 3] = 7", "v = a[r]; v += 1", "v = a[r]; v *= 0.5", "np.copyto(a[r], x)", "a[r].fill(2)", "a[r] = a[r][:, ::-1].copy()", "a[r][:, [0, 2]] += 1")  # fmt: skip
READS = ("numpy.asarray(a)", "numpy.asarray(a).sum()", "a.sum()", "float(a[0, 0])", "memoryview(a)", "a.tolist()", "repr(a)", "a.copy()", "numpy.array(a[:2])", "(a + 1).max()",
         "np.ones(50) @ np.ones(50)", "numpy.asarray(a[:, 1])", "a.T.copy()", "np.sort(a, axis=0)", "view = numpy.asarray(a); del view", "a.flags", "a.nonzero()")  # fmt: skip


def difference(seed):
    """The error of the program of a seed; none if it is right."""
    chance = random.Random(seed)
    count, height, columns = chance.choice((3, 4, 8)), chance.choice((1, 3, 8)), chance.choice((5, 64, 700))
    # Few statements run often: threads meet seldom.
    turns, most = chance.choice(((20, 12), (2000, 2)))
    parts = [slice(height * number, height * (number + 1)) for number in range(count)]
    # Threads that write look at the whole in between.
    programs = [[chance.choice(WRITES), *(chance.choice(WRITES + READS[:2] * 8) for _ in range(chance.randint(1, most)))] for _ in parts]
    reads = [[chance.choice(READS) for _ in range(chance.randint(1, most))] for _ in range(chance.randint(1, 3))]
    start = numpy.random.default_rng(seed).integers(-8, 9, (count * height, columns)) / 8
    wrong, a, right = [], bh.asarray(start) + 0, start.copy()

    def run(library, texts, array, part):
        names = {"np": library, "numpy": numpy, "a": array, "r": part, "x": library.arange(float(columns)) % 7 - 3}
        for text in texts:
            exec(text, names)

    def work(texts, part):
        try:
            with numpy.errstate(all="ignore"):
                run(bh, texts * turns, a, part)
        except Exception as error:
            wrong.append(f"{texts}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=pair) for pair in [*zip(programs, parts), *((texts, parts[0]) for texts in reads)]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    if any(thread.is_alive() for thread in threads):
        return "threads wait for each other"
    with numpy.errstate(all="ignore"):
        for texts, part in zip(programs, parts):
            run(numpy, texts * turns, right, part)
    if wrong:
        return str(wrong)
    mine = numpy.array(a)
    bad = [texts for texts, part in zip(programs, parts) if not numpy.array_equal(mine[part], right[part], equal_nan=True)]
    return f"parts of {height} by {columns} differ: {bad}, beside {reads}" if bad else None


def differences(first, count):
    """The programs of these seeds that are wrong: seeds, and what is wrong."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for seed in range(first, first + count):
            found = difference(seed)
            if found:
                yield seed, found
    finally:
        sys.setswitchinterval(interval)


if __name__ == "__main__":
    for finding in differences(*map(int, sys.argv[1:3])):
        print(*finding, sep="\n    ")
