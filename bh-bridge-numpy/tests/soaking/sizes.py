"""Sizes of arrays, drawn around the numbers at which bh goes another way."""

# Numbers of elements: register, set of lanes, short row, cache line, row, direct block, span, primitive's piece, long row,
# folded tile, planning (`LITTLE`), short batches, chunk, columns, pieces of an accumulate.
THRESHOLDS = (1, 8, 16, 32, 48, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
# Lengths of rows and columns.
SIDES = (1, 2, 4, 6, 8, 16, 32, 48, 64, 128)
# The most elements of an array, and how often it has that many.
MOST = ((40, 70), (600, 22), (9000, 7), (66000, 1))


def _near(random, numbers, most):
    """A number beside one of these, or any small one."""
    if random.random() < 0.4:
        return random.randint(1, min(most, 40))
    number = random.choice([number for number in numbers if number <= most]) + random.choice((-1, 0, 0, 1))
    return min(max(number, 1), most)


def shape(random, rank=None):
    """The shape of an array; of no elements once in a while."""
    most = random.choices([most for most, _ in MOST], [weight for _, weight in MOST])[0]
    rank = random.choices((1, 2, 3), (5, 5, 2))[0] if rank is None else rank
    if rank == 0:
        return ()
    if rank == 1:
        return (_near(random, THRESHOLDS, most),) if random.random() > 0.01 else (0,)
    sides = []
    for left in range(rank - 1, -1, -1):
        side = _near(random, SIDES, max(most // 3**left, 1)) if left else random.randint(1, max(most, 1))
        side = min(side, most, 200 if most > 600 else 24)
        sides.append(max(side, 1))
        most //= sides[-1]
    random.shuffle(sides)
    return tuple(sides)
