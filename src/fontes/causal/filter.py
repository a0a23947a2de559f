"""A filter after the search: documents that state a cause and an effect which the topic speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..core.checks import check_whole
from ..core.errors import InputError, ParameterError
from ..core.progress import Report
from ..core.run import Run
from ..core.stage import Stage
from ..core.values import Doc, Topics
from ..rewrite.turns import original
from ..text import Analyzer
from ..text.external import version_of
from .pairs import causal_pairs
from .strategies import CausalKeywords
from .topicrank import TopicRank

Terms = frozenset[str]

ROLES = ("published", "swapped", "either")


@dataclass(frozen=True)
class CausalFilter(Stage[Run, Run], name="causal_filter"):
    """Keeps the documents with a pair of a cause and an effect that the topic speaks of: the filter that Dalal, Gupta and
    Binaei ("A Semantic Search Pipeline for Causality-driven Adhoc Information Retrieval", CAIR 2021) tried and dropped.

    A document passes when one of its `causal_pairs`, which is not negated, has at least `overlap` terms in common with the
    title on one side, and with the keyphrases of the narrative on the other. Title and text of the document are read.

    roles       "published": its cause with the title and its effect with the keyphrases. "swapped": its effect with the title,
                as one would expect where the title is the event whose causes are sought, and its cause with the keyphrases.
                "either": one or the other
    overlap     how many different terms of either side
    failing     "drop" the documents that fail, or put them "below" those that pass, in the order that they had: the first gets
                the lowest score of those less 1, the next less 2, and so on; where none passes, nothing changes
    weak        pairs by weak cues as well; see `causal_pairs`
    sentences   how sentences are found in documents and narratives: "rules", "nupunkt" or "spacy:MODEL"
    topicrank   how keyphrases are found in the narrative
    analyzer    makes terms of title, keyphrases, causes and effects; English words without stop words, by their stems

    The title and the narrative are those of the topic from which a rewritten topic came (`origin`). Without a narrative, or
    where it leaves no keyphrase, the title stands for the keyphrases, as in `CausalKeywords`.

    Raises InputError for a run that does not know its documents.
    """

    roles: str = "published"
    overlap: int = 1
    failing: str = "drop"
    weak: bool = False
    sentences: str = "rules"
    topicrank: TopicRank = field(default=TopicRank())
    analyzer: str = "english"

    def apply(self, given: Run, progress: Report, /) -> Run:
        self._check()
        if given.documents is None:
            raise InputError("CausalFilter reads documents, which this run does not know; run.with_(documents=index) tells it")
        analyze = Analyzer.of(self.analyzer)
        originals = Topics(map(original, given.topics.values()))
        keywords = CausalKeywords(self.topicrank, sentences=self.sentences)(originals)
        known: dict[str, list[tuple[Terms, Terms]]] = {}
        passed = []
        for topic_id, ranking in given.items():
            new = [doc_id for doc_id in ranking.ids if doc_id not in known]
            for doc_id, doc in zip(new, given.documents.docs(new), strict=True):
                known[doc_id] = self._terms(doc, analyze)
            title = frozenset(analyze(originals[topic_id].text))
            words = frozenset(analyze(keywords[topic_id].text))
            passed += [any(self._passes(pair, title, words) for pair in known[doc_id]) for doc_id in ranking.ids]
        return _dropped(given, passed) if self.failing == "drop" else _below(given, passed)

    def key(self) -> str | None:
        """The class, its parameters and the version of the sentences' model: see `Stage.key`."""
        known = super().key()
        return None if known is None else f"{known} {version_of(self.sentences)}"

    def _terms(self, doc: Doc, analyze: Analyzer) -> list[tuple[Terms, Terms]]:
        """The terms of the cause and of the effect of each pair."""
        text = f"{doc.title}\n\n{doc.text}" if doc.title else doc.text
        pairs = causal_pairs(text, self.sentences, self.weak)
        return [(frozenset(analyze(p.cause)), frozenset(analyze(p.effect))) for p in pairs if not p.negated]

    def _passes(self, pair: tuple[Terms, Terms], title: Terms, words: Terms) -> bool:
        cause, effect = pair
        published = len(cause & title) >= self.overlap and len(effect & words) >= self.overlap
        swapped = len(effect & title) >= self.overlap and len(cause & words) >= self.overlap
        return published if self.roles == "published" else swapped if self.roles == "swapped" else published or swapped

    def _check(self) -> None:
        if self.roles not in ROLES:
            raise ParameterError(f"roles is one of {', '.join(ROLES)}, not {self.roles!r}")
        if self.failing not in ("drop", "below"):
            raise ParameterError(f"failing is drop or below, not {self.failing!r}")
        check_whole("overlap", self.overlap)


def _dropped(run: Run, passed: Sequence[bool]) -> Run:
    keep = np.array(passed, dtype=bool)
    kept = np.concatenate([[0], np.cumsum(keep)])
    return Run(
        run.topics,
        run.ids,
        kept[run.bounds],
        run.codes[keep],
        run.scores[keep],
        documents=run.documents,
        provenance=run.provenance,
    )


def _below(run: Run, passed: Sequence[bool]) -> Run:
    passing = np.array(passed, dtype=bool)
    scores = run.scores.astype(np.float64)
    for a, b in zip(run.bounds.tolist(), run.bounds[1:].tolist(), strict=False):
        kept, failing = scores[a:b][passing[a:b]], ~passing[a:b]
        if len(kept) and failing.any():
            step = max(1.0, abs(float(kept.min())) * 2**-22)  # more than what float32 tells apart
            scores[a:b][failing] = kept.min() - step * np.arange(1, failing.sum() + 1)
    numbers = np.repeat(np.arange(len(run)), np.diff(run.bounds))
    columns = (run.topics, run.ids, numbers, run.codes, scores.astype(np.float32))
    return Run.from_columns(*columns, documents=run.documents, provenance=run.provenance)
