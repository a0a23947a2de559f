"""The errors of Fontes: one small family, each a sentence that names what is at fault and what to do.

FontesError
├── InputError          a file, line, topic or document that cannot be used
├── ParameterError      a parameter outside its range, or an unknown name
├── PipelineError       stages that do not fit together
├── IndexFormatError    a directory that is no index, or a damaged or newer one
└── MissingExtraError   an optional library that is not installed
"""

from __future__ import annotations


class FontesError(Exception):
    """Base of all errors that Fontes raises on purpose."""


class InputError(FontesError, ValueError):
    """A file, a line, a topic or a document that cannot be used."""

    @classmethod
    def at(cls, path: object, line: int, problem: str) -> InputError:
        """The error for `problem` in line `line` (counted from 1) of the file `path`."""
        return cls(f"{path}, line {line}: {problem}")


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
