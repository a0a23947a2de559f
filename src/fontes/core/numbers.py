"""Numbers as files and command lines have them: Python's own readers take underscores and the digits of all scripts too."""

from __future__ import annotations

from typing import Any


def whole(text: str | bytes) -> int:
    """The whole number that a text is.

    Raises:
        ValueError: It is none, or one of thousands of digits.
    """
    return int(_plain(text))


def real(value: Any) -> float:
    """The number that a text or a number is.

    Raises:
        ValueError: It is none, or too great for a float.
        TypeError: It is neither.
    """
    try:
        return float(_plain(value) if isinstance(value, (str, bytes)) else value)
    except OverflowError:
        raise ValueError("the number is too great") from None


def _plain(text: str | bytes) -> str | bytes:
    if not text.isascii() or ("_" in text if isinstance(text, str) else b"_" in text):
        raise ValueError(f"{text!r} is not a number")
    return text
