"""CIFF, the Common Index File Format: an inverted index without documents; see `fontes.index.ciff`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from ..core import Doc, InputError
from .corpus import Corpus, IterableCorpus
from .format import File, Format
from .records import Fields

START = re.compile(rb"[\x02-\xff][\x01-\x7f]?\x08\x01\x10")  # header length, version, number of postings lists


class Ciff(Format, name="ciff"):
    """An inverted index as Protobuf messages, from which `Index.build` makes an index."""

    endings = (".ciff",)

    def sniff(self, kind: str, file: File) -> float:
        return 0.95 if START.match(file.head) else super().sniff(kind, file)

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        raise InputError(
            f"{file.name}: holds an inverted index in CIFF and no documents; "
            f"fontes index {shlex.quote(file.name)} -o INDEX makes an index of it"
        )


def ciff_file(documents: Corpus | IterableCorpus) -> str | Path | None:
    """Return the path if `documents` is a CIFF file, else None; InputError for several such files or a folder."""
    if not isinstance(documents, Corpus) or all(form.name != Ciff.name for _, form in documents.pieces):
        return None
    piece = documents.pieces[0][0]
    if len(documents.pieces) > 1 or piece.of_folder:
        raise InputError(f"{documents.path}: an index is made of one CIFF file, not of several, not of a folder; name the file")
    return piece.path
