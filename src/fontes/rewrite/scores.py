"""Similarity of rewrites to manual ones: content terms, ROUGE-1 and BLEU."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError, MissingExtraError, ParameterError
from ..core.values import Topics

if TYPE_CHECKING:
    from ..text import Analyzer

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
        self, topic_ids: Sequence[str], values: Mapping[str, NDArray[np.float64]], corpus_bleu: float, bleu_signature: str
    ) -> None:
        """Create scores from values in the order of `topic_ids`."""
        self.topic_ids = tuple(topic_ids)
        self.corpus_bleu = corpus_bleu
        self.bleu_signature = bleu_signature
        self._values = dict(values)
        for array in self._values.values():
            array.setflags(write=False)

    def array(self, measure: str) -> NDArray[np.float64]:
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
    rewrite's that the manual one has, term F1 their harmonic mean; all are 1 if both have none, 0 if one has none. ROUGE-1
    recall (Lin 2004) is the share of the manual rewrite's words, with repetitions, that the rewrite has; words are runs of
    letters and digits in lower case, without stemming, on ASCII text as in the package rouge_score. BLEU (Papineni et al. 2002)
    is sacrebleu's (Post 2018) with its defaults: cased, tokenizer 13a, exponential smoothing; for single topics with effective
    order.

    Args:
        rewritten: Topics with the rewrites as texts, as `Topics.of` accepts them.
        manual: Manual rewrites by topic id; or Topics with them as texts. None: the manual rewrite of each topic's last turn.
        analyzer: Makes the content terms, without repetitions; by default English stems without stop words.
        bleu: Compute BLEU, which needs sacrebleu.

    Raises:
        InputError: A topic, which the message names, has no manual rewrite.
        MissingExtraError: BLEU is wanted, and sacrebleu is not installed.
    """
    from ..text import Analyzer

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
    each = sacrebleu.BLEU(effective_order=True)
    values[BLEU] = np.array([each.sentence_score(a, [b]).score for a, b in zip(rewrites, references, strict=True)])
    together = sacrebleu.BLEU()
    score = together.corpus_score(rewrites, [references]).score
    return RewritingScores(list(topics), values, float(score), str(together.get_signature()))


def _references(topics: Topics, manual: Mapping[str, str] | Topics | None) -> list[str]:
    by_id = None if manual is None else {topic_id: topic.text for topic_id, topic in Topics.of(manual).items()}
    texts = []
    for topic in topics.values():
        text = by_id.get(topic.id, "") if by_id is not None else topic.turns[-1].manual if topic.turns else ""
        if not text.strip():
            lack = "its last turn carries no manual rewrite" if by_id is None else "the manual rewrites do not have it"
            raise InputError(f"topic '{topic.id}' cannot be measured: {lack}; leave it out, or give manual={{id: text}}")
        texts.append(text)
    return texts


def _shares(terms: set[str], reference: set[str]) -> tuple[float, float, float]:
    if not terms or not reference:
        same = float(terms == reference)
        return same, same, same
    both = len(terms & reference)
    return both / len(reference), both / len(terms), 2 * both / (len(terms) + len(reference))


def _rouge1_recall(rewrite: str, reference: str) -> float:
    has, needs = Counter(LETTERS.findall(rewrite.lower())), Counter(LETTERS.findall(reference.lower()))
    return (has & needs).total() / needs.total() if needs else 0.0


def _sacrebleu() -> Any:
    try:
        from sacrebleu import metrics
    except ImportError as e:
        raise MissingExtraError.of("sacrebleu", "rewrite", "BLEU (bleu=False goes without)") from e
    return metrics
