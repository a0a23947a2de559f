"""Building an index in bounded memory: batches of documents become inverted runs, which are merged at the end."""

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

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError, ParameterError
from ..core.strings import Strings, utf8
from ..core.values import Doc
from ..storage.arrays import ByteWriter, read_array, smallest, write_array
from ..text import Analyzer, Vocabulary
from .documents import DocumentWriter, metadata_bytes
from .kernels import MOST_BYTES, count_terms, encode, gather, invert

SOME = 256  # documents that are looked at together
BATCH = 1 << 22  # bytes of text that are analysed at a time
CHUNK = 1 << 22  # postings that are merged at a time
SCALE = 100  # of given term weights, which are kept as whole numbers
POSTING = 24  # bytes of memory that a posting takes at the most before it is written


@dataclass(frozen=True)
class Progress:
    """How far a build is. `fraction` is None where the size of the collection is not known.

    `before` is how much of `documents` an earlier run has done, which was interrupted.
    """

    documents: int
    seconds: float
    fraction: float | None
    before: int = 0

    @property
    def rate(self) -> float:
        """Documents a second."""
        return (self.documents - self.before) / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """The time left at the rate so far."""
        if not self.fraction or self.documents <= self.before:
            return None
        return self.seconds * (1 / self.fraction - 1) * self.documents / (self.documents - self.before)


@dataclass(frozen=True)
class Batch:
    """Documents on their way into the index, in UTF-8; `contents` is what is indexed of each: text, or a vector."""

    ids: list[str]
    titles: list[bytes]
    texts: list[bytes]
    metadata: list[bytes]
    contents: list[Any]


def build_segment(
    docs: Iterable[Doc],
    folder: Path,
    analyzer: Analyzer,
    fields: Sequence[str],
    *,
    vectors: Vectors | None,
    memory: int,
    threads: int,
    progress: Callable[[Progress], None] | None,
) -> dict[str, int]:
    """Writes the files of one segment into `folder`; returns the counts of documents, terms, postings and tokens.

    `memory` bounds the bytes that postings take before they are written to disk; the terms, the ids and two batches of text
    come on top. With two threads or more, analysis and the compression of texts run beside reading.
    """
    start = time.perf_counter()
    store = DocumentWriter(folder)
    postings = PostingsWriter(folder, analyzer, memory)
    ids: list[str] = []
    try:
        with _Workers(threads) as workers:
            add = postings.add if vectors is None else postings.add_vectors
            workers.run(add, [])  # loads the compiled code while the first documents are read
            for batch in batches(docs, fields, vectors):
                ids += batch.ids
                workers.run(add, batch.contents)
                workers.run(store.add, batch.titles, batch.texts, batch.metadata)
                if progress:
                    progress(Progress(len(ids), time.perf_counter() - start, _fraction(docs, len(ids))))
            workers.run(_write_ids, folder, ids)
        store.close()
        return {"documents": len(ids), **postings.close()}
    finally:
        store.abandon()


def batches(docs: Iterable[Doc], fields: Sequence[str], vectors: Vectors | None) -> Iterator[Batch]:
    """Groups documents into batches of about BATCH bytes of text. Raises InputError for a document without an id."""
    batch, size, count = Batch([], [], [], [], []), 0, 0
    stream = _marked(docs)
    while some := list(islice(stream, SOME)):
        _check(some, count)
        count += len(some)
        titles, texts = [utf8(doc.title) for doc in some], [utf8(doc.text) for doc in some]
        if vectors is not None:
            batch.contents.extend(map(vectors.of, some))
        elif list(fields) == ["title", "text"]:
            batch.contents.extend([a + b" " + b if a else b for a, b in zip(titles, texts, strict=True)])
        else:
            batch.contents.extend(utf8(content(doc, fields)) for doc in some)
        batch.ids.extend(doc.id for doc in some)
        batch.titles.extend(titles)
        batch.texts.extend(texts)
        batch.metadata.extend([metadata_bytes(doc) if doc.metadata else b"" for doc in some])
        size += sum(map(len, texts)) + 64 * len(some)
        if size >= BATCH:
            yield batch
            batch, size = Batch([], [], [], [], []), 0
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
    """The documents; an OSError that comes from reading them is marked as such, to be told from one of writing the index."""
    try:
        yield from docs
    except OSError as e:
        e.of_documents = True  # type: ignore[attr-defined]
        raise


