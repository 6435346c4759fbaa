"""Random programs of whole-array statements, which random_programs.cpp runs with bh.hpp and this with NumPy; both must print
the same.

    random_programs.py PROGRAM TYPE FIRST COUNT

PROGRAM is random_programs.cpp, compiled; TYPE is int64 or double; the programs are those of COUNT seeds from FIRST on.
Numbers are small and whole, so that doubles are exact, too. New arrays of NumPy are put in C order, as bh does, because the
order in memory says whether a reshaped array is a view.
"""

import random
import subprocess
import sys

import numpy as np

NAMES = 8
FOLDS = {"sum": np.sum, "max": np.max, "min": np.min, "any": lambda a, **k: np.any(a > 3, **k), "all": lambda a, **k: np.all(a > -2, **k)}
SIGNS = {
    "+": np.add,
    "-": np.subtract,
    "from": lambda a, b: b - a,
    "*": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "<": np.less,
    "==": np.equal,
    "rem": np.remainder,
    "floor": np.floor_divide,
}


def fits(*shapes):
    """Do the shapes broadcast to that of the first?"""
    try:
        return np.broadcast_shapes(*shapes) == shapes[0]
    except ValueError:
        return False


def broadcast(*shapes):
    try:
        np.broadcast_shapes(*shapes)
        return True
    except ValueError:
        return False


