"""`fit`: the best pipeline that a time budget buys, among many, with an estimate on held-out topics."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import FontesError, ParameterError, Qrels, Run, Stage, Topics
from ..core.expression import part
from ..core.progress import Progress, ProgressCallback, silent
from ..measures.evaluation import check_agreement, measured
from ..measures.measure import Measure
from .fitted import Candidate, Fitted
from .folds import Groups, folds_of, units_of
from .memory import TOPICS, peak_memory
from .search import RunMemory, judged_topics, mean_measure

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

BM25 = tuple(f"bm25(k1={k1}, b={b})" for k1 in (0.6, 0.9, 1.2, 1.6, 2.0) for b in (0.2, 0.4, 0.6, 0.75, 0.9))
UNTUNED = "bm25(k1=0.9, b=0.4)"
OTHERS = ("ql(mu=500)", "ql(mu=1000)", "ql(mu=2000)", "tfidf()")
FIELD_WEIGHTS = (2, 4)
FEEDBACK = ("rm3(fb_docs=5, fb_terms=10)", "rm3(fb_docs=10, fb_terms=20)")
WEIGHTS = (0.2, 0.35, 0.5, 0.65, 0.8)
DEPTHS = (10, 20, 50, 100)  # documents that a reranker reads
SHARES = (0.125, 0.25, 0.5, 1.0)  # of the topics, at which the worse half of the candidates is dropped
LEAST = 10  # topics of the first comparison
TIMED = 50  # topics whose time is measured
HOPELESS = 10, 3  # topics after which a candidate whose median is this many times the budget is timed no further
TIME = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s)\s*")


def fit(
    index: Any,
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
    progress: ProgressCallback = silent,
) -> Fitted:
    """Choose the pipeline with the best `measure` among those whose searches take no longer than a budget.

    There are three rounds. The first has BM25 with 25 settings, query likelihood and TF-IDF, BM25F where the index keeps fields
    apart, sequential dependence where it keeps positions, each encoder whose vectors, token vectors or term weights it stores,
    and `candidates`. The second adds to the best lexical one RM3 and its fusion with each of the others. The third puts each
    reranker on 10 to 100 documents of the best so far. In each round the worse half of the candidates is dropped after an
    eighth, a quarter and a half of the topics (successive halving: Jamieson and Talwalkar 2016). BM25 holds the place until
    another is better by a standard error of the difference (the rule of Breiman et al. 1984, section 3.4.3), and so do later
    winners: many candidates on few topics would else choose one by chance. The second round begins with the fusions of
    untuned BM25 (k1=0.9, b=0.4) with equal weights.

    For each fold all rounds are run on the other folds alone, and the winner is scored on the fold: `Fitted.score` is the
    mean of these held-out values. The time of a pipeline is the 95th percentile over 50 topics, asked one after the other for
    ten documents, each for the second time.

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
        memory: Measure the peak memory of a new process that searches, for the chosen pipeline and those that no other beats
            in time and mean.
        progress: Called as candidates are measured.

    Raises:
        ParameterError: The budget, the measure or a text is invalid, or no candidate is as quick as the budget.
        InputError: Judged topics are not among the topics, or no document of the collection is judged.
    """
    from ..lexical.impacts import in_memory

    start = time.perf_counter()
    limit, parsed = seconds_of(budget), mean_measure(measure)
    judged, judgments = judged_topics(topics, qrels)
    units = units_of(judged, judgments, groups)
    fold_of = folds_of(units, folds, seed)
    unit_of = {topic_id: number for number, unit in enumerate(units) for topic_id in unit}
    ids = tuple(judgments)
    pool = CandidatePool(index, judged, judgments, parsed, limit, seed, candidates, progress)
    first = first_round(index, candidates)
    reranking = [_stage(text, index, Run) for text in rerankers]
    numbers = np.array([fold_of[topic_id] for topic_id in ids])
    values, lexical, chosen = np.zeros(len(ids)), np.zeros(len(ids)), []
    with in_memory():  # most candidates are searched a few times only, so their weights are not worth caching
        for number in range(folds):
            held_out = numbers == number
            best = pool.winner(first, reranking, ~held_out)
            bm25 = pool.best(BM25, ~held_out)
            values[held_out], lexical[held_out] = (pool.values(text, held_out)[held_out] for text in (best, bm25))
            chosen.append(best)
        everything = np.ones(len(ids), dtype=bool)
        final = pool.winner(first, reranking, everything)
        pool.values(final, everything)
    fitted = Fitted(
        pipeline=final,
        stage=pool.stages[final],
        measure=parsed,
        budget=limit,
        topic_ids=ids,
        units=np.array([unit_of[topic_id] for topic_id in ids]),
        values=values,
        bm25_values=lexical,
        chosen=tuple(chosen),
        candidates=pool.candidates(),
        seconds=time.perf_counter() - start,
    )
    return _with_memory(fitted, index.path, judged, progress) if memory else fitted


def _with_memory(fitted: Fitted, path: Path, topics: Topics, progress: ProgressCallback) -> Fitted:
    """Return the result with the memory of the chosen pipeline and of the front; its candidates are otherwise unchanged."""
    start, texts = time.perf_counter(), [topic.text for topic in list(topics.values())[:TOPICS]]
    measuring = list(dict.fromkeys(entry.pipeline for entry in (*fitted.front, fitted.best)))
    peaks = {}
    for number, text in enumerate(measuring):
        progress(Progress("measuring memory", number, len(measuring), time.perf_counter() - start, "pipelines"))
        peaks[text] = peak_memory(path, text, texts)
    candidates = (replace(candidate, memory=peaks.get(candidate.pipeline, candidate.memory)) for candidate in fitted.candidates)
    return replace(fitted, candidates=tuple(candidates), seconds=fitted.seconds + time.perf_counter() - start)


def seconds_of(budget: str | float) -> float:
    """Return a budget in seconds; raise ParameterError if it is none."""
    if isinstance(budget, str) and (match := TIME.fullmatch(budget)):
        budget = float(match[1]) / (1000 if match[2] == "ms" else 1)
    if isinstance(budget, bool) or not isinstance(budget, (int, float)) or not 0 < budget < float("inf"):
        raise ParameterError(f"the budget is a time above 0, such as 20ms or 1s, not {budget!r}")
    return float(budget)


def first_round(index: Any, more: Iterable[str]) -> list[str]:
    """Return the texts of the first round: lexical ones, those of stored encoders, and `more`."""
    facts = index.info()
    texts = [*BM25, *OTHERS]
    if facts.get("separate") and {"title", "text"} <= set(facts["fields"]):
        texts += [f"bm25(k1=1.2, b=0.75, fields={{'title': {w}, 'text': 1}})" for w in FIELD_WEIGHTS]
    if facts.get("positions"):
        texts.append("sdm() >> ql(mu=1000)")
    for key, stage in (("vectors", "dense"), ("weights", "splade"), ("token_vectors", "late")):
        texts += [f"{stage}({entry['encoder']})" for entry in facts.get(key, ())]
    return list(dict.fromkeys([*texts, *more]))


def _stage(text: str, index: Any, takes: type) -> Stage[Any, Run]:
    stage = part(text, index)
    if not isinstance(stage, Stage) or stage.takes is not takes or stage.gives is not Run:
        kind = "from topics to a run" if takes is Topics else "a reranker, from run to run"
        raise ParameterError(f"'{text}' is not {kind}")
    return stage


@dataclass
class CandidatePool:
    """All candidates, with their times and values; each is computed once, and only where it is asked for.

    Args:
        index: The index.
        topics: The judged topics.
        qrels: The judgments, in the order of the values.
        measure: The measure.
        budget: The longest time of a search, in seconds.
        seed: Seed of the order in which topics are taken.
        named: Candidates of the user, whose errors are raised; others that cannot search are left out.
        progress: Called as candidates are measured.
    """

    index: Any
    topics: Topics
    qrels: Qrels
    measure: Measure
    budget: float
    seed: int
    named: Sequence[str]
    progress: ProgressCallback
    stages: dict[str, Stage[Topics, Run]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    rounds: dict[str, int] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ids = list(self.qrels)
        order = np.random.default_rng(self.seed).permutation(len(ids))
        ends = sorted({min(len(ids), max(LEAST, round(share * len(ids)))) for share in SHARES})
        self._parts = np.split(order, ends[:-1])
        self._memories = [RunMemory(Topics(self.topics[ids[i]] for i in rows.tolist())) for rows in self._parts]
        self._qrels = [Qrels(row for row in self.qrels.rows() if row[0] in memory.topics) for memory in self._memories]
        self._ids = ids
        self._values: dict[str, Floats] = {}
        self._started = time.perf_counter()

    def winner(self, first: Sequence[str], rerankers: Sequence[Stage[Run, Run]], topics: Bools) -> str:
        """Return the winner of three rounds on these topics; it fits the budget."""
        for text in first:
            self._add(text, partial(_stage, text, self.index, Topics), 1)
        bm25 = self.best(BM25, topics)
        best = self._challenged(bm25, [text for text in first if text not in BM25], topics)
        lexical = best if best in OTHERS else bm25
        best = self._challenged(best, self._hybrids(first), topics)
        best = self._challenged(best, self._second(first, lexical), topics)
        return self._challenged(best, self._third(best, rerankers), topics)

    def _challenged(self, holder: str, challengers: Sequence[str], topics: Bools) -> str:
        """Return the best challenger if it is better than the holder by a standard error of the difference, else the holder."""
        if not any(map(self._fits, challengers)):
            return holder
        best = self.best(challengers, topics)
        differences = (self.values(best, topics) - self.values(holder, topics))[topics]
        error = differences.std(ddof=1) / np.sqrt(len(differences)) if len(differences) > 1 else np.inf
        return best if differences.mean() > error else holder

    def best(self, texts: Sequence[str], topics: Bools) -> str:
        """Return the best of these candidates on these topics, by successive halving; ties go to the first."""
        left = [text for text in texts if self._fits(text)]
        if not left:
            quickest = min((self.seconds[text] for text in texts if text in self.seconds), default=float("nan"))
            raise ParameterError(
                f"no candidate answers within {1000 * self.budget:g} ms; the quickest takes {1000 * quickest:.3g} ms: "
                "give a larger budget"
            )
        seen, means = np.zeros(len(topics), dtype=bool), dict.fromkeys(left, 0.0)
        for number, rows in enumerate(self._parts):
            seen[rows] = True
            if (of_these := seen & topics).any():
                means = {text: float(self._known(text, number)[of_these].mean()) for text in left}
            order = sorted(left, key=lambda text: -means[text])  # stable: ties keep their order
            left = order[: max(1, len(left) // 2)] if number < len(self._parts) - 1 else order[:1]
        return left[0]

    def values(self, text: str, topics: Bools) -> Floats:
        """Return the measure of each topic, computed at least for these; NaN where it is not."""
        for number, rows in enumerate(self._parts):
            if topics[rows].any():
                self._known(text, number, all_before=False)
        return self._values[text]

    def candidates(self) -> tuple[Candidate, ...]:
        """Return all candidates with what is known of them, in the order in which they were made."""
        rows = []
        for text in self.stages:
            known = self._values.get(text)
            scored = known[~np.isnan(known)] if known is not None else np.zeros(0)
            mean = float(scored.mean()) if len(scored) else float("nan")
            seconds = self.seconds.get(text, float("nan"))
            rows.append(Candidate(text, self.rounds[text], seconds, len(scored), mean, problem=self.problems.get(text, "")))
        return tuple(rows)

    def _others(self, first: Sequence[str]) -> list[str]:
        """Candidates of the first round that BM25 can be fused with."""
        return [text for text in first if text not in {*BM25, *OTHERS} and text in self.stages and self._fits(text)]

    def _hybrids(self, first: Sequence[str]) -> list[str]:
        """Make the fusions of untuned BM25 with equal weights, a choice that does not depend on the topics."""
        return [self._fused([UNTUNED, text], "method='wsum', weights=(0.5, 0.5)", 2) for text in self._others(first)]

    def _second(self, first: Sequence[str], lexical: str) -> list[str]:
        """Make the candidates of the second round: feedback, and fusions with the best lexical one."""
        stage = self.stages[lexical]
        texts = []
        for entry in FEEDBACK:
            systems = {"own": stage}
            make = partial(part, f"own >> {entry} >> own", self.index, systems=systems)
            texts.append(self._add(f"{lexical} >> {entry} >> {lexical}", make, 2))
        others = self._others(first)
        for text in others:
            for weight in WEIGHTS:
                weights = (weight, round(1 - weight, 2))
                texts.append(self._fused([lexical, text], f"method='wsum', weights={weights}", 2))
            texts.append(self._fused([lexical, text], "method='rrf'", 2))
        if len(others) > 1:
            texts.append(self._fused([lexical, *others], f"method='wsum', weights={(1,) * (len(others) + 1)}", 2))
        return texts

    def _third(self, best: str, rerankers: Sequence[Stage[Run, Run]]) -> list[str]:
        """Make the candidates of the third round: rerankers on the best so far."""
        texts = []
        for reranker in rerankers:
            for depth in DEPTHS:
                stage = self.stages[best] % depth >> reranker
                texts.append(str(stage))
                self.stages.setdefault(str(stage), stage)
                self.rounds.setdefault(str(stage), 3)
        return texts

    def _fused(self, texts: Sequence[str], settings: str, number: int) -> str:
        systems: dict[str, Any] = {f"s{place}": self.stages[text] for place, text in enumerate(texts)}
        text = f"fuse({', '.join(texts)}, {settings})"
        return self._add(text, partial(part, f"fuse({', '.join(systems)}, {settings})", self.index, systems=systems), number)

    def _add(self, text: str, make: Callable[[], Any], number: int) -> str:
        if text not in self.stages and text not in self.problems:
            self.rounds[text] = number
            self.stages[text] = make()
        return text

    def _fits(self, text: str) -> bool:
        """Whether searches take no longer than the budget; measured once."""
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
            self.progress(Progress("measuring", len(self.seconds), None, spent, "candidates"))
        return self.seconds[text] <= self.budget

    def _known(self, text: str, number: int, *, all_before: bool = True) -> Floats:
        """Values with those of one part of the topics, and by default of all parts before it."""
        known = self._values.setdefault(text, np.full(len(self.qrels), np.nan))
        for place in range(number + 1) if all_before else [number]:
            rows = self._parts[place]
            if len(rows) and np.isnan(known[rows[0]]):
                known[rows] = self._measured(text, place)
        return known

    def _measured(self, text: str, place: int) -> Floats:
        memory, stage = self._memories[place], self.stages[text]
        depth = self.measure.cutoff
        cut = stage % depth if isinstance(depth, int) else stage
        run = memory.reusing(cut)(memory.topics)
        if run.documents is not None:
            check_agreement(run, self.qrels)
        of_topic = measured(run, self._qrels[place], [self.measure]).per_topic(self.measure)
        return np.array([of_topic[self._ids[i]] for i in self._parts[place].tolist()])


def timed(stage: Stage[Topics, Run], topics: Topics, budget: float, k: int = 10) -> float:
    """Return the 95th percentile of the seconds of a search, over at most 50 topics, each asked for the second time."""
    chosen = list(topics.values())[:TIMED]
    few, times = HOPELESS
    seconds: list[float] = []
    for topic in chosen:
        stage.search(topic, k)
        start = time.perf_counter()
        stage.search(topic, k)
        seconds.append(time.perf_counter() - start)
        if len(seconds) == few and float(np.median(seconds)) > times * budget:
            break
    return float(np.quantile(seconds, 0.95))
