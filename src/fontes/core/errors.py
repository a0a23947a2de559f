"""The errors of Fontes: one small family, each a sentence that names what is at fault and what to do.

FontesError
├── InputError          a file, line, topic or document that cannot be used
├── ParameterError      a parameter outside its range, or an unknown name
├── PipelineError       stages that do not fit together
├── IndexFormatError    a directory that is no index, or a damaged or newer one
└── MissingExtraError   an optional library that is not installed
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Self

MAX_MESSAGE = 2_000  # characters of a message
BREAKS = re.compile(r"[ \t]*[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+[ \t]*")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class FontesError(Exception):
    """Base of all errors that Fontes raises on purpose.

    A message may hold pieces of files: it is kept to one line of 2,000 characters, and control characters in it are escaped.

    Args:
        message: The sentence.
    """

    settings: tuple[str, ...] = ()
    """Those of a recipe, "NAME=VALUE", that do without what is at fault."""

    def __init__(self, message: str = "") -> None:
        line = BREAKS.sub(" ", str(message))
        if len(line) > MAX_MESSAGE:
            line = f"{line[: MAX_MESSAGE // 2]} … {line[-MAX_MESSAGE // 2 + 3 :]}"
        super().__init__(CONTROL.sub(lambda c: c[0].encode("unicode_escape").decode(), line))

    @classmethod
    def of_lines(cls, lines: Iterable[str]) -> Self:
        """The error that says several things, a line for each, which is kept as a message of its own would be."""
        error = cls()
        super(FontesError, error).__init__("\n".join(str(FontesError(line)) for line in lines))
        return error


class InputError(FontesError, ValueError):
    """A file, a line, a topic or a document that cannot be used."""

    @classmethod
    def at(cls, path: object, line: int, problem: str) -> InputError:
        """The error for `problem` in line `line` (counted from 1) of the file `path`."""
        return cls(f"{path}, line {line}: {problem}")


class InputWarning(UserWarning):
    """An interpretation of a file that may be wrong, such as its encoding."""


class ParameterError(FontesError, ValueError):
    """A parameter outside its range, or an unknown name."""


class PipelineError(FontesError, TypeError):
    """Stages that do not fit together, or a stage that was given the wrong kind of value."""


class IndexFormatError(FontesError):
    """A directory that is not an index, or one that is damaged or of another format version."""


class MissingExtraError(FontesError, ImportError):
    """An optional library that is not installed."""

    @classmethod
    def of(cls, library: str, extra: str, purpose: str) -> MissingExtraError:
        """The error for a missing `library`, which `pip install fontes[extra]` brings."""
        return cls(f"{purpose} needs {library}, which is not installed: pip install 'fontes[{extra}]'")
