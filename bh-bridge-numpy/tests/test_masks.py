"""Random programs with masks: what masks choose, computed with and assigned, has NumPy's bits, however it is carried out."""

import os
import subprocess
import sys

import pytest
from conftest import LIMIT

# Operations that round as NumPy's do, whichever elements are beside theirs.
PROGRAMS = """
import random, sys
import numpy, bh

UNARY = ["-{0}", "abs({0})", "np.sqrt(abs({0}))", "{0} * {0}", "np.floor({0})", "np.add({0}, 1, dtype='float64')", "np.copy({0})"]
BINARY = ["{0} + {1}", "{0} - {1}", "{0} * {1}", "np.maximum({0}, {1})", "np.where({0} < {1}, {0}, {1})", "np.minimum({0}, {1})"]
NUMBERS = ["2", "-1", "3", "np.float64(1.5)"]
DTYPES = ["float64", "float64", "float32", "int64"]
SHAPES = [(600,), (20, 40), (7, 9, 11), (3000,)]


class Draft:
    def __init__(self, seed):
        self.random = random.Random(seed)
        pick = self.random.choice
        self.shape, self.lines, self.made = pick(SHAPES), [], 0
        self.source = numpy.random.default_rng(seed)
        self.arrays = {f"x{number}": self.array(pick(DTYPES)) for number in range(3)}
        self.arrays["m0"] = self.source.random(self.shape) < pick([.02, .2, .3, .5, .9, 1])
        self.masks, self.wholes, self.lists = ["m0"], ["x0", "x1", "x2"], []
        for _ in range(self.random.randint(2, 14)):
            self.lines.append(pick([self.choose, self.choose, self.compute, self.assign, self.assign, self.update, self.disturb, self.look, self.mask])())

    def array(self, dtype):
        return self.source.integers(0, 40, self.shape).astype(dtype)

    def name(self, kind):
        self.made += 1
        return f"{kind}{self.made}"

    def operand(self):
        pick = self.random.choice
        if self.lists and self.random.random() < .5:
            return pick(self.lists[-3:])
        if self.random.random() < .2:
            return pick(NUMBERS)
        return f"{pick(self.wholes)}[{pick(self.masks[-2:])}]"

    def term(self, depth=2):
        pick, kind = self.random.choice, self.random.random()
        if depth == 0 or kind < .3:
            return self.operand()
        if kind < .5:
            return "(" + pick(UNARY).format(self.term(depth - 1)) + ")"
        return "(" + pick(BINARY).format(self.term(depth - 1), self.term(depth - 1)) + ")"

    def choose(self):
        name = self.name("t")
        line = f"{name} = {self.random.choice(self.wholes)}[{self.random.choice(self.masks[-2:])}]"
        self.lists.append(name)
        return line

    def compute(self):
        name, term = self.name("t"), self.term()
        self.lists.append(name)
        return f"{name} = np.atleast_1d(np.asarray({term}))"

    def assign(self):
        return f"{self.random.choice(self.wholes)}[{self.random.choice(self.masks[-2:])}] = {self.term()}"

    def update(self):
        what = self.random.choice(self.lists[-3:] + [f"{self.random.choice(self.wholes)}[{self.random.choice(self.masks[-2:])}]"])
        return f"{what} {self.random.choice(['+=', '*=', '-='])} {self.operand()}"

    def disturb(self):
        whole, mask = self.random.choice(self.wholes), self.random.choice(self.masks)
        return self.random.choice([f"{whole} += 1", f"{whole}[1:5] = 3", f"np.logical_not({mask}, {mask})", f"{mask}[:3] = False", f"{mask} &= {whole} > 9", f"{whole}[...] = {self.random.choice(self.wholes)}"])

    def look(self):
        name = self.name("s")
        self.arrays_read = name
        what = self.random.choice(self.lists[-3:] + self.wholes + self.masks)
        return self.random.choice([f"{name} = float(np.sum({what} > 3))", f"{name} = len({what})", f"{name} = {what}.ravel()[:3].tolist()", f"{name} = np.count_nonzero({what})"])

    def mask(self):
        name = self.name("m")
        line = f"{name} = {self.random.choice(self.wholes)} {self.random.choice(['<', '>', '!='])} {self.random.choice(['5', '20', '33', self.random.choice(self.wholes)])}"
        self.masks.append(name)
        return line


def outcome(np, draft):
    names = {"np": np, **{name: np.array(value) for name, value in draft.arrays.items()}}
    for line in draft.lines:
        before = set(names)
        try:
            with numpy.errstate(all="ignore"):
                exec(line, names)
        except (ValueError, TypeError, IndexError, OverflowError) as error:
            names[f"error{len(names)}"] = type(error).__name__
            # The result of the line does not exist, so the program ends.
            break
    found = {}
    for name, value in names.items():
        if name in ("np", "__builtins__"):
            continue
        if isinstance(value, (str, float, int, list)):
            found[name] = repr(value)
        else:
            value = numpy.asarray(value)
            # NaN, and zeros of `maximum`, have signs that NumPy and vectors give them as they please.
            value = numpy.where(value != value, numpy.nan, value + 0.0).astype(value.dtype) if value.dtype.kind == "f" else value
            found[name] = (str(value.dtype), value.shape, value.tobytes())
    return found


first, count = map(int, sys.argv[1:])
kept = 0
for seed in range(first, first + count):
    draft = Draft(seed)
    expected, found = outcome(numpy, draft), outcome(bh, draft)
    for name in expected:
        if expected[name] != found.get(name):
            print("seed", seed, "differs in", name, expected[name][:2], found.get(name, "?")[:2])
            print("\\n".join(draft.lines))
            sys.exit(1)
print("same")
"""