def content(doc: Doc, fields: Sequence[str]) -> str:
    """What is indexed of a document: the fields that are not empty, with a space between them."""
    values = (getattr(doc, f) if f in ("title", "text") else doc.metadata.get(f) for f in fields)
    return " ".join(str(value) for value in values if value not in (None, ""))


@dataclass(frozen=True)
class Vectors:
    """Term weights in place of texts: the key of the metadata that holds them. They are kept as weight times SCALE."""

    field: str

    def of(self, doc: Doc) -> dict[str, int]:
        """The vector of a document, in whole numbers. Raises InputError where it has none, or one with other values."""
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


class PostingsWriter:
    """Turns texts into the files of the inverted index: terms, df, cf, postings, doc_lengths."""

    def __init__(self, folder: Path, analyzer: Analyzer, memory: int) -> None:
        self._folder = folder
        self._vocabulary: Vocabulary = analyzer.vocabulary()
        self._table = Strings.of([])  # the terms, as of the last run
        self._most = max(1, memory // POSTING)
        self._lengths: list[NDArray[np.int64]] = []
        self._pending: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]] = []
        self._pending_size = 0
        self._pending_first = 0  # the number of the first document that is pending
        self._runs: list[Run] = []

    def add(self, texts: Sequence[bytes]) -> None:
        """Appends documents."""
        numbers, bounds = self._vocabulary.encode_bytes(texts)
        terms, counts = np.empty_like(numbers), np.empty_like(numbers)
        scratch = np.zeros(len(self._vocabulary.terms), dtype=np.int32)
        term_bounds = count_terms(numbers, bounds, scratch, terms, counts)
        filled = int(term_bounds[-1])
        self._append(terms[:filled].copy(), counts[:filled].copy(), term_bounds, np.diff(bounds))

    def add_vectors(self, vectors: Sequence[Mapping[str, int]]) -> None:
        """Appends documents that are given as terms with their frequencies."""
        terms = self._vocabulary.numbers([term for vector in vectors for term in vector])
        counts = np.array([count for vector in vectors for count in vector.values()], dtype=np.int32)
        bounds = np.zeros(len(vectors) + 1, dtype=np.int64)
        np.cumsum([len(vector) for vector in vectors], out=bounds[1:])
        self._append(terms, counts, bounds, np.array([sum(vector.values()) for vector in vectors]))

    def _append(
        self, terms: NDArray[np.int32], counts: NDArray[np.int32], term_bounds: NDArray[np.int64], lengths: NDArray[Any]
    ) -> None:
        self._pending.append((terms, counts, term_bounds))
        self._pending_size += len(terms)
        self._lengths.append(lengths.astype(np.int64))
        if self._pending_size >= self._most:
            self._runs.append(self._invert().spilled(self._folder.parent, len(self._runs)))

    def close(self) -> dict[str, int]:
        """Merges the runs and writes the files."""
        runs = [*self._runs, self._invert()]
        order = runs[-1].order
        df = np.zeros(len(order), dtype=np.int64)
        for run in runs:
            df[: len(run.order)] += np.diff(run.bounds)[run.places]
        order = order[df[order] > 0]  # the words of n-grams may stand in no document by themselves
        df = df[order]
        cf = np.zeros(len(order), dtype=np.int64)
        byte_bounds = np.zeros(len(order) + 1, dtype=np.int64)
        postings = ByteWriter(self._folder, "postings")
        try:
            for first, last in _chunks(df):
                docs, tfs, bounds = _merged(runs, order[first:last], df[first:last])
                out = np.empty(MOST_BYTES * len(docs), dtype=np.uint8)
                ends = np.zeros(last - first + 1, dtype=np.int64)
                length = encode(bounds, docs, tfs, out, ends, cf[first:last])
                byte_bounds[first + 1 : last + 1] = postings.length + ends[1:]
                postings.write(out[:length])
            postings.close()
        finally:
            postings.abandon()
        table = self._table.reordered(order)
        lengths = np.concatenate([*self._lengths, np.zeros(0, dtype=np.int64)])
        write_array(self._folder, "postings.bounds", smallest(byte_bounds))
        write_array(self._folder, "terms.bytes", table.blob)
        write_array(self._folder, "terms.bounds", smallest(table.offsets))
        write_array(self._folder, "df", smallest(df))
        write_array(self._folder, "cf", smallest(cf))
        write_array(self._folder, "doc_lengths", smallest(lengths))
        return {"terms": len(order), "postings": int(df.sum()), "tokens": int(cf.sum())}

    def _invert(self) -> Run:
        """The pending documents as a run."""
        self._table = Strings.of(self._vocabulary.terms)
        order = self._table.order.astype(np.int32)
        places = np.empty_like(order)
        places[order] = np.arange(len(order), dtype=np.int32)
        sizes = np.zeros(len(order), dtype=np.int64)
        for numbers, _, _ in self._pending:
            sizes += np.bincount(numbers, minlength=len(order))
        bounds = np.zeros(len(order) + 1, dtype=np.int64)
        np.cumsum(sizes[order], out=bounds[1:])
        docs, tfs = np.empty(self._pending_size, dtype=np.int32), np.empty(self._pending_size, dtype=np.int32)
        cursor = bounds[:-1].copy()
        for numbers, counts, term_bounds in self._pending:
            invert(numbers, counts, term_bounds, self._pending_first, places, cursor, docs, tfs)
            self._pending_first += len(term_bounds) - 1
        self._pending, self._pending_size = [], 0
        return Run(order, places, bounds, docs, tfs)


