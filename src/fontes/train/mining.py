"""`mine_negatives`: training examples with hard negatives, from a run and judgments."""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np

from ..core.checks import check_whole
from ..core.errors import InputError, ParameterError
from ..core.hints import nearest
from ..core.run import Ranking, Run
from ..core.stage import Ranker, Stage
from ..core.values import Doc, Documents, Hit, Qrels, Topic, Topics, text_of
from ..core.work import Progress, ProgressCallback, reporter, work
from .duplicates import Duplicate, kind_of
from .examples import Example, Examples, Passage, reranker_of, round_float32

MIN_SIMILARITY = 0.8  # minimum Jaccard similarity of shingles of duplicates, as in `split`
SAMPLING = ("top", "random")
NEGATIVES = ("negative", "negatives")
KINDS = ("exact", "normalised", "near")
REPORTED_DUPLICATES = 3  # duplicates in a report
REASONS = {  # singular and plural
    "no_gold": ("topic without a relevant document", "topics without a relevant document"),
    "no_hits": ("topic without hits", "topics without hits"),
    "no_document": ("missing relevant document", "missing relevant documents"),
    "no_text": ("relevant document without text", "relevant documents without text"),
    "empty": ("candidate without text", "candidates without text"),
    "low_gold": ("relevant document that the teacher scores 0 or less", "relevant documents that the teacher scores 0 or less"),
    "near_gold": ("candidate that the teacher scores too high", "candidates that the teacher scores too high"),
    "untaught": (
        "group whose relevant document the teacher does not return",
        "groups whose relevant document the teacher does not return",
    ),
    "repeated": ("candidate with the text of another negative", "candidates with the text of another negative"),
    "no_title": ("document without title or text", "documents without title or text"),
    "too_short": ("document that is too short", "documents that are too short"),
    "no_question": ("document without a question", "documents without a question"),
    "not_returned": (
        "query whose document the round trip does not return",
        "queries whose documents the round trip does not return",
    ),
}
QUANTILES = {"least": 0, "lower": 0.25, "median": 0.5, "upper": 0.75, "most": 1}
TOPICS_AT_ONCE = 500  # topics per batch of documents


@dataclass(frozen=True)
class Mining:
    """Settings of the choice of negatives.

    Args:
        per_positive: Maximum number of negatives per group.
        ranks: Window of ranks, (first, last), from 1 in the run, counting relevant documents.
        margin: Minimum score difference, in the run, from the relevant document; if the run lacks this, the group has no
            negatives. None: any.
        sampling: "top": the best of the window; "random": drawn without replacement, by seed, topic and documents.
        guard_duplicates: Whether to leave out candidates whose text duplicates a relevant document of the topic (false
            negatives) or a negative of the group: texts that are equal except for case, white space and punctuation, or near
            (see `split`) with a similarity of 0.8. The next candidates replace them.
        seed: Seed of the draw.
        gold_last: Whether a relevant document outside the window replaces the window's last hit.
        relative_margin: Maximum score of a negative by the teacher, as a share of the relevant document's score. Candidates
            above it are often relevant themselves: positive-aware mining (Moreira et al. 2024, NV-Retriever, who use 0.95). If
            the score of the relevant document is 0 or less, its group has no negatives. None: any.
    """

    per_positive: int = 4
    ranks: tuple[int, int] = (1, 100)
    margin: float | None = None
    sampling: str = SAMPLING[0]
    guard_duplicates: bool = True
    seed: int = 0
    gold_last: bool = False
    relative_margin: float | None = None

    @classmethod
    def of(cls, preset: str | None = None, **settings: Any) -> Mining:
        """Return checked settings, by default those of a preset, which leaves only the seed to be set.

        Raises:
            ParameterError: The preset or a setting is unknown, or a setting is out of range or set by the preset.
        """
        defaults = vars(cls())
        if unknown := sorted(settings.keys() - defaults.keys()):
            raise ParameterError(f"mining has no parameter '{unknown[0]}'; {nearest(unknown[0], list(defaults))}")
        mining = cls(**settings)
        mining.check()
        if preset is None:
            return mining
        if preset not in PRESETS:
            raise ParameterError(f"there is no preset '{preset}'; there is {', '.join(PRESETS)}")
        if changed := [name for name in defaults if name != "seed" and getattr(mining, name) != defaults[name]]:
            raise ParameterError(f"the preset {preset} sets {' and '.join(changed)}; leave these out")
        return replace(PRESETS[preset], seed=mining.seed)

    def check(self) -> None:
        """Raise ParameterError for invalid settings."""
        check_whole("per_positive", self.per_positive)
        check_whole("seed", self.seed, 0)
        if not isinstance(self.ranks, (tuple, list)) or len(self.ranks) != 2:
            raise ParameterError(f"ranks must be two numbers, the first and the last rank, not {self.ranks!r}")
        first = check_whole("the first of the ranks", self.ranks[0])
        check_whole("the last of the ranks", self.ranks[1], first)
        if self.margin is not None and (isinstance(self.margin, bool) or not isinstance(self.margin, (int, float))):
            raise ParameterError(f"margin must be a number, or None, not {self.margin!r}")
        if self.margin is not None and not 0 <= self.margin < float("inf"):
            raise ParameterError(f"margin must be a number from 0 up, not {self.margin!r}")
        share = self.relative_margin
        if share is not None and (isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 1):
            raise ParameterError(f"relative_margin must be a share above 0, at most 1, such as 0.95, not {share!r}")
        if self.sampling not in SAMPLING:
            raise ParameterError(f"sampling is {' or '.join(SAMPLING)}, not '{self.sampling}'")


