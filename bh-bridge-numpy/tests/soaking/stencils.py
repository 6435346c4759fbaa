"""Stencils in one to three dimensions, with every way to treat borders."""

from .elementwise import CONSTANTS, associated, scaled
from .movement import MODES


def _slice(offset, reach):
    low, high = reach + offset, offset - reach
    return f"{low or ''}:{high or ''}"


def _terms(draft, rank, reach, at):
    """Neighbours, some of them with factors."""
    random = draft.random
    offsets = {(0,) * rank}
    for axis in range(rank):
        for step in range(1, reach + 1):
            for offset in (-step, step):
                offsets.add(tuple(offset if other == axis else 0 for other in range(rank)))
    if random.random() < 0.3:
        offsets |= {tuple(random.randint(-reach, reach) for _ in range(rank)) for _ in range(3)}
    offsets = sorted(offsets)
    random.shuffle(offsets)
    offsets = offsets[: random.randint(2, len(offsets))]
    terms = [at(offset) for offset in offsets]
    return [f"{random.choice(CONSTANTS)} * {term}" if random.random() < 0.3 else term for term in terms]


def _rolled(name, offset):
    for axis, shift in enumerate(offset):
        name = f"np.roll({name}, {shift}, {axis})" if shift else name
    return name


def stencil(draft):
    """The scaled sum of neighbours, into the inside of an array, a new one, or in place."""
    random = draft.random
    name, reach = draft.pick(), random.choice((1, 1, 1, 2))
    shape = draft.shape(name)
    rank, way = len(shape), random.random()
    if min(shape) <= 2 * reach or rank > 3:
        return
    inside = ", ".join([f"{reach}:-{reach}"] * rank)
    at = lambda offset: f"{name}[{', '.join(_slice(step, reach) for step in offset)}]"
    text = lambda at: scaled(random, associated(random, _terms(draft, rank, reach, at)), random.randint(0, 2))
    if way < 0.3:
        draft.add(f"{draft.fresh()} = {text(lambda offset: _rolled(name, offset))}")
    elif way < 0.5:
        ghost = draft.fresh()
        draft.add(f"{ghost} = np.pad({name}, {reach}, mode='{random.choice(MODES)}')")
        draft.add(f"{draft.fresh()} = {text(lambda offset: at(offset).replace(name, ghost))}")
    elif way < 0.7:
        draft.add(f"{draft.fresh()} = {text(at)}")
    elif way < 0.85:
        result = draft.fresh()
        draft.add(f"{result} = {random.choice((f'{name}.copy()', f'np.zeros_like({name})', f'{name} * 0.5'))}")
        draft.add(f"{result}[{inside}] {random.choice(('=', '+='))} {text(at)}")
    elif draft.names[name].flags.writeable:
        draft.add(f"{name}[{inside}] {random.choice(('=', '+=', '-='))} {text(at)}")


def steps(draft):
    """A stencil applied several times, with what lies between not kept."""
    random, name = draft.random, draft.pick()
    rank, count = len(draft.shape(name)), random.randint(2, 4)
    result, axis = draft.fresh(), draft.random.randrange(rank)
    inside = ", ".join([":"] * axis + ["1:-1"])
    low, high = (", ".join([":"] * axis + [one]) for one in (":-2", "2:"))
    smooth = f"0.5 * {result}[{inside}] + 0.25 * ({result}[{low}] + {result}[{high}])"
    body = random.choice((
        f"    {result} = np.pad({smooth}, [(0, 0)] * {axis} + [(1, 1)] + [(0, 0)] * {rank - axis - 1}, mode='edge')",
        f"    {result} = {result}.copy()\n    {result}[{inside}] = {smooth}", f"    {result}[{inside}] = {smooth}",
        f"    {result} = ({result} + np.roll({result}, 1, {axis}) + np.roll({result}, -1, {axis})) / 3",
        f"    {result} = {smooth} * 2 - {result}[{inside}]",
    ))  # fmt: skip
    draft.add(f"{result} = {name} * 1.0\nfor i in range({count}):\n{body}")
