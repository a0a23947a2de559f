"""Terms of a conversation's history: labels and measures of term classification."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.resources import files
from types import ModuleType
from typing import Any

import numpy as np

from ..core.arrays import Float64s
from ..core.errors import InputError, MissingExtraError, ParameterError
from ..core.values import Topic, Topics
from ..text import Analyzer
from .turns import earlier, utterance

WORD = re.compile(r"\w+|[^\w\s]")
COUNTS = ("term", "occurrence")


@cache
def function_words() -> tuple[str, ...]:
    """Return the English function words, in lower case."""
    return tuple((files(__package__) / "quretec_stopwords.txt").read_text(encoding="utf-8").split())


def words_of(text: str) -> list[str]:
    """Return the words of a text; punctuation marks and symbols count as words."""
    return WORD.findall(text)


def history_of(topic: Topic, answers: int = 0) -> list[str]:
    """Return the words of the turns before the topic's own, oldest first, with the answers of the last `answers` turns."""
    turns = earlier(topic)
    texts = [(turn.text, turn.answer if i >= len(turns) - answers else "") for i, turn in enumerate(turns)]
    return [word for pair in texts for text in pair for word in words_of(text)]


class Labels:
    """Labels of the relevant words of a history by the manual rewrite (Voskarides et al. 2020, equation 2).

    A word is relevant if it is not a stop word and its stem is in the rewrite and not in the turn. The paper uses spaCy's
    lemmas and stop words; this class uses the stems and stop words of an analyzer.
    """

    def __init__(self, analyzer: str | Analyzer = "english") -> None:
        """Use an analyzer: "english" (Porter's stems, function words as stop words), another name, or an `Analyzer`."""
        self._analyzer = Analyzer.of(analyzer)
        if analyzer == "english":
            self._analyzer = replace(self._analyzer, stopwords=function_words())
        self._stems: dict[str, str] = {}

    def stems(self, words: Sequence[str]) -> list[str]:
        """Return the stem of each word; "" for stop words and punctuation marks."""
        new = list({word for word in words if word not in self._stems})
        if new:
            self._stems |= dict(zip(new, (" ".join(terms) for terms in self._analyzer.many(new)), strict=True))
        return [self._stems[word] for word in words]

    def __call__(self, topic: Topic, answers: int = 0) -> list[bool]:
        """Return whether each word of `history_of(topic, answers)` is relevant; raise InputError without a manual rewrite."""
        if not topic.turns or not topic.turns[-1].manual.strip():
            raise InputError(f"topic '{topic.id}': its last turn has no manual rewrite, from which relevant terms are known")
        present = {"", *self.stems(words_of(utterance(topic)))}
        lacking = set(self.stems(words_of(topic.turns[-1].manual))) - present
        return [stem in lacking for stem in self.stems(history_of(topic, answers))]