PRESETS = {"air2025": Mining(per_positive=4, ranks=(1, 5), guard_duplicates=False, gold_last=True)}
"""`air2025`: negatives of the CheckThat! 2025 report, task 4b, for training its cross-encoder."""


def mine_negatives(
    candidates: object,
    topics: object,
    qrels: object,
    *,
    preset: str | None = None,
    teacher: Ranker | None = None,
    progress: ProgressCallback | None = None,
    **settings: object,
) -> Mined:
    """Make groups of a query, a relevant document and negatives: non-relevant hits of a run.

    Each relevant document (grade 1 or more) of a topic makes a group; other relevant documents of the topic are never its
    negatives. Negatives are documents judged 0 or less and, mostly, unjudged documents, some of which may be relevant. A small
    window gives fewer negatives or none. The query is the topic's text in the run, after rewriting. The text of a document is
    its title, a space and its text, as for rerankers. Results depend only on the run, the seed and the parameters; the groups
    of a topic do not depend on other topics.

    Args:
        candidates: Stage from topics to a run; or a run, or its path, with documents (`read_run(path).with_(documents=index)`).
            A stage retrieves no more hits than `ranks` needs.
        topics: Anything `Topics.read` accepts.
        qrels: Anything `Qrels.of` accepts.
        preset: "air2025": the first five hits, of which the last is replaced by the relevant document if that is not among
            them; the other four are negatives, without a guard. It replaces all settings except the seed.
        teacher: The teacher whose scores the examples get, as by `Mined.scored`; for a relative margin a reranker.
        progress: Called as topics are finished.
        **settings: Fields of `Mining`, such as per_positive=4.

    Raises:
        InputError: No topic has a relevant document, hits and text for an example, or the run lacks documents.
        ParameterError: A parameter is out of range, or changed although a preset sets it.
        PipelineError: The stage does not go from topics to a run.
    """
    mining = Mining.of(preset, **settings)
    all_topics, judged = Topics.read(topics), Qrels.of(qrels)
    relevant = {
        topic_id: sorted(doc_id for doc_id, grade in judged[topic_id].items() if grade >= 1)
        for topic_id in all_topics
        if topic_id in judged
    }
    tally = Tally(len(all_topics))
    answerable = Topics(topic for topic in all_topics.values() if relevant.get(topic.id))
    tally.leave_out("no_gold", len(all_topics) - len(answerable))
    if not answerable:
        all_topics.judged(judged)
        raise InputError("no topic has a document of grade 1 or more, from which examples could be made")
    with work(progress=progress):
        run = run_of(candidates, answerable, mining)
        documents = run.documents_for("mining")
        examples: list[Example] = []
        miner = Miner(mining, documents, tally, teacher=teacher)
        report, start, topics_to_mine = reporter(), time.perf_counter(), list(answerable.values())
        for batch_start in range(0, len(topics_to_mine), TOPICS_AT_ONCE):
            batch_end = min(batch_start + TOPICS_AT_ONCE, len(topics_to_mine))
            groups = _groups(topics_to_mine[batch_start:batch_end], run, documents, relevant, tally)
            examples += miner.examples(groups)
            report(Progress("mining", batch_end, len(topics_to_mine), time.perf_counter() - start, "topics"))
        mined = tally.mined(examples, asdict(mining))
        return mined if teacher is None else mined.scored(teacher)


