"""Loops of many turns over fields, as simulations have them: shifted updates, borders, swaps, names that are held and read late."""

from . import sizes
from .stencils import _rolled, _slice


def turns(draft):
    """Several fields of one shape go through some turns. Nothing is read in between, or now and then."""
    random = draft.random
    rank = random.choice((1, 2, 2, 2, 3))
    shape = tuple(max(extent, 4) for extent in sizes.shape(random, rank))
    dtype = random.choice(("float64", "float64", "float32"))
    loop = _Loop(draft, [draft.input(shape, dtype) for _ in range(random.choice((1, 1, 2, 3)))])
    lines = [line for _ in range(random.randint(1, 4)) for line in random.choice(loop.ways)().splitlines()]
    body = "\n".join(f"    {line}" for line in lines)
    draft.add(f"for i in range({random.choice((2, 3, 5, 9, 20))}):\n{body}")


class _Loop:
    """The statements of an iteration over these fields."""

    def __init__(self, draft, fields):
        self.draft, self.random, self.fields, self.made = draft, draft.random, fields, []
        self.rank = len(draft.shape(fields[0]))
        self.ways = (self.update, self.update, self.update, self.half, self.border, self.border, self.replaced, self.late)

    def field(self):
        return self.random.choice(self.fields)

    def axes(self, **places):
        """Indices of all axes: those that are named, and all of the others."""
        return ", ".join(places.get(f"axis{axis}", ":") for axis in range(self.rank))

    def around(self, name, count):
        """Some neighbours of the inner elements of a field."""
        offsets = [[self.random.choice((-1, 0, 0, 1)) for _ in range(self.rank)] for _ in range(count)]
        return [f"{name}[{', '.join(_slice(step, 1) for step in offset)}]" for offset in offsets]

    def inner(self, name):
        return f"{name}[{', '.join(['1:-1'] * self.rank)}]"

    def update(self):
        """The inside of a field changes by its neighbours and those of another one."""
        field, other = self.field(), self.field()
        terms = self.around(field, self.random.randint(1, 4)) + self.around(other, self.random.randint(0, 2))
        text = f"0.125 * ({' + '.join(terms)})"
        if self.random.random() < 0.3:
            # The result keeps a name until the next turn.
            name = self.draft.fresh()
            return f"{name} = {text}\n{self.inner(field)} {self.random.choice(('=', '-='))} {name}"
        return f"{self.inner(field)} {self.random.choice(('=', '=', '-=', '+='))} {text}"

    def half(self):
        """Values between elements along an axis, and their effect on the elements."""
        field, other, axis = self.field(), self.field(), self.random.randrange(self.rank)
        low, high, inner = (self.axes(**{f"axis{axis}": place}) for place in (":-1", "1:", "1:-1"))
        between = self.draft.fresh()
        first = f"{between} = ({field}[{low}] + {field}[{high}]) * 0.5 - 0.25 * ({other}[{high}] - {other}[{low}])"
        return f"{first}\n{self.field()}[{inner}] {self.random.choice(('+=', '-='))} 0.25 * ({between}[{high}] - {between}[{low}])"

    def border(self):
        """Both sides of an axis, or one of them, get what lies inside, its opposite, the other side, or a number."""
        field, axis, lines = self.field(), self.random.randrange(self.rank), []
        at = lambda place: f"{field}[{self.axes(**{f'axis{axis}': str(place)})}]"
        for side, near, far in ((0, 1, -2), (-1, -2, 1)):
            if self.random.random() < 0.8:
                lines.append(f"{at(side)} = {self.random.choice((at(near), at(near), f'-{at(near)}', at(far), '0.5'))}")
        return "\n".join(lines or [f"{at(0)} = 1"])

    def replaced(self):
        """A field is made anew, or two of them change names."""
        field, other = self.field(), self.field()
        around = _rolled(other, [self.random.choice((-1, 0, 1)) for _ in range(self.rank)])
        ways = (f"{field} = 0.5 * {field} + 0.25 * {around}", f"{field}, {other} = {other}, {field}", f"{field} = {other}.copy()")
        return self.random.choice(ways)

    def late(self):
        """A value of some iteration is kept, and read after the loop, or at once."""
        field, name, turn = self.field(), self.draft.fresh(), self.random.randint(0, 1)
        corner = ", ".join(["1"] * self.rank)
        kept = (f"{field} * 2.0", f"{field}.copy()", f"float({field}[{corner}])", f"{field}[1:]")
        return f"if i % {self.random.randint(2, 4)} == {turn}:\n    {name} = {self.random.choice(kept)}"
