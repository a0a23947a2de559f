"""Batches of documents on their way into an index: read, checked, and made into bytes by whoever has time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from ..core.strings import utf8
from ..core.values import Doc
from ..formats.corpus import Corpus, IterableCorpus, Portion
from ..formats.packed import Packed, Packing, join_packed, packed
from ..storage.arrays import fixed
from .kernels import join_fields, take_fields

Contents: TypeAlias = tuple[NDArray[np.uint8], NDArray[np.int64]]  # texts end to end, and where each starts
PLAIN = ("title", "text")  # the fields that packed documents hold apart


class Indexed(Protocol):
    """The fields that are indexed, and the analyzer; see `IndexSettings`."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields whose text is indexed."""
        ...

    @property
    def weights(self) -> Any:
        """Key of the term weights that are indexed in place of texts; None indexes texts."""
        ...

    @property
    def apart(self) -> bool:
        """Whether each field is analysed by itself."""
        ...


@dataclass(frozen=True)
class Batch:
    """Documents on their way into the index.

    Args:
        docs: Their ids, titles, texts and metadata.
        contents: What is indexed of each: text, or its term weights; where fields are analysed apart, one text after another.
    """

    docs: Packed
    contents: Contents | list[dict[str, int]]


def batches(
    docs: Iterable[Doc], form: Indexed, only: Callable[[Doc], bool] | None, size: int, some: int
) -> Iterator[Callable[[], Batch]]:
    """The work of making batches of about `size` bytes of text, any of which may be done beside the others.

    Args:
        docs: The documents.
        form: What is indexed of them.
        only: Says of each document whether it is taken; None takes all.
        size: The bytes of text of a batch.
        some: How many documents are looked at together.

    Raises:
        InputError: For a document without an id.
    """
    plain = (
        form.weights is None and set(form.fields) <= set(PLAIN) and list(form.fields) == sorted(form.fields, key=PLAIN.index)
    )
    parts: list[Portion] = []
    filled, count = 0, 0
    for part in _portions(docs, plain and only is None, size, some):
        if isinstance(part, Packing):
            filled += part.size + 64 * part.count
            count += part.count
        else:
            _check(part, count)
            count += len(part)
            part = part if only is None else list(filter(only, part))
            filled += sum(len(doc.text) for doc in part) + 64 * len(part)
        parts.append(part)
        if filled >= size:
            yield partial(_batch, parts, form, plain)
            parts, filled = [], 0
    if parts:
        yield partial(_batch, parts, form, plain)


def content(doc: Doc, fields: Sequence[str]) -> str:
    """Indexed text of a document: its non-empty fields, joined by spaces."""
    return " ".join(filter(None, field_contents(doc, fields)))


def field_contents(doc: Doc, fields: Sequence[str]) -> list[str]:
    """Text of each indexed field of a document; "" if missing."""
    values = (getattr(doc, f) if f in PLAIN else doc.metadata.get(f) for f in fields)
    return ["" if value is None else str(value) for value in values]


def end_to_end(texts: Sequence[bytes]) -> Contents:
    """Texts end to end, and where each starts."""
    bounds = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)), out=bounds[1:])
    return np.frombuffer(b"".join(texts), dtype=np.uint8), bounds


def _batch(parts: list[Portion], form: Indexed, plain: bool) -> Batch:
    whole = join_packed([part.work() if isinstance(part, Packing) else packed(part) for part in parts])
    if plain:
        return Batch(whole, (_plain_fields if form.apart else _plain_contents)(whole, form.fields))
    docs = [doc for part in parts if not isinstance(part, Packing) for doc in part]
    if form.weights is not None:
        return Batch(whole, [form.weights.of(doc) for doc in docs])
    if form.apart:
        return Batch(whole, end_to_end([utf8(text) for doc in docs for text in field_contents(doc, form.fields)]))
    return Batch(whole, end_to_end([utf8(content(doc, form.fields)) for doc in docs]))


def _plain_contents(docs: Packed, fields: Sequence[str]) -> Contents:
    bounds = np.zeros(len(docs) + 1, dtype=np.int64)
    total = docs.sizes.sum(axis=0, dtype=np.int64)
    if "text" in fields and not total[0] and not total[2]:
        np.cumsum(docs.sizes[:, 1], out=bounds[1:])
        return docs.text, bounds
    text = np.empty(len(docs.text) + len(docs), dtype=np.uint8)
    join_fields(fixed(docs.text), docs.sizes, "title" in fields, "text" in fields, text, bounds)
    return text[: bounds[-1]], bounds


def _plain_fields(docs: Packed, fields: Sequence[str]) -> Contents:
    """Texts of several fields, each by itself."""
    bounds = np.zeros(len(docs) * len(fields) + 1, dtype=np.int64)
    text = np.empty(len(docs.text), dtype=np.uint8)
    take_fields(fixed(docs.text), docs.sizes, np.array(["title" in fields, "text" in fields, False]), text, bounds)
    return text[: bounds[-1]], bounds


def _portions(docs: Iterable[Doc], plain: bool, size: int, some: int) -> Iterator[Portion]:
    """The documents in portions; an OSError that comes from reading them is marked as such: it is not one of writing."""
    try:
        if plain and isinstance(docs, Corpus | IterableCorpus):
            yield from docs.portions(size, some)
            return
        stream = iter(docs)
        while part := list(islice(stream, some)):
            yield part
    except OSError as e:
        e.of_documents = True  # type: ignore[attr-defined]
        raise


def _check(docs: list[Doc], before: int) -> None:
    """Raise InputError unless all of `docs` have an id and are made of strings; `before` documents came before them."""
    for number, doc in enumerate(docs, before + 1):
        if not (isinstance(doc.id, str) and isinstance(doc.title, str) and isinstance(doc.text, str)):
            raise InputError(f"document {number} ({doc.id!r}): id, title and text must be strings")
        if not doc.id:
            raise InputError(f"document {number} has an empty id (its text begins '{doc.text[:40]}')")
