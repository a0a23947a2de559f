"""The inputs of an audit: a run, judgments, and facts on topics, documents and training data."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from ..core import Doc, Qrels, Run, Topics
from ..core.arrays import AnyArray
from ..formats import read_corpus
from ..formats.columns import TREC_RUN
from ..measures.evaluation import Evaluation, measure_run
from ..measures.measure import Measure
from ..measures.ties import TiedScores
from ..storage.files import STANDARD, reading
from ..train.duplicates import CopySearch, plain_text, plain_topic
from ..train.sources import TrainingData


@dataclass(frozen=True, eq=False)
class Audited:
    """The inputs of an audit.

    Args:
        qrels: The judgments.
        measures: The measures.
        run: The run; None for an audit of a collection.
        tags: Topics of each tag of the run's file; empty if unknown.
        topics: Texts of the judged topics; empty if unknown.
        collection: Facts on the documents; None if unknown.
        train: Topics and relevant documents of the training data; None if there are none.
        machine: Labels of a machine that the judgments contain.
        near: Least similarity of near copies.
        seed: Seed of random orders.
    """

    qrels: Qrels
    measures: tuple[Measure, ...]
    run: Run | None = None
    tags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    topics: Topics = field(default_factory=Topics)
    collection: AuditedCollection | None = None
    train: TrainingData | None = None
    machine: Qrels | None = None
    near: float | None = 0.8
    seed: int = 0

    @cached_property
    def evaluation(self) -> Evaluation:
        """The evaluation of the run as it is; of an empty one without a run."""
        return measure_run(Run.of({}) if self.run is None else self.run, self.qrels, self.measures)

    @cached_property
    def tied(self) -> TiedScores:
        """The equal scores of the run."""
        assert self.run is not None
        return TiedScores(self.run, self.qrels)

    def means(self, run: Run | None = None, qrels: Qrels | None = None) -> dict[Measure, float]:
        """Return the means of another run or by other judgments, without topics that thereby lose all relevant documents."""
        ranking, judgments = self.run if run is None else run, self.qrels
        if qrels is not None:
            lost = _relevant_topics(self.qrels) - _relevant_topics(qrels)
            judgments = qrels.only(qrels.keys() - lost)
        return dict(measure_run(ranking, judgments, self.measures)) if ranking is not None and judgments else {}

    def mean_by(self, measure: Measure, qrels: Qrels) -> float:
        """Return the mean of a measure by other judgments of the same topics."""
        assert self.run is not None
        return measure_run(self.run, qrels, [measure])[measure]

    def means_over(self, topics: Container[str]) -> dict[Measure, float]:
        """Return the means over some of the judged topics; empty without a run or topics."""
        mask = [topic_id in topics for topic_id in self.evaluation.topic_ids]
        if self.run is None or not any(mask):
            return {}
        return {measure: mean_of(measure, self.evaluation.array(measure)[mask]) for measure in self.measures}

    def judgments_without(self, pairs: Container[tuple[str, str]]) -> Qrels:
        """Return the judgments without some pairs of topic and document."""
        return Qrels(row for row in self.qrels.rows() if (row[0], row[2]) not in pairs)

    def run_without(self, pairs: Container[tuple[str, str]]) -> Run | None:
        """Return the run without some pairs of topic and document."""
        if self.run is None:
            return None
        names = list(self.run.topics)
        rows = zip(self.run.topic_numbers.tolist(), self.run.ids.take(self.run.codes), strict=True)
        return self.run.keep(np.array([(names[number], doc_id) not in pairs for number, doc_id in rows], dtype=bool))


class AuditedCollection:
    """Facts on the documents of a collection, which is read twice, and not kept.

    Args:
        corpus: Any source that `read_corpus` accepts.
        qrels: The judgments.
        topics: Texts of the judged topics.
        near: Least similarity of near copies.

    Attributes:
        missing: Judged documents that the collection lacks.
        itself: Pairs of a topic and a document that has its text.
        namesakes: Topics that share their id alone with a document.
        search: Search for near copies of the relevant documents.
        copies: Near copies of each document that is relevant to a topic, with their similarity.
    """

    def __init__(self, corpus: str | Path | Iterable[object], qrels: Qrels, topics: Topics, near: float | None) -> None:
        docs = list(read_corpus(corpus)) if corpus == STANDARD or isinstance(corpus, Iterator) else corpus
        self.missing = {doc_id for grades in qrels.values() for doc_id in grades}
        relevant = {doc_id for grades in qrels.values() for doc_id, grade in grades.items() if grade > 0}
        texts = {}
        for doc in read_corpus(docs):
            self.missing.discard(doc.id)
            if doc.id in relevant:
                texts[doc.id] = document_text(doc)
        self.search = CopySearch(texts, near)
        by_text: dict[str, list[str]] = {}
        for topic in topics.values():
            by_text.setdefault(plain_topic(topic), []).append(topic.id)
        by_text.pop("", None)
        self.itself: set[tuple[str, str]] = set()
        self.namesakes: list[str] = []
        self.copies: dict[str, dict[str, float]] = {}
        for doc in read_corpus(docs):
            text = document_text(doc)
            for doc_id, similarity in self.search(text).items():
                if doc_id != doc.id:
                    self.copies.setdefault(doc_id, {})[doc.id] = similarity
            body = text.removeprefix(plain_text(doc.title) + " ") if doc.title else text
            self.itself |= {(topic_id, doc.id) for form in {text, body} for topic_id in by_text.get(form, ())}
            if doc.id in topics and (doc.id, doc.id) not in self.itself:
                if (own_text := plain_topic(topics[doc.id])) and own_text in text:
                    self.itself.add((doc.id, doc.id))
                else:
                    self.namesakes.append(doc.id)


def mean_of(measure: Measure, values: AnyArray) -> float:
    """Return the mean of values of topics, or the sum for a count."""
    return float(values.sum() if measure.summed else values.mean())


def document_text(doc: Doc) -> str:
    """Return the plain title and text of a document."""
    return plain_text(f"{doc.title} {doc.text}")


def tags_of(run: object) -> dict[str, list[str]]:
    """Return the topics of each tag of a run's file in TREC's format; empty for other files and values."""
    tags: dict[str, dict[str, None]] = {}
    if not isinstance(run, (str, os.PathLike)) or os.fspath(run) == STANDARD:
        return {}
    with reading(os.fspath(run)) as source:
        for _, line in source.texts():
            cells = line.split()
            if len(cells) != TREC_RUN:
                return {}
            tags.setdefault(cells[5], {})[cells[0]] = None
    return {tag: list(topics) for tag, topics in tags.items()}


def _relevant_topics(qrels: Qrels) -> set[str]:
    return {topic_id for topic_id, grades in qrels.items() if any(grade > 0 for grade in grades.values())}
