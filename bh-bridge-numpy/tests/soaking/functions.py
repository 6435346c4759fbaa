"""Random functions of scalars with nested control flow, as text: what they compute fails for no numbers, so that Python can call
them."""

import functools
import linecache
import random

FLOATS, WHOLES, TRUTHS = ("x", "y", "f", "g"), ("n", "i", "j"), ("p", "q")


class Writer:
    """Writes one function."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.depth, self.loops, self.serial, self.helpers = [], 1, 0, 0, 0

    def pick(self, *choices):
        return self.random.choice(choices)

    def line(self, text):
        self.lines.append("    " * self.depth + text)

    def text(self):
        """A helper and the function itself."""
        helper = Writer(self.random.random())
        helper.line("f, g, i, j, p, q = y, x, n + 1, 3, x < y, False")
        helper.statements(2, 3)
        helper.line(f"return {helper.real(2)}")
        self.helpers = 1
        self.line("f, g, i, j = 0.5, 2.0, 0, 1")
        self.line("p, q = x > y, n > 2")
        self.statements(3, 5)
        self.line(f"return {self.real(2)}, {self.whole(2)}")
        head = ["import math", "", "def helper(x, y, n):", *helper.lines, "", "def function(x, y, n):", *self.lines]
        return "\n".join(head) + "\n"

    # Expressions

    def real(self, depth):
        if depth == 0:
            return self.pick(*FLOATS, "1.5", "-0.25", "3", "i")
        one, other = self.real(depth - 1), self.real(depth - 1)
        forms = [
            f"({one} + {other})", f"({one} - {other})", f"{one} * {other}", f"-{one}", f"abs({one})", f"min({one}, {other})",
            f"max({one}, {other})", f"math.sqrt(abs({one}))", f"({one} / {other} if {other} != 0 else {one})",
            f"({one} if {self.truth(depth - 1)} else {other})", f"float({self.whole(depth - 1)})", f"({one} or {other})",
            f"({one} % 7.0 if -1e6 < {one} < 1e6 else 0.0)", f"({one} // 2.5 if abs({one}) < 1e6 else {other})",
            f"({one} and {other})",
        ]  # fmt: skip
        if self.helpers:
            forms.append(f"helper({one}, {other}, {self.whole(depth - 1)})")
        return self.pick(*forms)

    def whole(self, depth):
        if depth == 0:
            return self.pick(*WHOLES, "2", "-3", "7")
        one, other = self.whole(depth - 1), self.whole(depth - 1)
        return self.pick(
            f"({one} + {other}) % 101", f"({one} - {other}) % 17", f"({one} * {other}) % 1009", f"({one} // {self.pick(2, 3, -5)})",
            f"({one} % ({other} % 5 + 1))", f"({one} if {self.truth(depth - 1)} else {other})", f"min({one}, {other})",
            f"({one} ^ {other}) % 64", f"abs({one})", f"int({self.pick(*TRUTHS)})", f"({one} + {self.pick(*TRUTHS)}) % 9",
            f"(int({self.pick(*FLOATS)}) if abs({self.pick('x', 'y')}) < -1 else {one})",
            f"(math.floor({self.pick('x', 'y')} * 0.0 + 1.5) + {one}) % 11",
        )  # fmt: skip

    def truth(self, depth):
        if depth == 0:
            return self.pick(*TRUTHS, "x < y", "i > 1", "n == j")
        one, other = self.truth(depth - 1), self.truth(depth - 1)
        sign = self.pick("<", "<=", ">", ">=", "==", "!=")
        return self.pick(
            f"({one} and {other})", f"({one} or {other})", f"(not {one})", f"({self.real(depth - 1)} {sign} {self.real(depth - 1)})",
            f"({self.whole(depth - 1)} {sign} {self.whole(depth - 1)})", f"(-1 < {self.real(depth - 1)} <= {self.real(0)})",
        )  # fmt: skip

    # Statements

    def statements(self, depth, most):
        for _ in range(self.random.randint(1, most)):
            self.statement(depth)

    def statement(self, depth):
        kind = self.random.random()
        if depth == 0 or kind < 0.45:
            self.assignment()
        elif kind < 0.7:
            self.branch(depth)
        elif kind < 0.82:
            self.serial += 1
            self.line(f"k{self.serial} = 0")
            self.loop(f"while k{self.serial} < {self.random.randint(1, 6)} and {self.truth(1)}:", depth, f"k{self.serial} += 1")
        elif kind < 0.97:
            self.serial += 1
            bounds = self.pick("3", f"{self.whole(0)} % 6", f"{self.whole(0)} % 3, 5", f"5, {self.whole(0)} % 4, -1", f"0, 6, {self.whole(0)} % 3 + 1")
            self.loop(f"for k{self.serial} in range({bounds}):", depth, f"i = (i + k{self.serial}) % 13")
        elif self.helpers:
            self.line(f"if {self.truth(1)}:")
            self.line(f"    return {self.real(1)}, {self.whole(1)}")
        else:
            self.assignment()

    def assignment(self):
        target = self.pick(*FLOATS[2:], *FLOATS[2:], *WHOLES[1:], *TRUTHS, "x")
        value = self.real(2) if target in FLOATS else self.whole(2) if target in WHOLES else self.truth(2)
        if target in FLOATS and self.random.random() < 0.3:
            self.line(f"{target} {self.pick('+', '-', '*')}= {self.real(1)}")
        elif self.random.random() < 0.2:
            self.line("f, g = g, f + 1")
        else:
            self.line(f"{target} = {value}")

    def branch(self, depth):
        self.line(f"if {self.truth(2)}:")
        self.block(depth)
        if self.random.random() < 0.3:
            self.line(f"elif {self.truth(1)}:")
            self.block(depth)
        if self.random.random() < 0.5:
            self.line("else:")
            self.block(depth)

    def block(self, depth):
        self.depth += 1
        self.statements(depth - 1, 2)
        if self.loops and self.random.random() < 0.3:
            self.line(self.pick("break", "continue"))
        self.depth -= 1

    def loop(self, head, depth, first):
        self.line(head)
        self.depth, self.loops = self.depth + 1, self.loops + 1
        self.line(first)
        self.statements(depth - 1, 3)
        self.depth, self.loops = self.depth - 1, self.loops - 1
        if self.random.random() < 0.2:
            self.line("else:")
            self.block(depth)


def function(seed, folder):
    """A random function in a file of its own, and its text."""
    text = Writer(seed).text()
    path = folder / f"function_{seed}.py"
    path.write_text(text)
    scope = {}
    exec(compile(text, str(path), "exec"), scope)
    return scope["function"], text


def complex_text(seed):
    """A function of a complex and a whole number with loops that it leaves when a number is large. It has no quotients of complex
    numbers, which Python and NumPy round each in its own way."""
    source = random.Random(seed)
    pick = source.choice

    def term(depth):
        if depth == 0:
            return pick(("z", "w", "u", "(0.5-0.25j)", "1j", "2", "x"))
        one, other = term(depth - 1), term(depth - 1)
        return pick((f"({one} + {other})", f"({one} - {other})", f"{one} * {other}", f"-{one}", f"({one}).conjugate()", f"({one}).real",
                     f"complex(({one}).imag, x)", f"({one} * z)**2", f"({one}) / 4"))  # fmt: skip

    size = lambda name: f"{name}.real * {name}.real + {name}.imag * {name}.imag"
    lines = ["def function(z, n):", "    x = z.real * 0.5", "    w, u = z * 1.0, z - 0.5j"]
    lines += [f"    for k in range({pick(('n % 7 + 2', '5', '3, 40'))}):", f"        w = {term(2)}"]
    lines += [f"        if {size('w')} > {pick((4, 50, 1e6))}:", f"            {pick(('break', 'continue', 'w = w * 0.0 + z', 'u = w * 0.25 + u; break'))}"]
    lines += [f"        u = {term(2)}", f"        if {size('u')} > 1e6:", "            u = z + k"]
    lines += [f"    return {pick(('w', 'u', 'w - u', 'w.real + u * 0'))} + 0j"]
    return "\n".join(lines) + "\n"


@functools.lru_cache(256)
def scalar(kind, seed):
    """A random function of a real, another real and a whole number, or, if `kind` is "complex", of a complex and a whole number. Its
    text is at hand for those who read functions."""
    text = complex_text(seed) if kind == "complex" else Writer(seed).text()
    place = f"<scalar {kind} {seed}>"
    linecache.cache[place] = len(text), None, text.splitlines(True), place
    scope = {}
    exec(compile(text, place, "exec"), scope)
    return scope["function"]
