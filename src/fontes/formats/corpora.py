"""Corpora: documents read one at a time from the field's formats, and written as BEIR jsonl."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core import Doc, InputError, ParameterError
from ..storage.files import STANDARD, Source, plain_name, reading, write
from .markup import read_trec
from .records import FORMATS_WITH_FIELDS, Fields, doc_from, read_csv, read_jsonl, read_tsv

FORMATS = ("jsonl", "tsv", "csv", "trec", "text")


class Corpus:
    """The documents of a file or a folder, read anew each time it is iterated and never all in memory.

    `size` is the bytes of the files as stored and `position` how many of them the latest iteration has read, so that
    whoever reads can show the time left. For standard input both are 0, and it can be iterated once.
    """

    def __init__(self, path: str | Path, paths: Sequence[str | Path], format: str, fields: Fields) -> None:
        self.path = path
        self.format = format
        self.size = sum(Path(p).stat().st_size for p in paths if str(p) != STANDARD)
        self._paths = paths
        self._fields = fields
        self._done = 0
        self._source: Source | None = None
        self._spent = False

    @property
    def position(self) -> int:
        """Bytes read so far, of the files as stored; for gzip the compressed bytes."""
        return self._done + (self._source.position if self._source else 0)

    def __iter__(self) -> Iterator[Doc]:
        """Raises InputError that names file and line for what cannot be read, and where there is no document at all."""
        if self._spent:
            raise InputError("standard input can be read only once; write it to a file to read it again")
        self._spent = str(self.path) == STANDARD
        docs = self._docs()
        first = next(docs, None)
        if first is None:
            raise InputError(f"{self.path}: holds no documents")
        yield first
        yield from docs

    def _docs(self) -> Iterator[Doc]:
        self._done = 0
        for path in self._paths:
            with reading(path) as source:
                self._source = source
                if self.format == "text":
                    yield Doc(self._relative(path), source.text())
                else:
                    yield from READERS[self.format](source, self._fields)
            self._source = None
            self._done += Path(path).stat().st_size if str(path) != STANDARD else 0

    def _relative(self, path: str | Path) -> str:
        folder = Path(self.path)
        return Path(path).relative_to(folder if folder.is_dir() else folder.parent).as_posix()

    def __repr__(self) -> str:
        return f"Corpus({str(self.path)!r}, format={self.format!r})"


READERS = {"jsonl": read_jsonl, "tsv": read_tsv, "csv": read_csv, "trec": read_trec}


def read_corpus(path: str | Path, format: str | None = None, fields: Mapping[str, str | Sequence[str]] | None = None) -> Corpus:
    """The documents of a file or a folder; .gz files are unpacked, "-" is standard input (jsonl unless `format` says else).

    Formats, found from name and content unless given:

    - "jsonl": one JSON object a line, BEIR (`_id`, `title`, `text`) or Pyserini (`id`, `contents`); other keys are metadata
    - "tsv": MS MARCO without a header (id, text; or id, title, text; or id, url, title, body), or with a header as "csv"
    - "csv": a header with a column id, _id, docno or doc_id, and text, contents, abstract or body; other columns are metadata
    - "trec": <DOC><DOCNO>…, many a file
    - "text": each file a document, its id the path inside the folder

    A folder gives its .jsonl files (of a BEIR folder corpus.jsonl), its TREC files, or its text files, in order of their
    names. `fields` says which keys, columns or tags hold the "id", the "title" and the "text" where they have other names;
    several are joined by newlines: fields={"id": "pmid", "text": ["abstract", "body"]}.

    Ids are not checked for duplicates here; the index does that. Raises InputError for what cannot be read, here or while
    iterating, and ParameterError for a format or a field that does not exist.
    """
    if format is not None and format not in FORMATS:
        raise ParameterError(f"there is no corpus format '{format}'; there are {', '.join(FORMATS)}")
    if str(path) == STANDARD:
        paths: Sequence[str | Path] = [path]
        found = format or "jsonl"
    elif Path(path).is_dir():
        paths = _files(Path(path), format)
        found = format or _format_of_folder(paths)
    elif Path(path).exists():
        paths = [path]
        found = format or _format_of_file(path)
    else:
        raise InputError(f"{path}: there is no such file or folder")
    if fields and found not in FORMATS_WITH_FIELDS:
        raise ParameterError(f"{path}: documents in the format '{found}' have no named fields to choose from")
    return Corpus(path, paths, found, Fields.of(fields))


def docs(given: Iterable[Any]) -> Iterator[Doc]:
    """Documents from whatever a caller has at hand.

    Accepts an iterable of Doc, of dicts (keys as in the jsonl formats), of (id, text) or (id, title, text); a mapping from
    id to text; or a pandas DataFrame with such columns. Raises InputError that names the item, counted from 1.
    """
    if hasattr(given, "to_dict") and hasattr(given, "columns"):
        frame: Any = given
        given = frame.astype(object).where(frame.notna(), None).to_dict("records")
    elif isinstance(given, Mapping):
        given = given.items()
    elif isinstance(given, str):
        raise InputError("documents cannot be made from a string; read_corpus(path) reads a file")
    fields = Fields.of(None)
    for number, item in enumerate(given, 1):
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


def write_corpus(given: Iterable[Any], path: str | Path) -> None:
    """Writes documents (all that `docs` accepts) as BEIR jsonl: `_id`, `title`, `text`, and each metadata key.

    Raises InputError for metadata that JSON cannot hold or whose key is one of these three, and where writing fails.
    """
    write(path, map(_line, docs(given)))


def _line(doc: Doc) -> bytes:
    row = {"_id": doc.id, "title": doc.title, "text": doc.text}
    taken = row.keys() & doc.metadata.keys()
    if taken:
        raise InputError(f"document '{doc.id}': the metadata key '{min(taken)}' is a field of its own in a jsonl corpus")
    try:
        return json_line({**row, **doc.metadata})
    except (TypeError, ValueError) as error:
        raise InputError(f"document '{doc.id}': the metadata cannot be written as JSON ({error})") from None


def json_line(row: Any, indent: int | None = None) -> bytes:
    """A line of jsonl, or with `indent` many lines; characters are written as they are, save lone surrogates."""
    try:
        return json.dumps(row, ensure_ascii=False, indent=indent).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(row, indent=indent).encode() + b"\n"


def _files(folder: Path, format: str | None) -> list[Path]:
    """The files of a folder and its subfolders that hold documents, in order of their paths; hidden ones are left out."""
    for name in ("corpus.jsonl", "corpus.jsonl.gz"):
        if format in (None, "jsonl") and (folder / name).is_file():
            return [folder / name]
    files = sorted(
        (p for p in folder.rglob("*") if p.is_file() and not any(x.startswith(".") for x in p.relative_to(folder).parts)),
        key=lambda p: p.relative_to(folder).as_posix(),
    )
    endings = {None: JSON, "jsonl": JSON, "csv": (".csv",), "tsv": (".tsv",)}.get(format, ())
    chosen = [p for p in files if plain_name(p).endswith(endings)]
    chosen = chosen or ([] if format == "jsonl" else files)
    if not chosen:
        raise InputError(f"{folder}: the folder holds no {'jsonl files' if format == 'jsonl' else 'files'}")
    return chosen


JSON = (".jsonl", ".ndjson", ".json")


def _format_of_folder(paths: Sequence[str | Path]) -> str:
    if plain_name(paths[0]).endswith(JSON):
        return "jsonl"
    return "trec" if _opening(paths[0])[:5].lower() == "<doc>" else "text"


def _format_of_file(path: str | Path) -> str:
    name = plain_name(path)
    if name.endswith(JSON):
        return "jsonl"
    for ending in ("csv", "tsv"):
        if name.endswith("." + ending):
            return ending
    opening = _opening(path)
    if opening.startswith("{"):
        return "jsonl"
    if "<doc>" in opening.lower():
        return "trec"
    if "\t" in opening:
        return "tsv"
    if not opening:
        raise InputError(f"{path}: holds no documents")
    raise InputError(f"{path}: the format is not clear from the file; give format= one of {', '.join(FORMATS)}")


def _opening(path: str | Path) -> str:
    """The first line that is not blank, and what follows in the next 1,000 bytes."""
    with reading(path) as source:
        start = b""
        for line in source.lines():
            start = (start + line[:1000]).lstrip()
            if len(start) >= 1000:
                break
    return start.decode(errors="replace")
