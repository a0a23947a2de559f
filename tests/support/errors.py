"""Check of an error's message, for the tables in `test_errors.py` of each room."""

from collections.abc import Callable

import pytest

from fontes.core import FontesError


def check_error(call: Callable[[], object], error: type[FontesError], names: str, remedy: str = "") -> str:
    """Assert that a call raises an error of this class, in one line that names its input and what to do; return the line.

    Args:
        call: What fails.
        error: The class.
        names: The input at fault: parts of the message, separated by " … ".
        remedy: What helps, likewise; empty if the input says all.
    """
    assert names.strip(), "an error has to name the input at fault"
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message, message
    missing = [part for part in f"{names} … {remedy}".split(" … ") if part not in message]
    assert not missing, f"{message!r} does not say {missing}"
    return message