def run_of(candidates: object, topics: Topics, settings: Mining) -> Run:
    """Return the run to mine; a stage is run on these topics, no deeper than needed."""
    if not isinstance(candidates, Stage):
        return Run.of(candidates)
    candidates.require(Topics, Run, "mining")
    # A margin needs the relevant document's score, at any rank.
    stage = candidates % settings.ranks[1] if settings.margin is None else candidates
    run: Run = stage(topics)
    return run


def _groups(
    topics: Sequence[Topic], run: Run, documents: Documents, relevant: Mapping[str, list[str]], tally: Tally
) -> list[RelevantDocument]:
    """Return the relevant documents of the topics; count topics and documents that cannot be used as left out."""
    rankings = {topic.id: run[topic.id] for topic in topics if topic.id in run and len(run[topic.id])}
    tally.leave_out("no_hits", len(topics) - len(rankings))
    docs_by_id = _find_docs(documents, list(dict.fromkeys(doc_id for topic_id in rankings for doc_id in relevant[topic_id])))
    groups = []
    for topic in topics:
        if topic.id not in rankings:
            continue
        relevant_docs = [docs_by_id[doc_id] for doc_id in relevant[topic.id] if doc_id in docs_by_id]
        readable = [doc for doc in relevant_docs if text_of(doc)]
        tally.leave_out("no_document", len(relevant[topic.id]) - len(relevant_docs))
        tally.leave_out("no_text", len(relevant_docs) - len(readable))
        ranking, relevant_ids = rankings[topic.id], frozenset(relevant[topic.id])
        query = ranking.topic.text if ranking.topic.text.strip() else topic.text
        groups += [RelevantDocument(ranking, query, Passage(doc.id, text_of(doc)), relevant_ids, readable) for doc in readable]
    return groups


def _find_docs(documents: Documents, ids: list[str]) -> dict[str, Doc]:
    """Return the documents that exist, by id; a list with unknown ids is halved until these are alone."""
    if not ids:
        return {}
    try:
        return dict(zip(ids, documents.docs(ids), strict=True))
    except InputError:
        if len(ids) == 1:
            return {}
        middle = len(ids) // 2
        return _find_docs(documents, ids[:middle]) | _find_docs(documents, ids[middle:])


@dataclass
class RelevantDocument:
    """A relevant document of a topic, from which an example is made.

    Args:
        ranking: Hits of the topic.
        query: Query text.
        positive: Relevant document.
        relevant: Ids of documents that cannot be negatives.
        guarded: Documents that no negative may duplicate.
        rank: Rank of the relevant document; 0 if it is not a hit.
        preferred: Remaining candidates, in order of preference.
        negatives: Negatives taken.
    """

    ranking: Ranking
    query: str
    positive: Passage
    relevant: frozenset[str]
    guarded: Sequence[Doc]
    rank: int = 0
    preferred: list[Hit] = field(default_factory=list)
    negatives: list[Passage] = field(default_factory=list)


