"""`tune`: parameter search with nested cross-validation."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import TypeVar

import numpy as np

from ..core import MissingExtraError, ParameterError, Qrels, Run, Stage, Topics
from ..core.arrays import Bools, Float64s, Int64s
from ..core.checks import hinted
from ..core.part import Part, fix_precision, precisions_of, walk
from ..core.stage import AnyStage, Ranker
from ..core.work import cluster, work
from ..measures.evaluation import Evaluation, check_agreement, judgments_of, measure_run
from ..measures.measure import Measure
from ..measures.names import parse
from .folds import Groups, folds_of, units_of
from .result import Trial, Tuning, cross_validated
from .space import Axis, Maker, Retriever, Setting, Space, Tunable, axes_of, grid_of, maker_of

Study = Callable[["Scoring"], list[int]]
P = TypeVar("P")
R = TypeVar("R")


class Scoring:
    """Scores settings on all topics, each setting once; `precisions` are passed to `core.part.fix_precision`."""

    def __init__(
        self, maker: Maker, topics: Topics, qrels: Qrels, measure: Measure, precisions: dict[str, str] | None = None
    ) -> None:
        self.trials: list[Trial] = []
        self._numbers: dict[str, int] = {}
        self._computed: dict[str, Float64s] = {}
        self._maker, self._memory, self._qrels, self._measure = maker, RunMemory(topics), qrels, measure
        self._precisions = precisions or {}

    def number(self, setting: Setting) -> int:
        """Return the trial number of a setting, scoring it if it is new."""
        key = _key(setting)
        if key not in self._numbers:
            values = self._computed.pop(key) if key in self._computed else self.values(self._maker(setting))
            self._numbers[key] = len(self.trials)
            self.trials.append(Trial(dict(setting), values))
        return self._numbers[key]

    def record(self, setting: Setting, values: Float64s) -> None:
        """Record the values of a setting that another process computed."""
        self._computed[_key(setting)] = values

    def values(self, stage: Retriever) -> Float64s:
        """Return the measure of each topic under a stage."""
        if self._precisions:
            stage = fix_precision(stage, self._precisions)
        return self._memory.evaluated(stage, self._qrels, self._measure).array(self._measure)

    def best(self, pool: Iterable[int], topics: Bools) -> Trial:
        """Return the trial of the pool with the greatest mean over these topics: of equals the default, then the first."""
        trials, default = (self.trials[i] for i in sorted(set(pool))), self._maker.default
        return max(trials, key=lambda trial: (float(trial.values[topics].mean()), trial.params == default))

    def stage(self, setting: Setting) -> Retriever:
        """Return the stage of a setting."""
        return self._maker(setting)

    def recreator(self, setting: Setting) -> Callable[[], Scoring]:
        """Return a function that makes an equal scoring in another process, with the model precision used here."""
        precisions = precisions_of(self._maker(setting))
        return partial(Scoring, self._maker, self._memory.topics, self._qrels, self._measure, precisions)


class ScoringActors:
    """Actors that score settings for a `Scoring`; `actors` is the package that runs them on a cluster."""

    def __init__(self, scoring: Scoring, actors: ModuleType) -> None:
        self._scoring, self._actors = scoring, actors

    def score_settings(self, settings: Sequence[Setting]) -> None:
        """Score settings and record their values in the `Scoring`."""
        unique = list({_key(setting): setting for setting in settings}.values())
        if unique:
            for setting, values in zip(unique, self._map(_score_setting, unique, unique[0]), strict=True):
                self._scoring.record(setting, values)

    def run_studies(self, studies: Sequence[Study], example: Setting) -> list[list[int]]:
        """Return the trials of independent studies; the setting `example` determines the model precision."""
        pools = []
        for trials in self._map(_run_study, studies, example):
            for setting, values in trials:
                self._scoring.record(setting, values)
            pools.append([self._scoring.number(setting) for setting, _ in trials])
        return pools

    def _map(self, function: Callable[[Scoring, P], R], parts: Sequence[P], example: Setting) -> list[R]:
        make, stage = self._scoring.recreator(example), self._scoring.stage(example)
        results: list[R] = self._actors.map_with(make, function, parts, "tuning", stage)
        return results


def _score_setting(scoring: Scoring, setting: Setting) -> Float64s:
    return scoring.trials[scoring.number(setting)].values


def _run_study(scoring: Scoring, study: Study) -> list[tuple[Setting, Float64s]]:
    numbers = study(scoring)
    return [(scoring.trials[number].params, scoring.trials[number].values) for number in numbers]


def _key(setting: Setting) -> str:
    return repr(sorted(setting.items()))


RUNS = 8  # cached runs; the run of a stage that no setting changes is used each time and stays cached


class RunMemory:
    """Cache of runs of stages over fixed topics; evicts the least recently used."""

    def __init__(self, topics: Topics) -> None:
        self.topics = topics
        # The stages are kept with their runs, so that their ids are not reused.
        self._runs: OrderedDict[int, tuple[Ranker, Run]] = OrderedDict()

    def run(self, stage: Ranker) -> Run:
        """Return the run of a stage."""
        if id(stage) not in self._runs:
            self._runs[id(stage)] = (stage, stage(self.topics))
            if len(self._runs) > RUNS:
                self._runs.popitem(last=False)
        self._runs.move_to_end(id(stage))
        return self._runs[id(stage)][1]

    def evaluated(self, stage: Ranker, qrels: Qrels, measure: Measure, all_qrels: Qrels | None = None) -> Evaluation:
        """Evaluate a stage on the topics, no deeper than the measure reads.

        Args:
            stage: The stage.
            qrels: Judgments of the topics.
            measure: The measure.
            all_qrels: Judgments of more topics, some documents of which the stage must know.
        """
        # A cutoff that is not an integer is a recall, as in IPrec@0.1, and needs the whole run.
        cut = stage % measure.cutoff if isinstance(measure.cutoff, int) else stage
        run = self.reusing(cut)(self.topics)
        # Without documents, a run without judged hits may come from a poor setting or from another collection.
        if run.documents is not None:
            check_agreement(run, qrels if all_qrels is None else all_qrels)
        return measure_run(run, qrels, [measure])

    def reusing(self, stage: AnyStage) -> AnyStage:
        """Return a copy with memoized inner retrieval stages, or the stage itself if it has none."""
        reused = stage.map(self._memoized)
        assert isinstance(reused, Stage)
        return stage if isinstance(reused, MemoizedStage) else reused

    def _memoized(self, part: Part) -> Part:
        if not isinstance(part, Stage) or part.takes is not Topics or part.gives is not Run:
            return part
        return part if any(isinstance(inner, MemoizedStage) for inner in walk(part)) else MemoizedStage(part, self)


@dataclass(frozen=True, eq=False, repr=False)
class MemoizedStage(Stage[Topics, Run]):
    """A stage whose run is cached in a `RunMemory`."""

    stage: Stage[Topics, Run]
    memory: RunMemory = field(repr=False)

    def apply(self, topics: Topics, /) -> Run:
        return self.memory.run(self.stage) if topics is self.memory.topics else self.stage(topics)


METHODS = ("grid", "random", "tpe")
TRIALS = 100  # default number of trials of "random" and "tpe"


@hinted
def tune(
    stage: Tunable,
    space: Space | None,
    topics: object,
    qrels: object,
    measure: str | Measure = "nDCG@10",
    folds: int = 5,
    *,
    method: str = "grid",
    trials: int | None = None,
    groups: Groups = None,
    seed: int = 0,
    index: object = None,
    ray: bool | str | None = None,
) -> Tuning:
    """Search the space for the parameters that maximise `measure`, by nested cross-validation.

    For each fold, the setting with the best mean over the other folds is chosen and scored on the held-out fold. Each setting
    is run once on all topics, and its values are used for every fold. "random" draws its settings before any is scored; "tpe"
    runs one study per fold, on the other folds, and one on all topics. The final parameters are the best over all topics; ties
    go to the present values, then to the first setting. Retrieval is no deeper than the measure reads.

    Args:
        stage: A stage from topics to a run; a function that returns one for the parameters, such as
            `lambda k1, weight: index.bm25(k1=k1) + weight * dense`; or a text with `tune()` in place of parameters, such as
            `"bm25(k1=tune(), b=tune(0.3, 0.9))"`.
        space: A mapping from parameter name to a list of values or a range: (low, high, step), or (low, high) for "random",
            "tpe" and parameters whose class declares a step. A range holds integers if its bounds are integers and the present
            value is an integer or unknown. `k1` sets that parameter in every part of `stage` that has it, `bm25__k1` only in
            parts named bm25, and `fields.title` or `b.title` a field's value in a mapping. None: the space of the text, or for
            a stage the usual parameters of BM25 and query likelihood in their ranges.
        topics: Anything that `Topics.of` accepts, or a path; topics without judgments are not searched.
        qrels: Anything that `Qrels.of` accepts.
        measure: Measure to maximise.
        folds: Folds.
        method: "grid", "random" settings, or "tpe", Optuna's. The grid has every combination; "random" draws `trials` settings
            uniformly; each study of "tpe", the tree-structured Parzen estimator (Bergstra et al. 2011), scores `trials`
            settings.
        trials: Settings for "random" and "tpe". None: 100.
        groups: Topics that stay in one fold: "document", "conversation", a mapping or a function; see `fontes.split`.
        seed: Seed of the folds and of drawn settings.
        index: The index of a text, or a mapping from names to indexes.
        ray: A cluster that scores settings (with "tpe", runs studies) in parallel: True for a local Ray, or an address. None:
            no cluster.

    Raises:
        ParameterError: The space, the measure or a number is invalid.
        InputError: None of the topics is judged, or no document of the collection is judged.
        MissingExtraError: "tpe" without Optuna.
    """
    start = time.perf_counter()
    parsed = mean_measure(measure)
    judged, judgments = judged_topics(topics, qrels, parsed)
    maker, values_by_parameter = maker_of(stage, space, index)
    axes = axes_of(values_by_parameter, maker)
    trial_count = _trial_count(method, trials)
    units = units_of(judged, judgments, groups)
    fold_of = folds_of(units, folds, seed)
    unit_of = {topic_id: number for number, unit in enumerate(units) for topic_id in unit}
    scoring = Scoring(maker, judged, judgments, parsed)
    topic_folds = np.array([fold_of[topic_id] for topic_id in judgments])
    with work(ray=ray):
        default_values = None if maker.unchanged is None else scoring.values(maker.unchanged)
        actors = None if (actors_package := cluster()) is None else ScoringActors(scoring, actors_package)
        pools = _score_pools(method, axes, trial_count, scoring, topic_folds, seed, actors)
    folds_chosen = cross_validated(
        topic_folds,
        lambda fold, others: scoring.best(pools[fold], others).params,
        lambda setting, topics: scoring.trials[scoring.number(setting)].values,
        parsed,
    )
    return Tuning(
        measure=parsed,
        topic_ids=tuple(judgments),
        units=np.array([unit_of[topic_id] for topic_id in judgments]),
        folds=folds_chosen,
        baseline_values=default_values,
        method=method,
        space=axes,
        trials=tuple(scoring.trials),
        stage=maker(scoring.best(range(len(scoring.trials)), np.ones(len(topic_folds), dtype=bool)).params),
        default=maker.default if default_values is not None else None,
        seconds=time.perf_counter() - start,
    )


def _score_pools(
    method: str,
    axes: dict[str, Axis],
    trial_count: int,
    scoring: Scoring,
    topic_folds: Int64s,
    seed: int,
    actors: ScoringActors | None,
) -> list[list[int]]:
    """Score the settings; return for each fold the numbers of the trials that it may choose from."""
    folds = int(topic_folds.max()) + 1
    if method == "tpe":
        studies = [partial(_study, axes, trial_count, topic_folds != fold, (seed, fold)) for fold in range(folds + 1)]
        pools = (
            [study(scoring) for study in studies]
            if actors is None
            else actors.run_studies(studies, _draw_setting(axes, np.random.default_rng(seed)))
        )
        return pools[:folds]
    if method == "random":
        rng = np.random.default_rng(seed)
        settings: list[Setting] = [_draw_setting(axes, rng) for _ in range(trial_count)]
    else:
        settings = list(grid_of(axes))
    if actors is not None:
        actors.score_settings(settings)
    numbers = [scoring.number(setting) for setting in settings]
    return [numbers] * folds


def _draw_setting(axes: dict[str, Axis], rng: np.random.Generator) -> Setting:
    return {name: axis.draw(rng) for name, axis in axes.items()}


def _study(axes: dict[str, Axis], trials: int, topics: Bools, seed: tuple[int, int], scoring: Scoring) -> list[int]:
    """Return the numbers of the trials of one study, which sees only the values of these topics."""
    try:
        import optuna
    except ImportError:
        raise MissingExtraError.of("optuna", "tune", "method='tpe'") from None
    trial_numbers = []

    def score(trial: optuna.Trial) -> float:
        number = scoring.number({name: axis.suggest(trial, name) for name, axis in axes.items()})
        trial_numbers.append(number)
        return float(scoring.trials[number].values[topics].mean())

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        sampler = optuna.samplers.TPESampler(seed=int(np.random.default_rng(seed).integers(1 << 31)))
        optuna.create_study(direction="maximize", sampler=sampler).optimize(score, n_trials=trials)
    finally:
        optuna.logging.set_verbosity(verbosity)
    return trial_numbers


def mean_measure(name: str | Measure) -> Measure:
    """Return the measure with a name; raise ParameterError if it is a count, not an average."""
    measure = parse(name)
    if measure.summed:
        raise ParameterError(f"{measure} is a count, not an average; tune on a measure such as nDCG@10")
    return measure


def judged_topics(topics: object, qrels: object, measure: Measure) -> tuple[Topics, Qrels]:
    """Return the given topics that are judged, and their judgments, both in id order; raise InputError if there are none."""
    judgments = judgments_of(qrels, [measure])
    judged = Topics.read(topics).judged(judgments)
    ordered = Qrels(sorted(judgments.only(judged).rows()))
    return Topics(judged[topic_id] for topic_id in ordered), ordered


def _trial_count(method: str, trials: int | None) -> int:
    if method not in METHODS:
        raise ParameterError(f"unknown method '{method}'; there are {', '.join(METHODS)}")
    if trials is None:
        return TRIALS
    if method == "grid":
        raise ParameterError("a grid tries every combination and takes no trials; give a larger step, or method='random'")
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
        raise ParameterError(f"trials must be a whole number from 1 up, not {trials!r}")
    return trials
