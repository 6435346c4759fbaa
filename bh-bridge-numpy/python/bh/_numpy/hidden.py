"""The names that `rewriting` writes into the program's modules. No program can write them itself, and `import *` leaves them out."""

PREFIX = "_@"
SEE, OWNER, SUBSCRIPTED, SITES, TYPE = (PREFIX + name for name in ("see", "receiver", "subscripted", "sites", "type"))

type = type


def __getattr__(name):
    from . import foreign

    return getattr(foreign, name)