class Program:
    def __init__(self, seed, dtype):
        self.rng = random.Random(seed)
        self.dtype = dtype
        self.v = [None] * NAMES
        self.lines, self.printed = [], []
        large = self.rng.random() < 0.1
        self.most = [3000, 60, 14] if large else [40, 9, 5]
        self.usual = [[self.rng.randint(2, self.most[rank]) for _ in range(rank + 1)] for rank in range(3)]
        for to in range(NAMES):
            self.new(to)
        wanted = len(self.lines) + self.rng.randint(3, 40)
        statements = self.statements()
        while len(self.lines) < wanted:
            self.rng.choice(statements)()
            self.tame()
        for name in range(NAMES):
            self.show(name)

    def tame(self):
        """Keeps arrays small, and numbers so small that doubles are exact."""
        for name, a in enumerate(self.v):
            if a.size > 30000:
                self.new(name)
            elif a.size and np.abs(a.astype(float)).max() > 2.0**45:
                self.make(name, "clip", name, np.clip(a, -3, 4))

    # The parts of statements.

    def name(self):
        return self.rng.randrange(NAMES)

    def number(self):
        return self.rng.choice([0, 1, 2, 3, 4, -1, -2])

    def axis(self, a):
        return self.rng.randrange(-a.ndim, a.ndim)

    def say(self, *words):
        self.lines.append(" ".join(map(str, words)))

    def make(self, to, *words_and_value):
        *words, value = words_and_value
        self.v[to] = np.asarray(value, order="C").astype(self.dtype, copy=False)
        self.say(words[0], to, *words[1:])

    def view(self, to, word, *words_and_value):
        *words, value = words_and_value
        self.v[to] = value
        self.say(word, to, *words)

    def new(self, to):
        rank = self.rng.choice([1, 1, 2, 2, 2, 3, 3])
        usual = self.usual[rank - 1]
        shape = [self.rng.choice([1, self.rng.randint(1, self.most[rank - 1]), usual[dim]]) for dim in range(rank)]
        first = self.rng.randrange(7)
        numbers = (np.arange(np.prod(shape)) * 3 + first) % 7 - 2
        self.make(to, "new", first, rank, *shape, numbers.reshape(shape))

    def show(self, name):
        self.printed.append(self.v[name].copy())
        self.say("print", name)

    def slice(self, extent):
        """A subscript in words and in Python, with bounds within the array."""
        kind = self.rng.random()
        if kind < 0.35:
            return ":", slice(None)
        if kind < 0.45 and extent:
            at = self.rng.randrange(-extent, extent)
            return f"i{at}", at
        step = self.rng.choice([1, 1, 1, 2, 3, -1, -1, -2])
        usual = [[None, 0, 1, 2], [None, -1, -2, extent]] if step > 0 else [[None, -1, -2], [None, 0, 1]]
        anywhere = [[None, self.rng.randint(-extent, extent)]] * 2
        bounds = [self.rng.choice(some) for some in (usual if self.rng.random() < 0.6 else anywhere)]
        bounds = [bound if bound is None else max(-extent, min(extent, bound)) for bound in bounds]
        return ",".join(["_" if bound is None else str(bound) for bound in bounds] + [str(step)]), slice(*bounds, step)

    def part(self, a):
        count = self.rng.randint(1, min(a.ndim, 4))
        words, subscripts = map(list, zip(*(self.slice(a.shape[dim]) for dim in range(count))))
        if self.rng.random() < 0.1 and count < 4:
            at = self.rng.randint(0, count)
            words.insert(at, "n"), subscripts.insert(at, None)
        return [len(words), *words], (*subscripts, Ellipsis)

    # Statements; those that do not fit what there is say nothing.

    def statements(self):
        often = [self.computed] * 12 + [self.parted] * 8 + [self.set_part] * 10 + [self.folded] * 6 + [self.updated] * 5
        views = [self.turned] * 5 + [self.named] * 2
        return often + views + [self.chosen] * 5 + [self.joined] * 5 + [self.scattered] * 4 + [self.other] * 4

    def computed(self):
        to, i, j, l = (self.name() for _ in range(4))
        a, b, c = self.v[i], self.v[j], self.v[l]
        sign, number = self.rng.choice(list(SIGNS)), self.number()
        kind = self.rng.randrange(6)
        if kind < 2 and not (number == 0 and sign in ("rem", "floor")):
            self.make(to, "one", sign, i, number, SIGNS[sign](a, self.dtype(number)))
        if kind < 2 or not broadcast(a.shape, b.shape):
            return
        if kind == 2 and sign in ("rem", "floor"):
            self.make(to, "div", sign, i, j, SIGNS[sign](a, np.abs(b) + 1))
        elif kind == 2:
            self.make(to, "two", sign, i, j, SIGNS[sign](a, b))
        elif kind == 3:
            self.make(to, "moved", i, j, np.minimum((a + b) * b, a))
        elif kind == 4 and all(np.abs(some).max(initial=0) < 10**6 for some in (a, b)):
            self.make(to, "mixed", i, j, a * 2 + b)
        elif kind == 5 and broadcast(a.shape, b.shape, c.shape):
            self.make(to, "where", i, j, l, np.where(a > b, c, b))
        if self.rng.random() < 0.5:
            self.make(to, "clip", to, np.clip(self.v[to], -3, 4))

    def parted(self):
        to, i = self.name(), self.name()
        if self.v[i].ndim:
            words, subscripts = self.part(self.v[i])
            self.view(to, "slice", i, *words, self.v[i][subscripts])

    def set_part(self):
        to, i = self.name(), self.name()
        if not self.v[to].ndim:
            return
        words, subscripts = self.part(self.v[to])
        part, number, sign = self.v[to][subscripts], self.number(), self.rng.choice("+-*")
        kind = self.rng.randrange(3)
        if kind == 0:
            part[...] = number
            self.say("set-number", to, number, *words)
        elif fits(part.shape, self.v[i].shape):
            value = self.v[i].copy()
            part[...] = value if kind == 1 else SIGNS[sign](part, value)
            self.say(*(["set", to] if kind == 1 else ["set-update", to, sign]), i, *words)

    def updated(self):
        to, i, sign, number = self.name(), self.name(), self.rng.choice("+-*"), self.number()
        a, kind = self.v[to], self.rng.randrange(3)
        if kind == 0:
            a[...] = SIGNS[sign](a, self.dtype(number))
            self.say("number", to, sign, number)
        elif fits(a.shape, self.v[i].shape):
            a[...] = SIGNS[sign](a, self.v[i]) if kind == 1 else self.v[i].copy()
            self.say(*(["update", to, sign, i] if kind == 1 else ["fill", to, i]))

    def folded(self):
        to, i = self.name(), self.name()
        a, kind = self.v[i], self.rng.randrange(6)
        if a.ndim == 0 or a.size == 0:
            return
        axis, low = self.axis(a), np.clip(a, -1, 2)
        if kind < 2:
            fold, kept = self.rng.choice(list(FOLDS)), self.rng.randrange(2)
            some = self.rng.choice([None, axis])
            words = [fold, i, -9 if some is None else some, kept]
            self.make(to, "fold", *words, FOLDS[fold](a, axis=some, keepdims=bool(kept)))
        elif kind == 2:
            self.make(to, "cumsum", i, axis, np.cumsum(a, axis))
        elif kind == 3:
            word = self.rng.choice(["argmax", "argmin"])
            self.make(to, word, i, axis, getattr(np, word)(a, axis))
        elif kind == 4 and a.shape[axis] < 40:
            word = self.rng.choice(["prod", "cumprod"])
            self.make(to, word, i, axis, getattr(np, word)(low, axis))
        elif kind == 5 and a.ndim > 1:
            first, second = self.rng.sample(range(a.ndim), 2)
            self.make(to, "both", i, first, second, np.sum(a, axis=(first, second)))

    def turned(self):
        to, i = self.name(), self.name()
        a, kind = self.v[i], self.rng.randrange(5)
        if kind == 0:
            self.view(to, "transpose", i, a.T)
        elif kind == 1 and a.size:
            pairs = [(d, a.size // d) for d in (1, 2, 3, 4) if a.size % d == 0]
            shape = self.rng.choice([(a.size,), (-1,)] + pairs + [pair[::-1] for pair in pairs])
            self.view(to, "reshape", i, len(shape), *shape, a.reshape(shape))
        elif kind == 2 and a.ndim:
            axis = self.axis(a)
            self.view(to, "flip", i, axis, np.flip(a, axis))
        elif kind == 3 and a.ndim:
            first, second = self.axis(a), self.axis(a)
            self.view(to, "swap", i, first, second, np.swapaxes(a, first, second))
        elif kind == 4:
            self.view(to, "squeeze", i, np.squeeze(a))

    def named(self):
        to, i = self.name(), self.name()
        if self.rng.random() < 0.6:
            self.view(to, "name", i, self.v[i])
        else:
            self.make(to, "copy", i, self.v[i].copy())

    def chosen(self):
        to, i, number, least = self.name(), self.name(), self.number(), self.number()
        a, b, kind = self.v[to], self.v[i], self.rng.randrange(7)
        if a.ndim == 0 or b.ndim == 0:
            return
        rows = b.ndim <= a.ndim and a.shape[: b.ndim] == b.shape
        if kind == 0:
            a[a > least] = number
            self.say("mask", to, least, number)
        elif kind == 1:
            a[a > least] += number
            self.say("mask-add", to, least, number)
        elif kind == 2 and rows:
            a[b > 0] = number
            self.say("mask-rows", to, i, number)
        elif kind == 3:
            a[a > 0] = a[a > 0][::-1] + 1
            self.say("mask-turn", to)
        elif kind == 4 and fits(a.shape, b.shape):
            a[...] = np.where(a < 1, b, a)
            self.say("mask-put", to, i)
        elif kind == 5:
            self.make(to, "chosen", i, least, b[b > least])
        elif kind == 6 and rows:
            self.make(to, "rows", to, i, a[b > 0])

    def joined(self):
        to, i, j = self.name(), self.name(), self.name()
        a, b, kind = self.v[i], self.v[j], self.rng.randrange(6)
        if a.ndim == 0:
            return
        axis, count = self.axis(a) % a.ndim, self.rng.randint(1, 3)
        if kind == 0 and a.ndim == b.ndim and a.shape[:axis] + a.shape[axis + 1 :] == b.shape[:axis] + b.shape[axis + 1 :]:
            self.make(to, "join", i, j, axis, np.concatenate([a, b], axis))
        elif kind == 1 and a.shape == b.shape and a.ndim < 4:
            self.make(to, "stack", i, j, axis, np.stack([a, b], axis))
        elif kind == 2:
            by = self.rng.randint(-5, 5)
            self.make(to, "roll", i, by, axis, np.roll(a, by, axis))
        elif kind == 3:
            self.make(to, "diff", i, axis, np.diff(a, axis=axis))
        elif kind == 4:
            self.make(to, "repeat", i, count, axis, np.repeat(a, count, axis))
        elif kind == 5:
            counts = [self.rng.choice([1, 1, 2, 3]) for _ in range(count)]
            self.make(to, "tile", i, count, *counts, np.tile(a, counts))

    def scattered(self):
        to, i, j, number = self.name(), self.name(), self.name(), self.number()
        a, b, kind = self.v[i], self.v[j], self.rng.randrange(4)
        if a.size == 0 or a.ndim == 0:
            return
        places = np.remainder(np.abs(b), a.size).astype(np.int64)
        at = np.unravel_index(places.reshape(-1), a.shape)
        if kind == 0:
            self.make(to, "take", i, j, a.reshape(-1)[places])
        elif kind == 1 and a.ndim + b.ndim < 5 and a.size * b.size < 20000:
            axis = self.rng.randrange(a.ndim)
            self.make(to, "along", i, j, axis, np.take(a, np.abs(b).astype(np.int64) % a.shape[axis], axis))
        elif kind == 2:
            a[at] = number
            self.say("put", i, j, number)
        elif kind == 3:
            np.add.at(a, at, number)
            self.say("put-add", i, j, number)

    def other(self):
        to, i, j = self.name(), self.name(), self.name()
        a, b, kind = self.v[i], self.v[j], self.rng.randrange(9)
        if kind == 0:
            self.show(i)
        elif kind == 1:
            self.say("flush")
        elif kind == 2 and b.size:
            self.make(to, "less", i, j, a - b.max())
        elif kind == 3 and np.abs(a).max(initial=0) < 2**20:
            power = self.rng.choice([2, 3])
            self.make(to, "pow", i, power, a**power)
            self.make(to, "clip", to, np.clip(self.v[to], -3, 4))
        elif kind == 4 and np.abs(a).max(initial=0) < 12:
            self.make(to, "narrow", i, (a * 11).astype(np.int8))
        elif kind == 5 and a.ndim == 2 and a.size:
            offset = self.rng.randrange(1 - a.shape[0], a.shape[1])
            triangle = self.rng.choice(["tril", "triu"])
            self.make(to, triangle, i, offset, getattr(np, triangle)(a, offset))
            self.make(to, "diagonal", i, offset, np.diagonal(a, offset).copy())
        elif kind == 6 and a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.size * b.size:
            self.make(to, "matmul", i, j, a @ b)
        elif kind == 7 and a.ndim == b.ndim == 1 and a.size * b.size < 20000:
            self.make(to, "outer", i, j, np.outer(a, b))
        elif kind == 8 and a.ndim and a.shape[0] > 2 and a.size:
            rounds = self.rng.randint(1, 30)
            for number in range(rounds):
                a[1:-1] = np.clip(a[:-2] + a[2:] - a[1:-1], -3, 4)
                if number % 3 == 2 and a.max() > 3:
                    a -= 1
            self.say("loop", i, rounds)


def main():
    executable, kind, first, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    dtype = {"int64": np.int64, "double": np.float64}[kind]
    programs = {seed: Program(seed, dtype) for seed in range(first, first + count)}
    # They run one after the other in one process.
    text = "".join(line + "\n" for program in programs.values() for line in program.lines)
    output = subprocess.run([executable, kind], input=text, stdout=subprocess.PIPE, text=True, check=True).stdout
    found = iter(output.splitlines())
    for seed, program in programs.items():
        for number, wanted in enumerate(program.printed):
            line = next(found, "nothing")
            shape, bar, elements = line.partition("|")
            same = bar and [int(extent) for extent in shape.split()] == list(wanted.shape)
            if not same or not np.array_equal(np.array(elements.split(), float), wanted.astype(float).reshape(-1)):
                statements = "\n".join(program.lines)
                sys.exit(f"seed {seed}, array {number} that is printed: {line[:300]}\ninstead of\n{wanted}\n{statements}")
    if next(found, None) is not None:
        sys.exit("more was printed than expected")
    print(f"{count} random programs of {kind} print what NumPy prints")


main()
