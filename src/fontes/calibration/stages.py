"""The stages `calibrated`, `cut` and `abstain`: from scores to probabilities to decisions."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..core.errors import ParameterError, PipelineError
from ..core.run import Run
from ..core.stage import AnyStage, Cut, Stage
from ..core.values import Explanation, Topic
from .held_out import ANSWERABLE, BEST, PROMISES, Promise, best_probabilities, check_level, promises_of, refused
from .model import Calibration, with_notes

logger = logging.getLogger("fontes.calibration")


class Calibrating(Stage[Run, Run]):
    """Base class of the stages that make, and need, probabilities."""

    returns_subset: ClassVar[bool] = True
    starts_from_scores: ClassVar[bool] = True

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        raise PipelineError(f"{self.name} explains documents of a run: (retriever >> … >> {self!r}).explain(query, doc_id)")

    def explain_in(self, run: Run, topic_id: str, doc_id: str) -> Explanation:
        """Explain what this stage does with a document of the run."""
        topic_run = run.keep(run.topic_numbers == list(run.topics).index(topic_id))
        row = next((i for i, code in enumerate(topic_run.codes.tolist()) if run.ids[code] == doc_id), None)
        if row is not None:
            return self.explained(topic_run, row)
        if topic_id in refused(run):
            return Explanation(0.0, f"abstain refused the topic: p-value {refused(run)[topic_id]:.3g}")
        return Explanation(0.0, f"'{doc_id}' is not among the {topic_run.rows} documents that {self.name} gets")

    @abstractmethod
    def explained(self, run: Run, row: int) -> Explanation:
        """Explain a row of a run that has documents for only one topic."""


@dataclass(frozen=True)
class Calibrated(Calibrating, name="calibrated"):
    """Replaces scores by probabilities of relevance: `bm25() % 100 >> calibrated("FOLDER")`.

    `fontes train calibration` makes the folder, for one pipeline. The order of each ranking stays. After it `cut(recall=…)`
    ends lists, `abstain()` refuses topics, and `fuse(…, method="logodds")` joins runs. The run's provenance names the
    calibration under "calibration".

    Args:
        model: Folder of the calibration.

    Raises:
        InputError: There is no calibration.
        IndexFormatError: It is damaged.
        ParameterError: It was trained for another pipeline; a filter may differ, which the statement of a promise says.
    """

    reads_system: ClassVar[bool] = True
    model: str | Path

    def check(self) -> None:
        if not isinstance(self.model, (str, Path)):
            raise ParameterError(f"calibrated: model is the folder of a calibration, not {self.model!r}")

    def check_needs(self) -> None:
        self.calibration  # noqa: B018  # raises the error

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the calibration."""
        return self.calibration.digest

    def key(self) -> str | None:
        """Return the identity of this stage: the calibration, and its folder, where decisions look for it."""
        return f"{type(self).__qualname__}({self.fingerprint}, {str(self.model)!r})"

    @cached_property
    def calibration(self) -> Calibration:
        """The calibration, loaded once."""
        self.check()
        return Calibration.load(self.model)

    def apply(self, run: Run, /) -> Run:
        result = self.calibration.apply(run)
        if (seen := result.provenance["calibration"]["seen"]) > 1:  # a single one may be a user's query
            logger.warning("%s: the calibration has learned from %d of the %d topics", self, seen, len(run.topics))
        return result

    def explained(self, run: Run, row: int) -> Explanation:
        return self.calibration.explained(run, row)


class Promised(Calibrating):
    """Base class of decisions over the probabilities of a `calibrated` stage before them, with a promise."""

    @abstractmethod
    def promised(self) -> tuple[str, float, float]:
        """Return kind, level and confidence of the promise; raises ParameterError for wrong parameters."""

    @abstractmethod
    def decided(self, run: Run, calibration: Calibration, promise: Promise) -> Run:
        """Return the run after the decision."""

    def apply(self, run: Run, /) -> Run:
        return self.decided(run, *self.promise_of(run))

    def promise_of(self, run: Run) -> tuple[Calibration, Promise]:
        """Return the calibration of the run, and the promise of this stage.

        Raises:
            PipelineError: The run was not calibrated, or decisions before this one do not suit it.
            ParameterError: The promise cannot hold, or the calibration has changed.
        """
        facts = run.provenance.get("calibration")
        if not isinstance(facts, Mapping) or not facts.get("model"):
            raise self._uncalibrated()
        self._check_order([promise["kind"] for promise in promises_of(run)])
        calibration = Calibration.load(facts["model"], facts["digest"])
        promise = calibration.promise(*self.promised())
        notes = list(facts["notes"])
        if promise.kind in ("recall", "complete"):
            notes += [f"abstain before it raises the risk to {promise.risk + p['risk']:g} at most" for p in promises_of(run)]
        return calibration, with_notes(promise, notes)

    def check_after(self, earlier: Sequence[AnyStage]) -> None:
        """Raise PipelineError or ParameterError, before any work, if the promise cannot hold after these stages."""
        decisions: list[str] = []
        for stage in reversed(earlier):
            if isinstance(stage, Calibrated):
                self._check_order(decisions)
                stage.calibration.promise(*self.promised())
                return
            if not isinstance(stage, Promised):
                break
            decisions.append(stage.promised()[0])
        if len(decisions) < len(earlier):  # else the pipeline takes a run
            raise self._uncalibrated()

    def _check_order(self, decisions: Sequence[str]) -> None:
        if self.promised()[0] in decisions or any(kind in PROMISES for kind in decisions):
            raise PipelineError(
                f"{self!r} comes after a decision that its promise does not know; take one abstain, then one promised cut"
            )

    def _uncalibrated(self) -> PipelineError:
        return PipelineError(f"{self!r} needs probabilities; put calibrated(FOLDER) right before it")

    def with_promise(self, run: Run, promise: Promise, **facts: object) -> Run:
        """Return the run with the promise in its provenance."""
        provenance = {**run.provenance, "promises": [*promises_of(run), promise.to_dict()], **facts}
        return run.with_(provenance=provenance)


