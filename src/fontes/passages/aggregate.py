"""Document scores from passage scores, and the best passages of each document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..core import Doc, InputError, ParameterError, Qrels, Run, Stage, Strings, Topics
from ..core.arrays import Float64s, Int64s
from ..core.checks import check_whole
from ..core.values import Documents
from ..text.sentences import Spans

if TYPE_CHECKING:
    from .split import Splitter


SEPARATOR = "%p"  # between document id and passage number
SENTENCE_SEPARATOR = "#"  # between document id and sentence number
MAX_CACHED_DOCUMENTS = 200_000  # documents whose passage spans are cached
SPLIT_AT = ("last", "first")

Aggregate = Callable[[Float64s, Int64s], Float64s]
"""Returns document scores from passage scores grouped by document, and the start of each group."""


class PassageDocuments:
    """Passages by id, split on demand; caches their spans, not their text.

    Args:
        documents: Source of the documents' text.
        passages: Splits the documents.
    """

    def __init__(self, documents: Documents, passages: Splitter) -> None:
        self.documents = documents
        self.passages = passages
        self._spans: dict[str, Spans] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return PassageDocuments, (self.documents, self.passages)

    def docs(self, ids: Iterable[str]) -> list[Doc]:
        """Return the passages with these ids, in order; InputError for an unknown id."""
        pairs = [split_id(passage_id, self.passages.separator) for passage_id in ids]
        documents = self._split(dict.fromkeys(doc_id for doc_id, _ in pairs))
        passages = []
        for doc_id, number in pairs:
            doc, spans = documents[doc_id]
            if number >= len(spans):
                raise InputError(
                    f"there is no passage '{doc_id}{self.passages.separator}{number}': the document has {len(spans)}, "
                    "counted from 0; split documents with the parameters that made the run"
                )
            passages.append(self.passages.passage(doc, number, spans))
        return passages

    def counts(self, doc_ids: Sequence[str]) -> list[int]:
        """Return the number of passages of each document."""
        documents = self._split(doc_ids)
        return [len(documents[doc_id][1]) for doc_id in doc_ids]

    @property
    def marked(self) -> Callable[[str, Doc], str] | None:
        """The source's function that marks query words in a text, if it has one."""
        return getattr(self.documents, "marked", None)

    @property
    def snippets(self) -> Callable[[Sequence[tuple[str, Doc]]], object] | None:
        """The source's function that returns query snippets of texts, if it has one."""
        return getattr(self.documents, "snippets", None)

    def _split(self, doc_ids: Iterable[str]) -> dict[str, tuple[Doc, Spans]]:
        """Return each document with the spans of its passages."""
        ids = list(doc_ids)
        docs = dict(zip(ids, self.documents.docs(ids), strict=True))
        new = [doc_id for doc_id in docs if doc_id not in self._spans]
        spans = {doc_id: self._spans[doc_id] for doc_id in docs if doc_id in self._spans}
        spans.update(zip(new, self.passages.splitter()([docs[doc_id].text for doc_id in new]), strict=True))
        if len(self._spans) + len(new) > MAX_CACHED_DOCUMENTS:
            self._spans = {}
        self._spans.update((doc_id, spans[doc_id]) for doc_id in new)
        return {doc_id: (doc, spans[doc_id]) for doc_id, doc in docs.items()}


def split_id(passage_id: str, separator: str) -> tuple[str, int]:
    """Split a passage id at the last `separator` into document id and number; InputError if it is not a passage id."""
    doc_id, matched_separator, number = passage_id.rpartition(separator)
    if not (matched_separator and re.fullmatch("[0-9]{1,18}", number)):
        raise InputError(f"'{passage_id}' is not a passage's id: it does not end in '{separator}' and a number")
    return doc_id, int(number)


def check_separator(separator: str) -> None:
    """Raise ParameterError if the separator makes passage ids ambiguous."""
    if not separator or re.search(r"[\d\s]", separator):
        raise ParameterError(f"passages: the separator must be characters without digits and white space, not {separator!r}")


def sentence_qrels(topics: object, separator: str = SENTENCE_SEPARATOR) -> Qrels:
    """Return judgments of the claims' evidence sentences: grade 1, one group per evidence set.

    Use them to evaluate a run of sentences: `evaluate(run, sentence_qrels("claims_dev.jsonl"), ["SetP", "SetR", "SetF"])`.
    Sentence numbers come from the file, where they count the sentences of a document from 0; the sentences that rules or a
    model find may differ.

    Args:
        topics: Any value that `Topics.read` accepts, such as the path of SciFact's or FEVER's claims. Topics without "evidence"
            in `metadata` (lists of sets of [document, sentence]) have no judgments.
        separator: Separator between the document's id and the sentence's number.

    Raises:
        InputError: No claim names sentences.
    """
    check_separator(separator)
    qrels = Qrels(_evidence_judgments(Topics.read(topics), separator))
    if not qrels:
        raise InputError("none of the topics names sentences; claims of SciFact and FEVER do, under 'evidence'")
    return qrels


def _evidence_judgments(topics: Topics, separator: str) -> Iterator[tuple[str, str, str, int]]:
    """Yield topic id, group, sentence id and grade of each sentence of an evidence set."""
    for topic in topics.values():
        for group, evidence_set in enumerate(topic.metadata.get("evidence", ()), 1):
            for doc_id, sentence in evidence_set:
                yield topic.id, str(group), f"{doc_id}{separator}{sentence}", 1


