"""Corpora: documents from files, folders or iterables, read one at a time."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast, overload

from ..core import Doc, InputError, ParameterError
from ..core.checks import hinted
from ..core.tabular import Tabular, check_no_record, columns_of, is_frame, listed
from ..storage.files import STANDARD
from .bad_records import BadRecords
from .decoding import ReadingOptions, reading_of
from .folder import CorpusPiece, cut, grouped, pieces_of
from .format import KINDS, File, Format, format_named, formats_for, sniffed
from .frames import PLAIN, FrameChunk, cell_value, cell_values, chunks_of, is_json
from .packed import Packing
from .records import DOC_FIELDS, Fields, doc_from

SIMPLE = PLAIN | {float}  # types of values whose columns are packed without a look at each
SAMPLE = 100  # items of a list that are looked at to tell paths from texts
PATH = re.compile(r"-|\S*[^\s./\\][./\\][^\s.]\S*|\S+/")  # such as a/b, c.d, s3://e
DATA_FILE = re.compile(r"\S+\.(?:jsonl?|[ct]sv|xml|xlsx|parquet|txt|trec|sgml?|ciff|gz|bz2|xz|zst|zip)", re.IGNORECASE)
Portion: TypeAlias = list[Doc] | Packing
Item = TypeVar("Item")


class DocumentRows(Tabular, Iterable[Doc]):
    """Documents as rows."""

    def to_columns(self) -> dict[str, Any]:
        """Return the columns id, title, text and one for each key of the metadata; all documents are read into memory."""
        rows = [{"id": doc.id, "title": doc.title, "text": doc.text, **doc.metadata} for doc in self]
        return columns_of(rows, list(dict.fromkeys(["id", "title", "text", *(name for row in rows for name in row)])))


class Corpus(DocumentRows):
    """Documents of files, read again on each iteration and never all in memory.

    Attributes:
        path: The file or folder, or a name that stands for several in messages.
        pieces: Files, or byte ranges of them, in order, each with its format.
        size: Bytes of the files as stored; 0 for standard input, which can be iterated once.
        is_part: Whether this is part of another corpus, and so may be empty.
    """

    def __init__(
        self, path: str | Path, pieces: Sequence[tuple[CorpusPiece, Format]], fields: Fields, is_part: bool = False
    ) -> None:
        """Use `read_corpus`."""
        self.path = path
        self.is_part = is_part
        self.pieces = pieces
        self.size = sum(piece.size for piece, _ in pieces)
        self.fields = fields
        self._bytes_read = 0
        self._file: File | None = None
        self._was_read = False
        self._streams: dict[CorpusPiece, tuple[ExitStack, File]] = {}  # pipes opened for format detection

    @classmethod
    def at(cls, path: str | Path, chosen: Format | None, fields: Fields, reading: ReadingOptions | None = None) -> Corpus:
        """Inspect a file or folder without reading its documents.

        Raises:
            InputError: The path does not exist, the folder is empty, or a file's format is unclear.
            ParameterError: Fields are given for a format without named fields.
        """
        first = formats_for("read", "corpus")[KINDS["corpus"].first]
        pieces = [replace(piece, reading=reading or reading_of()) for piece in pieces_of(path, chosen, first)]
        stack = ExitStack()
        streams: dict[CorpusPiece, tuple[ExitStack, File]] = {}
        if chosen is None or (chosen.named_fields and not pieces[0].is_stream):
            with stack:
                file = stack.enter_context(pieces[0].opened())
                try:
                    chosen = chosen or sniffed("corpus", file)
                except InputError:
                    if str(path) != STANDARD:
                        raise
                    chosen = first
                fields = fields.by_sample(chosen.sample(file), file.name)
                if pieces[0].is_stream:
                    streams[pieces[0]] = stack.pop_all(), file
        if fields.chosen and not chosen.named_fields:
            raise ParameterError(f"{path}: documents in the format '{chosen.name}' have no named fields to choose from")
        corpus = cls(path, [(piece, chosen) for piece in pieces], fields)
        corpus._streams = streams
        return corpus

    def cut(self, size: int) -> list[Corpus]:
        """Split into independently readable parts of about `size` bytes; InputError if a file cannot be read.

        JSON lines and tables without a header are cut at line ends; compressed files and files of other formats stay whole.
        """
        parts = [(part, form) for piece, form in self.pieces for part in cut(piece, form, self.fields, size)]
        form_of = dict(parts)
        groups = grouped([part for part, _ in parts], size)
        return [Corpus(group[0].name, [(piece, form_of[piece]) for piece in group], self.fields, True) for group in groups]

    def absolute(self) -> Corpus:
        """Return the corpus with absolute paths."""
        pieces = [(piece.absolute(), form) for piece, form in self.pieces]
        return Corpus(self.path, pieces, self.fields, self.is_part)

    @property
    def format(self) -> str:
        """Name of the format, or names of all formats."""
        return ", ".join(dict.fromkeys(form.name for _, form in self.pieces))

    @property
    def has_cells(self) -> bool:
        """Whether metadata are table cells, whose types an index infers."""
        return any(form.has_cells for _, form in self.pieces)

    @property
    def position(self) -> int:
        """Bytes read by the latest iteration, as stored (compressed bytes for gzip)."""
        return self._bytes_read + (self._file.position if self._file else 0)

    def __iter__(self) -> Iterator[Doc]:
        """Yield documents; InputError names file and line, or says that there are no documents."""
        documents = self._read_pieces(lambda file, form: form.read_corpus(file, self.fields))
        first = next(documents, None)
        if first is None:
            raise self.empty()
        yield first
        yield from documents

    def portions(self, size: int, count: int) -> Iterator[Portion]:
        """Yield documents in batches: lists of `count`, or deferred packing work for about `size` bytes of a file.

        Raises InputError as iteration does, or from the work, except that an empty corpus is allowed.
        """

        def portions_of(file: File, form: Format) -> Iterator[Portion]:
            packings = form.pack_corpus(file, self.fields, size)
            if packings is not None:
                yield from packings
                return
            docs = form.read_corpus(file, self.fields)
            while portion := list(islice(docs, count)):
                yield portion

        yield from self._read_pieces(portions_of)

    def empty(self) -> InputError:
        """Return the error for a corpus without documents."""
        return InputError(f"{self.path}: holds no documents")

    def _read_pieces(self, read: Callable[[File, Format], Iterator[Item]]) -> Iterator[Item]:
        stream = next((piece for piece, _ in self.pieces if piece.is_stream), None)
        if self._was_read and stream is not None:
            name = "standard input" if str(stream.path) == STANDARD else stream.name
            raise InputError(f"{name} can be read only once; write it to a file to read it again")
        self._was_read = True
        self._bytes_read = 0
        for piece, form in self.pieces:
            stack, file = self._streams.pop(piece, (ExitStack(), None))
            with stack:
                file = file or stack.enter_context(piece.opened())
                self._file = file
                yield from read(file, form)
            self._file = None
            self._bytes_read += piece.size

    def __repr__(self) -> str:
        return f"Corpus({str(self.path)!r}, format={self.format!r})"


class IterableCorpus(DocumentRows):
    """Documents of an iterable, a mapping or a DataFrame, converted again on each iteration.

    Args:
        source: Any source that `read_corpus` accepts, except a path.
        fields: Names of the id, title and text in a dict or row.
        bad: Documents left out because they are bad.
    """

    def __init__(self, source: Iterable[object], fields: Fields, bad: BadRecords | None = None) -> None:
        self._source = source
        self.fields = fields
        self._bad = bad or BadRecords()

    def __iter__(self) -> Iterator[Doc]:
        """Yield documents; InputError gives the number of a bad item, counted from 1."""
        if is_frame(self._source):
            return (doc for chunk in chunks_of(self._source, self.fields) for doc in chunk.docs(self._bad))
        return self._docs(self._items(), 1)

    def portions(self, size: int, count: int) -> Iterator[Portion]:
        """Yield documents in batches of `count`, as lists or deferred packing work; `size` is ignored."""
        if is_frame(self._source):
            chunks = chunks_of(self._source, self.fields)
            yield from (chunk.packing() or list(chunk.docs(self._bad)) for chunk in chunks)
            return
        items, first = iter(self._items()), 1
        while portion := list(islice(items, count)):
            yield (None if self.fields.chosen else _pack_items(portion, first, self.fields)) or list(self._docs(portion, first))
            first += len(portion)

    def _docs(self, items: Iterable[object], first: int) -> Iterator[Doc]:
        """Convert items, the first of which has the number `first` in messages."""
        for number, item in enumerate(items, first):
            try:
                doc = self._doc(item, number)
            except InputError as error:
                self._bad.skip(error)
            else:
                yield doc

    def _doc(self, item: Any, number: int) -> Doc:
        if self._is_record(item):
            item = item._asdict()
        if self.fields.chosen and not isinstance(item, Mapping):
            kind = type(item).__name__
            raise ParameterError(f"documents, item {number}: a {kind} has no named fields to choose from; fields= is of dicts")
        match item:
            case Doc():
                if not isinstance(item.id, str):
                    raise InputError(f"documents, item {number}: the id of a Doc is {item.id!r}, not a string")
                return _with_json(item, number)
            case Mapping():
                return _with_json(doc_from(dict(item), self.fields, "documents", number, "item"), number)
            case str():
                return Doc(str(number - 1), str(item))
            case (doc_id, text):
                return doc_from({"id": doc_id, "text": text}, DOC_FIELDS, "documents", number, "item")
            case (doc_id, title, text):
                return doc_from({"id": doc_id, "title": title, "text": text}, DOC_FIELDS, "documents", number, "item")
        kind = type(item).__name__
        raise InputError(f"documents, item {number}: a {kind}; give Doc, a dict, (id, text), (id, title, text) or a text")

    def _is_record(self, item: object) -> bool:
        """Whether an item is a named tuple, as `itertuples` gives them, whose fields are those of a document."""
        keys = self.fields.keys(getattr(item, "_fields", ()))
        return bool(keys["id"] and keys["text"])

    def _items(self) -> Iterable[Any]:
        if not isinstance(self._source, Mapping):
            return self._source
        check_no_record(self._source, self.fields.id, self.fields.text, "documents")
        items = self._source.items()
        return ({**doc, "_id": key} if isinstance(doc, Mapping) else (key, doc) for key, doc in items)  # as BEIR's


@overload
def read_corpus(
    source: str | Path,
    format: str | None = None,
    fields: Mapping[str, str | Sequence[str]] | None = None,
    encoding: str | None = None,
    errors: str | None = None,
    skip_bad: int | None = None,
) -> Corpus: ...
@overload
def read_corpus(
    source: str | Path | Iterable[object],
    format: str | None = None,
    fields: Mapping[str, str | Sequence[str]] | None = None,
    encoding: str | None = None,
    errors: str | None = None,
    skip_bad: int | None = None,
) -> Corpus | IterableCorpus: ...
@hinted
def read_corpus(
    source: str | Path | Iterable[object],
    format: str | None = None,
    fields: Mapping[str, str | Sequence[str]] | None = None,
    encoding: str | None = None,
    errors: str | None = None,
    skip_bad: int | None = None,
) -> Corpus | IterableCorpus:
    """Read the documents of a file, a folder or an iterable, one at a time.

    A folder gives its .jsonl files (for a BEIR folder, corpus.jsonl), its TREC files, or its text files, ordered by name.
    Duplicate ids are not checked here; the index does that. Whole numbers as ids become strings of digits. Dates, arrays and
    other values of Python and numpy become JSON values: dates ISO's texts, durations seconds.

    Args:
        source: A file (decompressed if need be) or folder, an address of one ("s3://bucket/papers", "https://…"), "-" for
            standard input, or a list of these, read one after the other; an iterable of Doc, dicts (keys as in jsonl), (id,
            text), (id, title, text), or texts; a mapping from id to text, or to a dict as BEIR's; an array or Series of texts;
            or a table: a DataFrame of pandas or polars, an Arrow table, a relation of DuckDB, a dataset of Hugging Face. The
            ids of texts are their positions from "0", or the labels of a Series of pandas, and likewise those of a table
            without a column of ids.
        format: Of a file: the name of a format, such as "jsonl", "tsv", "csv", "trec" (SGML) or "text" (a document a file, its
            id the path inside the folder); by default detected from name and content.
        fields: Keys, columns or tags that hold the "id", "title" and "text", if named otherwise; several are joined by
            newlines: `{"id": "pmid", "text": ["abstract", "body"]}`. Columns without a header go by number:
            `{"id": "1", "text": "3"}`.
        encoding: Of a file: its encoding, such as "cp1252"; by default UTF-8, or else detected, with an `InputWarning`.
        errors: Of a file, treatment of undecodable bytes: "strict" stops, "replace" puts U+FFFD and warns with the number of
            changed lines.
        skip_bad: Maximum number of bad documents, such as those without an id, to leave out, each with an `InputWarning`;
            known quirks of official collections are not counted. By default 0.

    Returns:
        Documents, which can be iterated repeatedly if `source` can; a corpus of files reports how much of them was read.

    Raises:
        InputError: A source cannot be read, here or while iterating.
        ParameterError: A format or field does not exist.
    """
    source = listed(source)
    paths = [source] if isinstance(source, (str, Path)) else _paths(source)
    if paths:
        chosen = None if format is None else format_named(format, "read", "corpus")
        options = reading_of(encoding, errors, bad=None if skip_bad is None else BadRecords(skip_bad))
        return join_corpora([Corpus.at(path, chosen, Fields.of(fields), options) for path in paths])
    for name, value in (("format", format), ("encoding", encoding), ("errors", errors)):
        if value is not None:
            raise ParameterError(f"{name}='{value}' is of a file, not of a {type(source).__name__}")
    if not isinstance(source, (Corpus, IterableCorpus)):
        return IterableCorpus(cast(Iterable[object], source), Fields.of(fields), BadRecords(skip_bad or 0))
    if fields:
        raise ParameterError(f"fields are chosen where documents are read first, not of a {type(source).__name__}")
    if skip_bad is not None:
        raise ParameterError(f"skip_bad is given where documents are read first, not for a {type(source).__name__}")
    return source


def join_corpora(corpora: Sequence[Iterable[Doc]]) -> Corpus:
    """Concatenate corpora of files and folders; ParameterError for any other kind."""
    parts = [corpus for corpus in corpora if isinstance(corpus, Corpus)]
    if len(parts) < len(corpora):
        raise ParameterError("several parts of a collection are files or folders; name another collection by itself")
    if len(parts) == 1:
        return parts[0]
    pieces = [piece for corpus in parts for piece in corpus.pieces]
    joined = Corpus(f"{parts[0].path} … {parts[-1].path}", pieces, parts[0].fields)
    joined._streams = {piece: stream for corpus in parts for piece, stream in corpus._streams.items()}
    return joined


def with_prefix(documents: Iterable[Doc], prefix: str) -> Iterable[Doc]:
    """Prepend a prefix to each id: "D59865" becomes "MARCO_D59865". A corpus stays a corpus."""
    if not isinstance(documents, Corpus):
        return _Prefixed(documents, prefix)
    pieces = [(piece, PrefixedFormat(form, prefix)) for piece, form in documents.pieces]
    return Corpus(documents.path, pieces, documents.fields, documents.is_part)


def with_prefixes(parts: Sequence[str], prefixes: Sequence[str], read: Callable[[list[str]], Iterable[Doc]]) -> Iterable[Doc]:
    """Read the parts of a collection as one, with prefixes before their ids.

    `prefixes` has no element, one for all parts, or one for each part, in order; `read` reads the documents of the parts that
    it is given. Raises ParameterError for any other number of prefixes, or for several prefixes if a part is neither a file
    nor a folder.
    """
    if not prefixes:
        return read(list(parts))
    if len(prefixes) == 1:
        return with_prefix(read(list(parts)), prefixes[0])
    if len(prefixes) != len(parts):
        raise ParameterError(
            f"there are {len(prefixes)} prefixes of ids for {len(parts)} parts; give one for all, or one for each"
        )
    return join_corpora([with_prefix(read([part]), prefix) for part, prefix in zip(parts, prefixes, strict=True)])


class PrefixedFormat(Format):
    """A format that prepends a prefix to its documents' ids."""

    def __init__(self, form: Format, prefix: str) -> None:
        self.form = form
        self.prefix = prefix

    @property
    def name(self) -> str:  # type: ignore[override]
        """Format name with the prefix, which distinguishes readings of one file with different prefixes."""
        return f"{self.form.name} as {self.prefix}…"

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        return iter(_Prefixed(self.form.read_corpus(file, fields), self.prefix))

    def is_of_lines(self, file: File, fields: Fields) -> bool:
        return self.form.is_of_lines(file, fields)


