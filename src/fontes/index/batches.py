"""Batches of documents for an index: read, checked, and converted to bytes in worker threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from ..core.arrays import Bytes, Int64s
from ..core.errors import InputError
from ..core.strings import concatenated, offsets_of, utf8
from ..core.values import Doc
from ..storage.arrays import fixed
from .kernels import join_fields, take_fields

if TYPE_CHECKING:
    from ..formats.corpus import Portion
    from ..formats.packed import Packed

Contents: TypeAlias = tuple[Bytes, Int64s]  # concatenated texts and their offsets
PLAIN = ("title", "text")  # fields that packed documents hold separately


class Indexed(Protocol):
    """Indexed fields; see `IndexSettings`."""

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
    """Documents for the index.

    Args:
        docs: Ids, titles, texts and metadata.
        contents: Indexed text of each document, or of each field if fields are analysed separately; or term weights.
    """

    docs: Packed
    contents: Contents | list[dict[str, int]]


def batches(
    docs: Iterable[Doc], settings: Indexed, only: Callable[[Doc], bool] | None, size: int, read: int
) -> Iterator[Callable[[], Batch]]:
    """Yield functions that make batches of about `size` bytes of text, in any thread.

    Args:
        docs: The documents.
        settings: Indexed fields.
        only: Returns whether to take a document; None takes all.
        size: Bytes of text of a batch.
        read: Number of documents read at a time.

    Raises:
        InputError: A document has no id.
    """
    from ..formats.packed import Packing

    plain = (
        settings.weights is None
        and set(settings.fields) <= set(PLAIN)
        and list(settings.fields) == sorted(settings.fields, key=PLAIN.index)
    )
    parts: list[Portion] = []
    filled, count = 0, 0
    for part in _portions(docs, plain and only is None, size, read):
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
            yield partial(_make_batch, parts, settings, plain)
            parts, filled = [], 0
    if parts:
        yield partial(_make_batch, parts, settings, plain)


def content(doc: Doc, fields: Sequence[str]) -> str:
    """Return the indexed text of a document: its non-empty fields, joined by spaces."""
    return " ".join(filter(None, field_contents(doc, fields)))


def field_contents(doc: Doc, fields: Sequence[str]) -> list[str]:
    """Return the text of each indexed field of a document; "" for a missing field."""
    get = doc.metadata.get
    return ["" if (value := getattr(doc, f) if f in PLAIN else get(f)) is None else str(value) for f in fields]


def _make_batch(parts: list[Portion], settings: Indexed, plain: bool) -> Batch:
    from ..formats.packed import Packing, join_packed, pack_docs

    joined = join_packed([part.work() if isinstance(part, Packing) else pack_docs(part) for part in parts])
    if plain:
        return Batch(joined, (_plain_fields if settings.apart else _plain_contents)(joined, settings.fields))
    docs = [doc for part in parts if not isinstance(part, Packing) for doc in part]
    if settings.weights is not None:
        return Batch(joined, [settings.weights.of(doc) for doc in docs])
    if settings.apart:
        return Batch(joined, concatenated([utf8(text) for doc in docs for text in field_contents(doc, settings.fields)]))
    return Batch(joined, concatenated([utf8(content(doc, settings.fields)) for doc in docs]))


def _plain_contents(docs: Packed, fields: Sequence[str]) -> Contents:
    total = docs.sizes.sum(axis=0, dtype=np.int64)
    if "text" in fields and not total[0] and not total[2]:
        return docs.text, offsets_of(docs.sizes[:, 1])
    bounds = np.zeros(len(docs) + 1, dtype=np.int64)
    text = np.empty(len(docs.text) + len(docs), dtype=np.uint8)
    join_fields(fixed(docs.text), docs.sizes, "title" in fields, "text" in fields, text, bounds)
    return text[: bounds[-1]], bounds


def _plain_fields(docs: Packed, fields: Sequence[str]) -> Contents:
    bounds = np.zeros(len(docs) * len(fields) + 1, dtype=np.int64)
    text = np.empty(len(docs.text), dtype=np.uint8)
    take_fields(fixed(docs.text), docs.sizes, np.array(["title" in fields, "text" in fields, False]), text, bounds)
    return text[: bounds[-1]], bounds


def _portions(docs: Iterable[Doc], plain: bool, size: int, count: int) -> Iterator[Portion]:
    """Yield the documents in portions; an OSError raised while reading them is marked with the attribute `of_documents`."""
    from ..formats.corpus import Corpus, IterableCorpus

    try:
        if plain and isinstance(docs, Corpus | IterableCorpus):
            yield from docs.portions(size, count)
            return
        stream = iter(docs)
        while part := list(islice(stream, count)):
            yield part
    except OSError as e:
        e.of_documents = True  # type: ignore[attr-defined]
        raise


def _check(docs: list[Doc], count: int) -> None:
    """Raise InputError unless `docs`, which follow `count` others, have ids and are made of strings."""
    for number, doc in enumerate(docs, count + 1):
        if not (isinstance(doc.id, str) and isinstance(doc.title, str) and isinstance(doc.text, str)):
            raise InputError(f"document {number} ({doc.id!r}): id, title and text must be strings")
        if not doc.id:
            raise InputError(f"document {number} has an empty id (its text begins '{doc.text[:40]}')")
