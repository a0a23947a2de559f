"""Answers from documents, in which every sentence cites documents with quotes that occur in them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, ValidationError, model_serializer

from ..core.answers import ANSWER
from ..core.checks import check_key
from ..core.run import Run
from ..core.stage import Stage
from ..core.strings import encodable
from ..core.values import Doc, Explanation, Topic, Topics, text_of
from .answers import Request, StoredAnswer
from .base import FILE, LlmPart, explanation_of, fact_of, with_fact
from .prompts import plain_passage
from .rerank import check_text

NOT_FOUND = "not found in this collection"
MIN_QUOTE = 12  # minimum number of characters of a quote
MAX_STARTS = 20  # number of braces at which an answer's JSON is looked for
PLAIN_SIGNS = str.maketrans("‘’‚“”„«»–—‑", "'''" + '"""""' + "---")
PARSE_ERRORS = (ValidationError, ValueError, RecursionError)


class Citation(BaseModel):
    """A citation of a document.

    Attributes:
        document: Id of the document.
        quote: Words that occur in the document.
        url: Address of the document, where the answer names its sources in the text; else empty.
    """

    model_config = ConfigDict(frozen=True)

    document: str
    quote: str
    url: str = ""

    @model_serializer(mode="wrap")
    def _without_empty(self, serialize: SerializerFunctionWrapHandler) -> dict[str, object]:
        return {name: value for name, value in serialize(self).items() if name != "url" or value}


class CitedSentence(BaseModel):
    """A sentence of an answer.

    Attributes:
        text: The sentence.
        citations: Its citations, at least one.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    citations: tuple[Citation, ...]

    @property
    def sourced(self) -> str:
        """The sentence with the addresses of its citations before the full stop: "Geysers erupt (source: URL; URL)."."""
        urls = dict.fromkeys(citation.url for citation in self.citations if citation.url)
        if not urls:
            return self.text
        words, stop = re.fullmatch(r"(.*?)([.!?…\u3002\uff01\uff1f]*)", self.text, re.DOTALL).groups()  # type: ignore[union-attr]
        return f"{words.rstrip()} (source: {'; '.join(urls)}){stop or '.'}"


class CitedAnswer(BaseModel):
    """An answer, whose every sentence cites documents.

    Attributes:
        sentences: The sentences; none if the documents do not answer the question.
        dropped: Number of sentences that were left out because they had no valid citation.
        dropped_citations: Number of citations that were left out because their quote did not occur in the document.
    """

    model_config = ConfigDict(frozen=True)

    sentences: tuple[CitedSentence, ...] = ()
    dropped: int = 0
    dropped_citations: int = 0

    @property
    def text(self) -> str:
        """The sentences, joined; "not found in this collection" without sentences."""
        return " ".join(sentence.text for sentence in self.sentences) or NOT_FOUND

    @property
    def sourced(self) -> str:
        """The text, with the addresses of citations that have one."""
        return " ".join(sentence.sourced for sentence in self.sentences) or NOT_FOUND

    @property
    def documents(self) -> tuple[str, ...]:
        """Ids of the cited documents, each once, in the order of their first citation."""
        return tuple(dict.fromkeys(citation.document for sentence in self.sentences for citation in sentence.citations))


def answer_of(topic: Topic) -> CitedAnswer | None:
    """Return the answer in a topic's metadata, such as that of `run["1"].topic` after `answer`; None without an answer."""
    value = topic.metadata.get(ANSWER)
    try:
        return CitedAnswer(**{key: value[key] for key in CitedAnswer.model_fields}) if isinstance(value, dict) else None
    except (KeyError, ValidationError):
        return None


