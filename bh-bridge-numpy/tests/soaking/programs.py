"""Random programs: a seed makes a text that runs with `np` as NumPy or bh, and says which of its names may round differently."""

import dataclasses
import random

from . import elementwise, folds, movement, scalars, stencils, turns, updates, windows
from .draft import NAME, Draft, Unfit

# The families of statements, and how often each is taken.
FAMILIES = (
    (elementwise.sums, 14), (elementwise.polynomial, 6), (elementwise.functions, 7), (elementwise.choices, 6), (elementwise.normalised, 4),
    (elementwise.integers, 5), (elementwise.complexes, 2), (stencils.stencil, 12), (stencils.steps, 4), (movement.cut, 10), (movement.joined, 6),
    (movement.padded, 3), (movement.arranged, 13), (movement.gathered, 5), (updates.assigned, 8), (updates.borders, 4), (updates.shifted, 6),
    (updates.scattered, 5), (updates.held, 5), (updates.loops, 4), (folds.reduced, 7), (folds.folded, 6), (folds.accumulated, 4), (folds.multiplied, 3),
    (windows.windows, 8), (turns.turns, 8), (scalars.scalars, 5),
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Program:
    """A program: its statements; of names that may round differently, by how much; the scale of the numbers of all names."""

    seed: int
    statements: tuple
    rough: dict
    scale: dict

    @property
    def text(self):
        """The source text."""
        return "\n".join(self.statements) + "\n"

    def allowed(self, name):
        """By how much a value of this name may differ."""
        return self.rough.get(name, 0.0) * self.scale.get(name, 0.0)


def program(seed):
    """The program of a seed."""
    source = random.Random(seed)
    draft = Draft(source)
    families, weights = zip(*FAMILIES)
    wanted = source.randint(2, 9)
    # Few families in one program let them meet more often.
    some = source.choices(families, weights, k=source.randint(2, 6))
    for _ in range(3 * wanted):
        if len(draft.statements) >= 2 * wanted:
            break
        try:
            source.choice(some)(draft)
        except Unfit:
            continue
    return Program(seed, tuple(_forgetting(source, draft.statements)), draft.rough, draft.scale)


def _forgetting(source, statements):
    """The statements, and after the last use of some names a statement that deletes them: most programs keep few arrays."""
    share = source.choice((0.0, 0.5, 0.8))
    last = {name: at for at, text in enumerate(statements) for name in NAME.findall(text)}
    end = len(statements) - 1
    for at, text in enumerate(statements):
        yield text
        gone = sorted(name for name, use in last.items() if use == at and at < end and source.random() < share)
        if gone:
            yield f"del {', '.join(gone)}"
