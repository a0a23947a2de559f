"""`fit`: the best pipeline that a time budget buys, among many, with an estimate on held-out topics."""

from __future__ import annotations

import itertools
import json
import math
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import FontesError, ParameterError, Qrels, Run, Stage, Topics
from ..core.arrays import Bools, Float64s
from ..core.expression import part
from ..core.stage import Ranker
from ..core.work import Progress, ProgressCallback, reporter, unreported, work
from ..measures.measure import Measure
from .fitted import Candidate, Fitted
from .folds import Groups, folds_of, units_of
from .result import cross_validated, held_out_values
from .search import RunMemory, judged_topics, mean_measure

if TYPE_CHECKING:
    from ..index import Index
    from ..index.state import State

BM25 = tuple(f"bm25(k1={k1}, b={b})" for k1 in (0.6, 0.9, 1.2, 1.6, 2.0) for b in (0.2, 0.4, 0.6, 0.75, 0.9))
UNTUNED_BM25 = "bm25(k1=0.9, b=0.4)"
OTHER_LEXICAL = ("ql(mu=500)", "ql(mu=1000)", "ql(mu=2000)", "tfidf()")
FIELD_WEIGHTS = (2, 4)
FEEDBACK = ("rm3(fb_docs=5, fb_terms=10)", "rm3(fb_docs=10, fb_terms=20)")
FUSION_WEIGHTS = (0.2, 0.35, 0.5, 0.65, 0.8)
RERANKED_DEPTHS = (10, 20, 50, 100)  # documents that a reranker reads
TOPIC_SHARES = (0.125, 0.25, 0.5, 1.0)  # of the topics, at which the worse half of the candidates is dropped
MIN_TOPICS = 10  # topics of the first comparison, if there are as many
TIMED_TOPICS = 50  # topics whose time is measured
TOO_SLOW = 10, 3  # after 10 topics with a median of more than 3 times the budget, timing ends
_CALLS = itertools.count(1)  # of search_seconds
TIME_PATTERN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s)\s*")
TOPICS = 10


