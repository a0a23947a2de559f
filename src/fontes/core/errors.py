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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Self

MAX_MESSAGE = 2_000  # greatest length of a line of a message
MAX_LINES = 50  # greatest number of lines
BREAKS = re.compile(r"(?:(?<![ \t])[ \t]+)?[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+[ \t]*")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class FontesError(Exception):
    """Base of all errors that Fontes raises on purpose.

    A message is limited to one line of 2,000 characters, with control characters escaped, as it may quote files.

    Args:
        message: The sentence.
    """

    def __init__(self, message: str = "") -> None:
        line = BREAKS.sub(" ", str(message))
        if len(line) > MAX_MESSAGE:
            line = f"{line[: MAX_MESSAGE // 2]} … {line[-MAX_MESSAGE // 2 + 3 :]}"
        super().__init__(CONTROL.sub(lambda c: c[0].encode("unicode_escape").decode(), line))

    @classmethod
    def of_lines(cls, lines: Iterable[str]) -> Self:
        """Return an error with several messages, one per line, each limited like a single message.

        Of more than 50 messages it has the first and the last, and the number of the others.
        """
        error, messages = cls(), list(lines)
        if (more := len(messages) - MAX_LINES) > 0:
            messages[MAX_LINES - 2 : -1] = [f"… and {more + 1:,} more"]
        super(FontesError, error).__init__("\n".join(str(FontesError(line)) for line in messages))
        return error


class InputError(FontesError, ValueError):
    """An unusable file, line, topic or document."""

    @classmethod
    def at(cls, path: object, line: int, problem: str) -> InputError:
        """Return the error for a problem in a line (counted from 1) of a file."""
        return cls(f"{path}, line {line}: {problem}")


class InputWarning(UserWarning):
    """A doubtful interpretation of a file, such as its encoding."""


class ParameterError(FontesError, ValueError):
    """A parameter outside its range, or an unknown name."""


class PipelineError(FontesError, TypeError):
    """Stages that do not fit together, or a wrong kind of input to a stage."""


class IndexFormatError(FontesError):
    """A directory that is no index, or an index that is damaged or of another format version."""


PACKAGES = {
    "faiss": "faiss-cpu",
    "google": "protobuf",
    "sentence_transformers": "sentence-transformers",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
}
"""Packages by their modules, where the names differ."""


class MissingExtraError(FontesError, ImportError):
    """An optional library that is not installed."""

    @classmethod
    def of(cls, library: str, extra: str, purpose: str) -> MissingExtraError:
        """Return the error for a missing package or module `library`, installed by `pip install fontes[extra]`."""
        return cls(f"{purpose} needs {PACKAGES.get(library, library)}, which is not installed: pip install 'fontes[{extra}]'")


@contextmanager
def needs_extra(extra: str, purpose: str, library: str) -> Iterator[None]:
    """Raise MissingExtraError for an import within that fails because a package of `extra` is not installed.

    `library` is the name in the message if the ImportError carries none. A broken module of Fontes is not a missing extra.
    """
    try:
        yield
    except MissingExtraError:
        raise
    except ImportError as error:
        name = (error.name or library).partition(".")[0].removesuffix("_types")
        if name == "fontes":
            raise
        raise MissingExtraError.of(name, extra, purpose) from None