class Miner:
    """Makes examples of relevant documents, and counts left-out candidates and documents.

    Args:
        settings: The settings.
        documents: The documents, by id.
        tally: The counts.
        read: Function that returns the text of a negative.
        teacher: The reranker that `settings.relative_margin` needs.

    Raises:
        ParameterError: The teacher is needed and missing, or is not a reranker.
    """

    def __init__(
        self,
        settings: Mining,
        documents: Documents,
        tally: Tally,
        read: Callable[[Doc], str] = text_of,
        teacher: Ranker | None = None,
    ) -> None:
        self.settings, self.documents, self.tally, self.read = settings, documents, tally, read
        self._teacher = None
        if settings.relative_margin is not None:
            if teacher is None:
                raise ParameterError("a relative margin needs a teacher, whose scores it compares: a reranker")
            self._teacher = reranker_of(teacher)

    def examples(self, groups: Sequence[RelevantDocument]) -> list[Example]:
        """Return the examples of groups, in order; reads the documents of all groups together."""
        per_positive = self.settings.per_positive
        for group in groups:
            self._order_candidates(group)
        open_groups = list(groups)
        while open_groups := [group for group in open_groups if group.preferred and len(group.negatives) < per_positive]:
            ids = list(dict.fromkeys(hit.id for group in open_groups for hit in group.preferred[:per_positive]))
            docs = dict(zip(ids, self.documents.docs(ids), strict=True))
            scores = self._scores(open_groups, docs)
            for group in open_groups:
                self._take_negatives(group, docs, scores)
        return [self._example(group) for group in groups]

    def _order_candidates(self, group: RelevantDocument) -> None:
        """Put the candidates of the window in order of preference."""
        settings, topic = self.settings, group.ranking.topic.id
        ids, scores = group.ranking.ids, group.ranking.scores.tolist()
        group.rank = ids.index(group.positive.id) + 1 if group.positive.id in ids else 0
        first, last = settings.ranks
        if settings.gold_last and not first <= group.rank <= last:
            last -= 1
        window = [Hit(ids[n], scores[n], n + 1) for n in range(first - 1, min(last, len(ids))) if ids[n] not in group.relevant]
        if settings.margin is not None:
            bound = scores[group.rank - 1] - settings.margin if group.rank else None
            window = [hit for hit in window if bound is not None and hit.score <= bound]
        if settings.sampling == "random":
            window.sort(key=lambda hit: random_key(settings.seed, topic, group.positive.id, hit.id))
        group.preferred = window

    def _scores(self, groups: Sequence[RelevantDocument], docs: dict[str, Doc]) -> dict[tuple[str, str], float]:
        """Return the teacher's scores of the relevant documents and of the next candidates, by query and text."""
        if self._teacher is None:
            return {}
        pairs: dict[tuple[str, str], None] = {}
        for group in groups:
            texts = [self.read(docs[hit.id]) for hit in group.preferred[: self.settings.per_positive]]
            pairs |= dict.fromkeys((group.query, text) for text in (group.positive.text, *texts))
        return dict(zip(pairs, self._teacher.pair_scores(list(pairs)), strict=True))

    def _take_negatives(self, group: RelevantDocument, docs: dict[str, Doc], scores: dict[tuple[str, str], float]) -> None:
        """Take suitable candidates among the next ones as negatives; `docs` has these candidates."""
        per_positive = self.settings.per_positive
        next_hits, group.preferred = group.preferred[:per_positive], group.preferred[per_positive:]
        if scores and scores[group.query, group.positive.text] <= 0:
            group.preferred = []
            self.tally.leave_out("low_gold")
            return
        for hit in next_hits:
            if len(group.negatives) < per_positive and self._fits(docs[hit.id], group, scores):
                group.negatives.append(Passage(hit.id, self.read(docs[hit.id]), round_float32(hit.score), hit.rank))

    def _example(self, group: RelevantDocument) -> Example:
        negatives = sorted(group.negatives, key=lambda passage: passage.rank or 0)
        self.tally.group(group.rank, [passage.rank or 0 for passage in negatives])
        topic = group.ranking.topic.id
        return Example(topic, group.query, group.positive, tuple(negatives), f"topic '{topic}'")

    def _fits(self, doc: Doc, group: RelevantDocument, scores: dict[tuple[str, str], float]) -> bool:
        text, share = self.read(doc), self.settings.relative_margin
        if not text.strip():
            self.tally.leave_out("empty")
            return False
        if share is not None and scores[group.query, text] > share * scores[group.query, group.positive.text]:
            self.tally.leave_out("near_gold")
            return False
        if not self.settings.guard_duplicates:
            return True
        for gold in group.guarded:
            kind = kind_of(text_of(doc), text_of(gold), MIN_SIMILARITY)
            if kind:
                self.tally.duplicates.append(Duplicate(doc.id, gold.id, kind, MIN_SIMILARITY if kind == "near" else 1.0))
                return False
        if any(kind_of(text, negative.text, MIN_SIMILARITY) for negative in group.negatives):
            self.tally.leave_out("repeated")
            return False
        return True


