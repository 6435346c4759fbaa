"""Operands: an array of a shape, as a view of one that is there, or composed of views."""

import numpy

from .draft import Unfit


def operand(draft, shape, depth=0):
    """The text of a floating-point array of the shape."""
    random = draft.random
    way = random.random()
    if depth < 2 and shape and min(shape) > 0:
        if way < 0.10:
            axis = random.randrange(len(shape))
            return f"np.roll({operand(draft, shape, depth + 1)}, {random.choice((1, -1, 2, -3))}, axis={axis})"
        if way < 0.17:
            return f"{operand(draft, shape, depth + 1)}[{reversed_axes(random, len(shape))}]"
        if way < 0.22:
            return broadcast(draft, shape)
        if way < 0.34:
            part = window(draft, shape)
            if part:
                return part
        if way < 0.37 and len(shape) == 2 and shape[0] == shape[1]:
            return f"{operand(draft, shape, depth + 1)}.T"
    return draft.pick(shape=shape)


def reversed_axes(random, rank):
    """A subscript that turns some of the axes round."""
    parts = [random.choice((":", "::-1")) for _ in range(rank)]
    return ", ".join(parts) if "::-1" in parts else "::-1"


def broadcast(draft, shape):
    """A row, a column or a plane that stands for the whole shape."""
    random = draft.random
    axis = random.randrange(len(shape))
    if len(shape) == 1:
        return f"np.broadcast_to({draft.pick(shape=(1,))}, {shape})"
    name = draft.pick(shape=shape[:axis] + shape[axis + 1 :])
    places = ", ".join("None" if other == axis else ":" for other in range(len(shape)))
    return f"({draft.pick(shape=shape)} * 0 + {name}[{places}])"


def window(draft, shape):
    """A part of the shape out of a larger array, with steps; none if no array is large enough."""
    random = draft.random
    fits = lambda value: value.dtype.kind == "f" and value.ndim >= len(shape) and _covers(value.shape[-len(shape) :], shape) and value.size
    known = draft.arrays(fits)
    if not known:
        return None
    name = random.choice(known)
    have = draft.shape(name)
    parts = [str(random.randrange(extent)) for extent in have[: len(have) - len(shape)]]
    for extent, wanted in zip(have[-len(shape) :], shape):
        step = 2 if (wanted - 1) * 2 + 1 <= extent and random.random() < 0.3 else 1
        start = random.randint(0, extent - (wanted - 1) * step - 1)
        parts.append(f"{start}:{start + (wanted - 1) * step + 1}:{step}" if step > 1 else f"{start}:{start + wanted}")
    return f"{name}[{', '.join(parts)}]"


def _covers(have, wanted):
    return all(large >= small for large, small in zip(have, wanted))


def part(random, shape, empty=False):
    """A subscript of a part of an array of the shape: slices with steps, halves, single places, new axes, ellipses."""
    parts = []
    for extent in shape:
        low = random.randint(0, max(extent - 1, 0))
        high = random.randint(low + (0 if empty else 1), max(extent, low + 1))
        parts.append(random.choice((
            ":", f"{low}:{high}", f"{low}:", f":{high}", "::2", "1::2", "::-1", f":{max(extent // 2, 1)}", f"{extent // 2}:", "1:-1", ":-1", "1:",
            "::-2", str(low), str(-1), f"-{max(extent // 2, 1)}:",
        )))  # fmt: skip
    if random.random() < 0.1:
        parts.insert(random.randint(0, len(parts)), "None")
    if random.random() < 0.08:
        parts = ["..."] + parts[-1:]
    return ", ".join(parts)


def value_of(draft, text):
    """NumPy's value of an expression."""
    with numpy.errstate(all="ignore"):
        try:
            return eval(text, draft.names)
        except IndexError as reason:
            raise Unfit(str(reason)) from reason
