"""Statements that change arrays in place: parts, ghost cells, masks, index arrays, values read midway, loops."""

from .views import operand, part, value_of


def _writable(draft, kinds="f", rank=None):
    suits = lambda value: value.dtype.kind in kinds and value.flags.writeable and value.size > 0 and (rank is None and value.ndim > 0 or value.ndim == rank)
    known = draft.arrays(suits)
    if known and draft.random.random() < 0.9:
        return draft.random.choice(known[-5:])
    return draft.pick(kinds, rank)


def assigned(draft):
    """A part of an array gets a number, or something of its shape."""
    random, name = draft.random, _writable(draft, "fffi")
    place = f"{name}[{part(random, draft.shape(name))}]"
    shape = getattr(value_of(draft, place), "shape", ())
    same, turned = (operand(draft, shape), f"{place}[::-1]") if shape else ("7", "2")
    if len(draft.shape(name)) == 1:
        # Along one dimension NumPy assigns element by element, whatever overlaps.
        same = f"({same}) * 1"
    right = random.choice((random.choice(("0", "1.5", "-2", "3")), same, f"{place} * 0.5 + 1", turned))
    if draft.names[name].dtype.kind == "i":
        right = random.choice(("3", "-1", f"{place} * 2"))
    operation = random.choice(("=", "=", "=", "+=", "-=", "*="))
    draft.add(f"{place} {operation} {right}")


def borders(draft):
    """Ghost cells: rows and columns at the edges get what lies inside, the other side, or a number."""
    random, name = draft.random, _writable(draft)
    rank = len(draft.shape(name))
    axis = random.randrange(rank)
    at = lambda place: f"{name}[{', '.join([':'] * axis + [str(place)])}]"
    low, high = random.choice(((1, -2), (-2, 1), (-1, 0))), random.choice(("0", "0.5"))
    if random.random() < 0.3:
        draft.add(f"{at(0)} = {high}; {at(-1)} = {high}")
    else:
        draft.add(f"{at(0)} = {at(low[0])}; {at(-1)} = {at(low[1])}")


def shifted(draft):
    """An array is overwritten by a shifted, turned or smoothed part of itself."""
    random, name = draft.random, _writable(draft)
    text = random.choice((
        f"{name}[...] = {name}[::-1]", f"{name}[1:] = {name}[:-1]", f"{name}[:-1] = {name}[1:] * 0.5", f"{name}[1:] += {name}[:-1]",
        f"{name}[:] = np.roll({name}, 1, axis=0)", f"{name}[1:-1] = ({name}[2:] + {name}[:-2]) * 0.5", f"{name}[::2] = {name}[::-2][:{name}[::2].shape[0]]",
        f"{name} *= 0.5", f"{name} += {name}[::-1]", f"{name} -= {name}[0]", f"{name}[1:] -= 0.25 * ({name}[1:] - {name}[:-1])",
    ))  # fmt: skip
    draft.add(text)


def scattered(draft):
    """Elements at index arrays and masks are written, or added to."""
    random, name = draft.random, _writable(draft, "fffi")
    rows, values, mask, some = draft.shape(name)[0], random.choice(("4", "-1")), draft.fresh(), draft.fresh()
    index = f"np.asarray(np.arange({random.randint(1, 9)}) * {random.choice((1, 3, 10, 7))} % {rows})"
    ways = [f"{name}[{index}] = {values}", f"{name}[{name} > 1] = {values}", f"np.add.at({name}, {index}, 2)", f"np.maximum.at({name}, {index}, 2)",
            f"np.putmask({name}, {name} < 0, {values})", f"np.subtract.at({name}, {index}, 1)", f"{name}[{name} < -1] *= 2",
            f"np.place({name}, {name} > 2, 1)", f"np.put({name}, {index}, {values})", f"np.copyto({name}, {values}, where={name} == 0)",
            f"{name}[np.abs({name}) > 2] += 1", f"{name}[{name} < 2] = {name}[{name} < 2] * 2 - 1",
            f"{mask} = {name} > -1\n{name}[{mask}] = {name}[{mask}] * {values} + np.maximum({name}[{mask}], 1)",
            f"{mask} = {name} > -1\n{some} = {name}[{mask}]\n{some} *= {values}\n{name}[0] = 1\n{name}[{mask}] = {some} + 1"]  # fmt: skip
    text = random.choice(ways)
    if name in draft.rough and (">" in text or "<" in text or "==" in text or "maximum" in text):
        text = ways[0]
    draft.add(text)


def held(draft):
    """A value is read in the middle of the program, and used later."""
    random, name = draft.random, draft.pick()
    if 0 in draft.shape(name):
        return
    places = ", ".join(str(random.randrange(extent)) for extent in draft.shape(name))
    text = f"float({name}[{places}])"
    if random.random() < 0.3 and draft.whole(name):
        text = random.choice((f"float({name}.sum())", f"float({name}.max())", f"int(({name} > 0).sum())"))
    scalar = draft.fresh()
    draft.add(f"{scalar} = {text}")
    if random.random() < 0.6:
        draft.add(f"{draft.fresh()} = {draft.pick()} * {scalar} + {operand(draft, draft.shape(name))}")


def loops(draft):
    """A loop over steps or rows that carries state."""
    random, name = draft.random, _writable(draft, rank=random_rank(draft))
    other, extra, steps = draft.fresh(), draft.fresh(), random.randint(2, 5)
    rank = len(draft.shape(name))
    inner, left, right = (", ".join([one] * rank) for one in ("1:-1", ":-2", "2:"))
    bodies = [
        f"{other} = {name} * 1\nfor i in range({steps}):\n    {other} = 0.5 * {other} + {name}",
        f"{other} = {name} * 0\nfor i in range(min({steps}, {name}.shape[0])):\n    {other} += {name}[i] * (i + 1)",
        f"{other} = {name}.copy()\nfor i in range(1, min(6, {name}.shape[0])):\n    {other}[i] = {other}[i - 1] * 0.5 + {name}[i]",
        f"{other} = {name}.copy()\nfor i in range({steps}):\n    {extra} = {other}.copy()\n    {other}[{inner}] = ({extra}[{left}] + {extra}[{right}]) / 2",
        f"{other}, {extra} = {name} * 0.5, {name} + 1\nfor i in range({steps}):\n    {other}, {extra} = {extra}, {other} + 0.25 * {extra}",
        f"{other} = {name}.copy()\nfor i in range({steps}):\n    {other}[1:-1] += 0.25 * ({other}[2:] - 2 * {other}[1:-1] + {other}[:-2])",
        f"{other} = np.zeros_like({name})\nfor i in range({name}.shape[0] if {name}.shape[0] < 9 else 0):\n    {other}[i] = {name}[-1 - i] - i\n"
        f"{other}[:] = {other} * 0 + {name}",
        f"{other} = {name}[0] * 1\nfor row in {name}[:4]:\n    {other} = {other} * 0.5 + row",
    ]
    draft.add(random.choice(bodies))


def random_rank(draft):
    """One or two dimensions."""
    return draft.random.choice((1, 2))
