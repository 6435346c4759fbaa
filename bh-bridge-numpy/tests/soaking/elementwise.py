"""Statements of elementwise arithmetic: scaled sums, polynomials, normalisations, chains of `where`, other types."""

from .views import operand

CONSTANTS = ("0.5", "0.25", "2", "3", "0.3", "0.1", "4", "-1", "1.5", "0.125", "6", "(1 / 9)", "-0.5", "8.0")
FUNCTIONS = ("np.exp(-np.abs({}))", "np.sin({})", "np.cos({})", "np.tanh({})", "np.log(1 + {0} * {0})", "np.log1p(np.abs({}))",
             "np.arctan({})", "np.exp(-{0} * {0})", "np.hypot({}, 1.5)", "np.expm1(-np.abs({}))", "np.arctan2({}, 2)")  # fmt: skip
EXACT = ("np.sqrt(np.abs({}))", "np.abs({})", "-{}", "np.floor({})", "np.sign({})", "np.square({})", "np.maximum({}, 0)",
         "np.minimum({}, 0.5)", "np.clip({}, -1, 1.5)", "np.trunc({})", "np.ceil({})", "np.rint({})", "np.fabs({})", "np.copysign(1.5, {} + 0.01)")  # fmt: skip


def associated(random, terms):
    """The sum or difference of the terms, in any association."""
    if len(terms) == 1:
        return terms[0]
    cut = random.choice((1, len(terms) - 1, random.randint(1, len(terms) - 1)))
    left, right = associated(random, terms[:cut]), associated(random, terms[cut:])
    sign = random.choice("+++-")
    return f"{left} {sign} {right}" if cut == len(terms) - 1 else f"{left} {sign} ({right})"


def scaled(random, text, times):
    """The text times and divided by constants."""
    text = f"({text})"
    for _ in range(times):
        constant = random.choice(CONSTANTS)
        text = random.choice((f"{constant} * {text}", f"{text} * {constant}", f"{text} / {constant.lstrip('-')}", f"({constant} * {text})"))
    return text


def target(draft, text, shape, rough=False):
    """Gives the text to a new name, or to an array that is there."""
    if draft.random.random() < 0.2:
        known = draft.arrays(lambda value: value.shape == shape and value.dtype.kind == "f" and value.flags.writeable)
        if known:
            name = draft.random.choice(known)
            return draft.add(f"{name}{'[...]' if shape else '[()]'} {draft.random.choice(('=', '=', '+=', '-=', '*='))} {text}", rough)
    return draft.add(f"{draft.fresh()} = {text}", rough)


def sums(draft):
    """A sum of 2 to 12 terms, scaled up to three times."""
    random = draft.random
    shape = draft.shape(draft.pick())
    few = [operand(draft, shape) for _ in range(random.randint(1, 4))]
    terms = []
    for _ in range(random.randint(2, 12)):
        term = random.choice(few)
        terms.append(f"{random.choice(CONSTANTS)} * {term}" if random.random() < 0.25 else term)
    text = scaled(random, associated(random, terms), random.randint(0, 3))
    if random.random() < 0.3:
        text = f"{operand(draft, shape)} {random.choice('+-*')} {text}"
    target(draft, text, shape)


def polynomial(draft):
    """Powers and products with coefficients, or Horner's rule."""
    random, name = draft.random, draft.pick()
    x = name if random.random() < 0.7 else f"({name} - {random.choice(CONSTANTS)})"
    power = random.choice((2, 3, 2, 3, 4, 5))
    ways = (
        f"{x}**{power}", f"{x}**2 + {x}**3", f"{random.choice(CONSTANTS)} * {x}**{power} - {x}**2 * {x}", f"({x} * 0.5 + 1) * {x} - 0.3",
        f"(({x} * 0.25 - 1) * {x} + 2) * {x} + {x}", f"np.power({x}, {power})", f"{x} * {x} * {x} + {x} * {x}", f"{x}**1 + {x}**0",
        f"1 / (1 + {x}**2)", f"({x}**2 + {x}**2) * 0.5",
    )  # fmt: skip
    text = random.choice(ways)
    target(draft, text, draft.shape(name), rough="**" in text or "power" in text)


