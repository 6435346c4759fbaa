"""The names that `rewriting` writes into the program's modules, and what they mean on other ranks. No program can write them itself, and
`import *` leaves them out."""

PREFIX = "_@"
SEE, OWNER, SUBSCRIPTED, ASSIGNED, ANSWERING, SITES, TYPE = (
    PREFIX + name for name in ("see", "receiver", "subscripted", "assigned", "answering", "sites", "type")
)


class _Everything:
    """Sites at which nothing is noted."""

    def __getitem__(self, site):
        return ()


def _itself(value, *others):
    return value


def meaning_nothing(names):
    """The values of the hidden names among these, in functions that run where other packages get their arguments."""
    meaning = {SEE: _itself, OWNER: _itself, SUBSCRIPTED: _itself, ASSIGNED: _itself, ANSWERING: _itself, TYPE: type}
    return {name: meaning.get(name) or _Everything() for name in names if name.startswith(PREFIX)}
