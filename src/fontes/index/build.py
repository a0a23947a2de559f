"""Building a segment: batches of documents on their way to its files, read, analysed and compressed side by side."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from numbers import Real
from pathlib import Path
from typing import Any

from ..core.errors import InputError, ParameterError
from ..core.progress import Progress, Report
from ..core.strings import Strings, utf8
from ..core.values import Doc
from ..storage.arrays import smallest, write_array
from ..text import Analyzer
from .columns import ColumnWriter
from .documents import DocumentWriter, metadata_bytes
from .postings import TextPostings

SOME = 256  # documents that are looked at together
BATCH = 1 << 22  # bytes of text that are analysed at a time
MEMORY = 1 << 50  # bytes, the most that may be asked for
SCALE = 100  # of term weights that come with the documents, which are stored as whole numbers


@dataclass(frozen=True)
class TermWeights:
    """Term weights in place of texts, as learned sparse encoders give them. They are stored as weight times SCALE.

    Args:
        field: The key of the metadata that holds them.
    """

    field: str

    def of(self, doc: Doc) -> dict[str, int]:
        """The term weights of a document, in whole numbers.

        Raises:
            InputError: Where it has none, or one with other values.
        """
        vector = doc.metadata.get(self.field)
        if not isinstance(vector, Mapping):
            raise InputError(f"document '{doc.id}' has no vector '{self.field}': a JSON object of terms and weights")
        scaled = {}
        for term, weight in vector.items():
            if not isinstance(weight, Real) or not 0 <= (value := float(weight) * SCALE) < 2**31 - 1:
                raise InputError(f"document '{doc.id}', term '{term}': the weight {weight!r} is not a number from 0 up")
            if round(value):
                scaled[str(term)] = round(value)
        return scaled


@dataclass(frozen=True)
class Form:
    """What is indexed of each document.

    Args:
        analyzer: Makes the terms of texts, and of queries.
        fields: The fields whose text is indexed.
        weights: Where the term weights are that are indexed in place of texts; None indexes texts.
    """

    analyzer: Analyzer
    fields: tuple[str, ...]
    weights: TermWeights | None = None

    @classmethod
    def of(cls, analyzer: Any, fields: Sequence[str], vectors: str | None) -> Form:
        """From the arguments of `Index.build`.

        Raises:
            ParameterError: The fields are no list of names, or there is no such analyzer.
        """
        if isinstance(fields, str) or not fields:
            raise ParameterError("fields must be a list of field names, such as ('title', 'text')")
        return cls(Analyzer.of(analyzer), tuple(fields), None if vectors is None else TermWeights(vectors))

    @property
    def facts(self) -> dict[str, Any]:
        """What the manifest says of it."""
        return {
            "analyzer": self.analyzer.to_dict(),
            "fields": list(self.fields) if self.weights is None else [self.weights.field],
            "scale": None if self.weights is None else SCALE,
        }


@dataclass(frozen=True)
class Batch:
    """Documents on their way into the index, in UTF-8.

    Args:
        ids: Their ids.
        titles: Their titles.
        texts: Their texts.
        metadata: Their metadata as JSON, empty for none.
        values: Their metadata.
        contents: What is indexed of each: text, or its term weights.
    """

    ids: list[str]
    titles: list[bytes]
    texts: list[bytes]
    metadata: list[bytes]
    values: list[Mapping[str, Any]]
    contents: list[Any]


def build_segment(
    docs: Iterable[Doc],
    folder: Path,
    form: Form,
    *,
    memory: int,
    threads: int,
    progress: Report,
    columns: ColumnWriter | None = None,
    only: Callable[[Doc], bool] | None = None,
    repeated: bool = False,
) -> dict[str, int]:
    """Writes the files of one segment.

    Args:
        docs: The documents.
        folder: Where the files go; blocks of postings go beside it for the time being.
        form: What is indexed of them.
        memory: Bounds the bytes that postings take before they are written to disk; the terms, the ids and two batches of
            text come on top.
        threads: With two or more, analysis and the compression of texts run beside reading.
        progress: Is called after each batch.
        columns: Writes the columns of the metadata; None writes none.
        only: Says of each document, in their order, whether it is taken; None takes all.
        repeated: Whether an id may occur twice.

    Returns:
        The counts of documents, terms, postings and tokens.
    """
    start = time.perf_counter()
    store = DocumentWriter(folder)
    postings = TextPostings(folder, form.analyzer, memory)
    ids: list[str] = []
    try:
        with _Workers(threads) as workers:
            add = postings.add if form.weights is None else postings.add_weights
            workers.run(add, [])  # loads the compiled code while the first documents are read
            for batch in batches(docs, form, only):
                ids += batch.ids
                workers.run(add, batch.contents)
                workers.run(store.add, batch.titles, batch.texts, batch.metadata)
                if columns is not None:
                    workers.run(columns.add, batch.ids, batch.values)
                progress(_progress(docs, len(ids), time.perf_counter() - start))
            workers.run(write_ids, folder, Strings.of(ids), repeated)
        store.close()
        if columns is not None:
            columns.close()
        return {"documents": len(ids), **postings.close()}
    finally:
        store.abandon()


def batches(docs: Iterable[Doc], form: Form, only: Callable[[Doc], bool] | None = None) -> Iterator[Batch]:
    """Groups documents into batches of about BATCH bytes of text.

    Raises:
        InputError: For a document without an id.
    """
    batch, size, count = Batch([], [], [], [], [], []), 0, 0
    stream = _marked(docs)
    while some := list(islice(stream, SOME)):
        _check(some, count)
        count += len(some)
        some = some if only is None else list(filter(only, some))
        titles, texts = [utf8(doc.title) for doc in some], [utf8(doc.text) for doc in some]
        if form.weights is not None:
            batch.contents.extend(map(form.weights.of, some))
        elif form.fields == ("title", "text"):
            batch.contents.extend([a + b" " + b if a else b for a, b in zip(titles, texts, strict=True)])
        else:
            batch.contents.extend(utf8(content(doc, form.fields)) for doc in some)
        batch.ids.extend(doc.id for doc in some)
        batch.titles.extend(titles)
        batch.texts.extend(texts)
        batch.metadata.extend([metadata_bytes(doc) if doc.metadata else b"" for doc in some])
        batch.values.extend(doc.metadata for doc in some)
        size += sum(map(len, texts)) + 64 * len(some)
        if size >= BATCH:
            yield batch
            batch, size = Batch([], [], [], [], [], []), 0
    if batch.ids:
        yield batch


def _check(docs: list[Doc], before: int) -> None:
    """Raises InputError unless all of `docs` have an id and are made of strings; `before` documents came before them."""
    for number, doc in enumerate(docs, before + 1):
        if not (isinstance(doc.id, str) and isinstance(doc.title, str) and isinstance(doc.text, str)):
            raise InputError(f"document {number} ({doc.id!r}): id, title and text must be strings")
        if not doc.id:
            raise InputError(f"document {number} has an empty id (its text begins '{doc.text[:40]}')")


def _marked(docs: Iterable[Doc]) -> Iterator[Doc]:
    """The documents; an OSError that comes from reading them is marked as such: it is not one of writing the index."""
    try:
        yield from docs
    except OSError as e:
        e.of_documents = True  # type: ignore[attr-defined]
        raise


def content(doc: Doc, fields: Sequence[str]) -> str:
    """What is indexed of a document: the fields that are not empty, with a space between them."""
    values = (getattr(doc, f) if f in ("title", "text") else doc.metadata.get(f) for f in fields)
    return " ".join(str(value) for value in values if value not in (None, ""))


def memory_size(size: str | int) -> int:
    """Bytes from a number or from text such as "500M" or "2G".

    Raises:
        ParameterError: For anything else.
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)i?B?", str(size).strip(), re.IGNORECASE)
    memory = float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " ") if match else 0
    if not 1 <= memory <= MEMORY:
        raise ParameterError(f"memory must be a size such as 500M or 2G, 1024T at the most, not '{size}'")
    return int(memory)