@dataclass(frozen=True)
class PromisedCut(Promised, name="cut"):
    """Ends each list, after k documents or where a promise holds: `bm25() % 100 >> calibrated("F") >> cut(recall=.9)`.

    The threshold of probabilities comes from held-out topics of the calibration: for `recall` and `complete` by conformal
    risk control (Angelopoulos et al., 2022), so that the promise holds in expectation; for `precision` by Learn then Test
    (Angelopoulos et al., 2021), so that it holds with probability `confidence`. The run's provenance says under "promises" what
    holds, in words.

    Args:
        k: Documents kept per topic. None: a promise says.
        recall: Share of a topic's relevant documents that its list holds, in the mean. None: not promised.
        precision: Share of a list's documents that are relevant, in the mean; an empty list counts as 1. None: not promised.
        complete: Share of topics whose list holds a complete evidence set; a relevant document in no set is one of its own.
            None: not promised.
        confidence: Probability of the promise of `precision` over the choice of held-out topics.

    Raises:
        ParameterError: Not one of k, recall, precision and complete is given, too few topics were held out, or lists without a
            cut do not hold as much.
        PipelineError: No `calibrated` stage is right before it.
    """

    def __new__(cls, k: int | None = None, **promises: object) -> Any:
        """Return a `Cut` for k alone, which goes into the stage before it."""
        is_promised = any(promises.get(name) is not None for name in PROMISES)
        return super().__new__(cls) if k is None or is_promised else Cut(k)

    ends_by_promise: ClassVar[bool] = True
    k: int | None = field(default=None, metadata={"leading": True})
    _: KW_ONLY
    recall: float | None = None
    precision: float | None = None
    complete: float | None = None
    confidence: float = 0.9

    def check(self) -> None:
        levels = {name: getattr(self, name) for name in PROMISES if getattr(self, name) is not None}
        if len(levels) != 1 or self.k is not None:
            raise ParameterError("cut takes one of k, recall, precision and complete: cut(10) or cut(recall=0.9)")
        for name, level in levels.items():
            check_level(f"cut: {name}", level)
        check_level("cut: confidence", self.confidence)

    def promised(self) -> tuple[str, float, float]:
        self.check()
        return next((name, level, self.confidence) for name in PROMISES if (level := getattr(self, name)) is not None)

    def decided(self, run: Run, calibration: Calibration, promise: Promise) -> Run:
        return self.with_promise(promise.apply(run), promise)

    def explained(self, run: Run, row: int) -> Explanation:
        _, promise = self.promise_of(run)
        probability, value = float(run.scores[row]), float(promise.values(run)[row])
        is_kept = value >= np.float32(promise.threshold)
        what = "expected share of the relevant documents" if promise.kind == "recall" else "probability"
        decision = f"{'kept' if is_kept else 'left out'}: {what} {'>=' if is_kept else '<'} {promise.threshold:.6g}"
        parts = (Explanation(probability, "probability"), Explanation(value, what))
        return Explanation(probability if is_kept else 0.0, f"{decision}; {promise.statement}", parts)


@dataclass(frozen=True)
class Abstain(Promised, name="abstain"):
    """Refuses topics without an answer: `bm25() % 100 >> calibrated("F") >> abstain(false_alarm=.1)`.

    A topic whose best documents have low probabilities gets an empty ranking. Its p-value, in the run's provenance under
    "refused", is the share of held-out topics with an answer whose best documents have probabilities as low (Bates et al.,
    2023).

    Args:
        false_alarm: Share of the topics with an answer that may be refused.

    Raises:
        ParameterError: Too few topics were held out.
        PipelineError: No `calibrated` stage is right before it.
    """

    false_alarm: float = 0.1

    def check(self) -> None:
        check_level("abstain: false_alarm", self.false_alarm)

    def promised(self) -> tuple[str, float, float]:
        self.check()
        return ANSWERABLE, 1 - self.false_alarm, 0.9

    def decided(self, run: Run, calibration: Calibration, promise: Promise) -> Run:
        p_values = calibration.p_values(run)
        is_refused = p_values <= promise.threshold
        topics = {t: float(p) for t, p, out in zip(run.topics, p_values, is_refused, strict=True) if out}
        return self.with_promise(run.keep(~is_refused[run.topic_numbers]), promise, refused=topics)

    def explained(self, run: Run, row: int) -> Explanation:
        calibration, promise = self.promise_of(run)
        p_value, probability = float(calibration.p_values(run)[run.topic_numbers[row]]), float(run.scores[row])
        is_refused = p_value <= promise.threshold
        comparison = f"p-value {p_value:.3g} {'<=' if is_refused else '>'} {promise.threshold:g}"
        label = f"{'the topic is refused' if is_refused else 'the topic is answered'}: {comparison}; {promise.statement}"
        best = float(best_probabilities(run)[run.topic_numbers[row]])
        whose = f"probability that one of the best {BEST} documents is relevant"
        parts = (Explanation(probability, "probability"), Explanation(best, whose))
        return Explanation(0.0 if is_refused else probability, label, parts)