@dataclass(frozen=True)
class ToDocuments(Stage[Run, Run], name="to_documents"):
    """Joins the passages of a run to documents again.

    If the run came from `Passages`, the resulting run has the `documents` that `Passages` split, unless `split_at` is "first".

    Args:
        aggregate: Document score: "max", "mean" or "sum" of the passage scores, or "first", the score of the passage with the
            lowest number.
        separator: Separator between document id and passage number. None: the separator of the `Passages` that made the run,
            or "%p".
        split_at: "last" separator, or "first", which truncates ids that contain it, as TREC CAsT 2021's tool does.

    Raises:
        InputError: When called, for an id that is not a passage id.
        ParameterError: When called, for invalid parameters.
    """

    aggregate: str = "max"
    separator: str | None = None
    split_at: str = SPLIT_AT[0]

    def check(self) -> None:
        if self.aggregate not in AGGREGATES:
            raise ParameterError(f"passages are joined by {', '.join(AGGREGATES)}, not by '{self.aggregate}'")
        if self.split_at not in SPLIT_AT:
            raise ParameterError(f"split_at is 'last' or 'first', not '{self.split_at}'")
        if self.separator is not None:
            check_separator(self.separator)

    def apply(self, run: Run, /) -> Run:
        self.check()
        doc_ids, parents, numbers = parents_of(run, self.separator, self.split_at)
        topics = run.topic_numbers
        # Passages grouped by document, ordered by number within a document.
        order = np.lexsort((numbers[run.codes], parents[run.codes], topics))
        topics, docs = topics[order], parents[run.codes[order]]
        starts = np.flatnonzero(np.diff(topics, prepend=-1) | np.diff(docs, prepend=-1))
        documents = run.documents.documents if isinstance(run.documents, PassageDocuments) else None
        return Run.from_columns(
            run.topics,
            Strings.of(doc_ids),
            topics[starts],
            docs[starts].astype(np.int32),
            AGGREGATES[self.aggregate](run.scores[order].astype(np.float64), starts).astype(np.float32),
            documents=documents if self.split_at == "last" else None,
            provenance=run.provenance,
        )


to_documents = ToDocuments
"""The class under the stage's name: `to_documents("max")` is the same in Python and in the text of a pipeline."""


def parents_of(run: Run, separator: str | None = None, split_at: str = SPLIT_AT[0]) -> tuple[list[str], Int64s, Int64s]:
    """Map the passages of a run to documents.

    Args:
        run: A run of passages.
        separator: As for `to_documents`.
        split_at: As for `to_documents`.

    Returns:
        Document ids; for each code of the run, the index of its document among them; and for each code, the passage number.
            Both arrays are int64 and as long as `run.ids`.

    Raises:
        InputError: An id is not a passage id.
    """
    if separator is None:
        separator = run.documents.passages.separator if isinstance(run.documents, PassageDocuments) else SEPARATOR
    check_separator(separator)
    used = np.unique(run.codes)
    document_numbers: dict[str, int] = {}
    parents = np.zeros(len(run.ids), dtype=np.int64)
    numbers = np.zeros(len(run.ids), dtype=np.int64)
    for code, passage_id in zip(used.tolist(), run.ids.take(used), strict=True):
        doc_id, numbers[code] = split_id(passage_id, separator)
        if split_at == "first":
            doc_id = passage_id.partition(separator)[0]
        parents[code] = document_numbers.setdefault(doc_id, len(document_numbers))
    return list(document_numbers), parents, numbers


def _sums(scores: Float64s, starts: Int64s) -> Float64s:
    return np.add.reduceat(scores, starts) if len(starts) else scores


AGGREGATES: dict[str, Aggregate] = {
    "max": lambda scores, starts: np.maximum.reduceat(scores, starts) if len(starts) else scores,
    "mean": lambda scores, starts: _sums(scores, starts) / np.diff(starts, append=len(scores)),
    "sum": _sums,
    "first": lambda scores, starts: scores[starts],
}


@dataclass(frozen=True)
class BestPassages(Stage[Run, Run], name="best_passages"):
    """Keeps the best passages of each document: `bm25() >> sentences() >> text_scorer(bm25()) >> best_passages(3)`.

    Args:
        n: Maximum passages per document; None: no limit.
        threshold: Minimum score of a passage to keep; None: any.
        separator: As for `to_documents`.

    Raises:
        InputError: When called, for an id that is not a passage id.
        ParameterError: When called, for invalid parameters.
    """

    n: int | None = 3
    threshold: float | None = None
    separator: str | None = None

    def check(self) -> None:
        if self.n is not None:
            check_whole("best_passages: n", self.n)
        threshold = 0.0 if self.threshold is None else self.threshold
        if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or np.isnan(threshold):
            raise ParameterError(f"best_passages: the threshold is a number, not {threshold!r}")

    def apply(self, run: Run, /) -> Run:
        self.check()
        doc_ids, parents, _ = parents_of(run, self.separator)
        keep = np.ones(run.rows, dtype=np.bool_) if self.threshold is None else run.scores >= np.float32(self.threshold)
        if self.n is not None and run.rows:
            groups = run.topic_numbers * len(doc_ids) + parents[run.codes]  # one group per topic and document
            # Rows are in rank order, also within each group, since the sort is stable.
            order = np.argsort(groups, kind="stable")
            starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
            ranks = np.arange(run.rows) - np.repeat(starts, np.diff(starts, append=run.rows))
            keep[order[ranks >= self.n]] = False
        return run.keep(keep)