def relevant_terms(topic: Topic, answers: int = 0, analyzer: str | Analyzer = "english") -> list[str]:
    """Return the words of the history that the turn lacks according to its manual rewrite, without repetitions, in order.

    A perfect `QuReTeC` adds these words.

    Args:
        topic: The topic, with turns.
        answers: Earlier turns whose answers belong to the history.
        analyzer: Analyzer for stems: "english" (Porter's stems, function words as stop words), or any other.

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
    """Precision, recall and F1 of a classifier of terms or of statements about users, micro-averaged over topics.

    Args:
        topics: Topics with a history, or with statements.
        relevant: Number of terms relevant by the manual rewrites, or of statements named as relevant.
        predicted: Number of terms or statements predicted as relevant.
        correct: Number of predicted ones that are relevant.
        unit: Noun for what is counted.
    """

    topics: int
    relevant: int
    predicted: int
    correct: int
    unit: str = field(default="terms", repr=False, compare=False)

    @property
    def precision(self) -> float:
        """Share of the predicted terms that are relevant; 0 without predicted terms."""
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of the relevant terms that are predicted; 0 without relevant terms."""
        return self.correct / self.relevant if self.relevant else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall: 2 correct / (predicted + relevant)."""
        total = self.predicted + self.relevant
        return 2 * self.correct / total if total else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Counts and measures, for JSON."""
        counts = {name: count for name, count in asdict(self).items() if name != "unit"}
        return {**counts, "precision": self.precision, "recall": self.recall, "f1": self.f1}

    def __str__(self) -> str:
        counts = f"{self.topics:,} topics, {self.relevant:,} {self.unit}"
        return f"P {self.precision:.3f}  R {self.recall:.3f}  F1 {self.f1:.3f}  ({counts})"


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
        probabilities: Words of each topic's history with probabilities; the first words of the history may be missing.
        topics: Topics with manual rewrites; topics without earlier turns do not count.
        threshold: Minimum probability of a predicted term.
        answers: As in the `QuReTeC` that gave the probabilities.
        each: Unit to count: "term", the distinct terms of a topic, as they are added to a rewrite; or "occurrence", each
            position in the history, as in the program of Voskarides et al. 2020.
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
        keys: Sequence[object] = words if each == "term" else list(range(len(words)))
        relevant = _keys_of(keys, labels(topic, answers))
        predicted = _keys_of(keys, marks)
        for i, count in enumerate((1, len(relevant), len(predicted), len(relevant & predicted))):
            counts[i] += count
    return TermScores(counts[0], counts[1], counts[2], counts[3])


def _keys_of(keys: Sequence[object], marks: Iterable[bool]) -> set[object]:
    return {key for key, mark in zip(keys, marks, strict=True) if mark}


TERM_R, TERM_P, TERM_F1, ROUGE1_R, BLEU = "term recall", "term precision", "term F1", "ROUGE-1 recall", "BLEU"
LETTERS = re.compile(r"[^\W_]+")


class RewritingScores(Mapping[str, float]):
    """Mapping from the name of a measure of rewrites to its mean over topics, returned by `rewriting_scores`.

    "term recall", "term precision", "term F1" and "ROUGE-1 recall" are from 0 to 1; "BLEU" is the mean over topics, from 0 to
    100.

    Attributes:
        topic_ids: Ids of the topics.
        corpus_bleu: BLEU of all topics together, 0 to 100, as usually published; NaN without BLEU.
        bleu_signature: Signature of sacrebleu; empty without BLEU.
    """

    def __init__(
        self, topic_ids: Sequence[str], values: Mapping[str, Float64s], corpus_bleu: float, bleu_signature: str
    ) -> None:
        """Create scores from values in the order of `topic_ids`."""
        self.topic_ids = tuple(topic_ids)
        self.corpus_bleu = corpus_bleu
        self.bleu_signature = bleu_signature
        self._values = dict(values)
        for array in self._values.values():
            array.setflags(write=False)

    def array(self, measure: str) -> Float64s:
        """Values of a measure, float64, in the order of `topic_ids`; read-only.

        Raises:
            ParameterError: There is no such measure.
        """
        if measure not in self._values:
            raise ParameterError(f"there is no measure '{measure}' of rewrites; there are {', '.join(self._values)}")
        return self._values[measure]

    def per_topic(self, measure: str) -> dict[str, float]:
        """Value of a measure by topic id.

        Raises:
            ParameterError: There is no such measure.
        """
        return dict(zip(self.topic_ids, self.array(measure).tolist(), strict=True))

    def __getitem__(self, measure: str) -> float:
        return float(self._values[measure].mean())

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __str__(self) -> str:
        shown = {**self, **({} if np.isnan(self.corpus_bleu) else {"corpus BLEU": self.corpus_bleu})}
        width = max(map(len, shown))
        return "\n".join(f"{name:<{width}}  {value:7.{2 if 'BLEU' in name else 4}f}" for name, value in shown.items())

    def __repr__(self) -> str:
        return f"RewritingScores({len(self.topic_ids)} topics: {', '.join(f'{k} {v:.4g}' for k, v in self.items())})"