# Nothing is chosen later; all is; arrays of 1 KiB are large; all that is not chosen later is recorded.
SETTINGS = [
    {"BH_RECORDER_RECIPES": "off"},
    {"BH_RECORDER_IMMEDIATE_BYTES": "1024"},
    {"BH_RECORDER_IMMEDIATE_BYTES": "64", "BH_RECORDER_RECIPES": "always"},
    {"BH_RECORDER_IMMEDIATE_BYTES": "0"},
    {"BH_RECORDER_IMMEDIATE_BYTES": "256", "BH_RECORDER_MAX_INSTRUCTIONS": "3"},
    {"BH_RECORDER_IMMEDIATE_BYTES": "256", "BH_FUSER_ALGORITHM": "singleton", "BH_VE_CPU_JIT": "on"},
]


def run(program, *arguments, **settings):
    done = subprocess.run([sys.executable, "-c", program, *map(str, arguments)], env=dict(os.environ, **settings), capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: "-".join(settings.values()))
def test_random_programs_with_masks(settings):
    assert run(PROGRAMS, 0, 250, **settings) == "same\n"


STEPS = """
import numpy, bh as np

source = numpy.random.default_rng(3)
x, c = (np.asarray(source.random((300, 100)) + 1j * source.random((300, 100))) for _ in range(2))
few = abs(c) > 1.3
m = abs(x) < 0.9
print(int(m.sum()), int(few.sum()))
np.flush()


def recorded(step):
    before = np._native.Stack().work()[0]
    step()
    np.flush()
    return np._native.Stack().work()[0] - before


def assign():
    x[m] = x[m] ** 2 + c[m]


def update():
    x[m] *= 2


def some():
    x[few] = x[few] + 1


print([recorded(step) for step in (assign, update, some)])
"""


def test_operations_under_one_mask_run_on_whole_arrays():
    # A product, a sum and a selection; a product and a selection. Few chosen elements are copied.
    lines = run(STEPS).splitlines()
    assert lines[0] != "0 0" and eval(lines[1])[:2] == [3, 2]
    assert min(eval(run(STEPS, BH_RECORDER_RECIPES="off").splitlines()[1])[:2]) > 3