def fit(
    index: Index | State,
    topics: object,
    qrels: object,
    budget: str | float,
    measure: str | Measure = "nDCG@10",
    folds: int = 5,
    *,
    rerankers: Sequence[str] = (),
    candidates: Sequence[str] = (),
    groups: Groups = None,
    seed: int = 0,
    memory: bool = True,
    progress: ProgressCallback | None = None,
) -> Fitted:
    """Choose the pipeline with the best `measure` among those whose searches take no longer than a budget.

    There are three rounds. The first has BM25 with 25 settings, query likelihood and TF-IDF, BM25F if the index keeps fields
    apart, sequential dependence if it keeps positions, each encoder whose vectors, token vectors or term weights it stores, and
    `candidates`. The second begins with the fusions of untuned BM25 (k1=0.9, b=0.4) with equal weights; then it adds RM3 to the
    best lexical candidate, and fuses this candidate with each of the others. The third puts each reranker on 10 to 100
    documents of the best candidate so far. In each round the worse half of the candidates is dropped after an eighth, a quarter
    and a half of the topics (successive halving: Jamieson and Talwalkar 2016). BM25 is replaced by another candidate only if
    this is better by a standard error of the difference (the rule of Breiman et al. 1984, section 3.4.3), and so are later
    winners: otherwise many candidates on few topics would win by chance.

    For each fold all rounds are run on the other folds alone, and the winner is scored on the fold: `Fitted.score` is the
    mean of these held-out values. The time of a pipeline is the 95th percentile over 50 topics, searched one after the other
    for ten documents, each for the second time; models encode its text, or rewrite it, both times.

    Args:
        index: The index.
        topics: Anything that `Topics.of` accepts, or a path; topics without judgments are not searched.
        qrels: Anything that `Qrels.of` accepts.
        budget: The longest time of a search: "20ms", "1s", or seconds.
        measure: Measure to maximise.
        folds: Folds.
        rerankers: Texts of rerankers, such as "cross_encoder('MODEL')".
        candidates: Texts of further pipelines for the first round.
        groups: Topics that stay in one fold, as for `tune`.
        seed: Seed of the folds, and of the order of the topics.
        memory: Whether to measure the peak memory of a new process that searches, for the chosen pipeline and for those that no
            other beats in both time and mean.
        progress: Called as candidates are measured.

    Raises:
        ParameterError: The budget, the measure or a text is invalid, or no candidate is within the budget.
        InputError: None of the topics is judged, or no document of the collection is judged.
    """
    start = time.perf_counter()
    budget_seconds, parsed = seconds_of(budget), mean_measure(measure)
    judged, judgments = judged_topics(topics, qrels, parsed)
    units = units_of(judged, judgments, groups)
    fold_of = folds_of(units, folds, seed)
    unit_of = {topic_id: number for number, unit in enumerate(units) for topic_id in unit}
    ids = tuple(judgments)
    pool = CandidatePool(index, judged, judgments, parsed, budget_seconds, seed, candidates)
    first = first_round(index, candidates)
    reranking = [_parse_stage(text, index, Run) for text in rerankers]
    topic_folds = np.array([fold_of[topic_id] for topic_id in ids])
    with work(progress=progress):
        chosen, bm25 = (
            cross_validated(topic_folds, choose, pool.values, parsed)
            for choose in (
                lambda fold, others: pool.winner(first, reranking, others),
                lambda fold, others: pool.best(BM25, others),
            )
        )
        all_topics = np.ones(len(ids), dtype=bool)
        final = pool.winner(first, reranking, all_topics)
        pool.values(final, all_topics)
    fitted = Fitted(
        measure=parsed,
        topic_ids=ids,
        units=np.array([unit_of[topic_id] for topic_id in ids]),
        folds=chosen,
        baseline_values=held_out_values(bm25),
        pipeline=final,
        stage=pool.stages[final],
        budget=budget_seconds,
        candidates=pool.candidates(),
        seconds=time.perf_counter() - start,
    )
    with work(progress=progress):
        return _measure_memory(fitted, index.path, judged) if memory else fitted


def _measure_memory(fitted: Fitted, path: Path, topics: Topics) -> Fitted:
    """Return the result with the measured memory of the chosen pipeline and of the front."""
    report = reporter()
    start, queries = time.perf_counter(), [topic.text for topic in list(topics.values())[:TOPICS]]
    measuring = list(dict.fromkeys(candidate.pipeline for candidate in (*fitted.front, fitted.best)))
    peaks = {}
    for number, text in enumerate(measuring):
        report(Progress("measuring memory", number, len(measuring), time.perf_counter() - start, "pipelines"))
        peaks[text] = peak_memory(path, text, queries)
    candidates = (replace(candidate, memory=peaks.get(candidate.pipeline, candidate.memory)) for candidate in fitted.candidates)
    return replace(fitted, candidates=tuple(candidates), seconds=fitted.seconds + time.perf_counter() - start)


def seconds_of(budget: str | float) -> float:
    """Return a budget in seconds; raise ParameterError if it is not a time above 0."""
    if isinstance(budget, str) and (match := TIME_PATTERN.fullmatch(budget)):
        budget = float(match[1]) / (1000 if match[2] == "ms" else 1)
    if isinstance(budget, bool) or not isinstance(budget, (int, float)) or not 0 < budget < float("inf"):
        raise ParameterError(f"the budget is a time above 0, such as 20ms or 1s, not {budget!r}")
    return float(budget)


def first_round(index: Index | State, candidates: Iterable[str]) -> list[str]:
    """Return the texts of the first round: lexical pipelines, those of stored encoders, and `candidates`."""
    facts = index.info()
    texts = [*BM25, *OTHER_LEXICAL]
    if facts.get("separate") and {"title", "text"} <= set(facts["fields"]):
        texts += [f"bm25(k1=1.2, b=0.75, fields={{'title': {w}, 'text': 1}})" for w in FIELD_WEIGHTS]
    if facts.get("positions"):
        texts.append("sdm() >> ql(mu=1000)")
    for key, stage, model in (
        ("vectors", "dense", "encoder"),
        ("weights", "splade", "encoder"),
        ("token_vectors", "late", "colbert"),
    ):
        texts += [f"{stage}({entry[model]})" for entry in facts.get(key, ())]
    return list(dict.fromkeys([*texts, *candidates]))