@dataclass(frozen=True)
class LlmAnswer(LlmPart, Stage[Run, Run], name="answer"):
    """Answers the topics of a run from their first documents: `bm25() >> answer("M")`. The ranking stays.

    Every sentence cites documents with a quote, after Gao et al. (EMNLP 2023). A citation is kept only if the quoted words
    occur in the document, ignoring case, spaces and the style of quotation marks; a sentence is kept only if one of its
    citations is. An answer without sentences is "not found in this collection". An answer that cannot be parsed counts as
    repaired. `answer_of` returns the answer of a topic of the run.

    Args:
        k: Documents that the model reads.
        words: Words of each document that the model reads.
        source: Metadata field with the address of a document, such as "url". Sentences then end with "(source: URL)", or
            "(source: URL; URL)", the form of CheckThat! 2026, task 3; a document without the field is named by its id.
    """

    placeholders: ClassVar[tuple[str, ...]] = ("passage", "query", "number")
    preserves_order = True

    prompt: str = field(default="answer", kw_only=True, metadata=FILE)
    max_tokens: int = field(default=1024, kw_only=True, metadata={"least": 1})
    k: int = field(default=5, metadata={"least": 1})
    words: int = field(default=300, kw_only=True, metadata={"least": 1})
    source: str | None = field(default=None, kw_only=True)

    def apply(self, run: Run, /) -> Run:
        self.check()
        docs = {topic.id: self._docs(run, number) for number, topic in enumerate(run.topics.values())}
        if self.source is not None:
            read = [doc.metadata for topic_docs in docs.values() for doc in topic_docs]
            check_key("answer: source: no document read", self.source, read, getattr(run.documents, "columns", ()))
        requests = [self._request(topic, docs[topic.id]) for topic in run.topics.values() if docs[topic.id]]
        answers = iter(self.llm.ask(requests))
        return run.with_(
            topics=Topics(
                self._with_answer(topic, docs[topic.id], next(answers) if docs[topic.id] else None)
                for topic in run.topics.values()
            )
        )

    def explain_in(self, run: Run, topic_id: str, doc_id: str) -> Explanation:
        """Explain the citations of a document by the request and the stored answer."""
        docs = self._docs(run, list(run.topics).index(topic_id))
        if not docs:
            return Explanation(0.0, "there are no documents to answer from")
        request = self._request(run.topics[topic_id], docs)
        (stored,) = self.llm.ask([request])
        answer, _ = parse_cited_answer(stored.final_text, docs)
        count = sum(citation.document == doc_id for sentence in answer.sentences for citation in sentence.citations)
        return explanation_of(request, stored, float(count), f"{self!r}: citations of {doc_id} in: {answer.text}")

    def _docs(self, run: Run, number: int) -> list[Doc]:
        first, last = int(run.bounds[number]), int(run.bounds[number + 1])
        codes = run.codes[first : min(last, first + self.k)]
        return run.documents_for(type(self).__name__).docs(run.ids.take(codes)) if len(codes) else []

    def _request(self, topic: Topic, docs: Sequence[Doc]) -> Request:
        check_text(topic)
        return self.request(self._prompt.messages([plain_passage(text_of(doc), self.words) for doc in docs], query=topic.text))

    def _with_answer(self, topic: Topic, docs: Sequence[Doc], stored: StoredAnswer | None) -> Topic:
        answer, repaired = CitedAnswer(), False
        if stored is not None:
            answer, repaired = parse_cited_answer(stored.final_text, docs, self.source)
        note = fact_of(self.llm, [] if stored is None else [stored], repaired=int(repaired))
        return with_fact(topic, note, metadata={ANSWER: {"text": answer.sourced, **answer.model_dump(mode="json")}})


M = TypeVar("M", bound=BaseModel)


class _RawCitation(BaseModel):
    document: int
    quote: str


class _RawSentence(BaseModel):
    text: str
    citations: list[object] = []


class _RawAnswer(BaseModel):
    sentences: list[object]


def parse_cited_answer(text: str, docs: Sequence[Doc], source: str | None = None) -> tuple[CitedAnswer, bool]:
    """Parse and check an answer in JSON, the form for which the prompt `answer` asks.

    Args:
        text: The text of the answer.
        docs: The documents of the prompt, whose numbers count from 1.
        source: Metadata field with the addresses of documents, for sentences that name them.

    Returns:
        The answer, with only the citations whose quote occurs in their document, and only the sentences with such a citation;
        and whether the text could not be parsed, in which case the answer has no sentences.
    """
    raw = _parse_answer(text)
    if raw is None:
        return CitedAnswer(), True
    # A quote may come from the document, or from its text in the prompt.
    doc_texts = [(_normalized(text_of(doc)), _normalized(plain_passage(text_of(doc), len(text_of(doc)) + 1))) for doc in docs]
    sentences, dropped, dropped_citations = [], 0, 0
    for raw_sentence in raw.sentences:
        sentence = _validated(_RawSentence, raw_sentence)
        valid: dict[Citation, None] = {}
        for raw_citation in sentence.citations if sentence is not None else ():
            citation = _validated(_RawCitation, raw_citation)
            if (
                citation is not None
                and 1 <= citation.document <= len(docs)
                and _has_quote(doc_texts[citation.document - 1], citation.quote)
            ):
                quote = " ".join(encodable(citation.quote).split())
                doc = docs[citation.document - 1]
                url = "" if source is None else " ".join(str(doc.metadata.get(source) or doc.id).split())
                valid[Citation(document=doc.id, quote=quote, url=url)] = None
            else:
                dropped_citations += 1
        words = "" if sentence is None else " ".join(encodable(sentence.text).split())
        if valid and words:
            sentences.append(CitedSentence(text=words, citations=tuple(valid)))
        else:
            dropped += 1
    return CitedAnswer(sentences=tuple(sentences), dropped=dropped, dropped_citations=dropped_citations), False


def _parse_answer(text: str) -> _RawAnswer | None:
    """Return the first JSON object in a text that is an answer."""
    for brace in islice(re.finditer(r"\{", text), MAX_STARTS):
        try:
            value, _ = json.JSONDecoder().raw_decode(text, brace.start())
            return _RawAnswer.model_validate(value)
        except PARSE_ERRORS:
            continue
    return None


def _validated(kind: type[M], value: object) -> M | None:
    try:
        return kind.model_validate(value)
    except PARSE_ERRORS:
        return None


def _has_quote(texts: Sequence[str], quote: str) -> bool:
    normalized = _normalized(quote).strip(" .…\"'")
    return len(normalized) >= MIN_QUOTE and any(normalized in text for text in texts)


def _normalized(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).translate(PLAIN_SIGNS).casefold().split())
