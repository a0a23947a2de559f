"""What a program reads at standard input."""

import io
import sys

import pytest


def give_input(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Let standard input hold this."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
