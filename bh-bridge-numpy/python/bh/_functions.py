"""All native functions under one roof."""

from ._arrangement import *  # noqa: F401,F403
from ._creation import *  # noqa: F401,F403
from ._einsum import *  # noqa: F401,F403
from ._joining import *  # noqa: F401,F403
from ._manipulation import *  # noqa: F401,F403
from ._numeric import *  # noqa: F401,F403
from ._packing import packbits, unpackbits  # noqa: F401
from ._parts import *  # noqa: F401,F403
from ._products import *  # noqa: F401,F403
from ._reductions import *  # noqa: F401,F403
from ._search import *  # noqa: F401,F403
from ._sorting import *  # noqa: F401,F403
