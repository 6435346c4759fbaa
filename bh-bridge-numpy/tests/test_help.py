"""Help at the prompt."""

import inspect
import types

import bh
import numpy as np
import pytest


@pytest.mark.parametrize("module, numpys", [(bh, np), (bh.linalg, np.linalg), (bh.fft, np.fft)])
def test_functions_have_numpys_documentation(module, numpys):
    checked = 0
    for name in dir(numpys):
        original, mine = getattr(numpys, name, None), getattr(module, name, None)
        # `bh.info` tells about bh.
        is_function = isinstance(mine, (types.FunctionType, bh._native.Function))
        if name.startswith("_") or name == "info" or not is_function or not getattr(original, "__doc__", None):
            continue
        first = inspect.getdoc(original).splitlines()[0]
        assert first in mine.__doc__ or "In bh\n" in mine.__doc__, name
        checked += 1
    assert checked > 10


def test_notes_of_bh_follow_numpys_text():
    text = inspect.getdoc(bh.sum)
    assert text.startswith("Sum of array elements over a given axis.")
    assert text.count("In bh\n-----\n") == 1 and text.index("Parameters") < text.index("In bh\n")


def test_using_names_a_stack_for_arrays():
    with bh.using("cpu-plain") as stack:
        inside = bh.ones(3)
        assert "cpu-plain" in stack.describe()
    assert inside.sum() == 3.0
    with pytest.raises(Exception, match="no-such"):
        bh.using("no-such")


def test_parameters_are_those_of_numpys_function_in_c():
    for name in ("concatenate", "empty_like"):
        mine = getattr(bh, name)
        assert mine.__wrapped__.__text_signature__ == getattr(np, name).__wrapped__.__text_signature__
        assert inspect.signature(mine) == inspect.signature(getattr(np, name)) and not hasattr(mine, "__signature__")
