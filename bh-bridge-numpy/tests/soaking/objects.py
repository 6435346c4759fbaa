"""Random functions of scalars with objects of several classes and lists, as text: what they compute fails for no numbers, so that Python can
call them."""

import random

HEAD = '''import dataclasses
import math
from typing import NamedTuple


class Pair(NamedTuple):
    a: float
    b: float

    def mixed(self, k):
        return self.a * {pair} - self.b * k

    def swapped(self):
        return Pair(self.b, self.a)


class Shape:
    def __init__(self, size, count):
        self.size = size
        self.count = count

    def measure(self, k):
        return self.size {first} k

    def name(self):
        return 1

    @property
    def double(self):
        return self.measure(2) + self.size


class Round(Shape):
    def __init__(self, size):
        super().__init__(size * 0.5, {count})
        self.pair = Pair(size, {number})

    def measure(self, k):
        return super().measure(k) * {second} + self.pair.mixed(k)

    def name(self):
        return self.count + 2


@dataclasses.dataclass
class Flat(Shape):
    size: float
    count: int = 3
    other: float = {number}

    def measure(self, k):
        if k > self.count:
            return self.other
        return self.size - self.other {third} k


class Walker:
    def __init__(self, place):
        self.place = place
        self.seen = [place, 0.5]
        self.turns = 0

    def step(self, by):
        self.place = (self.place + by) % 8.0
        self.turns += 1
        if len(self.seen) < {room}:
            self.seen.append(self.place)
        return self.turns

    def last(self):
        return self.seen[-1]


def helper(shape, items, k):
    total = shape.measure(k)
    for item in items:
        if item > total:
            {escape}
        total = total * 0.5 + item
    return total
'''


