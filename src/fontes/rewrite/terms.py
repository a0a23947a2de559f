"""Terms of a conversation's history: labels and measures of term classification."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from typing import Any

from ..core.errors import InputError, ParameterError
from ..core.values import Topic, Topics
from ..text import Analyzer
from .turns import earlier, utterance

WORD = re.compile(r"\w+|[^\w\s]")
COUNTS = ("term", "occurrence")


def words_of(text: str) -> list[str]:
    """Words of a text; punctuation marks and signs are words."""
    return WORD.findall(text)


def history_of(topic: Topic, answers: int = 0) -> list[str]:
    """Words of the turns before the topic's own, oldest first, with the answers of the last `answers` turns."""
    before = earlier(topic)
    texts = [(turn.text, turn.answer if at >= len(before) - answers else "") for at, turn in enumerate(before)]
    return [word for pair in texts for text in pair for word in words_of(text)]


class Labels:
    """Labels of the relevant words of a history by the manual rewrite (Voskarides et al. 2020, equation 2).

    A word is relevant if it is no stop word and its stem is in the rewrite and not in the turn. The paper uses spaCy's lemmas
    and stop words, this class those of an analyzer.
    """

    def __init__(self, analyzer: str | Analyzer = "english") -> None:
        """Create labels by an analyzer: "english" (Porter's stems, function words as stop words), another name, or one."""
        self._analyzer = Analyzer.of(analyzer)
        if analyzer == "english":
            stop = (files(__package__) / "quretec_stopwords.txt").read_text(encoding="utf-8").split()
            self._analyzer = replace(self._analyzer, stopwords=tuple(stop))
        self._stems: dict[str, str] = {}

    def stems(self, words: Sequence[str]) -> list[str]:
        """Stem of each word; "" for stop words and marks."""
        new = list({word for word in words if word not in self._stems})
        if new:
            self._stems |= dict(zip(new, (" ".join(terms) for terms in self._analyzer.many(new)), strict=True))
        return [self._stems[word] for word in words]

    def __call__(self, topic: Topic, answers: int = 0) -> list[bool]:
        """Whether each word of `history_of(topic, answers)` is relevant.

        Raises:
            InputError: The topic has no manual rewrite.
        """
        if not topic.turns or not topic.turns[-1].manual.strip():
            raise InputError(f"topic '{topic.id}': its last turn has no manual rewrite, from which relevant terms are known")
        known = {"", *self.stems(words_of(utterance(topic)))}
        lacking = set(self.stems(words_of(topic.turns[-1].manual))) - known
        return [stem in lacking for stem in self.stems(history_of(topic, answers))]


def relevant_terms(topic: Topic, answers: int = 0, analyzer: str | Analyzer = "english") -> list[str]:
    """Return the words of the history that the turn lacks by its manual rewrite, without repetitions, in order.

    A perfect `QuReTeC` adds these words.

    Args:
        topic: The topic, with turns.
        answers: Number of turns before the current one whose answers belong to the history.
        analyzer: Makes the stems: "english" (Porter's, function words as stop words), or any other.

    Raises:
        InputError: The topic has no manual rewrite.
    """
    terms: dict[str, str] = {}
    for word, relevant in zip(history_of(topic, answers), Labels(analyzer)(topic, answers), strict=True):
        if relevant:
            terms.setdefault(word.lower(), word)
    return list(terms.values())


@dataclass(frozen=True)
class TermScores:
    """Precision, recall and F1 of a term classifier, micro-averaged over topics.

    Args:
        topics: Number of topics with a history.
        relevant: Number of terms relevant by the manual rewrites.
        predicted: Number of terms predicted as relevant.
        correct: Number of predicted terms that are relevant.
    """

    topics: int
    relevant: int
    predicted: int
    correct: int

    @property
    def precision(self) -> float:
        """Share of the predicted terms that are relevant; 0 without any."""
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of the relevant terms that are predicted; 0 without any."""
        return self.correct / self.relevant if self.relevant else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall: 2 correct / (predicted + relevant)."""
        total = self.predicted + self.relevant
        return 2 * self.correct / total if total else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Counts and measures, for JSON."""
        return {**asdict(self), "precision": self.precision, "recall": self.recall, "f1": self.f1}

    def __str__(self) -> str:
        return (
            f"P {self.precision:.3f}  R {self.recall:.3f}  F1 {self.f1:.3f}  ({self.topics:,} topics, {self.relevant:,} terms)"
        )


def term_scores(
    probabilities: Mapping[str, Sequence[tuple[str, float]]],
    topics: object,
    threshold: float = 0.5,
    answers: int = 0,
    each: str = "term",
    analyzer: str | Analyzer | Labels = "english",
) -> TermScores:
    """Return precision, recall and F1 of the terms of `QuReTeC.probabilities` against manual rewrites.

    Args:
        probabilities: Words of each topic's history with probabilities; words at its front may be missing.
        topics: Topics with manual rewrites; those without earlier turns do not count.
        threshold: Minimum probability of a predicted term.
        answers: As in the `QuReTeC` that gave the probabilities.
        each: Unit to count: "term", the distinct terms of a topic, as a rewrite gains them; or "occurrence", each position in
            the history, as the program of Voskarides et al. 2020 counts.
        analyzer: As for `relevant_terms`.

    Raises:
        InputError: A topic has no manual rewrite.
        ParameterError: `each` is neither of the two.
    """
    if each not in COUNTS:
        raise ParameterError(f"each is {' or '.join(map(repr, COUNTS))}, not {each!r}")
    labels = analyzer if isinstance(analyzer, Labels) else Labels(analyzer)
    counts = [0, 0, 0, 0]
    for topic in Topics.of(topics).values():
        words = [word.lower() for word in history_of(topic, answers)]
        if not words:
            continue
        values = [probability for _, probability in probabilities.get(topic.id, ())]
        marks = [False] * (len(words) - len(values)) + [value >= threshold for value in values]
        keys: list[Any] = words if each == "term" else list(range(len(words)))
        relevant = _marked(keys, labels(topic, answers))
        predicted = _marked(keys, marks)
        for at, count in enumerate((1, len(relevant), len(predicted), len(relevant & predicted))):
            counts[at] += count
    return TermScores(*counts)


def _marked(keys: Sequence[Any], marks: Iterable[bool]) -> set[Any]:
    return {key for key, mark in zip(keys, marks, strict=True) if mark}
