"""Texts, words and ids of passages; judgments of sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..core import Doc, InputError, ParameterError, Qrels, Topics
from ..core.values import Documents
from ..text.sentences import Spans

if TYPE_CHECKING:
    from .split import Splitter

# Han, Hiragana, Katakana: written without spaces, so each character is a word.
IDEOGRAPHS = "\u3005-\u3007\u3041-\u3096\u30a1-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
WORD = re.compile(f"[{IDEOGRAPHS}]|[^\\s{IDEOGRAPHS}]+")
SEPARATOR = "%p"  # separates document id and passage number
SENTENCE = "#"  # separates document id and sentence number
REMEMBERED = 200_000  # documents whose passage spans are cached


class PassageDocuments:
    """Passages by id, split on demand; caches their spans, not the text.

    Args:
        documents: Source of the documents' text.
        passages: Splitter of the documents.
    """

    def __init__(self, documents: Documents, passages: Splitter) -> None:
        self.documents = documents
        self.passages = passages
        self._spans: dict[str, Spans] = {}

    def __reduce__(self) -> tuple[Any, ...]:
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
                    f"passage '{doc_id}{self.passages.separator}{number}': split in this way, the document has "
                    f"{len(spans)}, counted from 0; split it as it was split for the run"
                )
            passages.append(self.passages.passage(doc, number, spans))
        return passages

    def counts(self, doc_ids: Sequence[str]) -> list[int]:
        """Number of passages of each document."""
        documents = self._split(doc_ids)
        return [len(documents[doc_id][1]) for doc_id in doc_ids]

    @property
    def marked(self) -> Callable[[str, Doc], str] | None:
        """The source's function that marks query words in a text, if it has one."""
        return getattr(self.documents, "marked", None)

    @property
    def snippets(self) -> Callable[[Sequence[tuple[str, Doc]]], Any] | None:
        """The source's function that returns query snippets of texts, if it has one."""
        return getattr(self.documents, "snippets", None)

    def _split(self, doc_ids: Iterable[str]) -> dict[str, tuple[Doc, Spans]]:
        names = list(doc_ids)
        docs = dict(zip(names, self.documents.docs(names), strict=True))
        new = [name for name in docs if name not in self._spans]
        spans = {name: self._spans[name] for name in docs if name in self._spans}
        spans.update(zip(new, self.passages.splitter()([docs[name].text for name in new]), strict=True))
        if len(self._spans) + len(new) > REMEMBERED:
            self._spans = {}
        self._spans.update((name, spans[name]) for name in new)
        return {name: (docs[name], spans[name]) for name in docs}


def split_id(passage_id: str, separator: str) -> tuple[str, int]:
    """Split a passage id at the last `separator` into document id and number; InputError for any other id."""
    doc_id, present, number = passage_id.rpartition(separator)
    if not (present and re.fullmatch("[0-9]{1,18}", number)):
        raise InputError(f"'{passage_id}' is no passage's id: it does not end in '{separator}' and a number")
    return doc_id, int(number)


def check_separator(separator: str) -> None:
    """Raise ParameterError if the separator makes passage ids ambiguous."""
    if not separator or re.search(r"[\d\s]", separator):
        raise ParameterError(f"passages: the separator must be characters without digits and white space, not {separator!r}")


def sentence_qrels(topics: object, separator: str = SENTENCE) -> Qrels:
    """Judgments of the claims' evidence sentences: grade 1, one group per evidence set.

    Use them to evaluate a run of sentences: `evaluate(run, sentence_qrels("claims_dev.jsonl"), ["SetP", "SetR", "SetF"])`.
    Sentence numbers are the file's, counted from 0 in the document's own list; sentences found by rules or a model may differ.

    Args:
        topics: Any value that `Topics.read` accepts, such as the path of SciFact's or FEVER's claims. Topics without "evidence"
            in `metadata` (lists of sets of [document, sentence]) have no judgments.
        separator: Separator of the document's id and the sentence's number.

    Raises:
        InputError: No claim names sentences.
    """
    check_separator(separator)
    qrels = Qrels(_rows(Topics.read(topics), separator))
    if not qrels:
        raise InputError("none of the topics names sentences; claims of SciFact and FEVER do, under 'evidence'")
    return qrels


def _rows(topics: Topics, separator: str) -> Iterator[tuple[str, str, str, int]]:
    for topic in topics.values():
        for number, pieces in enumerate(topic.metadata.get("evidence", ()), 1):
            for document, sentence in pieces:
                yield topic.id, str(number), f"{document}{separator}{sentence}", 1