def random_key(seed: int, *names: str) -> bytes:
    """Return a sort key for a random order that depends only on seed and names, on every machine."""
    return hashlib.blake2b("\0".join((str(seed), *names)).encode("utf-8", "surrogatepass"), digest_size=8).digest()


@dataclass(frozen=True, repr=False)
class Mined:
    """Result of `mine_negatives`.

    Args:
        examples: Examples.
        settings: Mining settings by name.
        total: Topics, or documents.
        unit: Unit of `total`, "topic" or "document".
        left_out: Topics, relevant documents and candidates left out, by key of REASONS.
        duplicates: Candidates that the guard left out before their group was full; `id` is the candidate, `of` the relevant
            document, and `similarity` is 1, or the threshold for near duplicates.
        negative_ranks: Rank of each negative in its run, in the order of the examples.
        positive_ranks: Rank of each group's relevant document; 0 if it is not in the run.
    """

    examples: Examples
    settings: Mapping[str, object]
    total: int
    unit: str
    left_out: Mapping[str, int]
    duplicates: tuple[Duplicate, ...]
    negative_ranks: tuple[int, ...]
    positive_ranks: tuple[int, ...]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the examples, as `Examples.write`."""
        self.examples.write(path)

    def scored(self, teacher: Ranker) -> Mined:
        """Return a copy with a teacher's scores, without the groups that `Examples.scored` leaves out."""
        scored = self.examples.scored(teacher)
        if len(scored) == len(self.examples):
            return replace(self, examples=scored)
        kept = {(example.query, example.positive.id) for example in scored}
        is_kept = [(example.query, example.positive.id) in kept for example in self.examples]
        return replace(
            self,
            examples=scored,
            left_out={**self.left_out, "untaught": is_kept.count(False)},
            negative_ranks=tuple(passage.rank or 0 for example in scored for passage in example.negatives),
            positive_ranks=tuple(compress(self.positive_ranks, is_kept)),
        )

    @property
    def sizes(self) -> dict[int, int]:
        """Number of groups by number of negatives, from the most negatives to the fewest."""
        return dict(sorted(Counter(len(example.negatives) for example in self.examples).items(), reverse=True))

    def to_dict(self) -> dict[str, object]:
        """Return the statistics as plain values, for JSON."""
        kinds = Counter(pair.kind for pair in self.duplicates)
        present = [rank for rank in self.positive_ranks if rank]
        return {
            "total": self.total,
            "topics": len(self.examples.topics),
            "groups": len(self.examples),
            "negatives": len(self.negative_ranks),
            "sizes": {str(size): count for size, count in self.sizes.items()},
            "left_out": dict(self.left_out),
            "duplicates": {kind: kinds[kind] for kind in KINDS},
            "ranks": _quantiles(self.negative_ranks),
            "positives": {"in_run": len(present), "missed": len(self.positive_ranks) - len(present), **_quantiles(present)},
            "settings": dict(self.settings),
            "hash": self.examples.hash,
        }

    def __str__(self) -> str:
        negatives, groups = len(self.negative_ranks), len(self.examples)
        sizes = ", ".join(f"{count:,} with {size}" for size, count in self.sizes.items())
        total = _counted(self.total, (self.unit, f"{self.unit}s"))
        grouped = f"{_counted(groups, ('group', 'groups'))} of {len(self.examples.topics):,}"
        lines = [f"{total}: {grouped}, {_counted(negatives, NEGATIVES)} ({negatives / groups:.2f} a group: {sizes})"]
        lines += [f"left out: {_counted(count, REASONS[reason])}" for reason, count in self.left_out.items()]
        if self.duplicates:
            lines.append(self._duplicates_line())
        if self.negative_ranks:
            lines.append(f"ranks of the negatives: {_format_quantiles(self.negative_ranks)}")
        present = [rank for rank in self.positive_ranks if rank]
        missed = len(self.positive_ranks) - len(present)
        if present:
            missing = f"; {missed:,} not among the hits" if missed else ""
            lines.append(f"ranks of the relevant documents: {_format_quantiles(present)}{missing}")
        return "\n".join(lines)

    def _duplicates_line(self) -> str:
        kinds = Counter(pair.kind for pair in self.duplicates)
        counts = ", ".join(f"{kinds[kind]:,} {kind}" for kind in KINDS if kinds[kind])
        pairs = list(dict.fromkeys(f"{pair.id} = {pair.of}" for pair in self.duplicates))
        shown = ", ".join(pairs[:REPORTED_DUPLICATES]) + (", …" if len(pairs) > REPORTED_DUPLICATES else "")
        noun = ("candidate that is a duplicate", "candidates that are duplicates")
        return f"left out: {_counted(len(self.duplicates), noun)} of a relevant document ({counts}): {shown}"

    def __repr__(self) -> str:
        return f"Mined({len(self.examples)} groups, {len(self.negative_ranks)} negatives)"


