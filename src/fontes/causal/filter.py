"""A filter that keeps documents which state a cause and an effect related to the topic."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_whole
from ..core.errors import InputError, ParameterError
from ..core.progress import Progress, Report
from ..core.run import Run
from ..core.stage import Stage
from ..core.values import Doc, Topics
from ..rewrite.turns import original
from ..text import Analyzer
from ..text.external import version_of
from ..text.sentences import check_way, sentences
from .narratives import CausalKeywords
from .pairs import causal_pairs
from .topicrank import TopicRank

Terms = frozenset[str]

ROLES = ("published", "swapped", "either")
FAILING = ("drop", "below")


@dataclass(frozen=True)
class CausalFilter(Stage[Run, Run], name="causal_filter"):
    """Keeps documents with a causal pair related to the topic: the filter that Dalal, Gupta and Binaei ("A Semantic Search
    Pipeline for Causality-driven Adhoc Information Retrieval", CAIR 2021) tried and dropped.

    A document passes if one of the `causal_pairs` of its title and text is not negated, shares at least `overlap` terms with
    the topic's title on one side, and as many with the keyphrases of the narrative on the other.

    Title and narrative are those of the topic before rewriting (`origin`). If the narrative is missing or has no keyphrase, the
    title stands for the keyphrases, as in `CausalKeywords`. A run that does not know its documents raises InputError.

    Args:
        roles: "published": cause with title, effect with keyphrases. "swapped": effect with title, cause with keyphrases, as
            one would expect if the title is the event whose causes are sought. "either": one or the other.
        overlap: Minimum number of different terms on either side.
        failing: Treatment of documents that fail. "drop" removes them. "below" puts them below those that pass, in their order,
            with the lowest score of those less 1, less 2, and so on; if none passes, nothing changes.
        weak: Whether pairs by weak cues count as well; see `causal_pairs`.
        sentences: Sentence splitter for documents and narratives: "rules", "nupunkt" or "spacy:MODEL".
        topicrank: Extractor of keyphrases from the narrative; a string is the tagger of a `TopicRank`.
        analyzer: Makes the terms of titles, keyphrases, causes and effects; English stems without stop words.
    """

    roles: str = "published"
    overlap: int = 1
    failing: str = "drop"
    weak: bool = False
    sentences: str = "rules"
    topicrank: TopicRank | str = field(default=TopicRank(), metadata={"string": "topicrank"})
    analyzer: str = "english"

    def apply(self, run: Run, progress: Report, /) -> Run:
        self.check()
        if run.documents is None:
            raise InputError("CausalFilter reads documents, which this run does not know; run.with_(documents=index) tells it")
        analyze = Analyzer.of(self.analyzer)
        originals = Topics(map(original, run.topics.values()))
        keywords = CausalKeywords(self.topicrank, sentences=self.sentences)(originals)
        start = time.perf_counter()
        terms: dict[str, list[tuple[Terms, Terms]]] = {}
        passing: list[bool] = []
        for topic_id, ranking in run.items():
            new = [doc_id for doc_id in ranking.ids if doc_id not in terms]
            for doc_id, doc in zip(new, run.documents.docs(new), strict=True):
                terms[doc_id] = self._terms(doc, analyze)
            title = frozenset(analyze(originals[topic_id].text))
            words = frozenset(analyze(keywords[topic_id].text))
            passing += [any(self._passes(pair, title, words) for pair in terms[doc_id]) for doc_id in ranking.ids]
            progress(Progress("filtering", len(passing), run.rows, time.perf_counter() - start))
        mask = np.array(passing, dtype=bool)
        return run.keep(mask) if self.failing == "drop" else run.with_scores(_below(run, mask))

    def check(self) -> None:
        if self.roles not in ROLES:
            raise ParameterError(f"roles is one of {', '.join(ROLES)}, not {self.roles!r}")
        if self.failing not in FAILING:
            raise ParameterError(f"failing is {' or '.join(FAILING)}, not {self.failing!r}")
        check_whole("overlap", self.overlap)
        check_way(self.sentences)
        Analyzer.of(self.analyzer)

    def check_needs(self) -> None:
        sentences(self.sentences)
        Analyzer.of(self.analyzer)("a")  # raises if its library or model is missing
        super().check_needs()

    def key(self) -> str | None:
        """Cache key: class, parameters and version of the sentence model; see `Part.key`."""
        key = super().key()
        return None if key is None else f"{key} {version_of(self.sentences)}"

    def _terms(self, doc: Doc, analyze: Analyzer) -> list[tuple[Terms, Terms]]:
        text = f"{doc.title}\n\n{doc.text}" if doc.title else doc.text
        pairs = causal_pairs(text, self.sentences, self.weak)
        return [(frozenset(analyze(p.cause)), frozenset(analyze(p.effect))) for p in pairs if not p.negated]

    def _passes(self, pair: tuple[Terms, Terms], title: Terms, words: Terms) -> bool:
        cause, effect = pair
        published = len(cause & title) >= self.overlap and len(effect & words) >= self.overlap
        swapped = len(effect & title) >= self.overlap and len(cause & words) >= self.overlap
        return published if self.roles == "published" else swapped if self.roles == "swapped" else published or swapped


def _below(run: Run, passing: NDArray[np.bool_]) -> NDArray[np.float32]:
    scores = run.scores.astype(np.float64)
    for a, b in pairwise(run.bounds.tolist()):
        best, failing = scores[a:b][passing[a:b]], ~passing[a:b]
        if len(best) and failing.any():
            step = max(1.0, abs(float(best.min())) * 2**-22)  # above the precision of float32
            scores[a:b][failing] = best.min() - step * np.arange(1, failing.sum() + 1)
    return scores.astype(np.float32)