class Writer:
    """Writes one function."""

    def __init__(self, seed):
        self.random, self.lines, self.depth, self.serial = random.Random(seed), [], 1, 0
        # Loops around, those that have the items already, and those that go through the items.
        self.loops = self.held = self.through = 0

    def pick(self, *choices):
        return self.random.choice(choices)

    def line(self, text):
        self.lines.append("    " * self.depth + text)

    def text(self):
        number = lambda: self.pick("0.25", "1.5", "-2.0", "3.0")
        sign = lambda: self.pick("+", "-", "*")
        head = HEAD.format(pair=number(), first=sign(), second=number(), third=sign(), number=number(), count=self.pick("1", "2", "int(size) % 4"),
                           room=self.pick("3", "6", "9"), escape=self.pick("return total + item", "break", "continue"))  # fmt: skip
        self.line("shape, best, pair = Round(x), None, Pair(y, x)")
        self.line("walker = Walker(abs(y) % 5.0)")
        self.line("items, stack, i, f = [x, y, x * y, 0.25], [], n, 0.0")
        self.line(self.pick("grid = [[x, 1.0], [y, 2.0]]", "grid = [[k * x for k in range(2)] for j in range(2)]"))
        for _ in range(self.random.randint(2, 5)):
            self.statement(2)
        self.line(f"best_value = best.measure(1) + best.count if best is not None else {self.number(1)}")
        self.line("return f + sum(items) + sum(stack) + walker.last() + best_value + grid[0][1], i + walker.turns + len(stack) + shape.name()")
        return f"{head}\n\ndef function(x, y, n):\n" + "\n".join(self.lines) + "\n"

    # Expressions

    def number(self, depth):
        if depth == 0:
            return self.pick("x", "y", "f", "0.75", "pair.a", "shape.size", "walker.place", "items[2]", "grid[1][0]", "pair[1]")
        one, other = self.number(depth - 1), self.number(depth - 1)
        return self.pick(
            f"({one} + {other})", f"({one} - {other})", f"{one} * 0.5", f"min({one}, {other})", f"abs({one})", f"shape.measure({self.whole(0)})",
            f"pair.mixed({one})", f"items[{self.whole(1)} % 4]", f"items[-1 - {self.whole(1)} % 4]", f"helper(shape, items, {self.whole(0)})",
            f"({one} if {self.truth(depth - 1)} else {other})", f"(stack[-1] if stack else {one})", f"(best.measure(2) if best else {other})",
            "shape.double", "max(items)", f"({one}, {other})[{self.whole(1)} % 2]", f"Pair({one}, {other}).swapped().a",
            f"sum([item * {one} for item in items if item > 0.1])", f"grid[{self.whole(0)} % 2][1]", f"(0.5, 1.5, 2.5)[{self.whole(0)} % 3]",
            "sorted(items)[1]", f"(stack[{self.whole(0)} % len(stack)] if len(stack) > 1 else 0.0)",
        )  # fmt: skip

    def whole(self, depth):
        if depth == 0:
            return self.pick("n", "i", "2", "walker.turns", "len(items)", "len(stack)", "shape.name()")
        return self.pick(f"({self.whole(0)} + {self.whole(0)}) % 11", f"({self.whole(0)} * 3) % 7", self.whole(0))

    def truth(self, depth):
        if depth == 0:
            return self.pick("x < y", "i > 2", "best is None", "best", "stack", "isinstance(shape, Round)", "len(stack) < 3", "walker.turns > 1")
        one, other = self.truth(0), self.truth(0)
        return self.pick(f"({one} and {other})", f"({one} or {other})", f"(not {one})", f"{self.number(0)} < {self.number(0)}", f"{self.number(0)} in items",
                         "isinstance(shape, (Flat, Round))")  # fmt: skip

    # Statements

    def statement(self, depth):
        kind = self.random.random()
        if depth == 0 or kind < 0.62:
            self.simple()
        elif kind < 0.82:
            self.line(f"if {self.truth(1)}:")
            self.block(depth)
            if self.random.random() < 0.5:
                self.line("else:")
                self.block(depth)
        else:
            self.serial += 1
            bounds = self.pick("3", f"{self.whole(0)} % 4", "len(items)")
            head = self.pick(f"for k{self.serial} in range({bounds}):", f"for k{self.serial} in items:", f"for j, k{self.serial} in enumerate(items):")
            self.line(head)
            held, through = "enumerate" in head, " in items:" in head
            self.depth, self.loops, self.held, self.through = self.depth + 1, self.loops + 1, self.held + held, self.through + through
            if "range" in head and not self.held:
                self.line(f"items[k{self.serial} % 4] += 0.5")
            self.line(f"f = f * 0.5 + k{self.serial}")
            for _ in range(self.random.randint(1, 2)):
                self.statement(depth - 1)
            if self.random.random() < 0.3:
                self.line(f"if {self.truth(0)}:")
                self.line(f"    {self.pick('break', 'continue')}")
            self.depth, self.loops, self.held, self.through = self.depth - 1, self.loops - 1, self.held - held, self.through - through

    def block(self, depth):
        self.depth += 1
        for _ in range(self.random.randint(1, 2)):
            self.statement(depth - 1)
        self.depth -= 1

    def simple(self):
        form = self.random.randrange(14)
        value = self.number(2)
        if form == 0:
            self.line(f"shape = {self.made()}")
        elif form == 1:
            self.line(self.pick("best = shape", f"best = {self.made()}", "best = None", f"best = shape if {self.truth(1)} else best"))
        elif form == 2:
            self.line(self.pick("pair = pair.swapped()", f"pair = Pair({value}, x)", "a, f = pair", f"pair = pair if {self.truth(1)} else Pair(f, {value})"))
        elif form == 3:
            self.line(f"i = walker.step({value}) + i % 50")
        elif form == 4:
            self.line("if len(stack) < 5:")
            self.line(f"    stack.append({value})")
        elif form == 5:
            self.line("if stack:")
            self.line(f"    f = {self.pick('stack.pop()', 'stack.pop(0)', 'stack[-1]')} + f * 0.5")
        elif form == 6 and not self.held:
            self.line(f"items[{self.pick('1', '-2', self.whole(1) + ' % 4')}] = {value}")
        elif form == 7:
            self.line(f"grid[{self.pick('0', '1')}][{self.pick('0', '1', 'i % 2')}] = {value}")
        elif form == 8:
            self.line(self.pick("stack.clear()", "stack = [y, f]" if self.loops else "stack = stack + [f]"))
        elif form == 9 and not self.held:
            self.line(self.pick("items.sort()", "items.reverse()", f"items[0], items[3] = items[3], {value}"))
        elif form == 10 and not (self.held or self.through):
            self.line(self.pick("items = items[::-1]", "items = [x, f, y, i]", "items = sorted(items)"))
        else:
            self.line(f"f = {value}")

    def made(self):
        return self.pick(f"Round({self.number(1)})", f"Flat({self.number(1)})", f"Flat({self.number(0)}, {self.whole(0)} % 5)", f"Shape({self.number(1)}, 2)")


def function(seed, folder):
    """A random function in a file of its own, and its text."""
    text = Writer(seed).text()
    path = folder / f"objects_{seed}.py"
    path.write_text(text)
    scope = {"__name__": f"objects_{seed}"}
    exec(compile(text, str(path), "exec"), scope)
    return scope["function"], text
