"""`RecipeResult`: runs and measures of a recipe, compared with the published values and with other runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..comparison import Report
from ..comparison.statistics import bootstrap
from ..core import InputError, MissingExtraError, ParameterError, Qrels, Run, Stage, Topics
from ..core.parameters import summary
from ..experiments.runner import Results
from ..experiments.systems import named
from ..measures import Evaluation, Measure, evaluate
from ..measures.formulas import JudgedShare
from ..neural.encoders.reading import TokenLimit
from ..plots import pipeline
from ..plots.tables import ResultCell, ResultTable
from .errors import errors_of
from .learning import RecipeTraining

if TYPE_CHECKING:
    from .base import Recipe

PICTURE = "recipe.svg"
OWN_CHOICE = "ours"  # origin of a default whose parameter declares no origin


@dataclass(frozen=True)
class MeanInterval:
    """Mean over a number of topics, with its 95% bootstrap interval."""

    mean: float
    low: float
    high: float
    topics: int

    @classmethod
    def of(cls, values: Iterable[float]) -> MeanInterval:
        """Return the interval of the values of some topics."""
        column = np.fromiter(values, np.float64).reshape(-1, 1)
        low, high = bootstrap(column)
        return cls(float(column.mean()), float(low[0]), float(high[0]), len(column))

    def __str__(self) -> str:
        return f"{self}"

    def __format__(self, sign: str) -> str:
        """Write the interval; with "+" as sign, as a difference."""
        return f"{self.mean:{sign}.4f} ({self.low:{sign}.4f} to {self.high:{sign}.4f})"


@dataclass(frozen=True)
class OtherRuns:
    """Runs of systems that are not the recipe's own.

    Args:
        compared: Runs with every measured topic, which are compared with the recipe's systems.
        apart: Means of all remaining runs, by run and measure, over their judged topics.
    """

    compared: Mapping[str, Run] = field(default_factory=dict)
    apart: Mapping[str, Mapping[str, MeanInterval]] = field(default_factory=dict)

    def beside(self, systems: Mapping[str, Stage[Topics, Run]]) -> dict[str, Stage[Topics, Run] | Run | Path]:
        """Return the systems of a recipe, followed by the compared runs."""
        return {**systems, **{f"others/{name}": run for name, run in self.compared.items()}}

    @classmethod
    def of(cls, runs: object, measured: Topics, judgments: Qrels | None, measures: Iterable[Measure]) -> OtherRuns:
        """Read runs, in any form that `fontes.compare` accepts, and evaluate those that lack measured topics.

        Args:
            runs: The runs, by name or in a list.
            measured: The topics that the recipe's systems are measured on.
            judgments: Judgments of all sides.
            measures: Measures for runs that lack measured topics.

        Raises:
            InputError: A run cannot be read, or none of its topics is judged.
            ParameterError: There are no judgments.
        """
        if not runs:
            return cls()
        if judgments is None:
            raise ParameterError("other runs need judgments to be measured")
        compared, apart = {}, {}
        for name, source in named(runs).items():
            run = Run.of(Path(source) if isinstance(source, (str, os.PathLike)) else source)
            if set(measured) <= set(run):
                compared[name] = run
            else:
                apart[name] = intervals(_evaluate(name, run, judgments, tuple(measures)))
        return cls(compared, apart)


def intervals(evaluation: Evaluation) -> dict[str, MeanInterval]:
    """Return the means of an evaluation by measure, with intervals; without the share of judged documents."""
    measures = [measure for measure in evaluation if not isinstance(measure, JudgedShare)]
    return {str(measure): MeanInterval.of(evaluation.per_topic(measure).values()) for measure in measures}


def _evaluate(name: str, run: Run, judgments: Qrels, measures: tuple[Measure, ...]) -> Evaluation:
    judged = judgments.only(run)
    if not judged:
        first, other = next(iter(run), ""), next(iter(judgments), "")
        raise InputError(f"run {name}: none of its topics is judged: its first is '{first}', the first judged '{other}'")
    return evaluate(run, judged, measures)


@dataclass(frozen=True)
class RecipeResult(Results):
    """Runs and measures of a recipe, compared with the published values.

    Args:
        recipe: Recipe.
        learning: Training of the recipe; empty if it learns nothing.
        others: Other runs.
        reads: Truncation of documents by the encoders of each system; only for the page.
        weights: The models of each system; only for the page.
    """

    recipe: Recipe = field(kw_only=True)
    learning: RecipeTraining = field(default_factory=RecipeTraining)
    others: OtherRuns = field(default_factory=OtherRuns)
    reads: Mapping[str, Sequence[TokenLimit]] = field(default_factory=dict)
    weights: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def seconds(self) -> dict[str, float | None]:
        """Seconds of all steps by system, including shared steps, but not indexing and encoding.

        A step found in the folder counts the time of its original run.
        """
        return {name: system.seconds for name, system in self.systems.items()}

    def published(self) -> list[dict[str, Any]]:
        """Return each published value by system and measure, with the value of this run if it was measured."""
        return [
            {"system": system, "measure": measure, "here": self._measures(system).get(measure), "published": value}
            for system, values in self._published.items()
            for measure, value in values.items()
        ]

    @property
    def _published(self) -> dict[str, Mapping[str, float]]:
        """Published values by the name that the system has here."""
        return {self.recipe.name_here(system): values for system, values in self.recipe.published.items()}

    def intervals(self) -> dict[str, dict[str, MeanInterval]]:
        """Return the mean over the measured topics with its interval, by system and measure; empty without judgments."""
        if self.report is None:
            return {}
        systems, printed = self.report.systems.values(), set(map(str, self._printed(self.report).measures))
        return {
            system.name: {m: value for m, value in intervals(system.evaluation).items() if m in printed} for system in systems
        }

    def errors_of_reranking(self, before: Mapping[str, str]) -> list[str]:
        """Return a part of recipe.md that counts the errors of systems; `before` names the run that each reranks."""
        if self.report is None:
            return []
        pairs = {name: (self.runs[first], self.runs[name]) for name, first in before.items() if name in self.report.systems}
        return errors_of(pairs, self.report.qrels)

    def to_dict(self) -> dict[str, object]:
        """Return everything except runs and topics as JSON values: the lock, seconds, and published values."""
        systems = {
            name: {
                "file": f"runs/{name}.run",
                "stages": system.description,
                "seconds": system.seconds,
                **self.lock["systems"][name],
            }
            for name, system in self.systems.items()
        }
        return {
            "recipe": self.recipe.name,
            "source": self.recipe.source,
            "published": self.published(),
            "published_on": self.recipe.published_on,
            "intervals": {name: {m: asdict(value) for m, value in row.items()} for name, row in self.intervals().items()},
            "runs_of_others": {name: {m: asdict(value) for m, value in row.items()} for name, row in self.others.apart.items()},
            "learned": self.learning.notes,
            **self.lock,
            "systems": systems,
        }

    @property
    def _baseline(self) -> str | None:
        return self.recipe.baseline and self.recipe.name_here(self.recipe.baseline)

    def to_markdown(self, picture: str = "") -> str:
        """Return a page with parameters, systems with seconds, and the published values beside those of this run.

        `picture` is the name of the file with a plot of the pipeline, in the folder of the page, if there is one.
        """
        recipe = self.recipe
        parts = [f"# {recipe.name}", summary(type(recipe)), f"Source: {recipe.source}"]
        if recipe.published:
            origin = f" They were measured on {recipe.published_on}." if recipe.published_on else ""
            parts += [
                "## Published and here",
                f"Published figures are for other documents and topics, unless these are the same.{origin}",
                self._published_table().markdown(),
            ]
        elif recipe.published_on:
            parts += ["## Published and here", recipe.published_on]
        parts += [
            "## Systems",
            "Seconds cover all steps of a system, including shared ones, but not indexing and encoding. Weights are the models "
            "that ran, with the first digits of their fingerprints in experiment.lock."
            + (" Tests and intervals are in report.md and report.html." if self.report else ""),
            *([f"![The system {self._baseline or next(iter(self.runs))}]({picture})"] if picture else []),
            ResultTable.of(["system", "run", "weights", "documents", "seconds"], self._systems(), 3).markdown(),
            *self._token_limits(),
            *_interval_table("Means with their intervals of 95%", self.intervals()),
            *_interval_table("Runs of others", self.others.apart),
            *recipe.analysis(self),
            *learned_parts(self.learning),
            "## Parameters",
            "A default is published, in the authors' code (or in a library that it calls), or ours.",
            ResultTable.of(["parameter", "here", "default", "default from"], self._parameters(), 4).markdown(),
        ]
        return "\n\n".join(parts) + "\n"

    def __str__(self) -> str:
        if self.report is None:
            return f"{len(self.runs)} runs in {self.folder / 'runs'}"
        parts = [str(self._printed(self.report))]
        if any(row["here"] is not None for row in self.published()):
            origin = f" on {self.recipe.published_on}" if self.recipe.published_on else ""
            parts.append(f"Published{origin}:\n\n{self._published_table().text().rstrip()}")
        if self.others.apart:
            lines = [
                f"{name}: {', '.join(f'{m} {value}' for m, value in row.items())}" for name, row in self.others.apart.items()
            ]
            parts.append("\n".join(["Runs of others on their own topics, with intervals of 95%:", "", *lines]))
        if without := without_lines(self.learning):
            parts.append("\n".join(["Left out:", "", *without]))
        return "\n\n".join(parts)

    def _printed(self, report: Report) -> Report:
        """Return the report with only the printed measures, if the recipe's own measures were used."""
        printed = tuple(measure for measure in report.measures if str(measure) in self.recipe.printed)
        if tuple(map(str, report.measures)) != self.recipe.measures or not printed:
            return report
        return replace(report, measures=printed, comparisons=tuple(c for c in report.comparisons if c.measure in printed))

    def _published_table(self) -> ResultTable:
        published = self._published
        measures = list(dict.fromkeys(measure for values in published.values() for measure in values))
        names = list(dict.fromkeys([*published, *(name for name in self.runs if self._measures(name))]))
        header = ["system", *(text for m in measures for text in (f"{m} here", "published"))]
        rows = [
            [name, *(_number(v.get(m)) for m in measures for v in (self._measures(name), published.get(name, {})))]
            for name in names
        ]
        return ResultTable.of(header, rows, 1)

    def _token_limits(self) -> list[str]:
        topics = max(1, len(next(iter(self.runs.values())).topics))
        rows = []
        for name, limits in self.reads.items():
            seconds = self.seconds[name]
            cost = [f"{self.prepared.get(name, 0.0):,.1f}", "" if seconds is None else f"{1000 * seconds / topics:,.1f}"]
            for limit in dict.fromkeys(limits):
                documents = f"{limit.documents:,}{' sampled' * limit.sampled}"
                rows.append([name, f"{limit.tokens:,}", f"{limit.share:.1%}", documents, f"{limit.bytes:,}", *cost])
        if not rows:
            return []
        explanation = (
            "Special tokens count. A document is an entry of the index that the system searches: a paragraph where documents "
            "are split; one of several windows is truncated where one of them is. Bytes are those of the vectors. Seconds to "
            "encode the documents include loading the model; vectors that an earlier system has encoded took none. "
            "Milliseconds a topic are of all steps of the system."
        )
        header = ["system", "tokens read", "documents cut", "documents", "bytes", "seconds to encode", "ms a topic"]
        return ["## Tokens that encoders read", explanation, ResultTable.of(header, rows, 1).markdown()]

    def _systems(self) -> list[list[str]]:
        seconds = {name: "" if value is None else f"{value:.2f}" for name, value in self.seconds.items()}
        weights = {name: ", ".join(models) or "none" for name, models in self.weights.items()}
        return [
            [name, f"runs/{name}.run", weights.get(name, ""), f"{run.rows:,}", seconds[name]] for name, run in self.runs.items()
        ]

    def _parameters(self) -> list[list[str | ResultCell]]:
        rows: list[list[str | ResultCell]] = []
        for parameter in fields(self.recipe):
            value = written(getattr(self.recipe, parameter.name))
            default = "" if parameter.default is MISSING else written(parameter.default)
            cell = ResultCell(value, best=value != default)
            rows.append([parameter.name, cell, default, parameter.metadata.get("origin", OWN_CHOICE)])
        return rows

    def _measures(self, name: str) -> dict[str, float]:
        if self.report is None or name not in self.report.systems:
            return {}
        return {str(measure): self.report.mean(name, measure) for measure in self.report.measures}


