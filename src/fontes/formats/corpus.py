"""Corpora: the documents of files, of a folder or of any iterable, one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core import Doc, InputError, ParameterError
from ..storage.files import STANDARD, plain_name, reading
from .folder import CORPUS, beir_file, is_beir
from .format import KINDS, File, Format, format_named, formats_for, sniffed
from .records import Fields, doc_from


class Corpus:
    """The documents of a file or a folder, read anew each time it is iterated and never all in memory.

    Attributes:
        path: The file or folder.
        format: The name of the format.
        size: The bytes of the files as stored; 0 for standard input, which can be iterated once.
    """

    def __init__(self, path: str | Path, chosen: Format | None, fields: Fields) -> None:
        """Looks at the file or folder, and reads no documents.

        Raises:
            InputError: For a path that does not exist, an empty folder, and a file of which the format is not clear.
            ParameterError: For fields where the format has none.
        """
        first = formats_for("read", "corpus")[KINDS["corpus"].first]
        if str(path) == STANDARD:
            paths: Sequence[str | Path] = [path]
            chosen = chosen or first
        elif Path(path).is_dir():
            paths = _files(Path(path), chosen, first)
        elif Path(path).exists():
            paths = [path]
        else:
            raise InputError(f"{path}: there is no such file or folder")
        self.path = path
        self.size = sum(Path(p).stat().st_size for p in paths if str(p) != STANDARD)
        self._paths = paths
        self._fields = fields
        self._done = 0
        self._file: File | None = None
        self._spent = False
        self._format = chosen or self._sniffed()
        if fields.chosen and not self._format.named_fields:
            raise ParameterError(f"{path}: documents in the format '{self.format}' have no named fields to choose from")

    @property
    def format(self) -> str:
        """The name of the format."""
        return self._format.name

    @property
    def position(self) -> int:
        """How many bytes the latest iteration has read, of the files as stored; for gzip the compressed bytes."""
        return self._done + (self._file.position if self._file else 0)

    def __iter__(self) -> Iterator[Doc]:
        """Raises InputError that names file and line for what cannot be read, and where there is no document at all."""
        if self._spent:
            raise InputError("standard input can be read only once; write it to a file to read it again")
        self._spent = str(self.path) == STANDARD
        documents = self._docs()
        first = next(documents, None)
        if first is None:
            raise InputError(f"{self.path}: holds no documents")
        yield first
        yield from documents

    def _docs(self) -> Iterator[Doc]:
        self._done = 0
        for path in self._paths:
            with reading(path) as source:
                self._file = File(source, self._inside(path))
                yield from self._format.read_corpus(self._file, self._fields)
            self._file = None
            self._done += Path(path).stat().st_size if str(path) != STANDARD else 0

    def _sniffed(self) -> Format:
        path = self._paths[0]
        with reading(path) as source:
            return sniffed("corpus", File(source, self._inside(path), folder=Path(self.path).is_dir()))

    def _inside(self, path: str | Path) -> str:
        """The path of a file inside the folder."""
        folder = Path(self.path)
        return Path(path).relative_to(folder if folder.is_dir() else folder.parent).as_posix()

    def __repr__(self) -> str:
        return f"Corpus({str(self.path)!r}, format={self.format!r})"


def docs(documents: Iterable[Any]) -> Iterator[Doc]:
    """Documents from whatever a caller has at hand.

    Args:
        documents: An iterable of Doc, of dicts (keys as in the jsonl formats), of (id, text) or (id, title, text); a mapping
            from id to text; or a pandas DataFrame with such columns.

    Raises:
        InputError: With the number of the item, counted from 1, for what is no document.
    """
    if hasattr(documents, "to_dict") and hasattr(documents, "columns"):
        frame: Any = documents
        documents = frame.astype(object).where(frame.notna(), None).to_dict("records")
    elif isinstance(documents, Mapping):
        documents = documents.items()
    elif isinstance(documents, str):
        raise InputError("documents cannot be made from a string; read_corpus(path) reads a file")
    fields = Fields.of(None)
    for number, item in enumerate(documents, 1):
        match item:
            case Doc():
                yield item
            case Mapping():
                yield doc_from(dict(item), fields, "documents", number, "item")
            case (doc_id, text):
                yield doc_from({"id": doc_id, "text": text}, fields, "documents", number, "item")
            case (doc_id, title, text):
                yield doc_from({"id": doc_id, "title": title, "text": text}, fields, "documents", number, "item")
            case _:
                kind = type(item).__name__
                raise InputError(f"documents, item {number}: a {kind}; give Doc, a dict, (id, text) or (id, title, text)")


def corpus_docs(corpus: str | Path | Iterable[Any]) -> Iterable[Doc]:
    """The documents of a corpus: of the file or folder at a path, or else of what `docs` accepts."""
    return read_corpus(corpus) if isinstance(corpus, (str, Path)) else docs(corpus)


def read_corpus(path: str | Path, format: str | None = None, fields: Mapping[str, str | Sequence[str]] | None = None) -> Corpus:
    """The documents of a file or a folder, which are read one at a time.

    A folder gives its .jsonl files (of a BEIR folder corpus.jsonl), its TREC files, or its text files, in order of their
    names. Ids are not checked for duplicates here; the index does that.

    Args:
        path: A file, of which .gz is unpacked, a folder, or "-" for standard input (jsonl unless `format` says else).
        format: The name of a format, such as "jsonl", "tsv", "csv", "trec" (SGML) or "text" (each file a document, its id the
            path inside the folder); by default it is told from name and content.
        fields: Which keys, columns or tags hold the "id", the "title" and the "text" where they have other names; several
            are joined by newlines: `{"id": "pmid", "text": ["abstract", "body"]}`.

    Returns:
        The documents; they can be iterated again and again, and know how much of the files they have read.

    Raises:
        InputError: For what cannot be read, here or while iterating.
        ParameterError: For a format or a field that does not exist.
    """
    return Corpus(path, None if format is None else format_named(format, "read", "corpus"), Fields.of(fields))


def _files(folder: Path, chosen: Format | None, first: Format) -> list[Path]:
    """The files of a folder and its subfolders that hold documents, in order of their paths; hidden ones are left out."""
    of_beir = chosen is None or chosen.name == first.name
    if of_beir and is_beir(folder):
        return [beir_file(folder, CORPUS)]
    files = sorted(
        (p for p in folder.rglob("*") if p.is_file() and not any(x.startswith(".") for x in p.relative_to(folder).parts)),
        key=lambda p: p.relative_to(folder).as_posix(),
    )
    fitting = [p for p in files if plain_name(p).endswith((chosen or first).endings)]
    if not fitting and chosen and of_beir:
        raise InputError(f"{folder}: the folder holds no {first.name} files")
    if not files:
        raise InputError(f"{folder}: the folder holds no files")
    return fitting or files
