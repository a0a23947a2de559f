"""Rationales: the sentences of each document of a run that bear on its topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..core import Doc, Explanation, ParameterError, PipelineError, Run, Stage, Topic, Topics
from ..core.arrays import Float32s
from ..core.values import Documents
from ..core.work import unreported
from ..index import Index, State
from ..lexical import BM25, Postings, Statistics
from ..rerank.reranker import Reranker
from .aggregate import SENTENCE_SEPARATOR, BestPassages, split_id
from .split import Sentences

MIN_POSITIVE_SCORE = 1e-30  # a threshold that leaves out scores of 0


@dataclass(frozen=True)
class TextScorer(Reranker, name="text_scorer"):
    """Scores the text of each document of a run by BM25: `bm25() % 10 >> sentences() >> text_scorer(bm25())`.

    idf and avgdl come from the index, tf and dl from the text. No training or neural model is needed.

    Args:
        model: A BM25 retriever, which provides variant, k1, b and k3, and whose index provides analyzer and statistics.
        cache: True keeps scores on disk, in the user's cache folder; a path keeps them in that file.

    Raises:
        InputError: When called: the run has no documents, or a topic has no text.
        ParameterError: When called: `model` is not a BM25 retriever, or searches separate fields.
    """

    model: BM25

    def check(self) -> None:
        if not isinstance(self.model, BM25):
            raise ParameterError(f"text_scorer takes a bm25, as in text_scorer(bm25()), not {self.model!r}")
        if self.model.fields is not None:
            raise ParameterError("text_scorer takes a bm25 without fields: a text outside an index has none")
        self.model.check()
        super().check()

    @property
    def fingerprint(self) -> str:
        return f"bm25 {self.model.weighting!r} {self.model.index.fingerprint}"

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Float32s:
        self.check()
        index, weighting = self.model.index.state, self.model.weighting
        texts = list(dict.fromkeys(text for _, text in pairs))
        queries = list(dict.fromkeys(query for query, _ in pairs))
        tokens = index.analyzer.many(texts)
        statistics = Statistics.of(index).over(np.array([len(terms) for terms in tokens], dtype=np.float64))
        text_weights: dict[str, dict[int, float]] = {}  # by text, then by number of the term
        for doc, (text, terms) in enumerate(zip(texts, tokens, strict=True)):
            bag = _numbered(index, terms)
            numbers, tf = np.array(list(bag), dtype=np.int64), np.array(list(bag.values())).astype(np.int32)
            postings = Postings(numbers, np.ones(len(bag), np.int64), np.full(len(bag), doc, np.int32), tf)
            text_weights[text] = dict(zip(bag, weighting.postings(statistics, postings).tolist(), strict=True))
        query_weights: dict[str, dict[int, float]] = {}
        for query, terms in zip(queries, index.analyzer.many(queries), strict=True):
            bag = _numbered(index, terms)
            query_weights[query] = dict(zip(bag, weighting.query(np.array(list(bag.values()))).tolist(), strict=True))
        scores = [
            sum(weight * text_weights[text].get(term, 0.0) for term, weight in query_weights[query].items())
            for query, text in pairs
        ]
        return np.array(scores, dtype=np.float32)


def _numbered(index: State, terms: Sequence[str]) -> Counter[int]:
    """Count the terms that an index has, by their numbers."""
    return Counter(number for term in terms if (number := index.term_number(term)) >= 0)


class Rationale(NamedTuple):
    """A sentence of a document that bears on a topic.

    Attributes:
        number: Index of the sentence in the document, from 0.
        score: Score by which the sentence was picked.
        text: The sentence.
    """

    number: int
    score: float
    text: str


@dataclass(frozen=True)
class Rationales(Stage[Run, Run], name="rationales"):
    """Picks the sentences of each document that bear on the topic: `bm25() % 10 >> rationales(cross_encoder("MODEL"))`.

    SciFact calls such sentences rationales (Wadden et al., EMNLP 2020), FEVER calls them evidence (Thorne et al., NAACL 2018).
    The documents, their scores and their order stay the same; `fontes search`, reports and notebooks show the sentences, and
    `rationales_of` returns them. Each sentence is scored alone. For a run of sentences, with the ids "D7#0", "D7#1", …, use
    `… >> Sentences() >> reranker >> BestPassages(n, threshold)`. Put this stage last: later stages may drop the sentences.

    Args:
        reranker: Scores sentences, such as `cross_encoder`. None: `text_scorer(bm25())`, which picks only
            sentences with a term of the topic.
        n: Maximum sentences per document; None: no limit.
        threshold: Minimum score of a picked sentence; None: any. With a threshold, a document may have no sentence.
        sentences: Sentence finder: "rules", "nupunkt" or "spacy:MODEL".
        title: Whether the reranker reads the document's title before each sentence.

    Raises:
        InputError: When called: the run has no documents, or a topic has no text.
        ParameterError: When called without a reranker: the run does not come from an index.
    """

    preserves_order: ClassVar[bool] = True

    reranker: Stage[Run, Run] | None = field(default=None, metadata={"leading": True})
    n: int | None = 3
    threshold: float | None = None
    sentences: str = "rules"
    title: bool = False

    def check(self) -> None:
        if self.reranker is not None:
            if not isinstance(self.reranker, Stage):
                raise ParameterError(f"rationales needs a reranker, such as cross_encoder, not {self.reranker!r}")
            self.reranker.require(Run, Run, "rationales")
            self.reranker.check()
        self._picker.check()
        self._splitter.check()

    def check_needs(self) -> None:
        self._splitter.check_needs()
        super().check_needs()

    def apply(self, run: Run, /) -> Run:
        self.check()
        return with_rationales(run, self._picker(self._scored(run)))

    @unreported
    def explain_in(self, run: Run, topic_id: str, doc_id: str) -> Explanation:
        """Return all sentences of a document with their scores, best first; picked sentences are marked."""
        topic = run.topics[topic_id]
        single = Run.of({topic_id: {doc_id: 1.0}}, Topics([topic])).with_(documents=run.documents)
        scored = self._scored(single)
        picked = set(self._picker(scored)[topic_id].ids)
        ranking = scored[topic_id]
        parts = []
        for hit, doc in zip(ranking, ranking.docs(), strict=True):
            _, number = split_id(hit.id, SENTENCE_SEPARATOR)
            mark = ", picked" if hit.id in picked else ""
            parts.append(Explanation(hit.score, f"sentence {number}{mark}: {_in_one_line(doc.text)}"))
        return Explanation(len(picked), f"of {len(parts)} sentences picked by {self!r}", tuple(parts))

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        raise PipelineError("rationales explains documents of a run: (retriever >> rationales(…)).explain(query, doc_id)")

    @property
    def _splitter(self) -> Sentences:
        return Sentences(self.sentences, self.title)

    @property
    def _picker(self) -> BestPassages:
        needs_term = self.reranker is None and self.threshold is None
        return BestPassages(self.n, MIN_POSITIVE_SCORE if needs_term else self.threshold, SENTENCE_SEPARATOR)

    def _scored(self, run: Run) -> Run:
        """Split the documents into sentences, and score them."""
        reranker = self.reranker
        if reranker is None:
            if not isinstance(run.documents, Index | State):
                raise ParameterError(
                    "rationales without a reranker needs a run over an index; or name one: rationales(cross_encoder(…))"
                )
            reranker = TextScorer(BM25(run.documents))
        scored: Run = (self._splitter >> reranker)(run)
        return scored


class RationaleDocuments:
    """The documents of a run, with the sentences picked for its topics.

    Args:
        documents: Source of the documents' text.
        sentences: Run of the sentences, whose `documents` provide their text.
    """

    def __init__(self, documents: Documents, sentences: Run) -> None:
        self.documents = documents
        self.sentences = sentences

    def __reduce__(self) -> tuple[object, ...]:
        return RationaleDocuments, (self.documents, self.sentences)

    def docs(self, ids: Iterable[str]) -> list[Doc]:
        """Return the documents with these ids, in order."""
        return self.documents.docs(ids)

    def rationales(self, topic_id: str, doc_id: str) -> list[Rationale]:
        """Return the sentences of a document picked for a topic, in text order."""
        sentence_scores = sorted(self._sentence_scores.get(topic_id, {}).get(doc_id, ()))
        ids = [f"{doc_id}{SENTENCE_SEPARATOR}{number}" for number, _ in sentence_scores]
        docs = self.sentences.documents_for("a rationale").docs(ids)
        return [
            Rationale(number, score, _in_one_line(doc.text)) for (number, score), doc in zip(sentence_scores, docs, strict=True)
        ]

    @property
    def facets(self) -> Callable[..., dict[str, dict[Any, int]]]:
        """The index's function that counts column values in documents."""
        documents: Any = self.documents
        facets: Callable[..., dict[str, dict[Any, int]]] = documents.facets
        return facets

    @property
    def marked(self) -> Callable[[str, Doc], str]:
        """Function that shows a document as HTML: title and picked sentences, or the source's text if none is picked."""
        topic_ids = {topic.text: topic.id for topic in self.sentences.topics.values()}
        source_marked = getattr(self.documents, "marked", None) or _beginning

        def marked(query: str, doc: Doc) -> str:
            picked = self.rationales(topic_ids.get(query, ""), doc.id)
            if not picked:
                return str(source_marked(query, doc))
            lines = [f"{sentence.number}: {escape(sentence.text)}" for sentence in picked]
            return "<br>".join([f"<b>{escape(doc.title)}</b>", *lines])

        return marked

    @cached_property
    def _sentence_scores(self) -> dict[str, dict[str, list[tuple[int, float]]]]:
        """Numbers and scores of the picked sentences, by topic id and document id."""
        sentence_scores: dict[str, dict[str, list[tuple[int, float]]]] = {}
        for topic_id, ranking in self.sentences.items():
            topic_scores = sentence_scores.setdefault(topic_id, {})
            for hit in ranking:
                doc_id, number = split_id(hit.id, SENTENCE_SEPARATOR)
                topic_scores.setdefault(doc_id, []).append((number, hit.score))
        return sentence_scores