def _interval_table(title: str, rows: Mapping[str, Mapping[str, MeanInterval]]) -> list[str]:
    if not rows:
        return []
    measures = list(next(iter(rows.values())))
    table = [
        [name, f"{next(iter(values.values())).topics:,}", *(str(values[measure]) for measure in measures)]
        for name, values in rows.items()
    ]
    return [f"## {title}", ResultTable.of(["system", "topics", *measures], table, 1).markdown()]


def learned_parts(learning: RecipeTraining) -> list[str]:
    """Return the parts of a page about models and choices; none for a recipe that learns nothing."""
    train, dev = len(learning.train.topics), len(learning.dev.topics)
    parts = [f"{train:,} topics to learn from, {dev:,} to choose with and to validate on."] if train or dev else []
    models = [note for note in learning.notes if "model" in note]
    if models:
        header = ["model", "folder or name", "start", "learned from", "steps, the best", "minutes"]
        parts.append(ResultTable.of(header, map(_model_row, models), 4).markdown())
    for note in learning.notes:
        if "measure" in note:
            chosen = ", ".join(f"{weight:g}" for weight in note["weights"]) if "weights" in note else note["choice"]
            noun, twins = "weights " * ("weights" in note), note["left_out"]
            left_out = f"; {twins} whose relevant document has a twin were left out" if twins else ""
            best = f"with which {note['measure']} was best, {note['value']:.4f}, on {note['topics']} topics"
            parts.append(f"{note['role']}: {noun}{chosen}, {best}{left_out}.")
        if "chosen" in note:
            parts.append(f"{note['role']}: {note['chosen']}.")
    if parts:
        parts.insert(0, "## Learned" if train or dev else "## Models and choices")
    if twins := without_lines(learning):
        parts += ["## Left out", "\n".join(f"* {line}" for line in twins)]
    return parts


