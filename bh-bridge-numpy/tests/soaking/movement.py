"""Statements that move elements: slices, joins, padding, rolls, grids, diagonals, transposes, index arrays and masks."""

import math

from .views import operand, part

MODES = ("edge", "wrap", "reflect", "symmetric", "constant")


def cut(draft):
    """A part of an array, as a view or a copy, with arithmetic."""
    random, name = draft.random, draft.pick("fffiucb")
    text = f"{name}[{part(random, draft.shape(name), empty=random.random() < 0.05)}]"
    draft.add(f"{draft.fresh()} = {text}{random.choice(('', '', '.copy()', ' + 1', ' * 2'))}")


def joined(draft):
    """`stack`, `concatenate`, `hstack` and their like, of arrays and expressions."""
    random, name = draft.random, draft.pick("fffi")
    shape = draft.shape(name)
    parts = [random.choice((name, f"{name} * 2", f"{name}[::-1]", operand(draft, shape), operand(draft, shape))) for _ in range(random.randint(2, 3))]
    axis = random.randrange(len(shape))
    ways = [f"np.stack([{', '.join(parts)}], axis={axis})", f"np.concatenate([{', '.join(parts)}], axis={axis})", f"np.hstack([{', '.join(parts)}])",
            f"np.vstack([{', '.join(parts)}])", f"np.stack([{', '.join(parts)}], -1)", f"np.append({parts[0]}, {parts[1]}, axis={axis})",
            f"np.concatenate([{name}[:1], {parts[1]}, {name}[-1:]])", f"np.concatenate([{parts[0]}[1:], {parts[1]}[:1]])"]  # fmt: skip
    draft.add(f"{draft.fresh()} = {random.choice(ways)}")


def padded(draft):
    """`pad` in each mode, and ghost cells by hand."""
    random, name = draft.random, draft.pick("fffi")
    width, mode = random.choice(("1", "2", "(1, 0)", "(0, 2)")), random.choice(MODES)
    text = f"np.pad({name}, {width}, mode='{mode}')"
    if random.random() < 0.3:
        text = f"np.pad({name} * 0.5, 1, constant_values=3)"
    draft.add(f"{draft.fresh()} = {text}")


def arranged(draft):
    """Transposes, reshapes, repeats, rolls, differences and their like."""
    random, name = draft.random, draft.pick("fffiuc")
    shape = draft.shape(name)
    axis, size = random.randrange(len(shape)), math.prod(shape)
    pairs = [side for side in range(1, 9) if size % side == 0 and size]
    ways = [
        f"{name}.T", f"{name}.reshape(-1)", f"{name}.ravel() + 1", f"np.roll({name}, {random.randint(-3, 3)}, axis={axis})", f"np.roll({name}, 2)",
        f"np.flip({name}, {axis})", f"np.tile({name}, 2)", f"np.repeat({name}, 2, axis={axis})", f"np.diff({name}, axis={axis})",
        f"np.swapaxes({name}, 0, -1)", f"np.expand_dims({name}, {axis})", f"{name}[..., None] * np.ones(2)", f"np.flipud({name})",
        f"np.squeeze({name}[None])", f"np.moveaxis({name}, {axis}, 0)", f"np.ediff1d({name})", f"np.array_split({name}, 3)[1]",
        f"np.split({name}, 1)[0] * 2", f"np.gradient({name}.real, axis={axis})", f"np.atleast_2d({name}) - 1", f"np.rot90(np.atleast_2d({name}))",
    ]  # fmt: skip
    ways += [f"{name}.reshape({side}, -1)" for side in pairs[-2:]]
    ways += [f"{name}.reshape({side}, -1).T" for side in pairs[-1:]]
    if len(shape) == 2:
        ways += [f"np.diagonal({name}) * 2", f"np.triu({name})", f"np.tril({name}, -1)", f"np.trace({name})", f"np.fliplr({name})", f"np.diagonal({name}, 1) + 1"]
    if len(shape) == 1 and size < 200:
        ways += [f"np.diag({name})", f"np.meshgrid({name}, {name}[:3])[{random.randint(0, 1)}]", f"np.subtract.outer({name}, {name})"]
        ways += [f"{name}[:, None] - {name}[None, :]", f"np.meshgrid({name}, {name}[::2], indexing='ij')[0] * 2", f"np.vander({name}.real[:3] * 0.5, 3)"]
    text = random.choice(ways)
    draft.add(f"{draft.fresh()} = {text}", rough=any(way in text for way in ("gradient", "vander", "trace")))


def gathered(draft):
    """Elements by index arrays, masks, `take`, `compress` and sorted orders."""
    random, name = draft.random, draft.pick("fffiub")
    rows = draft.shape(name)[0]
    if not rows:
        return
    index = f"np.asarray(np.arange({random.randint(1, 9)}) * {random.choice((1, 3, 10, 7))} % {rows})"
    smooth = draft.pick(smooth=True)
    ways = [f"{name}[{index}]", f"np.take({name}, {index}, axis=0)", f"{name}[{index}] * 2 - {name}[{index}[::-1]]",
            f"{smooth}[{smooth} > 0.3]", f"np.compress({smooth}.ravel() > 0, {smooth})", f"np.nonzero({smooth} > 1)[0]", f"np.sort({smooth}, axis=-1)",
            f"np.argsort({smooth}, axis=0, kind='stable')", f"np.unique({smooth})", f"np.flatnonzero({smooth} < 0)", f"{smooth}.ravel()[np.argmax({smooth})]",
            f"np.searchsorted(np.sort({smooth}.ravel()), 0.5)", f"np.take_along_axis({smooth}, np.argsort({smooth}, axis=-1, kind='stable'), axis=-1)"]  # fmt: skip
    draft.add(f"{draft.fresh()} = {random.choice(ways)}")
