"""What is searched for a topic with a narrative: its causal keywords, the narrative, or title and narrative."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..core.progress import Report
from ..core.stage import Stage
from ..core.values import Topic, Topics
from ..rewrite.turns import rewritten
from ..text.external import version_of
from .narratives import relevant_part
from .topicrank import Phrases, TopicRank

# Words of narratives that speak of documents and not of what is in them.
# fmt: off
META = (
    "document", "documents", "article", "articles", "report", "reports", "story", "stories", "item", "items", "text", "texts",
    "passage", "passages", "page", "pages", "news", "relevant", "irrelevant", "relevance", "pertinent", "information",
    "mention", "mentions", "discussion", "discussions", "searcher",
)
# fmt: on


@dataclass(frozen=True)
class CausalKeywords(Stage[Topics, Topics], name="causal_keywords"):
    """Topics whose text is the keyphrases of the relevant part of their narratives: the queries for the lexical index of "A
    Semantic Search Pipeline for Causality-driven Adhoc Information Retrieval" (CAIR 2021).

    topicrank   how keyphrases are found
    n           how many of them, the best first; None: all
    sentences   how `relevant_part` finds sentences: "rules", "nupunkt" or "spacy:MODEL"
    without     words in lower case that keyphrases lose, and with their last word are lost: `fontes.causal.META` has those that
                speak of documents ("relevant articles"). None by default, since the paper searches for all keyphrases

    A topic without a narrative, or whose narrative leaves no keyphrase, keeps its text, which is its title. The topic that was
    given is the `origin` of the new one.
    """

    topicrank: TopicRank = field(default=TopicRank())
    n: int | None = None
    sentences: str = "rules"
    without: tuple[str, ...] = ()

    def apply(self, given: Topics, progress: Report, /) -> Topics:
        parts = [relevant_part(topic.narrative, self.sentences) for topic in given.values()]
        phrases = self.topicrank.batch(parts, None if self.without else self.n)
        return _rewritten(given, map(self._query, phrases))

    def key(self) -> str | None:
        """The class, its parameters and the version of the sentences' model: see `Stage.key`."""
        known = super().key()
        return None if known is None else f"{known} {version_of(self.sentences)}"

    def _query(self, phrases: Phrases) -> str:
        kept = (" ".join(word for word in phrase.split() if word not in self.without) for phrase, _ in phrases)
        return " ".join([phrase for phrase in kept if phrase][: self.n])


@dataclass(frozen=True)
class Narrative(Stage[Topics, Topics], name="narrative"):
    """Topics whose text is their narrative; one without keeps its text.

    relevant    leave out what the narrative says about irrelevant documents, as `relevant_part` does
    """

    relevant: bool = False

    def apply(self, given: Topics, progress: Report, /) -> Topics:
        return _rewritten(given, (_narrative(topic, self.relevant) for topic in given.values()))


@dataclass(frozen=True)
class TitleAndNarrative(Stage[Topics, Topics], name="title_and_narrative"):
    """Topics whose text is their text, which is their title, and then their narrative.

    relevant    leave out what the narrative says about irrelevant documents, as `relevant_part` does
    """

    relevant: bool = False

    def apply(self, given: Topics, progress: Report, /) -> Topics:
        texts = (f"{topic.text} {_narrative(topic, self.relevant)}".strip() for topic in given.values())
        return _rewritten(given, texts)


def _narrative(topic: Topic, relevant: bool) -> str:
    return relevant_part(topic.narrative) if relevant else topic.narrative.strip()


def _rewritten(given: Topics, texts: Iterable[str]) -> Topics:
    """The topics with other texts; where a text is empty, with their own."""
    found = dict(zip(given, texts, strict=True))
    return rewritten(given, lambda topic: found[topic.id] or topic.text)