@dataclass(frozen=True)
class _Prefixed:
    documents: Iterable[Doc]
    prefix: str

    def __iter__(self) -> Iterator[Doc]:
        return (replace(doc, id=self.prefix + doc.id) for doc in self.documents)


def _paths(source: Iterable[object]) -> list[str | Path]:
    """Return the files, folders and addresses of a list; [] for any other source, such as a list of texts."""
    if not (isinstance(source, (list, tuple)) and all(isinstance(item, (str, Path)) for item in source)):
        return []
    first = list(islice(source, SAMPLE))
    are_paths = any(isinstance(item, Path) or DATA_FILE.fullmatch(item) or os.path.lexists(item) for item in first)
    return list(source) if are_paths or all(PATH.fullmatch(str(item)) for item in first) else []


def _with_json(doc: Doc, number: int) -> Doc:
    """Return a document whose metadata are JSON values; InputError names it and the key."""
    key = ""
    try:
        if is_json(doc.metadata):
            return doc
        metadata: dict[str, object] = {}
        for key, value in doc.metadata.items():
            metadata[key] = value if is_json(value) else cell_value(value)
    except (InputError, RecursionError) as error:
        problem = "its metadata are nested too deeply" if isinstance(error, RecursionError) else f"'{key}': {error}"
        raise InputError(f"documents, item {number}, document '{doc.id}': {problem}") from None
    return replace(doc, metadata=metadata)


def _pack_items(items: list[Any], first: int, fields: Fields) -> Packing | None:
    """Return packing work for texts, pairs, triples or dicts of plain values that are alike, else None.

    `first` is the first item's number.
    """
    kinds, names = set(map(type, items)), ["id", "title", "text"]
    if kinds == {str}:
        names, columns = ["id", "text"], [list(map(str, range(first - 1, first - 1 + len(items)))), items]
    elif kinds == {dict} and len(keys := set(map(tuple, items))) == 1:
        names = list(keys.pop())
        columns = [list(column) for column in zip(*map(dict.values, items), strict=True)]
    elif kinds == {tuple} and (sizes := set(map(len, items))) <= {2, 3} and len(sizes) == 1:
        names = names if sizes == {3} else ["id", "text"]
        columns = [list(column) for column in zip(*items, strict=True)]
    else:
        return None
    if any(not set(map(type, column)) <= SIMPLE for column in columns):
        return None
    return FrameChunk(names, list(map(cell_values, columns)), first, fields, "").packing()
