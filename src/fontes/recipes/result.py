"""`RecipeResult`: runs and figures of a recipe beside the published ones, and other runs."""

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
from .learning import RecipeTraining

if TYPE_CHECKING:
    from .base import Recipe

PICTURE = "recipe.svg"
OURS = "ours"  # the origin of a default that declares none


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
        return f"{self.mean:.4f} ({self.low:.4f} to {self.high:.4f})"


@dataclass(frozen=True)
class Others:
    """Runs that are not of the recipe's systems.

    Args:
        compared: Runs with every measured topic: systems of the comparison.
        apart: Means of each other run, by measure, over its judged topics.
    """

    compared: Mapping[str, Run] = field(default_factory=dict)
    apart: Mapping[str, Mapping[str, MeanInterval]] = field(default_factory=dict)

    def beside(self, systems: Mapping[str, Stage[Topics, Run]]) -> dict[str, Stage[Topics, Run] | Run | Path]:
        """Return the systems of a recipe, followed by the compared runs."""
        return {**systems, **{f"others/{name}": run for name, run in self.compared.items()}}

    @classmethod
    def of(cls, runs: object, measured: Topics, known: Qrels | None, measures: Iterable[Measure]) -> Others:
        """Read runs as `fontes.compare`, with the measured topics and the judgments of all sides; raise InputError."""
        if not runs:
            return cls()
        if known is None:
            raise ParameterError("other runs need judgments to be measured")
        compared, apart = {}, {}
        for name, source in named(runs).items():
            run = Run.of(Path(source) if isinstance(source, (str, os.PathLike)) else source)
            if set(measured) <= set(run):
                compared[name] = run
            else:
                apart[name] = intervals(_measured(name, run, known, tuple(measures)))
        return cls(compared, apart)


def intervals(evaluation: Evaluation) -> dict[str, MeanInterval]:
    """Means of an evaluation by measure, with intervals; without the share of judged documents."""
    measures = [measure for measure in evaluation if not isinstance(measure, JudgedShare)]
    return {str(measure): MeanInterval.of(evaluation.per_topic(measure).values()) for measure in measures}


def _measured(name: str, run: Run, known: Qrels, measures: tuple[Measure, ...]) -> Evaluation:
    judged = Qrels(row for row in known.rows() if row[0] in run)
    if not judged:
        first, other = next(iter(run), ""), next(iter(known), "")
        raise InputError(f"run {name}: none of its topics is judged: its first is '{first}', the first judged '{other}'")
    return evaluate(run, judged, measures)


