"""Lines that lie in a corner of a grid, so that few ranks have them, are read early and late, through windows of unlike lengths."""

import math

from .draft import Unfit


def windows(draft):
    """Some operations on windows of lines, old and new, with values that are read between them."""
    random = draft.random
    lines = [name for name in draft.arrays(lambda value: value.dtype == "float64" and value.ndim == 1 and value.size > 1)][-3:]
    lines.append(_corner(draft))
    for _ in range(random.randint(2, 6)):
        way = random.random()
        if way < 0.15:
            lines.append(_corner(draft))
        elif way < 0.3:
            name = random.choice(lines)
            draft.add(f"{draft.fresh()} = float({name}[{random.randrange(draft.shape(name)[0])}])")
        elif way < 0.45:
            _replaced(draft, lines)
        else:
            lines.append(_combined(draft, lines))


def _corner(draft):
    """A line of the first rows of a grid, or of all of them: part of a column, a diagonal, or rows one after the other."""
    random = draft.random
    grids = draft.arrays(lambda value: value.dtype == "float64" and value.ndim == 2 and value.shape[0] > 3 and value.shape[1] > 1)
    name = random.choice(grids[-3:]) if grids and random.random() < 0.7 else draft.input((random.randint(4, 90), random.randint(2, 12)), "float64")
    rows, columns = draft.shape(name)
    some = random.randint(2, max(rows // 3, 2)) if random.random() < 0.7 else random.randint(2, rows)
    line = random.choice((f"{name}[:{some}, {random.randrange(columns)}]", f"np.diagonal({name}[:{some}])", f"{name}[:{some}].reshape(-1)"))
    made = draft.fresh()
    draft.add(f"{made} = {line} + 1")
    return made


def _window(draft, name, count):
    """Some elements of a line, the first and last ones most often, forwards or backwards, or every second one."""
    random, length = draft.random, draft.shape(name)[0]
    step = 2 if 2 * count - 1 <= length and random.random() < 0.25 else 1
    reach = (count - 1) * step + 1
    first = random.choice((0, length - reach, random.randint(0, length - reach)))
    text = f"{name}[{first}:{first + reach}{':2' if step == 2 else ''}]" if count < length or step == 2 else name
    return f"{text}[::-1]" if random.random() < 0.2 else text


def _operation(draft, lines, most=math.inf):
    """An operation on windows of two lines, or of one and a number, and how many elements it gives."""
    random = draft.random
    one, other = random.choice(lines), random.choice(lines)
    most = min(most, draft.shape(one)[0], draft.shape(other)[0])
    count = random.choice((most, max(most - random.randint(0, 3), 1), random.randint(1, most)))
    left = _window(draft, one, count)
    right = _window(draft, other, count) if random.random() < 0.6 else random.choice(("0.5", "2", "-1"))
    smooth = one not in draft.rough and other not in draft.rough
    ways = [f"{left} + {right}", f"{left} - {right}", f"np.maximum({left}, {right})", f"({left} + {right}) * 0.5"]
    ways += [f"np.where({left} > {random.choice(('0', '0.5'))}, {left}, {right})"] * 3 if smooth else []
    return random.choice(ways), count


def _combined(draft, lines):
    text, count = _operation(draft, lines)
    last = lines[-1]
    if count <= draft.shape(last)[0] and draft.random.random() < 0.3:
        text = f"np.stack([{text}, {_window(draft, last, count)}])[{draft.random.randrange(2)}]"
    name = draft.fresh()
    draft.add(f"{name} = {text}")
    return name


def _replaced(draft, lines):
    """A part of a line is computed anew of others."""
    random = draft.random
    line = random.choice(lines)
    others = [name for name in lines if name != line]
    if not others or not draft.names[line].flags.writeable:
        raise Unfit("nothing else is there")
    text, count = _operation(draft, others, draft.shape(line)[0])
    draft.add(f"{_window(draft, line, count)}[...] = {text}")
