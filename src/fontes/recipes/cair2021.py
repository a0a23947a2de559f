"""CAIR 2021: documents that explain why an event happened, by a semantic index, a lexical index and three queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ..causal import CausalChains, CausalFilter, CausalKeywords, Narrative, TitleAndNarrative, TopicRank
from ..causal.pairs import ROLES
from ..core import InputError, ParameterError, Qrels, Run, Stage, Topic, Topics
from ..core.checks import check_whole
from ..experiments import Collection
from ..fusion import fuse
from ..neural import SentenceEncoder
from ..neural.dense.ann import check_algorithm
from ..text import Analyzer
from ..text.external import version_of
from ..tuning import LearnedWeights, fit_weights
from .base import PUBLISHED, Division, Need, Recipe, Systems
from .learning import MIN_TOPICS, RecipeTraining
from .result import MeanInterval
from .sides import split_disjoint

if TYPE_CHECKING:
    from ..neural import Encoder

AGGREGATES = ("sum", "min-max", "rrf")
THIRD_QUERIES = ("keyphrases", "feedback")
CHOSEN_BY = "AP"
FUSIONS: Mapping[str, Mapping[str, Any]] = {
    "sum": {"method": "wsum", "normalize": None},
    "min-max": {"method": "wsum", "normalize": "min-max"},
    "rrf": {"method": "rrf"},
}  # how the lists may be merged in the row "chosen", each with weights in steps of WEIGHT_STEP
WEIGHT_STEP = 0.1
KEYPHRASES = (None, 5, 10, 20)  # numbers of keyphrases to choose from

NO_VECTORS = "-s encoder=None leaves Q1 out, and with it the vectors"
NO_SPACY = """-s 'topicrank=topicrank("stopwords", gap="paper")' -s analyzer=english finds keyphrases and terms without spaCy"""


@dataclass(frozen=True, repr=False)
class Cair2021(Recipe, name="cair2021"):
    """Finds documents that explain why an event happened by a semantic index, a lexical index and three queries, scores summed.

    A topic has a title, the event, and a narrative, which describes relevant and irrelevant documents. There are two indexes:
    vectors of an encoder in Annoy, ranked by cosine, and lemmas with BM25. Q1 is the title in the semantic index, Q2 the title
    in the lexical index, Q3 the keyphrases of the relevant part of the narrative in the lexical index. Their results are
    merged, and the best are kept.

    The four baselines are the title and the narrative in the lexical index, and the title and both in the semantic index.
    Further rows are Q3 by itself and, with a filter or a later stage, the merged result before it.

    With topics to choose with (`train`), such as the track's five training topics, the row "chosen" merges the same three
    queries by the fusion, weights and number of keyphrases that have the best AP on them. The report also has the AP of choices
    made without the topic on which they are measured. With `chains`, the row "chains" has the documents that state the causes
    of the title's event, and their causes (`causal_chains`); "linked" is the pipeline and these, by reciprocal ranks.

    The authors leave topics with only titles to future work. If no topic has a narrative, Q3 is the title expanded by causal
    feedback, as with `third="feedback"`, results are merged by reciprocal ranks, and systems that read narratives are left out.

    Args:
        encoder: Sentence encoder: a name on the hub, a folder, or an encoder of unit vectors; None: no semantic search.
        trees: Number of Annoy trees; None: exact search.
        spacy: spaCy model for lemmas and for the words of keyphrases.
        analyzer: Other analyzer of the lexical index; None: lower case, only letters and digits, then that model's lemmas.
        variant: BM25 variant, as in rank_bm25.
        k1: BM25 parameter.
        b: BM25 parameter.
        depth: Number of documents retrieved per query, and kept after merging.
        topicrank: Keyphrase extraction for Q3; None: TopicRank with the spaCy model and the distances of its paper.
        keyphrases: Number of keyphrases in Q3, best first; None: all; the paper states no number.
        third: Q3: "keyphrases" of the narrative; or "feedback", only from the title: RM3, another search, and
            `causal_feedback` over the lexical index.
        aggregate: Fusion: "sum" of raw scores; "min-max", scores scaled to 0 to 1; "rrf", reciprocal ranks. None: "sum", as
            published, but "rrf" with `third="feedback"`, whose weights sum to 1 and whose scores are thus small.
        filter: Drop documents without a cause and an effect from the topic: "published", "swapped" or "either", the roles of
            `CausalFilter`, or with `before` "any"; None: no filter, as the authors decided after trying it.
        before: With a filter or chains, the day of the event, the key of the topics' metadata that has it, or "stated", as for
            `CausalFilter`; None: documents of any date.
        chains: Maximum length of a chain of causes in the rows "chains" and "linked"; None: no such rows.
        after: Stage applied to the remaining documents, or an expression for one, such as a reranker; None: none.
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

    encoder: str | Encoder | None = field(default="sentence-transformers/msmarco-distilbert-base-v4", metadata=PUBLISHED)
    trees: int | None = field(default=1000, metadata=PUBLISHED)
    spacy: str = "en_core_web_sm"
    analyzer: str | Analyzer | None = field(default=None, metadata=PUBLISHED)
    variant: str = field(default="okapi", metadata=PUBLISHED)
    k1: float = field(default=1.5, metadata=PUBLISHED)
    b: float = field(default=0.75, metadata=PUBLISHED)
    depth: int = field(default=500, metadata=PUBLISHED)
    topicrank: TopicRank | None = field(default=None, metadata=PUBLISHED)
    keyphrases: int | None = None
    third: str = field(default="keyphrases", metadata=PUBLISHED)
    aggregate: str | None = field(default=None, metadata=PUBLISHED)
    filter: str | None = field(default=None, metadata=PUBLISHED)
    before: str | None = None
    chains: int | None = None
    after: str | Stage[Run, Run] | None = field(default=None, metadata=PUBLISHED)

    def systems(self, collection: Collection) -> Systems:
        return self.learned_systems(collection, RecipeTraining())

    def learned_systems(self, collection: Collection, learning: RecipeTraining) -> Systems:
        index = collection.index(self._analyzer)
        after = self.stage("after", index)

        lexical = index.bm25(variant=self.variant, k1=self.k1, b=self.b, k=self.depth)
        narratives = self.third == "keyphrases"
        numbers = dict.fromkeys((self.keyphrases, *KEYPHRASES)) if narratives and learning.dev.qrels else (self.keyphrases,)
        thirds: dict[int | None, Stage[Topics, Run]] = {}
        for number in numbers:
            if narratives:
                thirds[number] = CausalKeywords(self._topicrank, n=number) >> lexical
            else:
                thirds[number] = lexical >> index.rm3() >> lexical >> index.causal_feedback() >> lexical
        third = thirds[self.keyphrases]
        queries = [lexical, third]
        semantic_systems: Systems = {}
        if (encoder := self._encoder) is not None:
            search = "flat" if self.trees is None else f"annoy:{self.trees}"
            semantic = index.dense(encoder, algorithm=search, k=self.depth)
            queries.insert(0, semantic)
            semantic_systems = {"title-narrative-semantic": TitleAndNarrative() >> semantic} if narratives else {}
            semantic_systems["title-semantic"] = semantic

        merged = self._merge(queries) % self.depth

        def later(merged: Stage[Topics, Run]) -> Stage[Topics, Run]:
            if self.filter is not None:
                merged = merged >> CausalFilter(roles=self.filter, topicrank=self._topicrank, before=self.before)
            return merged if after is None else merged >> after

        pipeline = later(merged)
        linked: Systems = {}
        if self.chains is not None:
            chains = CausalChains(lexical, depth=self.chains, before=self.before)
            linked = {"chains": chains, "linked": fuse(pipeline, chains, method="rrf")}
        chosen: Systems = {}
        if learning.dev.qrels:
            lists = {number: [*queries[:-1], third] for number, third in thirds.items()}
            chosen["chosen"] = later(self._choose(lists, learning) % self.depth)
        before: Systems = {} if pipeline is merged else {"merged": merged}
        self._note_models(learning, ["pipeline", *chosen, *before, *list(linked)[1:], *semantic_systems])
        return {
            "pipeline": pipeline,
            **chosen,
            **before,
            **linked,
            **({"narrative-bm25": Narrative() >> lexical} if narratives else {}),
            "title-bm25": lexical,
            **semantic_systems,
            "keywords-bm25" if narratives else "feedback-bm25": third,
        }

    def divide(self, topics: Topics, qrels: Qrels | None, train: Qrels | None, dev: Qrels | None) -> Division:
        if dev is not None:
            raise ParameterError("recipe cair2021 chooses with train, and trains nothing: leave dev out")
        if train is None:
            return topics, qrels, RecipeTraining()
        searched, judged, learning = split_disjoint(topics, qrels, train, None)
        return searched, judged, RecipeTraining(dev=learning.train)

    def check_sides(self, learning: RecipeTraining) -> None:
        if 0 < len(learning.dev.qrels) < MIN_TOPICS:
            raise InputError(f"a fusion is chosen on {MIN_TOPICS} topics or more, and train has {len(learning.dev.qrels)}")

    def for_topics(self, topics: Topics) -> Self:
        if any(map(_has_narrative, topics.values())):
            return self
        titles = self.with_(third="feedback")
        return titles.with_(aggregate=titles._aggregate)

    def check(self) -> None:
        for name, value, choices in (
            ("aggregate", self._aggregate, AGGREGATES),
            ("filter", self.filter or ROLES[0], ROLES),
            ("third", self.third, THIRD_QUERIES),
        ):
            if value not in choices:
                raise ParameterError(f"recipe cair2021: there is no {name} '{value}'; there are {', '.join(choices)}")
        for name in ("depth", "trees", "keyphrases", "chains"):
            if getattr(self, name) is not None:
                check_whole(f"recipe cair2021: {name}", getattr(self, name))
        if self.before is not None and self.filter is None and self.chains is None:
            raise ParameterError("recipe cair2021: before goes with a filter or chains, such as filter=any")
        if self.filter is not None:
            CausalFilter(roles=self.filter, before=self.before).check()
        self._topicrank.check()

    def requirements(self, topics: Topics | None) -> Iterator[Need]:
        if topics is not None and self.third == "keyphrases":
            yield Need(partial(_check_narratives, topics), "-s third=feedback searches all topics only by their titles")
        if self.trees is not None and self.encoder is not None:
            every_vector = "-s trees=None searches all vectors, which needs no Annoy"
            yield Need(lambda: check_algorithm(f"annoy:{self.trees}"), f"{every_vector} or {NO_VECTORS}")
        yield Need(lambda: self._encoder, NO_VECTORS)
        yield Need(lambda: self._topicrank, NO_SPACY)
        yield Need(lambda: Analyzer.of(self._analyzer)("a"), NO_SPACY)
        yield from super().requirements(topics)

    @property
    def _analyzer(self) -> str | Analyzer:
        return self.analyzer or f"spacy-plain:{self.spacy}"

    @property
    def _encoder(self) -> Encoder | None:
        return SentenceEncoder(self.encoder) if isinstance(self.encoder, str) else self.encoder

    @property
    def _topicrank(self) -> TopicRank:
        return self.topicrank or TopicRank(tagger=self.spacy, gap="paper")

    @property
    def _aggregate(self) -> str:
        return self.aggregate or ("rrf" if self.third == "feedback" else "sum")

    def _merge(self, queries: list[Stage[Topics, Run]]) -> Stage[Topics, Run]:
        if self._aggregate == "sum":
            return reduce(add, queries)
        if self._aggregate == "min-max":
            return fuse(*queries, method="combsum", normalize="min-max")
        return fuse(*queries, method="rrf")

    def _choose(self, lists: Mapping[int | None, list[Stage[Topics, Run]]], learning: RecipeTraining) -> Stage[Topics, Run]:
        """Return the fusion of Q1, Q2 and Q3, given by number of keyphrases, that is best on the topics to choose with."""
        topics, qrels = learning.dev
        choices: dict[tuple[str, int | None], LearnedWeights] = {}
        for number, stages in lists.items():
            runs = [learning.run(stage, learning.dev) for stage in stages]
            for name, fusion in FUSIONS.items():
                choices[name, number] = fit_weights(
                    runs, qrels, CHOSEN_BY, folds=min(5, len(topics)), step=WEIGHT_STEP, **fusion
                )
        name, number = max(choices, key=lambda choice: round(choices[choice].trained, 12))
        best = choices[name, number]
        # Each fold is measured by what is best on the others.
        of_folds = zip(*(choice.folds for choice in choices.values()), strict=True)
        best_folds = [max(same_fold, key=lambda fold: round(fold.chosen, 12)) for same_fold in of_folds]
        held_out = MeanInterval.of(value for fold in best_folds for value in fold.values)
        weights = ", ".join(f"{weight:g}" for weight in best.weights)
        keyphrases = "" if self.third == "feedback" else f", {'all' if number is None else number} keyphrases"
        facts = {"role": "chosen", "choice": f"{name}, weights {weights}{keyphrases}", "measure": CHOSEN_BY}
        learning.notes.append({**facts, "value": best.trained, "topics": len(qrels), "left_out": 0})
        nested = f"choices made without the topics on which they are measured have {CHOSEN_BY} {held_out}"
        learning.notes.append({"role": "chosen", "chosen": nested, "held_out": held_out.mean})
        chosen: Stage[Topics, Run] = fuse(*lists[number], weights=best.weights, **FUSIONS[name])
        return chosen

    def _note_models(self, learning: RecipeTraining, semantic: list[str]) -> None:
        """Note which model each row of the report uses."""
        if learning.folder is None:
            return
        if (encoder := self._encoder) is not None:
            name = str(getattr(encoder, "name_or_path", None) or repr(encoder))
            published = name == type(self).encoder
            about = "as published, not trained here" if published else "not the published encoder; not trained here"
            learning.notes.append({"role": ", ".join(semantic), "model": name, "about": about})
        if self.analyzer is None:
            version = version_of(self.spacy)
            about = f"lemmas and parts of speech{f', version {version}' if version else ''}"
            learning.notes.append({"role": "all rows with BM25", "model": self.spacy, "about": about})


def _check_narratives(topics: Topics) -> None:
    lacking = [topic.id for topic in topics.values() if not _has_narrative(topic)]
    if lacking:
        more = f" and {len(lacking) - 1} others have" if len(lacking) > 1 else " has"
        raise InputError(f"recipe cair2021: some topics have narratives, but topic '{lacking[0]}'{more} none")


def _has_narrative(topic: Topic) -> bool:
    return bool(topic.narrative.strip())
