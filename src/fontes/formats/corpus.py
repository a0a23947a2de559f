"""Corpora: the documents of files, of a folder or of any iterable, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, overload

from ..core import Doc, InputError, ParameterError
from ..storage.files import STANDARD, as_path, plain_name, reading
from .folder import CORPUS, beir_file, is_beir
from .format import KINDS, File, Format, format_named, formats_for, sniffed
from .packed import Packing, packed_columns
from .records import USUAL, Fields, doc_from

Portion: TypeAlias = list[Doc] | Packing
Item = TypeVar("Item")


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
        elif as_path(path).is_dir():
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
    def is_folder(self) -> bool:
        """Whether the documents are those of a folder."""
        return str(self.path) != STANDARD and Path(self.path).is_dir()

    @property
    def position(self) -> int:
        """How many bytes the latest iteration has read, of the files as stored; for gzip the compressed bytes."""
        return self._done + (self._file.position if self._file else 0)

    def __iter__(self) -> Iterator[Doc]:
        """Raises InputError that names file and line for what cannot be read, and where there is no document at all."""
        documents = self._through(lambda file: self._format.read_corpus(file, self._fields))
        first = next(documents, None)
        if first is None:
            raise self.empty()
        yield first
        yield from documents

    def portions(self, size: int, count: int) -> Iterator[Portion]:
        """The documents, many at a time, as lists or as work that makes bytes of them.

        Args:
            size: About how many bytes of a file such work is.
            count: How many documents a list has.

        Raises:
            InputError: As iterating does, or the work; but for nothing where there is no document at all.
        """

        def portions(file: File) -> Iterator[Portion]:
            packings = self._format.pack_corpus(file, self._fields, size)
            if packings is not None:
                yield from packings
                return
            docs = self._format.read_corpus(file, self._fields)
            while some := list(islice(docs, count)):
                yield some

        yield from self._through(portions)

    def empty(self) -> InputError:
        """What is raised where there is no document at all."""
        return InputError(f"{self.path}: holds no documents")

    def _through(self, read: Callable[[File], Iterator[Item]]) -> Iterator[Item]:
        """What is read of the files, one after the other."""
        if self._spent:
            raise InputError("standard input can be read only once; write it to a file to read it again")
        self._spent = str(self.path) == STANDARD
        self._done = 0
        for path in self._paths:
            with reading(path) as source:
                self._file = File(source, self._inside(path))
                yield from read(self._file)
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


class Documents:
    """The documents of an iterable, a mapping or a DataFrame, made anew each time they are iterated.

    Args:
        source: What `read_corpus` accepts, save a path.
        fields: Where the id, the title and the text of a dict or a row are.
    """

    def __init__(self, source: Iterable[Any], fields: Fields) -> None:
        self._source = source
        self._fields = fields

    def __iter__(self) -> Iterator[Doc]:
        """Raises InputError with the number of the item, counted from 1, for what is no document."""
        return self._docs(self._items(), 0)

    def portions(self, size: int, count: int) -> Iterator[Portion]:
        """The documents, `count` at a time, as lists or as work that makes bytes of them; `size` is for files."""
        items, before = iter(self._items()), 0
        while some := list(islice(items, count)):
            yield _pairs(some) or list(self._docs(some, before))
            before += len(some)

    def _docs(self, items: Iterable[Any], before: int) -> Iterator[Doc]:
        for number, item in enumerate(items, before + 1):
            match item:
                case Doc():
                    if not isinstance(item.id, str):
                        raise InputError(f"documents, item {number}: the id of a Doc is {item.id!r}, not a string")
                    yield item
                case Mapping():
                    yield doc_from(dict(item), self._fields, "documents", number, "item")
                case (doc_id, text):
                    yield doc_from({"id": doc_id, "text": text}, USUAL, "documents", number, "item")
                case (doc_id, title, text):
                    yield doc_from({"id": doc_id, "title": title, "text": text}, USUAL, "documents", number, "item")
                case _:
                    kind = type(item).__name__
                    raise InputError(f"documents, item {number}: a {kind}; give Doc, a dict, (id, text) or (id, title, text)")

    def _items(self) -> Iterable[Any]:
        source: Any = self._source
        if hasattr(source, "to_dict") and hasattr(source, "columns"):
            return source.astype(object).where(source.notna(), None).to_dict("records")  # type: ignore[no-any-return]
        return source.items() if isinstance(source, Mapping) else source


@overload
def read_corpus(
    source: str | Path, format: str | None = None, fields: Mapping[str, str | Sequence[str]] | None = None
) -> Corpus: ...
@overload
def read_corpus(
    source: str | Path | Iterable[Any], format: str | None = None, fields: Mapping[str, str | Sequence[str]] | None = None
) -> Corpus | Documents: ...
def read_corpus(
    source: str | Path | Iterable[Any], format: str | None = None, fields: Mapping[str, str | Sequence[str]] | None = None
) -> Corpus | Documents:
    """The documents of a file, a folder or whatever a caller has at hand, one at a time.

    A folder gives its .jsonl files (of a BEIR folder corpus.jsonl), its TREC files, or its text files, in order of their
    names. Ids are not checked for duplicates here; the index does that. A whole number as an id stands for its digits.

    Args:
        source: The path of a file, of which .gz is unpacked, or of a folder, or "-" for standard input (jsonl unless `format`
            says else); or an iterable of Doc, of dicts (keys as in the jsonl formats), of (id, text) or (id, title, text); a
            mapping from id to text; or a pandas DataFrame with such columns.
        format: Of a file: the name of a format, such as "jsonl", "tsv", "csv", "trec" (SGML) or "text" (each file a document,
            its id the path inside the folder); by default it is told from name and content.
        fields: Which keys, columns or tags hold the "id", the "title" and the "text" where they have other names; several
            are joined by newlines: `{"id": "pmid", "text": ["abstract", "body"]}`.

    Returns:
        The documents; they can be iterated again and again, where `source` can. Those of a file know how much of it they have
        read.

    Raises:
        InputError: For what cannot be read, here or while iterating.
        ParameterError: For a format or a field that does not exist.
    """
    if isinstance(source, (str, Path)):
        return Corpus(source, None if format is None else format_named(format, "read", "corpus"), Fields.of(fields))
    if format is not None:
        raise ParameterError(f"format='{format}' is of a file, not of a {type(source).__name__}")
    if isinstance(source, (Corpus, Documents)) and fields:
        raise ParameterError(f"fields are chosen where documents are read first, not of a {type(source).__name__}")
    return source if isinstance(source, (Corpus, Documents)) else Documents(source, Fields.of(fields))


def _pairs(items: list[Any]) -> Packing | None:
    """The work of making bytes of items that are all pairs of strings, as most are; None where they are not."""
    if set(map(type, items)) != {tuple} or set(map(len, items)) != {2}:
        return None
    ids, texts = zip(*items, strict=True)
    if set(map(type, ids)) | set(map(type, texts)) != {str} or not all(ids) or any(map(str.isspace, ids)):
        return None
    return Packing(partial(packed_columns, ids, (), texts), sum(map(len, texts)), len(ids))


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