def rewriting_scores(
    rewritten: object,
    manual: Mapping[str, str] | Topics | None = None,
    *,
    analyzer: str | Analyzer | Callable[[str], Sequence[str]] = "english",
    bleu: bool = True,
) -> RewritingScores:
    """Return the similarity of rewrites to manual ones.

    Term recall is the share of the manual rewrite's content terms that the rewrite has, term precision the share of the
    rewrite's content terms that the manual rewrite has, and term F1 their harmonic mean; all are 1 if both rewrites have no
    content terms, and 0 if only one has none. ROUGE-1 recall (Lin 2004) is the share of the manual rewrite's words, with
    repetitions, that the rewrite has; words are runs of letters and digits in lower case, without stemming, which for ASCII
    text agrees with the package rouge_score. BLEU (Papineni et al. 2002) is computed by sacrebleu (Post 2018) with its
    defaults: cased, tokenizer 13a, exponential smoothing; for single topics with effective order.

    Args:
        rewritten: Topics with the rewrites as texts, as `Topics.of` accepts them.
        manual: Manual rewrites by topic id; or Topics with them as texts. None: the manual rewrite of each topic's last turn.
        analyzer: Analyzer for content terms, without repetitions; by default English stems without stop words.
        bleu: Compute BLEU, which needs sacrebleu.

    Raises:
        InputError: A topic, which the message names, has no manual rewrite.
        MissingExtraError: BLEU is wanted, and sacrebleu is not installed.
    """
    topics = Topics.of(rewritten)
    if not topics:
        raise InputError("there are no rewrites to measure: the topics are empty")
    rewrites = [topic.text for topic in topics.values()]
    references = _references(topics, manual)
    terms = Analyzer.of(analyzer).many
    shares = [_shares(set(a), set(b)) for a, b in zip(terms(rewrites), terms(references), strict=True)]
    values = dict(zip((TERM_R, TERM_P, TERM_F1), np.array(shares, dtype=np.float64).T.copy(), strict=True))
    values[ROUGE1_R] = np.array([_rouge1_recall(a, b) for a, b in zip(rewrites, references, strict=True)])
    if not bleu:
        return RewritingScores(list(topics), values, float("nan"), "")
    sacrebleu = _sacrebleu()
    topic_bleu = sacrebleu.BLEU(effective_order=True)
    values[BLEU] = np.array([topic_bleu.sentence_score(a, [b]).score for a, b in zip(rewrites, references, strict=True)])
    corpus_bleu = sacrebleu.BLEU()
    score = corpus_bleu.corpus_score(rewrites, [references]).score
    return RewritingScores(list(topics), values, float(score), str(corpus_bleu.get_signature()))


def _references(topics: Topics, manual: Mapping[str, str] | Topics | None) -> list[str]:
    """Return the manual rewrite of each topic, in order."""
    if manual is None:
        problem = "its last turn carries no manual rewrite"
        by_id = {topic.id: topic.turns[-1].manual for topic in topics.values() if topic.turns}
    else:
        problem = "the manual rewrites do not have it"
        by_id = {topic_id: topic.text for topic_id, topic in Topics.of(manual).items()}
    texts = []
    for topic in topics.values():
        text = by_id.get(topic.id, "")
        if not text.strip():
            raise InputError(f"topic '{topic.id}' cannot be measured: {problem}; leave it out, or give manual={{id: text}}")
        texts.append(text)
    return texts


def _shares(terms: set[str], reference: set[str]) -> tuple[float, float, float]:
    """Return recall, precision and F1."""
    if not terms or not reference:
        same = float(terms == reference)
        return same, same, same
    common = len(terms & reference)
    return common / len(reference), common / len(terms), 2 * common / (len(terms) + len(reference))


def _rouge1_recall(rewrite: str, reference: str) -> float:
    counts, reference_counts = Counter(LETTERS.findall(rewrite.lower())), Counter(LETTERS.findall(reference.lower()))
    return (counts & reference_counts).total() / reference_counts.total() if reference_counts else 0.0


def _sacrebleu() -> ModuleType:
    try:
        from sacrebleu import metrics
    except ImportError as e:
        raise MissingExtraError.of("sacrebleu", "rewrite", "BLEU (bleu=False goes without)") from e
    return metrics