@dataclass(frozen=True)
class Run:
    """Postings of some consecutive documents, by terms in ascending order.

    `order` lists the term numbers in that order, `places` is its inverse; the postings of order[i] are at
    bounds[i]:bounds[i+1].
    """

    order: NDArray[np.int32]
    places: NDArray[np.int32]
    bounds: NDArray[np.int64]
    docs: NDArray[np.int32]
    tfs: NDArray[np.int32]

    def spilled(self, folder: Path, number: int) -> Run:
        """The same run, its postings on disk."""
        arrays = {}
        for name in ("bounds", "docs", "tfs"):
            write_array(folder, f"run{number}.{name}", getattr(self, name))
            arrays[name] = read_array(folder, f"run{number}.{name}")
        return Run(self.order, self.places, **arrays)


def memory_size(given: str | int) -> int:
    """Bytes from a number or from text such as "500M" or "2G". Raises ParameterError for anything else."""
    if isinstance(given, int) and given > 0:
        return given
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", str(given).strip(), re.IGNORECASE)
    if not match or float(match[1]) == 0:
        raise ParameterError(f"memory must be a size such as 500M or 2G, not '{given}'")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


def _chunks(df: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of terms with about CHUNK postings each."""
    ends = np.cumsum(df)
    first = 0
    while first < len(df):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + CHUNK, side="right")))
        yield first, last
        first = last


def _merged(
    runs: list[Run], terms: NDArray[np.int32], df: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """The postings of `terms` from all runs: documents, frequencies, and where those of each term start."""
    bounds = np.zeros(len(terms) + 1, dtype=np.int64)
    np.cumsum(df, out=bounds[1:])
    docs, tfs = np.empty(bounds[-1], dtype=np.int32), np.empty(bounds[-1], dtype=np.int32)
    cursor = bounds[:-1].copy()
    for run in runs:
        places = np.full(len(terms), -1, dtype=np.int32)
        known = terms < len(run.order)  # a later term is not in this run
        places[known] = run.places[terms[known]]
        gather(run.bounds, run.docs, run.tfs, places, cursor, docs, tfs)
    return docs, tfs, bounds


def _write_ids(folder: Path, ids: list[str]) -> None:
    """Writes doc_ids. Raises InputError where one occurs twice."""
    table = Strings.of(ids)
    order = table.order
    in_order = table.take(order)
    for i in range(1, len(in_order)):
        if in_order[i] == in_order[i - 1]:
            first, second = sorted((int(order[i - 1]) + 1, int(order[i]) + 1))
            raise InputError(f"document id '{in_order[i]}' occurs twice, as documents {first} and {second}; ids must be unique")
    write_array(folder, "doc_ids.bytes", table.blob)
    write_array(folder, "doc_ids.bounds", smallest(table.offsets))
    write_array(folder, "doc_ids.order", order)


def _fraction(docs: Any, done: int) -> float | None:
    """How much of the collection has been read, where it can tell."""
    if getattr(docs, "size", 0):
        return min(1.0, float(docs.position / docs.size))
    return done / len(docs) if hasattr(docs, "__len__") and len(docs) else None


class _Workers:
    """Runs each function it is given in a thread of the function's own, in order, at most one call behind."""

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
