"""Queries from narratives: causal keywords, the narrative, or title and narrative."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..core.checks import check_whole
from ..core.progress import Report
from ..core.stage import Stage
from ..core.values import Topic, Topics
from ..rewrite.turns import rewritten
from ..text.external import version_of
from ..text.sentences import check_way, sentences
from .narratives import relevant_part
from .topicrank import Phrases, TopicRank

# Words of narratives about documents, not their content.
# fmt: off
META = (
    "document", "documents", "article", "articles", "report", "reports", "story", "stories", "item", "items", "text", "texts",
    "passage", "passages", "page", "pages", "news", "relevant", "irrelevant", "relevance", "pertinent", "information",
    "mention", "mentions", "discussion", "discussions", "searcher",
)
# fmt: on


@dataclass(frozen=True)
class CausalKeywords(Stage[Topics, Topics], name="causal_keywords"):
    """Queries with the keyphrases of the relevant part of the narrative, as for the lexical index of "A Semantic Search
    Pipeline for Causality-driven Adhoc Information Retrieval" (CAIR 2021).

    A topic without a narrative or keyphrases keeps its text, the title. The new topic's `origin` is the old one.

    Args:
        topicrank: Extractor of keyphrases; a string is the tagger of a `TopicRank`.
        n: Number of keyphrases, best first; None: all.
        sentences: Sentence splitter of `relevant_part`: "rules", "nupunkt" or "spacy:MODEL".
        without: Words in lower case to remove from keyphrases; a keyphrase of such words alone is dropped. `fontes.causal.META`
            has those about documents ("relevant articles"). None by default: the paper uses all keyphrases.
    """

    topicrank: TopicRank | str = field(default=TopicRank(), metadata={"string": "topicrank"})
    n: int | None = None
    sentences: str = "rules"
    without: tuple[str, ...] = ()

    def apply(self, topics: Topics, progress: Report, /) -> Topics:
        self.check()
        parts = [relevant_part(topic.narrative, self.sentences) for topic in topics.values()]
        topicrank: TopicRank = self.params()["topicrank"]
        phrases = topicrank.batch(parts, None if self.without else self.n)
        return _rewritten(topics, map(self._query, phrases))

    def check(self) -> None:
        check_way(self.sentences)
        if self.n is not None:
            check_whole("n", self.n)

    def check_needs(self) -> None:
        sentences(self.sentences)
        super().check_needs()

    def key(self) -> str | None:
        """Cache key: class, parameters and version of the sentence model; see `Part.key`."""
        key = super().key()
        return None if key is None else f"{key} {version_of(self.sentences)}"

    def _query(self, phrases: Phrases) -> str:
        shortened = (" ".join(word for word in phrase.split() if word not in self.without) for phrase, _ in phrases)
        return " ".join([phrase for phrase in shortened if phrase][: self.n])


@dataclass(frozen=True)
class Narrative(Stage[Topics, Topics], name="narrative"):
    """Searches with the narrative of each topic; a topic without one keeps its text.

    Args:
        relevant: Leave out what the narrative says about irrelevant documents, as `relevant_part` does.
    """

    relevant: bool = False

    def apply(self, topics: Topics, progress: Report, /) -> Topics:
        return _rewritten(topics, (_narrative(topic, self.relevant) for topic in topics.values()))


@dataclass(frozen=True)
class TitleAndNarrative(Stage[Topics, Topics], name="title_and_narrative"):
    """Searches with each topic's text, the title, followed by its narrative.

    Args:
        relevant: Leave out what the narrative says about irrelevant documents, as `relevant_part` does.
    """

    relevant: bool = False

    def apply(self, topics: Topics, progress: Report, /) -> Topics:
        texts = (f"{topic.text} {_narrative(topic, self.relevant)}".strip() for topic in topics.values())
        return _rewritten(topics, texts)


def _narrative(topic: Topic, relevant: bool) -> str:
    return relevant_part(topic.narrative) if relevant else topic.narrative.strip()


def _rewritten(topics: Topics, texts: Iterable[str]) -> Topics:
    by_id = dict(zip(topics, texts, strict=True))
    return rewritten(topics, lambda topic: by_id[topic.id] or topic.text)