@dataclass
class Tally:
    """Counts of the groups that mining makes and of all it leaves out; `total` is a number of topics or documents (`unit`)."""

    total: int
    unit: str = "topic"
    left_out: Counter[str] = field(default_factory=Counter)
    duplicates: list[Duplicate] = field(default_factory=list)
    negative_ranks: list[int] = field(default_factory=list)
    positive_ranks: list[int] = field(default_factory=list)

    def leave_out(self, reason: str, count: int = 1) -> None:
        """Count topics, documents or candidates left out for a reason, a key of REASONS."""
        self.left_out[reason] += count

    def group(self, positive: int, negatives: Sequence[int]) -> None:
        """Count a group with the ranks of its documents; the rank of a relevant document outside the run is 0."""
        self.positive_ranks.append(positive)
        self.negative_ranks += negatives

    def mined(self, examples: Sequence[Example], settings: Mapping[str, object]) -> Mined:
        """Return the examples with the counts; raise InputError if there are none."""
        left_out = {reason: self.left_out[reason] for reason in REASONS if self.left_out[reason]}
        if not examples:
            reasons = ", ".join(_counted(count, REASONS[reason]) for reason, count in left_out.items())
            raise InputError(f"no example could be made of {_counted(self.total, (self.unit, f'{self.unit}s'))}: {reasons}")
        ranks = tuple(self.negative_ranks), tuple(self.positive_ranks)
        return Mined(Examples(examples), settings, self.total, self.unit, left_out, tuple(self.duplicates), *ranks)


def _quantiles(ranks: Sequence[int]) -> dict[str, float]:
    return {name: float(np.quantile(ranks, q)) for name, q in QUANTILES.items()} if ranks else {}


def _format_quantiles(ranks: Sequence[int]) -> str:
    minimum, lower, median, upper, maximum = (f"{value:g}" for value in _quantiles(ranks).values())
    return f"{minimum} to {maximum}, the median {median}, half of them {lower} to {upper}"


def _counted(number: int, nouns: tuple[str, str]) -> str:
    return f"{number:,} {nouns[number != 1]}"
