"""Result of `fit` as values, text and plot."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..core import Run, Stage, Topics
from ..plots.plot import COLOURS, INK, Plot, draw_plot
from ..plots.tables import ResultTable, json_values, latex_text
from .result import HeldOut

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRINTED_CANDIDATES = 12  # candidates printed


@dataclass(frozen=True)
class Candidate:
    """A pipeline that `fit` tried.

    Args:
        pipeline: Its text.
        round: The round in which it came, from 1.
        seconds: The 95th percentile of the time of a search; NaN if it cannot search.
        topics: The number of topics on which it was measured before it was dropped; 0 if it is too slow.
        mean: Its mean on these topics; NaN without any.
        memory: Peak memory in bytes of a new process that searches; NaN where it was not measured.
        problem: Why it cannot search, or "".
    """

    pipeline: str
    round: int
    seconds: float
    topics: int
    mean: float
    memory: float = math.nan
    problem: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Fitted(HeldOut[str]):
    """Result of `fit`.

    Args:
        measure: The maximised measure.
        topic_ids: The judged topics, in id order.
        units: The group number of each topic, int64.
        folds: For each fold, the pipeline chosen without it and its values on the fold.
        baseline_values: The measure of each topic for BM25 with k1 and b chosen on the other folds, float64.
        pipeline: The text of the chosen pipeline, which won on all topics.
        stage: The chosen pipeline.
        budget: The longest time of a search, in seconds.
        candidates: All candidates.
        seconds: Duration of the search.
    """

    TITLE = "Pipelines within a budget"
    LABEL = "tab:fit"
    BASELINE = "tuned BM25"
    COLUMNS = ("pipeline", "round", "seconds", "topics", "mean", "memory", "fate")

    pipeline: str
    stage: Stage[Topics, Run]
    budget: float
    candidates: tuple[Candidate, ...] = field(repr=False)
    seconds: float

    @property
    def chosen(self) -> tuple[str, ...]:
        """The pipeline that each fold's other folds chose."""
        return tuple(fold.choice for fold in self.folds)

    @property
    def beats_bm25(self) -> bool:
        """Whether the interval of the difference lies above 0."""
        return self.difference_interval is not None and self.difference_interval[0] > 0

    @property
    def best(self) -> Candidate:
        """The chosen candidate; its mean is not held out."""
        return next(candidate for candidate in self.candidates if candidate.pipeline == self.pipeline)

    @property
    def front(self) -> tuple[Candidate, ...]:
        """Candidates measured on all topics that no other one beats in both time and mean, the fastest first."""
        full = [candidate for candidate in self.candidates if candidate.topics == len(self.topic_ids)]
        front: list[Candidate] = []
        for candidate in sorted(full, key=lambda candidate: (candidate.seconds, -candidate.mean)):
            if not front or candidate.mean > front[-1].mean:
                front.append(candidate)
        return tuple(front)

    def fate(self, candidate: Candidate) -> str:
        """Return what became of a candidate: "chosen", "too slow", "dropped after N topics" or its problem."""
        if candidate.problem:
            return candidate.problem
        if candidate.pipeline == self.pipeline:
            return "chosen"
        if candidate.seconds > self.budget:
            return "too slow"
        return (
            f"dropped after {candidate.topics} topics" if candidate.topics < len(self.topic_ids) else "measured on all topics"
        )

    def _rows(self) -> list[dict[str, object]]:
        rows = ({**vars(candidate), "fate": self.fate(candidate)} for candidate in self.candidates)
        return [{name: row[name] for name in self.COLUMNS} for row in rows]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, with None for NaN."""
        assert self.baseline_values is not None
        return self._facts() | {
            "pipeline": self.pipeline,
            "budget": self.budget,
            "seconds_per_topic": self.best.seconds,
            "bm25": float(self.baseline_values.mean()),
            "beats_bm25": self.beats_bm25,
            "score_where_chosen": self.best.mean,
            "chosen": list(self.chosen),
            "candidates": json_values(self._rows()),
            "seconds": round(self.seconds, 3),
        }

    def plot(self) -> Plot:
        """Plot the mean of each candidate against its time, with the front and the budget, and against measured memory.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        return draw_plot(self._draw, 3.8)

    def _draw(self, figure: Figure) -> str:
        measured = [candidate for candidate in self.candidates if not math.isnan(candidate.memory)]
        panels: Any = figure.subplots(1, 2 if measured else 1, sharey=True, squeeze=False)[0]
        axes = panels[0]
        for number, name in enumerate(("first round", "with feedback or fused", "reranked"), 1):
            tried = [candidate for candidate in self.candidates if candidate.round == number and candidate.topics]
            for full in (True, False):  # candidates measured on fewer topics are paler
                shown = [candidate for candidate in tried if (candidate.topics == len(self.topic_ids)) is full]
                style = {"color": COLOURS[number - 1], "markersize": 4, "linestyle": "none", "alpha": 1 if full else 0.3}
                if shown:
                    label = name if full or len(shown) == len(tried) else None
                    milliseconds, means = zip(*((1000 * candidate.seconds, candidate.mean) for candidate in shown), strict=True)
                    axes.plot(milliseconds, means, "o", **style, label=label)
        front = [(1000 * candidate.seconds, candidate.mean) for candidate in self.front]
        axes.plot(*zip(*front, strict=True), color=INK, linewidth=1, drawstyle="steps-post", label="front")
        style = {"color": "white", "markeredgecolor": INK, "markersize": 12, "linestyle": "none"}
        axes.plot(1000 * self.best.seconds, self.best.mean, "*", **style, label="chosen")
        axes.axvline(1000 * self.budget, color=INK, linestyle=":", linewidth=1, label="budget")
        axes.set_xscale("log")
        axes.set_xlabel("ms a search, 95th percentile")
        axes.set_ylabel(str(self.measure))
        for candidate in measured:
            panels[1].plot(candidate.memory / 1e6, candidate.mean, "o", color=COLOURS[candidate.round - 1], markersize=4)
        if measured:
            panels[1].plot(self.best.memory / 1e6, self.best.mean, "*", **style)
            panels[1].set_xlabel("MB of a process that searches, peak")
        figure.legend(loc="outside lower center", ncols=6, frameon=False, fontsize="small", columnspacing=1.2)
        return (
            f"{self.measure} of {len(self.candidates)} candidates on {len(self.topic_ids):,} topics, paler where it is of "
            f"fewer, against the time of a search; slower ones than the budget were not measured."
        )

    def _head(self) -> list[str]:
        too_slow = sum(candidate.seconds > self.budget for candidate in self.candidates)
        slow = f", {too_slow} of them too slow" if too_slow else ""
        title = (
            f"{self.measure} of {len(self.topic_ids):,} topics, {len(self.folds)} folds, at most {1000 * self.budget:g} ms; "
            f"{len(self.candidates)} candidates{slow}, {self.seconds:.1f} s"
        )
        return [title, "", *self._title()]

    def _tables(self) -> list[ResultTable]:
        rows = []
        for candidate in self._ranked():
            memory = "" if math.isnan(candidate.memory) else f"{candidate.memory / 1e6:,.0f}"
            figures = (f"{1000 * candidate.seconds:.2f}", memory, f"{candidate.topics}", f"{candidate.mean:.4f}")
            rows.append((*figures, candidate.pipeline))
        caption = rf"The best of {len(self.candidates)} pipelines, by {latex_text(str(self.measure))}."
        header = ("ms", "MB", "topics", "mean", "pipeline")
        return [ResultTable.of(header, rows[:PRINTED_CANDIDATES], 0, texts=frozenset({4}), caption=caption)]

    def _ranked(self) -> list[Candidate]:
        measured = (candidate for candidate in self.candidates if candidate.topics)
        return sorted(measured, key=lambda candidate: (-candidate.topics, -candidate.mean))

    def _notes(self) -> list[str]:
        lines = []
        if (more := len(self.candidates) - min(PRINTED_CANDIDATES, len(self._ranked()))) > 0:
            lines.append(f"and {more} more")
        lines += [f"note: {candidate.pipeline}: {candidate.problem}" for candidate in self.candidates if candidate.problem]
        if len(set(self.chosen)) > 1:
            lines.append(f"note: the folds chose {len(set(self.chosen))} different pipelines")
        if not self.beats_bm25:
            lines.append(
                "note: on these topics nothing beats tuned BM25 by more than chance: the interval of the difference has 0"
            )
        return [*lines, f"final: {self.pipeline}"]

    def __repr__(self) -> str:
        return f"Fitted({self.measure} {self.score:.4f} held out; {self.pipeline})"