def without_lines(learning: RecipeTraining) -> list[str]:
    """Return a sentence for each system that is left out."""
    return [f"{note['role']}: {note['without']}" for note in learning.notes if "without" in note]


def _model_row(note: Mapping[str, Any]) -> list[str]:
    if "rows" not in note:
        return [note["role"], note["model"], "", note.get("about", ""), "", ""]
    learned = f"{note['rows']:,} rows of {note['queries']:,} queries" if note["queries"] else f"{note['rows']:,} rows"
    minutes = f"{note['seconds'] / 60:.1f} ({note['device']}, {note['precision'].partition(' ')[0]})"
    return [note["role"], note["model"], note["base"], learned, f"{note['steps']:,}, {note['best']:,}", minutes]


def drawn_as_svg(stage: Stage[Topics, Run]) -> str:
    """Return a plot of a pipeline as SVG; empty without matplotlib or if the pipeline is too large to draw."""
    try:
        return pipeline(stage).to_bytes("svg").decode()
    except (MissingExtraError, ParameterError):
        return ""


def shown(value: object) -> object:
    """Return a parameter as a JSON value: numbers and strings unchanged, anything else as its repr."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def written(value: object) -> str:
    """Return a parameter in the form that `Recipe.set` reads."""
    return value if isinstance(value, str) else repr(value)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
