"""Searches as they are before Numba has compiled the loops."""

from collections.abc import Callable

import pytest

from fontes.lexical import direct, searching, structured


def uncompiled(monkeypatch: pytest.MonkeyPatch, affordable: Callable[[int], bool] = lambda steps: True) -> None:
    """Let searches sum by numpy; `affordable` is asked with the steps of each."""
    for module in (searching, direct, structured):
        monkeypatch.setattr(module, "is_loaded", lambda: False)
    for module in (searching, structured):
        monkeypatch.setattr(module, "affordable", affordable)
