"""The objects that the package has under NumPy's names, once `namespace` has made them."""

# The names of the package that come from NumPy's.
public = {}

# bh's functions by NumPy's.
by_object = {}


def equivalent(function):
    """The function of bh for a public function of NumPy, or None."""
    try:
        return by_object.get(function)
    except TypeError:
        return None


def name_of(function):
    """The name of a function of NumPy in messages."""
    module = getattr(function, "__module__", None) or "numpy"
    return f"{module}.{getattr(function, '__name__', function)}"