def functions(draft):
    """Nested functions and operators of one or two arrays."""
    random = draft.random
    shape = draft.shape(draft.pick())
    text = operand(draft, shape)
    rough = draft.is_rough(text)
    for _ in range(random.randint(1, 4)):
        way = random.random()
        if way < 0.3:
            text, rough = random.choice(FUNCTIONS).format(text), True
        elif way < 0.6 and not rough:
            text = random.choice(EXACT).format(text)
        elif way < 0.8:
            text = f"({text} {random.choice('+-*')} {operand(draft, shape)})"
            rough = rough or draft.is_rough(text)
        else:
            text = f"{text} / (1 + np.abs({operand(draft, shape)}))"
            rough = rough or draft.is_rough(text)
        if len(text) > 300:
            break
    target(draft, text, shape, rough)


def choices(draft):
    """Chains of `where` and comparisons of arrays without rounding."""
    random = draft.random
    name = draft.pick(smooth=True)
    shape = draft.shape(name)
    test = lambda: f"{draft.pick(shape=shape, smooth=True)} {random.choice(('>', '<', '>=', '<=', '==', '!='))} {random.choice(('0', '0.5', '-1', name))}"
    condition = random.choice((test(), f"({test()}) & ({test()})", f"({test()}) | ~({test()})", f"np.logical_xor({test()}, {test()})"))
    text = f"np.where({condition}, {operand(draft, shape)}, {random.choice(('0', '0.0', '1.5', operand(draft, shape)))})"
    if random.random() < 0.4:
        text = f"np.where({test()}, {random.choice(('1', '-0.5', operand(draft, shape)))}, {text})"
    if random.random() < 0.15:
        text = f"({condition})"
        return draft.add(f"{draft.fresh()} = {text}")
    target(draft, text, shape)


def normalised(draft):
    """An array less its mean, over its spread, its largest, or the sum along an axis."""
    random, name = draft.random, draft.pick()
    axis = random.choice((None, *range(len(draft.shape(name)))))
    fold = f"axis={axis}, keepdims=True"
    text = random.choice((
        f"{name} - {name}.mean({fold})", f"({name} - {name}.mean({fold})) / ({name}.std({fold}) + 1)",
        f"{name} / (np.abs({name}).sum({fold}) + 1)", f"({name} - {name}.min({fold})) / ({name}.max({fold}) - {name}.min({fold}) + 1)",
        f"{name} / np.sqrt(({name}**2).sum({fold}) + 1)", f"np.exp({name} - {name}.max({fold})) / np.exp({name} - {name}.max({fold})).sum({fold})",
    ))  # fmt: skip
    target(draft, text, draft.shape(name), rough=True)


def integers(draft):
    """Arithmetic of whole numbers and truth values, and conversions."""
    random = draft.random
    name = draft.pick("iub")
    shape, other = draft.shape(name), draft.pick("iub", shape=draft.shape(name))
    kinds = {draft.names[name].dtype.kind, draft.names[other].dtype.kind}
    ways = [f"{name} {random.choice('&|^')} {other}", f"np.maximum({name}, {other})", f"({name} > {other}) | ({name} == 1)", f"~{name}",
            f"{name}.astype(np.float64) * 0.5", f"{name} * 2 + {other}", f"({name} != 0).astype(np.int64) - {other}"]  # fmt: skip
    if "b" not in kinds:
        ways += [f"{name} + {other} * 3", f"{name} // ({other} | 1)", f"{name} % ({other} | 1)", f"({name} << 2) - ({other} >> 1)", f"-{name} + {other}"]
        ways += [f"np.abs({name}) % 7", f"{name}**2 - {other}", f"{name} / (np.abs({other} % 5) + 1)", f"{name}.astype(np.int32) * {other}"]
    draft.add(f"{draft.fresh()} = {random.choice(ways)}")


def complexes(draft):
    """Complex arithmetic, and its parts."""
    random = draft.random
    name = draft.pick("c")
    other = draft.pick(random.choice("cf"), shape=draft.shape(name))
    ways = (f"{name} + {other} * 0.5", f"{name} * {other}", f"{name}.real - {name}.imag", f"np.conj({name}) + {other}", f"{name} * 1j",
            f"np.abs({name})", f"{name} / (2 + np.abs({other}))", f"{name} - {name}[::-1]", f"{name}.imag * 2")  # fmt: skip
    draft.add(f"{draft.fresh()} = {random.choice(ways)}", rough=True)
