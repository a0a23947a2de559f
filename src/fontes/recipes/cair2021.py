"""CAIR 2021: documents that tell why something happened, by a semantic and a lexical index and three queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, ClassVar, Self

from ..causal import CausalFilter, CausalKeywords, Narrative, TitleAndNarrative, TopicRank
from ..causal.filter import ROLES
from ..core import InputError, ParameterError, Run, Stage, Topic, Topics
from ..core.checks import check_whole
from ..experiments import Collection
from ..fusion import fuse
from ..text import Analyzer
from .base import AUTHORS_CODE, PUBLISHED, Recipe

if TYPE_CHECKING:
    from ..neural import Encoder

AGGREGATES = ("sum", "min-max", "rrf")
THIRD = ("keyphrases", "feedback")


@dataclass(frozen=True, repr=False)
class Cair2021(Recipe, name="cair2021"):
    """Documents that tell why something happened: a semantic and a lexical index, three queries, the sum of their scores.

    Topics have a title, which is the event in question, and a narrative, which says what is relevant and what is not. Two
    indexes are made of the documents: vectors of an encoder in Annoy, ranked by cosine, and lemmas with BM25. Three queries are
    asked: Q1 is the title in the semantic index, Q2 the title in the lexical index, Q3 the keyphrases of the relevant part of
    the narrative in the lexical index. Their documents are merged, and the best of them are the result.

    The four baselines are the title and the narrative in the lexical index, the title and both in the semantic one. Q3 alone is
    there as well, and with a filter or a stage after it what was merged.

    The authors leave topics of titles alone to future work. Where no topic has a narrative, Q3 is the title with the terms of
    causal feedback, as `third="feedback"` says, and the systems that read narratives are left out.

    Args:
        encoder: A sentence encoder: a name on the hub or a folder, or an encoder that makes vectors of length 1; None: what is
            searched in vectors is left out.
        trees: Annoy's; None: exact search.
        spacy: The spaCy model that finds lemmas, and the words that keyphrases are made of.
        analyzer: Another one for the lexical index; None: lower case, everything but letters and digits replaced by spaces, and
            then that model's lemmas.
        variant: Of BM25, as rank_bm25 has it.
        k1: Of BM25.
        b: Of BM25.
        depth: How many documents are asked for with each query, and how many of those merged are the result.
        topicrank: How Q3 finds keyphrases; None: TopicRank with the spaCy model.
        keyphrases: How many keyphrases Q3 has, the best first; None: all, as published.
        third: Q3: "keyphrases" of the narrative; or "feedback", which needs the title alone: RM3, another search, and
            `causal_feedback` over the lexical index.
        aggregate: "sum": of the scores as they are; "min-max": of scores from 0 to 1; "rrf": reciprocal ranks.
        filter: Leaves out documents without a cause and an effect that the topic speaks of: "published", "swapped" or "either",
            the roles of `CausalFilter`; None: does not, as the authors decided after they had tried.
        after: A stage for the documents that are left, or an expression for one, such as a reranker; None: none.
    """

    source = (
        "D. Dalal, S. Dev Gupta and B. Binaei, A Semantic Search Pipeline for Causality-driven Adhoc Information Retrieval, "
        "Working Notes of FIRE 2021, CEUR-WS 3159; https://arxiv.org/abs/2503.01003"
    )
    cite = "Dalal et al., FIRE 2021"
    task = "an event"
    needs = ("fontes[neural,spacy,annoy]", "sentence-transformers/msmarco-distilbert-base-v4", "en_core_web_sm")
    sample = "harbour/causal"
    measures = ("AP", "P@5", "nDCG@10", "R@100")
    baseline = "pipeline"
    published: ClassVar[Mapping[str, Mapping[str, float]]] = {
        "pipeline": {"AP": 0.5761, "P@5": 0.7800},
        "narrative-bm25": {"AP": 0.3285, "P@5": 0.6399},
        "title-bm25": {"AP": 0.2561, "P@5": 0.4999},
        "title-narrative-semantic": {"AP": 0.2239, "P@5": 0.5500},
        "title-semantic": {"AP": 0.1611, "P@5": 0.5000},
        "NITS (another team)": {"AP": 0.1063, "P@5": 0.4800},
    }
    published_on = "the 20 test topics of CAIR 2021 and the 303,291 news articles of FIRE's English collection"

    without: ClassVar[Mapping[tuple[str, ...], str]] = {
        ("third=feedback",): "searches all topics by their titles alone",
        ("trees=None",): "searches all vectors, which needs no Annoy",
        ("encoder=None",): "leaves Q1 out, and with it the vectors",
        ('topicrank=topicrank("stopwords")', "analyzer=english"): "finds keyphrases and terms without spaCy",
    }

    encoder: str | Encoder | None = field(default="sentence-transformers/msmarco-distilbert-base-v4", metadata=PUBLISHED)
    trees: int | None = field(default=1000, metadata=PUBLISHED)
    spacy: str = "en_core_web_sm"
    analyzer: str | Analyzer | None = field(default=None, metadata=PUBLISHED)
    variant: str = field(default="okapi", metadata=PUBLISHED)
    k1: float = field(default=1.5, metadata=AUTHORS_CODE)
    b: float = field(default=0.75, metadata=AUTHORS_CODE)
    depth: int = field(default=500, metadata=PUBLISHED)
    topicrank: TopicRank | None = field(default=None, metadata=PUBLISHED)
    keyphrases: int | None = field(default=None, metadata=PUBLISHED)
    third: str = field(default="keyphrases", metadata=PUBLISHED)
    aggregate: str = field(default="sum", metadata=PUBLISHED)
    filter: str | None = field(default=None, metadata=PUBLISHED)
    after: str | Stage[Run, Run] | None = field(default=None, metadata=PUBLISHED)

    def systems(self, collection: Collection) -> dict[str, Stage[Topics, Run]]:
        index = collection.index(self.analyzer or f"spacy-plain:{self.spacy}")
        after = self.stage("after", index)

        lexical = index.bm25(variant=self.variant, k1=self.k1, b=self.b, k=self.depth)
        narratives = self.third == "keyphrases"
        third: Stage[Topics, Run]
        if narratives:
            third = CausalKeywords(self._topicrank, n=self.keyphrases) >> lexical
        else:
            third = lexical >> index.rm3() >> lexical >> index.causal_feedback() >> lexical
        queries = [lexical, third]
        in_vectors: dict[str, Stage[Topics, Run]] = {}
        if (encoder := self._encoder) is not None:
            search = "flat" if self.trees is None else f"annoy:{self.trees}"
            semantic = index.dense(encoder, algorithm=search, k=self.depth)
            queries.insert(0, semantic)
            in_vectors = {"title-narrative-semantic": TitleAndNarrative() >> semantic} if narratives else {}
            in_vectors["title-semantic"] = semantic

        merged = self._merged(queries) % self.depth
        pipeline = merged
        if self.filter is not None:
            pipeline = pipeline >> CausalFilter(roles=self.filter, topicrank=self._topicrank)
        if after is not None:
            pipeline = pipeline >> after
        return {
            "pipeline": pipeline,
            **({} if pipeline is merged else {"merged": merged}),
            **({"narrative-bm25": Narrative() >> lexical} if narratives else {}),
            "title-bm25": lexical,
            **in_vectors,
            "keywords-bm25" if narratives else "feedback-bm25": third,
        }

    def for_topics(self, topics: Topics) -> Self:
        return self if any(map(_has_narrative, topics.values())) else self.with_(third="feedback")

    def check(self) -> None:
        for name, value, choices in (
            ("aggregate", self.aggregate, AGGREGATES),
            ("filter", self.filter or ROLES[0], ROLES),
            ("third", self.third, THIRD),
        ):
            if value not in choices:
                raise ParameterError(f"recipe cair2021: there is no {name} '{value}'; there are {', '.join(choices)}")
        for name, number in (("depth", self.depth), ("trees", self.trees), ("keyphrases", self.keyphrases)):
            if number is not None:
                check_whole(f"recipe cair2021: {name}", number)
        self._topicrank.check()

    def problems_of(self, topics: Topics) -> Iterator[InputError]:
        lacking = [topic.id for topic in topics.values() if not _has_narrative(topic)]
        if lacking and self.third == "keyphrases":
            more = f" and {len(lacking) - 1} others have" if len(lacking) > 1 else " has"
            yield InputError(f"recipe cair2021: some topics have narratives, but topic '{lacking[0]}'{more} none")

    @property
    def _encoder(self) -> Encoder | None:
        from ..neural import SentenceEncoder

        return SentenceEncoder(self.encoder) if isinstance(self.encoder, str) else self.encoder

    @property
    def _topicrank(self) -> TopicRank:
        return self.topicrank or TopicRank(tagger=self.spacy)

    def _merged(self, queries: list[Stage[Topics, Run]]) -> Stage[Topics, Run]:
        if self.aggregate == "sum":
            return reduce(add, queries)
        if self.aggregate == "min-max":
            return fuse(*queries, method="combsum", normalize="min-max")
        return fuse(*queries, method="rrf")


def _has_narrative(topic: Topic) -> bool:
    return bool(topic.narrative.strip())
