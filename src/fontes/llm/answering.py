"""Answers out of documents: every sentence cites some of them, by words that stand there."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ..core.answers import ANSWER
from ..core.progress import ProgressCallback
from ..core.run import Run
from ..core.stage import Stage
from ..core.values import Doc, Explanation, Topic, Topics, text_of
from .answers import Kept, Request
from .base import FILE, LlmPart, explained, fact, noted
from .prompts import plain_passage
from .rerank import check_text

NOT_FOUND = "not found in this collection"
SHORTEST = 12  # characters of a quote, so that it says more than "the"
SIGNS = str.maketrans("‘’‚“”„«»–—‑", "'''" + '"""""' + "---")
DAMAGE = (ValidationError, ValueError, RecursionError)


class Citation(BaseModel):
    """A citation of a document.

    Attributes:
        document: Id of the document.
        quote: Words that stand in it.
    """

    model_config = ConfigDict(frozen=True)

    document: str
    quote: str


class CitedSentence(BaseModel):
    """A sentence of an answer.

    Attributes:
        text: The sentence.
        citations: Its citations, one at least.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    citations: tuple[Citation, ...]


class CitedAnswer(BaseModel):
    """An answer, whose every sentence cites documents.

    Attributes:
        sentences: The sentences; none if the documents do not answer the question.
        dropped: Number of sentences that were left out, as none of their citations stood in a document.
        dropped_citations: Number of citations that were left out.
    """

    model_config = ConfigDict(frozen=True)

    sentences: tuple[CitedSentence, ...] = ()
    dropped: int = 0
    dropped_citations: int = 0

    @property
    def text(self) -> str:
        """The sentences in a row; "not found in this collection" without any."""
        return " ".join(sentence.text for sentence in self.sentences) or NOT_FOUND

    @property
    def documents(self) -> tuple[str, ...]:
        """Ids of the cited documents, each once, in the order of their first citation."""
        return tuple(dict.fromkeys(citation.document for sentence in self.sentences for citation in sentence.citations))


def answer_of(topic: Topic) -> CitedAnswer | None:
    """Return the answer that a topic carries, such as `run["1"].topic` after `answer`; None without one."""
    value = topic.metadata.get(ANSWER)
    try:
        return CitedAnswer(**{key: value[key] for key in CitedAnswer.model_fields}) if isinstance(value, dict) else None
    except (KeyError, ValidationError):
        return None


@dataclass(frozen=True)
class LlmAnswer(LlmPart, Stage[Run, Run], name="answer"):
    """Answers the topics of a run from their first documents: `bm25() >> answer("M")`. The ranking stays.

    Every sentence cites documents with a quote, after Gao et al. (EMNLP 2023). A citation is kept only if the quoted words
    stand in the document, whatever their case, blanks and quotation marks; a sentence only if it keeps a citation. An answer
    without sentences is "not found in this collection". One that cannot be read counts as repaired. `answer_of` gives the
    answer of a topic of the run.

    Args:
        k: Documents that the model reads.
        words: Words of a document that it reads.
    """

    places: ClassVar[tuple[str, ...]] = ("passage", "query", "number")
    keeps_rankings = True

    prompt: str = field(default="answer", kw_only=True, metadata=FILE)
    max_tokens: int = field(default=1024, kw_only=True, metadata={"least": 1})
    k: int = field(default=5, metadata={"least": 1})
    words: int = field(default=300, kw_only=True, metadata={"least": 1})

    def apply(self, run: Run, progress: ProgressCallback, /) -> Run:
        self.check()
        docs = {topic.id: self._docs(run, number) for number, topic in enumerate(run.topics.values())}
        requests = [self._request(topic, docs[topic.id]) for topic in run.topics.values() if docs[topic.id]]
        answers = iter(self.llm.ask(requests, progress))
        return run.with_(
            topics=Topics(
                self._answered(topic, docs[topic.id], next(answers) if docs[topic.id] else None)
                for topic in run.topics.values()
            )
        )

    def explain_in(self, run: Run, topic_id: str, doc_id: str) -> Explanation:
        """Explain the citations of a document: what was sent and answered. The kept answer is used."""
        docs = self._docs(run, list(run.topics).index(topic_id))
        if not docs:
            return Explanation(0.0, "there are no documents to answer from")
        request = self._request(run.topics[topic_id], docs)
        (kept,) = self.llm.ask([request])
        answer, _ = cited(kept.said, docs)
        count = sum(citation.document == doc_id for sentence in answer.sentences for citation in sentence.citations)
        return explained(request, kept, float(count), f"{self!r}: citations of {doc_id} in: {answer.text}")

    def _docs(self, run: Run, number: int) -> list[Doc]:
        first, last = int(run.bounds[number]), int(run.bounds[number + 1])
        codes = run.codes[first : min(last, first + self.k)]
        return run.documents_for(type(self).__name__).docs(run.ids.take(codes)) if len(codes) else []

    def _request(self, topic: Topic, docs: Sequence[Doc]) -> Request:
        check_text(topic)
        return self.request(self._prompt.messages([plain_passage(text_of(doc), self.words) for doc in docs], query=topic.text))

    def _answered(self, topic: Topic, docs: Sequence[Doc], kept: Kept | None) -> Topic:
        answer, repaired = (CitedAnswer(), False) if kept is None else cited(kept.said, docs)
        note = fact(self.llm, [] if kept is None else [kept], repaired=int(repaired))
        return noted(topic, note, metadata={ANSWER: {"text": answer.text, **answer.model_dump(mode="json")}})


class _RawCitation(BaseModel):
    document: int
    quote: str


class _RawSentence(BaseModel):
    text: str
    citations: list[Any] = []


class _RawAnswer(BaseModel):
    sentences: list[Any]


def cited(text: str, docs: Sequence[Doc]) -> tuple[CitedAnswer, bool]:
    """Read what a model answered: JSON, as the prompt `answer` asks for it.

    Args:
        text: The text.
        docs: The documents of the prompt, whose numbers count from 1.

    Returns:
        The answer, with the citations alone whose words stand in their document, and the sentences alone that keep one; and
        whether the text could not be read, which is an answer without sentences.
    """
    raw = _raw(text)
    if raw is None:
        return CitedAnswer(), True
    standing = [(_plain(text_of(doc)), _plain(plain_passage(text_of(doc), len(text_of(doc)) + 1))) for doc in docs]
    sentences, dropped, dropped_citations = [], 0, 0
    for one in raw.sentences:
        sentence = _as(_RawSentence, one)
        kept: dict[Citation, None] = {}
        for other in sentence.citations if sentence is not None else ():
            citation = _as(_RawCitation, other)
            if (
                citation is not None
                and 1 <= citation.document <= len(docs)
                and _stands(citation.quote, standing[citation.document - 1])
            ):
                kept[Citation(document=docs[citation.document - 1].id, quote=" ".join(citation.quote.split()))] = None
            else:
                dropped_citations += 1
        words = "" if sentence is None else " ".join(sentence.text.split())
        if kept and words:
            sentences.append(CitedSentence(text=words, citations=tuple(kept)))
        else:
            dropped += 1
    return CitedAnswer(sentences=tuple(sentences), dropped=dropped, dropped_citations=dropped_citations), False


def _raw(text: str) -> _RawAnswer | None:
    """The first JSON object of a text that is an answer."""
    for start in _starts(text):
        try:
            value, _ = json.JSONDecoder().raw_decode(text, start)
            return _RawAnswer.model_validate(value)
        except DAMAGE:
            continue
    return None


def _starts(text: str, most: int = 20) -> Iterator[int]:
    for number, match in enumerate(re.finditer(r"\{", text)):
        if number < most:
            yield match.start()


def _as(kind: type[Any], value: Any) -> Any:
    try:
        return kind.model_validate(value)
    except DAMAGE:
        return None


def _stands(quote: str, texts: Sequence[str]) -> bool:
    plain = _plain(quote).strip(" .…\"'")
    return len(plain) >= SHORTEST and any(plain in text for text in texts)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).translate(SIGNS).casefold().split())
