"""Measures of answers: citations by judgments, nuggets, exact match and F1 of words."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..core.errors import InputError
from ..core.values import Qrels, Topics
from .answering import CitedAnswer, answer_of

CITATION_P, CITATION_R, NUGGET_R, EM, F1 = "citation precision", "citation recall", "nugget recall", "EM", "F1"
ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


class AnswerScores(Mapping[str, float]):
    """Mapping from the name of a measure of answers to its mean over topics, returned by `answer_scores`."""

    def __init__(self, values: Mapping[str, Mapping[str, float]]) -> None:
        """Create scores from values by measure and topic id."""
        self._values = {measure: dict(topic_values) for measure, topic_values in values.items()}

    def per_topic(self, measure: str) -> dict[str, float]:
        """Return the values of a measure by topic id; KeyError for an unknown measure."""
        return dict(self._values[measure])

    def __getitem__(self, measure: str) -> float:
        return float(np.mean(list(self._values[measure].values())))

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}}  {value:.4f}" for name, value in self.items())

    def __repr__(self) -> str:
        return f"AnswerScores({', '.join(f'{name} {value:.4g}' for name, value in self.items())})"


def answer_scores(
    topics: Topics,
    qrels: object = None,
    *,
    nuggets: Mapping[str, Sequence[str | Sequence[str]]] | None = None,
    references: Mapping[str, Sequence[str]] | None = None,
    rel: int = 1,
) -> AnswerScores:
    """Measure the answers in the metadata of topics.

    * citation precision: the share of the citations whose document is relevant; 1 without citations.
    * citation recall: the share of the sentences, including those left out, that cite a relevant document; without sentences,
      0 if the topic has relevant documents, else 1. Both are defined as in TREC RAG, with relevance judgments instead of a
      judge of support.
    * nugget recall: the share of the nuggets that occur in the answer; one wording of a nugget is enough.
    * EM, F1: the agreement of the answer and the best reference, as for SQuAD (Rajpurkar et al., EMNLP 2016), ignoring case,
      punctuation and articles: whether they are equal, and the F1 of their words.

    Args:
        topics: Topics with answers, such as the `topics` of a run after `answer`. Each measure is a mean over the topics that
            have judgments, nuggets or references for it.
        qrels: Judgments, any value that `Qrels.of` accepts, or a path; None omits the measures of citations.
        nuggets: Nuggets by topic id: texts, or lists of wordings.
        references: Correct answers by topic id.
        rel: Minimum grade of a relevant document.

    Raises:
        InputError: A topic has no answer, or nothing is measured.
    """
    nuggets, references = nuggets or {}, references or {}
    answers: dict[str, CitedAnswer] = {}
    for topic in topics.values():
        answer = answer_of(topic)
        if answer is None:
            raise InputError(f"topic '{topic.id}' carries no answer; give the topics of a run after answer(…)")
        answers[topic.id] = answer
    judgments = {} if qrels is None else Qrels.of(qrels)
    values: dict[str, dict[str, float]] = {}
    for topic_id, answer in answers.items():
        if topic_id in judgments:
            relevant = {doc for doc, grade in judgments[topic_id].items() if grade >= rel}
            precision, recall = _citation_scores(answer, relevant)
            values.setdefault(CITATION_P, {})[topic_id] = precision
            values.setdefault(CITATION_R, {})[topic_id] = recall
    for topic_id, answer in answers.items():
        if nuggets.get(topic_id):
            words = f" {normalized(answer.text)} "
            wordings = [[nugget] if isinstance(nugget, str) else list(nugget) for nugget in nuggets[topic_id]]
            share = np.mean([any(f" {normalized(text)} " in words for text in wording) for wording in wordings])
            values.setdefault(NUGGET_R, {})[topic_id] = float(share)
    for topic_id, answer in answers.items():
        if references.get(topic_id):
            words = normalized(answer.text)
            texts = [normalized(text) for text in references[topic_id]]
            values.setdefault(EM, {})[topic_id] = float(words in texts)
            values.setdefault(F1, {})[topic_id] = max(_f1(words.split(), text.split()) for text in texts)
    if not values:
        raise InputError("there is nothing to measure answers by: none of the topics has judgments, nuggets or references")
    return AnswerScores(values)


def normalized(text: str) -> str:
    """Return a text as SQuAD's program compares it: lower case, without punctuation, articles and repeated spaces."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def _citation_scores(answer: CitedAnswer, relevant: set[str]) -> tuple[float, float]:
    """Return citation precision and citation recall."""
    cited = [[citation.document in relevant for citation in sentence.citations] for sentence in answer.sentences]
    citations, sentences = sum(map(len, cited)), len(cited) + answer.dropped
    precision = sum(map(sum, cited)) / citations if citations else 1.0
    return precision, sum(map(any, cited)) / sentences if sentences else float(not relevant)


def _f1(words: Sequence[str], reference: Sequence[str]) -> float:
    if not words or not reference:
        return float(words == reference)
    common = (Counter(words) & Counter(reference)).total()
    return 2 * common / (len(words) + len(reference))