@dataclass(frozen=True)
class RecipeResult(Results):
    """Runs and measures of a recipe, beside the published ones.

    Args:
        recipe: Recipe.
        learning: Training of the recipe; empty if it learns nothing.
        others: Other runs.
        reads: Truncation of documents by the encoders of each system; for the page only.
    """

    recipe: Recipe = field(kw_only=True)
    learning: RecipeTraining = field(default_factory=RecipeTraining)
    others: Others = field(default_factory=Others)
    reads: Mapping[str, Sequence[TokenLimit]] = field(default_factory=dict)

    @property
    def seconds(self) -> dict[str, float | None]:
        """Seconds of all steps by system, including shared steps, but not indexing and encoding.

        A step found in the folder counts the time of its original run.
        """
        return {name: system.seconds for name, system in self.systems.items()}

    def published(self) -> list[dict[str, Any]]:
        """Return each published figure by system and measure, with the value here if it was measured."""
        return [
            {"system": system, "measure": measure, "here": self._measures(system).get(measure), "published": value}
            for system, values in self.recipe.published.items()
            for measure, value in values.items()
        ]

    def intervals(self) -> dict[str, dict[str, MeanInterval]]:
        """Mean over the measured topics with its interval, by system and measure; empty without judgments."""
        if self.report is None:
            return {}
        systems, printed = self.report.systems.values(), set(map(str, self._printed(self.report).measures))
        return {
            system.name: {m: value for m, value in intervals(system.evaluation).items() if m in printed} for system in systems
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the runs and topics as JSON values: the lock, seconds, and published figures."""
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

    def to_markdown(self, picture: str = "") -> str:
        """Return a page: parameters, systems with seconds, and published measures beside those of this run.

        `picture` is the file of a plot of the pipeline, beside the page, if any.
        """
        recipe = self.recipe
        parts = [f"# {recipe.name}", summary(type(recipe)), f"Source: {recipe.source}"]
        if recipe.published:
            on = f" They were measured on {recipe.published_on}." if recipe.published_on else ""
            parts += [
                "## Published and here",
                f"Published figures are for other documents and topics, unless these are the same.{on}",
                _table(*self._beside()),
            ]
        parts += [
            "## Systems",
            "Seconds cover all steps of a system, including shared ones, but not indexing and encoding."
            + (" Tests and intervals are in report.md and report.html." if self.report else ""),
            *([f"![The system {recipe.baseline or next(iter(self.runs))}]({picture})"] if picture else []),
            _table(["system", "run", "documents", "seconds"], self._systems()),
            *_reads(self.reads),
            *_with_intervals("Means with their intervals of 95%", self.intervals()),
            *_with_intervals("Runs of others", self.others.apart),
            *learned_parts(self.learning),
            "## Parameters",
            "A default is published, in the authors' code (or in a library that it calls), or ours.",
            _table(["parameter", "here", "default", "default from"], self._parameters()),
        ]
        return "\n\n".join(parts) + "\n"

    def __str__(self) -> str:
        if self.report is None:
            return f"{len(self.runs)} runs in {self.folder / 'runs'}"
        parts = [str(self._printed(self.report))]
        if any(row["here"] is not None for row in self.published()):
            names, rows = self._beside()
            signs = ["<>"[i > 0] + str(max(len(row[i]) for row in [names, *rows])) for i in range(len(names))]
            lines = ["  ".join(map(format, row, signs)) for row in [names, *rows]]
            on = f" on {self.recipe.published_on}" if self.recipe.published_on else ""
            parts.append("\n".join([f"Published{on}:", "", *lines]))
        if self.others.apart:
            lines = [
                f"{name}: {', '.join(f'{m} {value}' for m, value in row.items())}" for name, row in self.others.apart.items()
            ]
            parts.append("\n".join(["Runs of others on their own topics, with intervals of 95%:", "", *lines]))
        if without := without_lines(self.learning):
            parts.append("\n".join(["Left out:", "", *without]))
        return "\n\n".join(parts)

    def _printed(self, report: Report) -> Report:
        """Report with only the printed measures, if the recipe's own measures were used."""
        printed = tuple(measure for measure in report.measures if str(measure) in self.recipe.printed)
        if tuple(map(str, report.measures)) != self.recipe.measures or not printed:
            return report
        return replace(report, measures=printed, comparisons=tuple(c for c in report.comparisons if c.measure in printed))

    def _beside(self) -> tuple[list[str], list[list[str]]]:
        published = self.recipe.published
        measures = list(dict.fromkeys(measure for values in published.values() for measure in values))
        names = list(dict.fromkeys([*published, *(name for name in self.runs if self._measures(name))]))
        header = ["system", *(text for m in measures for text in (f"{m} here", "published"))]
        rows = [
            [name, *(_number(v.get(m)) for m in measures for v in (self._measures(name), published.get(name, {})))]
            for name in names
        ]
        return header, rows

    def _systems(self) -> list[list[str]]:
        seconds = {name: "" if value is None else f"{value:.2f}" for name, value in self.seconds.items()}
        return [[name, f"runs/{name}.run", f"{run.rows:,}", seconds[name]] for name, run in self.runs.items()]

    def _parameters(self) -> list[list[str]]:
        rows = []
        for one in fields(self.recipe):
            value, default = written(getattr(self.recipe, one.name)), "" if one.default is MISSING else written(one.default)
            rows.append([one.name, value if value == default else f"**{value}**", default, one.metadata.get("origin", OURS)])
        return rows

    def _measures(self, name: str) -> dict[str, float]:
        if self.report is None or name not in self.report.systems:
            return {}
        return {str(measure): self.report.mean(name, measure) for measure in self.report.measures}


def _with_intervals(title: str, rows: Mapping[str, Mapping[str, MeanInterval]]) -> list[str]:
    if not rows:
        return []
    measures = list(next(iter(rows.values())))
    table = [
        [name, f"{next(iter(values.values())).topics:,}", *(str(values[measure]) for measure in measures)]
        for name, values in rows.items()
    ]
    return [f"## {title}", _table(["system", "topics", *measures], table)]


def _reads(reads: Mapping[str, Sequence[TokenLimit]]) -> list[str]:
    rows = [
        [name, f"{one.tokens:,}", f"{one.share:.1%}", f"{one.documents:,}{' sampled' * one.sampled}"]
        for name, many in reads.items()
        for one in dict.fromkeys(many)
    ]
    if not rows:
        return []
    about = (
        "Special tokens count. A document is an entry of the index that the system searches: a paragraph where documents are "
        "split; one of several windows is truncated where one of them is."
    )
    return ["## Tokens that encoders read", about, _table(["system", "tokens read", "documents cut", "documents"], rows)]


def learned_parts(learning: RecipeTraining) -> list[str]:
    """Return models and choices as parts of a page; none for a recipe that learns nothing."""
    train, dev = len(learning.train.topics), len(learning.dev.topics)
    parts = [f"{train:,} topics to learn from, {dev:,} to choose with and to validate on."] if train or dev else []
    models = [note for note in learning.notes if "model" in note]
    if models:
        header = ["model", "folder or name", "start", "learned from", "steps, the best", "minutes"]
        parts.append(_table(header, [_model(note) for note in models]))
    for note in learning.notes:
        if "measure" in note:
            chosen = ", ".join(f"{weight:g}" for weight in note["weights"]) if "weights" in note else note["choice"]
            noun, without = "weights " * ("weights" in note), note["left_out"]
            left = f"; {without} whose relevant document has a twin were left out" if without else ""
            best = f"with which {note['measure']} was best, {note['value']:.4f}, on {note['topics']} topics"
            parts.append(f"{note['role']}: {noun}{chosen}, {best}{left}.")
        if "chosen" in note:
            parts.append(f"{note['role']}: {note['chosen']}.")
    if parts:
        parts.insert(0, "## Learned" if train or dev else "## Models")
    if without := without_lines(learning):
        parts += ["## Left out", "\n".join(f"* {line}" for line in without)]
    return parts


def without_lines(learning: RecipeTraining) -> list[str]:
    """Return a sentence for each system that is left out."""
    return [f"{note['role']}: {note['without']}" for note in learning.notes if "without" in note]


def _model(note: Mapping[str, Any]) -> list[str]:
    if "rows" not in note:
        return [note["role"], note["model"], "", note.get("about", ""), "", ""]
    learned = f"{note['rows']:,} rows of {note['queries']:,} queries" if note["queries"] else f"{note['rows']:,} rows"
    minutes = f"{note['seconds'] / 60:.1f} ({note['device']}, {note['precision'].partition(' ')[0]})"
    return [note["role"], note["model"], note["base"], learned, f"{note['steps']:,}, {note['best']:,}", minutes]


def drawn_as_svg(stage: Stage[Topics, Run]) -> str:
    """Return a plot of a pipeline as SVG; empty without matplotlib or if the pipeline is too large to draw."""
    from ..plots import pipeline

    try:
        return pipeline(stage).to_bytes("svg").decode()
    except (MissingExtraError, ParameterError):
        return ""


def shown(value: Any) -> Any:
    """Return a parameter as a JSON value: numbers and strings unchanged, anything else printed."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def written(value: Any) -> str:
    """Return a parameter as `Recipe.set` reads it."""
    return value if isinstance(value, str) else repr(value)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