def write_ids(folder: Path, table: Strings, repeated: bool = False) -> None:
    """Writes doc_ids. Raises InputError where one occurs twice, unless ids may be repeated."""
    order = table.order
    in_order = table.take(order)
    for i in range(1, len(in_order)):
        if not repeated and in_order[i] == in_order[i - 1]:
            first, second = sorted((int(order[i - 1]) + 1, int(order[i]) + 1))
            raise InputError(f"document id '{in_order[i]}' occurs twice, as documents {first} and {second}; ids must be unique")
    write_array(folder, "doc_ids.bytes", table.blob)
    write_array(folder, "doc_ids.bounds", smallest(table.offsets))
    write_array(folder, "doc_ids.order", order)


def _progress(docs: Any, done: int, seconds: float) -> Progress:
    """How far the build is, by the bytes read of a corpus that knows its size, else by the number of documents."""
    part = min(1.0, float(docs.position / docs.size)) if getattr(docs, "size", 0) else None
    total = len(docs) if hasattr(docs, "__len__") else None
    return Progress("indexing", done, total, seconds, part=part)


class _Workers:
    """Runs each function in a thread of the function's own, in order, at most one call behind."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pools: dict[Any, ThreadPoolExecutor] = {}
        self._running: dict[Any, Future[None]] = {}

    def run(self, function: Callable[..., None], *arguments: Any) -> None:
        """Calls the function, now or when its last call is done. Raises what an earlier call has raised."""
        if self._threads == 1:
            function(*arguments)
            return
        if function in self._running:
            self._running[function].result()
        else:
            self._pools[function] = ThreadPoolExecutor(1)
        self._running[function] = self._pools[function].submit(function, *arguments)

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        for pool in self._pools.values():
            pool.shutdown()
        if kind is None:
            for running in self._running.values():
                running.result()
