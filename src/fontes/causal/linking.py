"""`CausalChains`: the documents that state the causes of an event, and the causes of these causes, as a run."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from ..core.checks import check_whole
from ..core.errors import ParameterError
from ..core.run import Run
from ..core.stage import Stage
from ..core.values import Topics
from ..core.work import Progress, reporter, silent, work
from ..rewrite.turns import original
from .chains import MAX_DEPTH, MAX_EVENTS, Cause, ChainSearch
from .dates import check_before, check_event_key, limit_of


@dataclass(frozen=True)
class CausalChains(Stage[Topics, Run], name="causal_chains"):
    """Links an event to the documents of its chains of causes: `causal_chains(bm25())` finds what `fontes why` prints.

    A document has the best score of the causes for which it is a source: the score of the cause times `decay` for each cause
    between it and the event. Topics without words or causes have no documents, so merge the run with that of a retriever:
    `fuse(bm25(), causal_chains(bm25()))`.

    Args:
        retriever: Stage that searches for the event and for each cause.
        depth: Maximum length of a chain.
        breadth: Maximum causes of an event.
        read: Number of documents read for each event.
        overlap: Minimum idf-weighted share of the event's terms in an effect; see `causes`.
        weak: Whether to use weak cues (after, following, amid), at half the score.
        leads: Number of documents to add to an event with fewer stated causes than `breadth`; see `causes`.
        before: Day of the event, the key of the topics' metadata that has it, or "stated", as for `causal_filter`: causes are
            dated before it. None: any date.
        decay: Factor of the score for each further link of a chain.
    """

    retriever: Stage[Topics, Run]
    depth: int = 3
    breadth: int = 3
    read: int = 20
    overlap: float = 0.3
    weak: bool = True
    leads: int = 3
    before: str | None = None
    decay: float = 0.5

    def apply(self, topics: Topics, /) -> Run:
        report = reporter()
        self.check()
        check_event_key("causal_chains", self.before, map(original, topics.values()))
        start, rankings = time.perf_counter(), dict[str, dict[str, float]]()
        first = self.retriever % 1
        search = ChainSearch(self.retriever % self.read, self.depth, self.breadth, self.overlap, self.weak, self.leads)
        with work(progress=silent):
            documents = first(topics).documents
            for number, topic in enumerate(topics.values(), 1):
                event = original(topic)
                if search.has_words(event.text, documents):
                    limit = None if self.before is None else limit_of(event, self.before)
                    rankings[topic.id] = self._scores(search.chain(event.text, limit).causes)
                report(Progress("linking", number, len(topics), time.perf_counter() - start, "topics"))
        return Run.of(rankings, topics).with_(documents=documents)

    def check(self) -> None:
        if not isinstance(self.retriever, Stage):
            raise ParameterError(f"causal_chains takes a stage that searches, such as bm25(), not {self.retriever!r}")
        self.retriever.require(Topics, Run, "causal_chains")
        for name in ("depth", "breadth", "read", "leads"):
            greatest = MAX_DEPTH if name == "depth" else MAX_EVENTS
            check_whole(f"causal_chains: {name}", getattr(self, name), 0 if name == "leads" else 1, greatest)
        for name in ("overlap", "decay"):
            if not 0 < getattr(self, name) <= 1:
                raise ParameterError(f"causal_chains: {name} must be above 0, at most 1, not {getattr(self, name)!r}")
        check_before(self.before)

    def _scores(self, chain: Iterable[Cause], factor: float = 1.0) -> dict[str, float]:
        """Scores of the sources of causes, and of the causes below them, by document."""
        scores: dict[str, float] = {}
        for cause in chain:
            sources = {source.doc_id: factor * cause.score for source in cause.sources}
            for doc_id, score in (*sources.items(), *self._scores(cause.causes, factor * self.decay).items()):
                scores[doc_id] = max(score, scores.get(doc_id, 0.0))
        return scores
