"""Statements that fold arrays: reductions, accumulates, products of matrices."""

from .sizes import shape as any_shape
from .views import operand


def reduced(draft):
    """A reduction over some axes."""
    random, name = draft.random, draft.pick("fffiub")
    rank = len(draft.shape(name))
    axes = [None, *range(rank), -1]
    if rank > 1:
        axes += [(0, 1), (-1, 0)]
    axis, keep = random.choice(axes), random.choice(("", ", keepdims=True"))
    smooth = draft.pick(smooth=True)
    smooth_axis = random.choice((None, *range(len(draft.shape(smooth)))))
    ways = [f"{name}.sum(axis={axis}{keep})"] * 4 + [f"{name}.max(axis={axis}{keep})", f"{name}.min(axis={axis}{keep})", f"{name}.mean(axis={axis}{keep})",
            f"np.any({smooth} > 1, axis={smooth_axis})", f"np.all({smooth} > -3, axis={smooth_axis})", f"np.argmax({smooth}, axis={smooth_axis})",
            f"np.argmin({smooth}, axis={smooth_axis})", f"np.count_nonzero({smooth} > 0, axis={smooth_axis})", f"np.ptp({name}.astype(float), axis={axis})",
            f"np.median({smooth}, axis={smooth_axis})"]  # fmt: skip
    text = random.choice(ways)
    exact = draft.whole(name) or "max" in text or "min" in text or smooth in text and name not in text
    draft.add(f"{draft.fresh()} = {text}", rough=not exact)


def folded(draft):
    """Sums of expressions: squares, products, distances, several folds of one expression."""
    random, name = draft.random, draft.pick()
    shape = draft.shape(name)
    axis = random.choice((None, *range(len(shape))))
    other = operand(draft, shape)
    draft.add(f"{draft.fresh()} = " + random.choice((
        f"({name} * {other}).sum(axis={axis})", f"({name}**2).sum(axis={axis})", f"(({name} - {other})**2).sum(axis={axis})",
        f"np.sqrt(({name} * {name} + {other} * {other}).sum(axis={axis}))",
        f"(0.5 * {name} + {other}).sum(axis={axis}) * 0.25", f"{name}.var(axis={axis})", f"{name}.std(axis={axis})",
        f"(np.abs({name} - {other})).max(axis={axis})",
        f"({name} + {other} + {name} * 0.3 + {other} * 0.25).mean(axis={axis})", f"np.exp(-np.abs({name})).sum(axis={axis})",
        f"np.prod(1 + {name} * 0.01, axis={axis})",
    )), rough=True)  # fmt: skip


def accumulated(draft):
    """Running sums, products and extremes."""
    random, name = draft.random, draft.pick("fffi")
    axis = random.randrange(len(draft.shape(name)))
    text = random.choice((f"np.cumsum({name}, axis={axis})", f"np.cumsum({name})", f"{name}.cumsum(axis={axis}) - {name}",
                          f"np.maximum.accumulate({name}, axis={axis})",
                          f"np.cumprod(1 + {name} * 0.01, axis={axis})", f"np.minimum.accumulate({name}, axis={axis})", f"np.cumsum({name}[::-1], axis={axis})[::-1]",
                          f"np.add.accumulate({name} * 0.5, axis={axis})", f"np.logaddexp.accumulate({name}.ravel()[:9] * 0.1)"))  # fmt: skip
    draft.add(f"{draft.fresh()} = {text}", rough="prod" in text or "log" in text or "m" in text and not draft.whole(name))


def multiplied(draft):
    """Products of vectors and matrices."""
    random = draft.random
    rows, inner, columns = any_shape(random, 3)
    if rows * inner * columns > 60_000:
        rows, inner, columns = rows % 20 + 1, inner % 20 + 1, columns % 20 + 1
    one, two, vector = draft.pick(shape=(rows, inner)), draft.pick(shape=(inner, columns)), draft.pick(shape=(inner,))
    ways = (f"{one} @ {two}", f"np.dot({one}, {two}) * 0.5", f"{one} @ {vector}", f"{vector} @ {two}", f"np.outer({vector}, {vector}[:7])",
            f"np.dot({vector}, {vector})",
            f"np.einsum('ij,jk->ik', {one}, {two})", f"np.einsum('ij,ij->i', {one}, {one})", f"{one}.T @ {one}", f"np.tensordot({one}, {two}, axes=1)",
            f"np.einsum('ij,j->i', {one}, {vector})", f"np.inner({one}, {one})", f"np.matmul({one}[None], {two})", f"{one}[::-1] @ {two}[:, ::-1]",
            f"np.vdot({vector}, {vector}[::-1])", f"np.kron({vector}[:5], {vector}[:4])", f"np.einsum('ii->i', {one}[:1, :1])",
            f"(0.5 * {one}) @ ({two} + 1)")  # fmt: skip
    text = random.choice(ways)
    plain = "0.5" not in text and "1)" not in text
    draft.add(f"{draft.fresh()} = {text}", rough=not (plain and draft.whole(one, two, vector)))