def _parse_stage(text: str, index: object, takes: type) -> Ranker:
    """Return the stage of a text, from `takes` (Topics or Run) to a run; raise ParameterError for any other stage."""
    stage = part(text, index)
    if not isinstance(stage, Stage) or stage.takes is not takes or stage.gives is not Run:
        kind = "from topics to a run" if takes is Topics else "a reranker, from run to run"
        raise ParameterError(f"'{text}' is not {kind}")
    return stage


@dataclass
class CandidatePool:
    """All candidates, with their times and values, each computed once and only when needed.

    Args:
        index: The index.
        topics: The judged topics.
        qrels: The judgments, in the order of the values.
        measure: The measure.
        budget: The longest time of a search, in seconds.
        seed: Seed of the order in which topics are added.
        named: Candidates of the user, whose errors are raised; other candidates that cannot search are left out.
    """

    index: object
    topics: Topics
    qrels: Qrels
    measure: Measure
    budget: float
    seed: int
    named: Sequence[str]
    stages: dict[str, Stage[Topics, Run]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    rounds: dict[str, int] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ids = list(self.qrels)
        order = np.random.default_rng(self.seed).permutation(len(ids))
        ends = sorted({min(len(ids), max(MIN_TOPICS, round(share * len(ids)))) for share in TOPIC_SHARES})
        self._parts = np.split(order, ends[:-1])
        self._memories = [RunMemory(Topics(self.topics[ids[i]] for i in rows.tolist())) for rows in self._parts]
        self._qrels = [self.qrels.only(memory.topics) for memory in self._memories]
        self._ids = ids
        self._values: dict[str, Float64s] = {}
        self._started = time.perf_counter()

    def winner(self, first: Sequence[str], rerankers: Sequence[Stage[Run, Run]], topics: Bools) -> str:
        """Return the winner of three rounds on these topics; it fits the budget."""
        for text in first:
            self._add(text, partial(_parse_stage, text, self.index, Topics), 1)
        bm25 = self.best(BM25, topics)
        best = self._challenge(bm25, [text for text in first if text not in BM25], topics)
        lexical = best if best in OTHER_LEXICAL else bm25
        best = self._challenge(best, self._untuned_fusions(first), topics)
        best = self._challenge(best, self._second_round(first, lexical), topics)
        return self._challenge(best, self._third_round(best, rerankers), topics)

    def _challenge(self, incumbent: str, challengers: Sequence[str], topics: Bools) -> str:
        """Return the best challenger if it beats the incumbent by over a standard error of the difference, else the latter."""
        if not any(map(self._fits, challengers)):
            return incumbent
        best = self.best(challengers, topics)
        differences = (self.values(best, topics) - self.values(incumbent, topics))[topics]
        error = differences.std(ddof=1) / np.sqrt(len(differences)) if len(differences) > 1 else np.inf
        return best if differences.mean() > error else incumbent

    def best(self, texts: Sequence[str], topics: Bools) -> str:
        """Return the best of these candidates on these topics, by successive halving; ties go to the first."""
        remaining = [text for text in texts if self._fits(text)]
        if not remaining:
            quickest = min((self.seconds[text] for text in texts if text in self.seconds), default=float("nan"))
            raise ParameterError(
                f"no candidate answers within {1000 * self.budget:g} ms; the quickest takes {1000 * quickest:.3g} ms: "
                "give a larger budget"
            )
        seen_topics, means = np.zeros(len(topics), dtype=bool), dict.fromkeys(remaining, 0.0)
        for part_number, rows in enumerate(self._parts):
            seen_topics[rows] = True
            if (covered := seen_topics & topics).any():
                means = {text: float(self._measured_values(text, part_number)[covered].mean()) for text in remaining}
            order = sorted(remaining, key=lambda text: -means[text])  # stable: ties keep their order
            remaining = order[: max(1, len(remaining) // 2)] if part_number < len(self._parts) - 1 else order[:1]
        return remaining[0]

    def values(self, text: str, topics: Bools) -> Float64s:
        """Return the measure of each topic, computed at least for the parts with these topics; NaN where not computed."""
        for part_number, rows in enumerate(self._parts):
            if topics[rows].any():
                self._measured_values(text, part_number, all_before=False)
        return self._values[text]

    def candidates(self) -> tuple[Candidate, ...]:
        """Return all candidates with their measured times and values, in the order in which they were added."""
        rows = []
        for text in self.stages:
            values = self._values.get(text)
            scored = values[~np.isnan(values)] if values is not None else np.zeros(0)
            mean = float(scored.mean()) if len(scored) else float("nan")
            seconds = self.seconds.get(text, float("nan"))
            rows.append(Candidate(text, self.rounds[text], seconds, len(scored), mean, problem=self.problems.get(text, "")))
        return tuple(rows)

    def _fusion_partners(self, first: Sequence[str]) -> list[str]:
        """Return the candidates of the first round that BM25 can be fused with."""
        return [text for text in first if text not in {*BM25, *OTHER_LEXICAL} and text in self.stages and self._fits(text)]

    def _untuned_fusions(self, first: Sequence[str]) -> list[str]:
        """Add the fusions of untuned BM25 with equal weights, a choice that does not depend on the topics."""
        settings = "method='wsum', weights=(0.5, 0.5)"
        return [self._add_fusion([UNTUNED_BM25, text], settings) for text in self._fusion_partners(first)]

    def _second_round(self, first: Sequence[str], lexical: str) -> list[str]:
        """Add the candidates of the second round: feedback, and fusions with the best lexical candidate."""
        stage = self.stages[lexical]
        texts = []
        for feedback in FEEDBACK:
            systems = {"own": stage}
            make = partial(part, f"own >> {feedback} >> own", self.index, systems=systems)
            texts.append(self._add(f"{lexical} >> {feedback} >> {lexical}", make, 2))
        partners = self._fusion_partners(first)
        for text in partners:
            for weight in FUSION_WEIGHTS:
                weights = (weight, round(1 - weight, 2))
                texts.append(self._add_fusion([lexical, text], f"method='wsum', weights={weights}"))
            texts.append(self._add_fusion([lexical, text], "method='rrf'"))
        if len(partners) > 1:
            texts.append(self._add_fusion([lexical, *partners], f"method='wsum', weights={(1,) * (len(partners) + 1)}"))
        return texts

    def _third_round(self, best: str, rerankers: Sequence[Stage[Run, Run]]) -> list[str]:
        """Add the candidates of the third round: rerankers on the best candidate so far."""
        texts = []
        for reranker in rerankers:
            for depth in RERANKED_DEPTHS:
                stage = self.stages[best] % depth >> reranker
                texts.append(str(stage))
                self.stages.setdefault(str(stage), stage)
                self.rounds.setdefault(str(stage), 3)
        return texts

    def _add_fusion(self, texts: Sequence[str], settings: str) -> str:
        """Add a fusion of candidates to the second round and return its text."""
        systems: dict[str, object] = {f"s{i}": self.stages[text] for i, text in enumerate(texts)}
        make = partial(part, f"fuse({', '.join(systems)}, {settings})", self.index, systems=systems)
        return self._add(f"fuse({', '.join(texts)}, {settings})", make, 2)

    def _add(self, text: str, make: Callable[[], Any], round_number: int) -> str:
        if text not in self.stages and text not in self.problems:
            self.rounds[text] = round_number
            self.stages[text] = make()
        return text

    def _fits(self, text: str) -> bool:
        """Whether searches take no longer than the budget; each candidate is timed once."""
        if text not in self.stages or text in self.problems:
            return False
        if text not in self.seconds:
            try:
                self.seconds[text] = timed(self.stages[text], self.topics, self.budget)
            except FontesError as error:
                if text in self.named or self.rounds[text] == 3:
                    raise
                self.problems[text] = str(error)  # such as the model of stored vectors, which is not on this machine
                return False
            spent = time.perf_counter() - self._started
            reporter()(Progress("measuring", len(self.seconds), None, spent, "candidates"))
        return self.seconds[text] <= self.budget

    def _measured_values(self, text: str, part_number: int, *, all_before: bool = True) -> Float64s:
        """Return the measure of each topic, computed for one part of the topics and by default for all parts before it."""
        values = self._values.setdefault(text, np.full(len(self.qrels), np.nan))
        for i in range(part_number + 1) if all_before else [part_number]:
            rows = self._parts[i]
            if len(rows) and np.isnan(values[rows[0]]):
                values[rows] = self._measure_part(text, i)
        return values

    @unreported
    def _measure_part(self, text: str, part_number: int) -> Float64s:
        memory, qrels = self._memories[part_number], self._qrels[part_number]
        evaluation = memory.evaluated(self.stages[text], qrels, self.measure, self.qrels)
        of_topic = evaluation.per_topic(self.measure)
        return np.array([of_topic[self._ids[i]] for i in self._parts[part_number].tolist()])


def timed(stage: Stage[Topics, Run], topics: Topics, budget: float) -> float:
    """Return the 95th percentile of the seconds of a search; see `search_seconds`."""
    return float(np.quantile(search_seconds(stage, topics, budget), 0.95))


@unreported
def search_seconds(stage: Stage[Topics, Run], topics: Topics, budget: float = math.inf, k: int = 10) -> list[float]:
    """Return the seconds of a search for each of at most 50 topics, each searched for the second time.

    The second time the text ends with spaces, more of them in each call: vectors and answers of models, which are kept by text,
    are computed again, as for a new query, while all that the query reads is in memory. A stage that is far slower than the
    budget is left early.
    """
    spaces = " " * next(_CALLS)
    min_searches, factor = TOO_SLOW
    seconds: list[float] = []
    for topic in list(topics.values())[:TIMED_TOPICS]:
        stage.search(topic, k)
        again = replace(topic, text=topic.text + spaces) if topic.text else topic
        start = time.perf_counter()
        stage.search(again, k)
        seconds.append(time.perf_counter() - start)
        if len(seconds) == min_searches and float(np.median(seconds)) > factor * budget:
            break
    return seconds


def peak_memory(path: Path, pipeline: str, texts: Iterable[str], k: int = 10) -> float:
    """Return the peak resident memory in bytes of a process that opens an index and searches for a few texts.

    The memory includes the pages of the index that the searches read, Python, and the libraries that the pipeline imports.

    Args:
        path: Folder of the index.
        pipeline: The text of a pipeline.
        texts: Queries.
        k: Documents per query.

    Returns:
        NaN, with a warning, if the process fails, for instance because the index has an analyzer without a stored name.
    """
    task = json.dumps([str(path), pipeline, list(texts), k])
    child = subprocess.run([sys.executable, "-m", __name__], input=task, capture_output=True, text=True)
    if child.returncode:
        reason = (child.stderr.strip().splitlines() or [f"exit code {child.returncode}"])[-1]
        warnings.warn(f"the memory of {pipeline} cannot be measured: {reason}", stacklevel=2)
        return float("nan")
    return float(child.stdout.splitlines()[-1])


def _peak() -> int:
    """Return the peak resident memory of this process in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would include the memory of the parent before exec
        line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


def _search() -> None:
    from ..index import Index

    path, pipeline, texts, k = json.load(sys.stdin)
    stage = part(pipeline, Index.open(path))
    for text in texts:
        stage.search(text, k)
    print(_peak())


if __name__ == "__main__":
    _search()
