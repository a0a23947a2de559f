"""Passages: a run of documents as a run of their passages, and back; and the passages of a corpus, to be indexed."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import Doc, InputError, ParameterError, Run, Stage
from ..core.checks import check_whole, documents_of
from ..core.progress import Report
from ..core.strings import Strings
from ..core.values import Documents
from ..formats import docs as as_docs, read_corpus
from ..text.external import version_of
from ..text.sentences import Spans, sentences

SEPARATOR = "%p"
WORDS = 150
MAX_WORDS = 250
BATCH = 256  # documents that are split together
REMEMBERED = 200_000  # documents whose passages' places are kept

# Han, Hiragana, Katakana: written without spaces, so each character is a word.
IDEOGRAPHS = "\u3005-\u3007\u3041-\u3096\u30a1-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
WORD = re.compile(f"[{IDEOGRAPHS}]|[^\\s{IDEOGRAPHS}]+")


@dataclass(frozen=True)
class Passages(Stage[Run, Run], name="passages"):
    """Splits each document of a run into passages, which inherit the document's score.

    words      how many words a passage has at most; default 150
    stride     how many words after the start of a passage the next one starts; default half of `words`
    sentences  split between sentences in place of after a number of words: "nupunkt" or "spacy:MODEL"
    max_words  with `sentences`: a passage takes whole sentences as long as it has at most this many words; default 250. A
               longer sentence is cut by words
    title      whether a passage keeps the document's title; it always keeps the metadata
    separator  what stands between the document's id and the passage's number, which counts from 0: "D7%p0", "D7%p1", …

    Words are what stands between white space; each Han, Hiragana and Katakana character is one. A passage is the text from
    its first word to the end of its last one, unchanged. A document without words has one passage, which is empty. The run's
    `documents` gives the passages' text, split when it is asked for. Raises InputError where the run does not know its
    documents, ParameterError for parameters that make no sense.
    """

    words: int | None = None
    stride: int | None = None
    sentences: str | None = None
    max_words: int | None = None
    title: bool = True
    separator: str = SEPARATOR

    def apply(self, given: Run, progress: Report, /) -> Run:
        passages = self.over(documents_of(given, "Passages"))
        used = np.unique(given.codes)
        counts = np.zeros(len(given.ids), dtype=np.int64)
        ids: list[str] = []
        names = given.ids.take(used)
        for at in range(0, len(used), BATCH):
            batch = names[at : at + BATCH]
            numbers = passages.counts(batch)
            counts[used[at : at + BATCH]] = numbers
            ids += [f"{name}{self.separator}{i}" for name, count in zip(batch, numbers, strict=True) for i in range(count)]
        first = np.cumsum(counts) - counts
        copies = counts[given.codes]
        topics = np.repeat(np.arange(len(given.topics)), np.diff(given.bounds))
        within = np.arange(copies.sum()) - np.repeat(np.cumsum(copies) - copies, copies)
        return Run.from_columns(
            given.topics,
            Strings.of(ids),
            np.repeat(topics, copies),
            (np.repeat(first[given.codes], copies) + within).astype(np.int32),
            np.repeat(given.scores, copies),
            documents=passages,
            provenance=given.provenance,
        )

    def key(self) -> str | None:
        """The class, its parameters and the version of the sentences' model: see `Stage.key`."""
        known = super().key()
        return None if known is None else f"{known} {version_of(self.sentences)}"

    def of(self, doc: Doc) -> list[Doc]:
        """The passages of one document."""
        return list(self.docs([doc]))

    def docs(self, corpus: str | Path | Iterable[Any]) -> Iterator[Doc]:
        """The passages of all documents of a corpus, to be indexed: `Index.build(passages.docs(corpus), path)`.

        `corpus` is a file or folder that `read_corpus` reads, or an iterable of whatever `Index.build` takes.
        """
        documents = iter(read_corpus(corpus) if isinstance(corpus, (str, Path)) else as_docs(corpus))
        split = self._split()
        while batch := list(islice(documents, BATCH)):
            for doc, spans in zip(batch, split([doc.text for doc in batch]), strict=True):
                yield from (self._passage(doc, number, spans) for number in range(len(spans)))

    def over(self, documents: Documents) -> PassageDocuments:
        """The passages' text by their ids, from `documents`: for a run of passages that was read from a file."""
        self._split()
        return PassageDocuments(documents, self)

    def _passage(self, doc: Doc, number: int, spans: Spans) -> Doc:
        start, end = spans[number]
        return Doc(f"{doc.id}{self.separator}{number}", doc.text[start:end], doc.title if self.title else "", doc.metadata)

    def _split(self) -> Callable[[Sequence[str]], list[Spans]]:
        """A function from texts to their passages as (first character, end). Raises ParameterError for bad parameters."""
        check_separator(self.separator)
        for name in ("words", "stride", "max_words"):
            value = getattr(self, name)
            if value is not None:
                check_whole(f"passages: {name}", value)
        if self.sentences is None:
            if self.max_words is not None:
                raise ParameterError("passages: max_words goes with sentences; the length without them is words")
            words = self.words or WORDS
            stride = self.stride or -(-words // 2)
            if stride > words:
                raise ParameterError(f"passages: a stride of {stride} leaves out words between passages of {words}")
            return lambda texts: [_windows(text, words, stride) for text in texts]
        if self.words is not None or self.stride is not None:
            raise ParameterError("passages: words and stride do not go with sentences; the length then is max_words")
        find = sentences(self.sentences)
        most = self.max_words or MAX_WORDS
        return lambda texts: [_packed(text, spans, most) for text, spans in zip(texts, find(texts), strict=True)]


class PassageDocuments:
    """The passages of documents by their ids, split when they are asked for.

    `documents` is the way to the documents' text. Which characters each passage takes is remembered, the text is not.
    """

    def __init__(self, documents: Documents, passages: Passages) -> None:
        self.documents = documents
        self.passages = passages
        self._spans: dict[str, Spans] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return PassageDocuments, (self.documents, self.passages)

    def docs(self, ids: Iterable[str]) -> list[Doc]:
        """The passages with these ids, in this order. Raises InputError for an id that is unknown."""
        wanted = [split_id(passage_id, self.passages.separator) for passage_id in ids]
        found = self._found(dict.fromkeys(doc_id for doc_id, _ in wanted))
        passages = []
        for doc_id, number in wanted:
            doc, spans = found[doc_id]
            if number >= len(spans):
                raise InputError(
                    f"passage '{doc_id}{self.passages.separator}{number}': split in this way, the document has "
                    f"{len(spans)}, counted from 0; split it as it was split for the run"
                )
            passages.append(self.passages._passage(doc, number, spans))
        return passages

    def counts(self, doc_ids: Sequence[str]) -> list[int]:
        """How many passages each of these documents has."""
        found = self._found(doc_ids)
        return [len(found[doc_id][1]) for doc_id in doc_ids]

    def _found(self, doc_ids: Iterable[str]) -> dict[str, tuple[Doc, Spans]]:
        """The documents with the places of their passages."""
        names = list(doc_ids)
        docs = dict(zip(names, self.documents.docs(names), strict=True))
        new = [name for name in docs if name not in self._spans]
        known = {name: self._spans[name] for name in docs if name in self._spans}
        known.update(zip(new, self.passages._split()([docs[name].text for name in new]), strict=True))
        if len(self._spans) + len(new) > REMEMBERED:
            self._spans = {}
        self._spans.update((name, known[name]) for name in new)
        return {name: (docs[name], known[name]) for name in docs}


@dataclass(frozen=True)
class ToDocuments(Stage[Run, Run], name="to_documents"):
    """Joins the passages of a run to documents again: what `to_documents` makes."""

    aggregate: str = "max"
    separator: str | None = None
    split_at: str = "last"

    def apply(self, given: Run, progress: Report, /) -> Run:
        if self.aggregate not in AGGREGATES:
            raise ParameterError(f"passages are joined by {', '.join(AGGREGATES)}, not by '{self.aggregate}'")
        if self.split_at not in ("last", "first"):
            raise ParameterError(f"split_at is 'last' or 'first', not '{self.split_at}'")
        known = given.documents if isinstance(given.documents, PassageDocuments) else None
        names, parents, numbers = parents_of(given, self.separator, self.split_at)
        topics = np.repeat(np.arange(len(given.topics)), np.diff(given.bounds))
        # A document's passages one after the other, by their numbers.
        order = np.lexsort((numbers[given.codes], parents[given.codes], topics))
        topics, docs = topics[order], parents[given.codes[order]]
        starts = np.flatnonzero(np.diff(topics, prepend=-1) | np.diff(docs, prepend=-1))
        return Run.from_columns(
            given.topics,
            Strings.of(names),
            topics[starts],
            docs[starts].astype(np.int32),
            AGGREGATES[self.aggregate](given.scores[order].astype(np.float64), starts).astype(np.float32),
            documents=known.documents if known and self.split_at == "last" else None,
            provenance=given.provenance,
        )


def to_documents(aggregate: str = "max", separator: str | None = None, split_at: str = "last") -> ToDocuments:
    """A stage that joins the passages of a run to documents again.

    aggregate  the document's score: "max", "mean" or "sum" of those of its passages in the run, or "first", that of the
               first passage (the lowest number) in the run
    separator  what stands between document and number in the ids; default: that of the `Passages` that made the run, where
               that is known, or "%p"
    split_at   "last" takes off the last separator and the number after it. "first" takes off all from the first separator
               on, which truncates ids that hold the separator themselves; so did the tool of TREC CAsT 2021, to which
               "WAPO_1cf6896e-67be-11e1-ae17-a3ce76ec4751-3" is of the document "WAPO_1cf6896e"

    The run's `documents` is again that of the documents, where the run came from `Passages`. Raises InputError for an id that
    is no passage's.
    """
    return ToDocuments(aggregate, separator, split_at)


Aggregate = Callable[[NDArray[np.float64], NDArray[np.int64]], NDArray[np.float64]]
AGGREGATES: dict[str, Aggregate] = {
    "max": lambda scores, starts: np.maximum.reduceat(scores, starts) if len(starts) else scores,
    "mean": lambda scores, starts: _sums(scores, starts) / np.diff(starts, append=len(scores)),
    "sum": lambda scores, starts: _sums(scores, starts),
    "first": lambda scores, starts: scores[starts],
}


def parents_of(
    run: Run, separator: str | None = None, split_at: str = "last"
) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """The documents of a run of passages; and for each code in the run the place of its document among them, and its number.

    The parameters are those of `to_documents`.
    """
    if separator is None:
        known = run.documents if isinstance(run.documents, PassageDocuments) else None
        separator = known.passages.separator if known else SEPARATOR
    check_separator(separator)
    used = np.unique(run.codes)
    places: dict[str, int] = {}
    parents = np.zeros(len(run.ids), dtype=np.int64)
    numbers = np.zeros(len(run.ids), dtype=np.int64)
    for code, passage_id in zip(used.tolist(), run.ids.take(used), strict=True):
        doc_id, numbers[code] = split_id(passage_id, separator)
        if split_at == "first":
            doc_id = passage_id.partition(separator)[0]
        parents[code] = places.setdefault(doc_id, len(places))
    return list(places), parents, numbers


def split_id(passage_id: str, separator: str) -> tuple[str, int]:
    """The document's id and the passage's number: what stands before and after the last `separator`."""
    doc_id, found, number = passage_id.rpartition(separator)
    if not (found and number.isascii() and number.isdigit()):
        raise InputError(f"'{passage_id}' is no passage's id: it does not end in '{separator}' and a number")
    return doc_id, int(number)


def check_separator(separator: str) -> None:
    """Raises ParameterError for a separator after which a document's id could not be told from a passage's number."""
    if not separator or re.search(r"[\d\s]", separator):
        raise ParameterError(f"passages: the separator must be characters without digits and white space, not {separator!r}")


def _sums(scores: NDArray[np.float64], starts: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.add.reduceat(scores, starts) if len(starts) else scores


def _windows(text: str, words: int, stride: int) -> Spans:
    """Windows of `words` words, every `stride` words, until one reaches the end."""
    places = [match.span() for match in WORD.finditer(text)]
    last = max(0, -(-(len(places) - words) // stride)) * stride
    return [_span(places, start, start + words) for start in range(0, last + 1, stride)]


def _packed(text: str, found: Spans, most: int) -> Spans:
    """Whole sentences as long as there are at most `most` words; a longer sentence in pieces of `most` words."""
    places = [match.span() for match in WORD.finditer(text)]
    starts = [start for start, _ in places]
    # White space between sentences belongs to none; a word belongs to the sentence in which it starts.
    edges = sorted({0, *(bisect_left(starts, start) for start, _ in found), len(places)})
    cuts = [0]
    for start, end in pairwise(edges):
        if end - cuts[-1] > most and start > cuts[-1]:
            cuts.append(start)
        while end - cuts[-1] > most:
            cuts.append(cuts[-1] + most)
    return [_span(places, a, b) for a, b in pairwise([*cuts, len(places)])] if places else [(0, 0)]


def _span(places: Spans, start: int, end: int) -> tuple[int, int]:
    """From the first to the last of these words, in characters."""
    inside = places[start:end]
    return (inside[0][0], inside[-1][1]) if inside else (0, 0)