def with_rationales(run: Run, sentences: Run) -> Run:
    """Attach picked sentences to a run of documents.

    Args:
        run: The run of documents.
        sentences: A run of sentences, with ids such as "D7#0". If it was read from a file, `Sentences()` splits the documents
            of `run`. For another splitter, pass `sentences.with_(documents=Sentences("nupunkt").over(index))`.

    Raises:
        InputError: The run has no documents, or an id is not the id of a sentence.
    """
    documents = run.documents_for("rationales")
    if isinstance(documents, RationaleDocuments):
        documents = documents.documents
    if sentences.documents is None:
        sentences = sentences.with_(documents=Sentences().over(documents))
    rationale_documents = RationaleDocuments(documents, sentences)
    rationale_documents._sentence_scores  # noqa: B018  # raises for a wrong id
    provenance = dict(run.provenance)
    if (facts := sentences.provenance.get("reranked")) is not None:
        provenance["rationales"] = facts
    return run.with_(documents=rationale_documents, provenance=provenance)


def rationales_of(run: Run, topic_id: str, doc_id: str) -> list[Rationale]:
    """Return the sentences of a document picked for a topic, in text order; may be empty."""
    documents = run.documents
    return documents.rationales(topic_id, doc_id) if isinstance(documents, RationaleDocuments) else []


def _beginning(query: str, doc: Doc) -> str:
    """Return the first 200 characters of title and text, as HTML."""
    return escape(f"{doc.title} {doc.text}".strip()[:200])


def _in_one_line(text: str) -> str:
    return " ".join(text.split())
