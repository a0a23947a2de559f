"""Plain text: each file of a folder is a document."""

from __future__ import annotations

from collections.abc import Iterator

from ..core import Doc
from .format import File, Format
from .records import Fields


class Text(Format, name="text"):
    """Documents as plain text files; the id is the path inside the folder."""

    def sniff(self, kind: str, file: File) -> float:
        return 0.1 if file.folder else 0.0

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        yield Doc(file.path, file.text())
