"""`run_task`: chooses systems on one side, runs the experiment on the others, and writes notes and submission."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..comparison import Report, SnapshotReport, compare_snapshots
from ..core import InputError, ParameterError, Qrels, Run, Stage, Topics
from ..core.progress import ProgressCallback, silent
from ..core.registry import nearest
from ..datasets import corpus_of
from ..experiments import Collection, Experiment
from ..experiments.experiment import ExperimentFile, Expressions
from ..experiments.provenance import read_lock
from ..experiments.runner import LOCK, reproducible
from ..experiments.systems import Cache, Searches
from ..formats import write_qrels, write_run, write_topics
from ..measures import parse
from ..storage.files import write
from ..train import Side
from .base import TaskSide
from .choosing import BASELINE, Chooser, Chosen, TaskOptions
from .notes import notes_of
from .project import DATA, EXPERIMENT, TaskProject, collection_of, toml

if TYPE_CHECKING:
    from ..index import Index

RESULTS, PAPER, SUBMISSION, HELD_OUT = "results", "paper", "submission", "held-out"
CHOSEN = "chosen"
COMMENTS = {
    "held-out": "systems with choices are runs in which no topic had a part in what was chosen for it.",
    "chosen": "what was chosen on another side.",
    "unmeasured": "what was chosen on these very topics: it is for searching other topics, and measures too well on these.",
}


@dataclass(frozen=True)
class TaskResult:
    """Result of `run_task`.

    Args:
        project: The project.
        reports: The report of each measured side; first of the held-out topics of the side that chose.
        submitted: The system that is submitted.
        submission: The files to hand in.
        paper: Table and paragraph for the working notes.
        notes: Sentences on choices, training and the submission.
        snapshots: The comparison over time, if the sides are snapshots.
    """

    project: TaskProject
    reports: Mapping[str, Report]
    submitted: str
    submission: tuple[Path, ...]
    paper: tuple[Path, ...]
    notes: tuple[str, ...]
    snapshots: SnapshotReport | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values: the locks of all sides, and what was written."""
        folder = self.project.folder
        return {
            "task": self.project.task.name,
            "results": {name: read_lock(folder / RESULTS / name / LOCK) for name in self.reports},
            "submitted": self.submitted,
            "submission": [path.relative_to(folder).as_posix() for path in self.submission],
            "paper": [path.relative_to(folder).as_posix() for path in self.paper],
            "notes": list(self.notes),
            "snapshots": None if self.snapshots is None else self.snapshots.to_dict(),
        }

    def __str__(self) -> str:
        choose = next(iter(self.reports))
        parts = []
        for name, report in self.reports.items():
            what = " (held-out topics: none had a part in what was chosen for it)" if name == choose else ""
            parts.append(f"{name}{what}\n\n{report}")
        if self.snapshots is not None:
            parts.append(f"over time\n\n{self.snapshots}")
        return "\n\n".join([*parts, "\n".join(f"note: {note}" for note in self.notes)]).rstrip("\n")


def run_task(
    project: TaskProject | str | Path, options: TaskOptions | None = None, progress: ProgressCallback = silent
) -> TaskResult:
    """Run a project: baselines, choices, fusion, tests, the table and paragraph of the notes, and the submission.

    Parameters of BM25 and weights of fusion are chosen on the side `choose` of task.toml, which is measured by nested
    cross-validation: each fold's topics are run with what the other folds chose. Other measured sides are run with what all its
    topics chose. A trained cross-encoder learns from the side `train`. All runs and numbers come from `fontes.Experiment`.

    Args:
        project: The project, or its folder.
        options: Models and settings.
        progress: Called with the progress of each step.

    Raises:
        InputError: The data, the experiment or a model cannot be used.
        ParameterError: An option is invalid.
    """
    project = project if isinstance(project, TaskProject) else TaskProject.open(project)
    options = options or TaskOptions()
    base = _base(project)
    roles, sides, place = project.roles, project.sides, project.folder
    assert roles.choose is not None
    chosen = _chosen(project, base, options, progress)
    if options.submit is not None and options.submit not in chosen.systems:
        raise ParameterError(f"there is no system '{options.submit}' to submit; {nearest(options.submit, chosen.systems)}")
    reports = {}
    for side in (roles.choose, *roles.measure):
        kind = "held-out" if side == roles.choose else "chosen"
        reports[side] = Experiment(_written(project, base, chosen, side, kind)).run(progress)
    final = (
        place / f"{CHOSEN}-{roles.measure[0]}.toml"
        if roles.measure
        else _written(project, base, chosen, roles.choose, "unmeasured")
    )
    submitted = options.submit or chosen.best
    notes = [*chosen.notes, _why(project, chosen, submitted, options)]
    submission, remarks = _submitted(project, final, submitted, chosen.systems, progress)
    snapshots = _snapshots(project, reports) if project.task.over_time and len(reports) > 1 else None
    result = TaskResult(project, reports, submitted, submission, (), (*notes, *remarks), snapshots)
    return replace(result, paper=_paper(result, chosen, sides))


def _base(project: TaskProject) -> ExperimentFile:
    path = project.folder / EXPERIMENT
    if not project.corpora:
        what = "runs can be compared (fontes compare) and fused (fontes fuse --learn)"
        raise InputError(
            f"{project.folder}: there are no documents, so nothing to search; {what}, or lay the task out with them"
        )
    if project.roles.choose is None:
        raise InputError(
            f"{project.folder}: no side is judged, so nothing can be tuned or measured; 'fontes search' makes runs"
        )
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; lay the task out again, or write the experiment")
    base = ExperimentFile(path)
    if BASELINE not in base.expressions:
        raise InputError(f"{path}, [systems]: there is no '{BASELINE}', the baseline; {BASELINE} = \"bm25()\" is one")
    for name in ("tuned", "fused"):
        if name in base.raw["systems"]:
            raise InputError(f"{path}, [systems]: '{name}' is the name of a system that is chosen; give it another")
    return base


def _chosen(project: TaskProject, base: ExperimentFile, options: TaskOptions, progress: ProgressCallback) -> Chosen:
    roles, sides = project.roles, project.sides
    assert roles.choose is not None
    side = _side(sides[roles.choose])
    index = _index(project, base, roles.choose, progress)
    systems = Expressions(base).made(index)
    stages = {name: systems[name] for name in base.expressions if isinstance(systems[name], Stage)}
    train = None
    if roles.train is not None:
        train = side if roles.train == roles.choose else _side(sides[roles.train])
    later = dict.fromkeys(name for name in (*roles.measure, *roles.submit) if name not in (roles.train, roles.choose))
    measured = Topics(replace(topic, id=f"{name} {topic.id}") for name in later for topic in sides[name].topics.values())
    chooser = Chooser(index, base.expressions, stages, side, project.table.measure, project.folder, options, progress)  # type: ignore[arg-type]
    return chooser.choose(train, measured)


def _side(side: TaskSide) -> Side:
    assert side.qrels is not None
    topics = side.topics.judged(side.qrels)
    return Side(topics, Qrels(row for row in side.qrels.rows() if row[0] in topics))


def _index(project: TaskProject, base: ExperimentFile, side: str, progress: ProgressCallback) -> Index:
    place = project.corpora.get(side)
    if place is None:
        raise InputError(f"{project.folder}: the side '{side}' has no documents; name them as 'corpus' in task.toml")
    documents = corpus_of(place) if isinstance(place, str) else place
    table = base.index
    folder = project.folder / (table.folder or f"{RESULTS}/indexes")
    return Collection(documents, folder, progress).index(
        table.analyzer, table.fields, table.vectors, table.separate, table.positions
    )


def _written(project: TaskProject, base: ExperimentFile, chosen: Chosen, side: str, kind: str) -> Path:
    """Write the experiment file of a side; `kind` is one of COMMENTS."""
    place = project.folder
    systems: dict[str, Any] = dict(chosen.systems)
    collection = collection_of(project, side)
    if kind == "held-out":
        for name, run in chosen.held_out.items():
            path = place / HELD_OUT / f"{name}.run"
            path.parent.mkdir(exist_ok=True)
            write_run(run, path, tag=name)
            systems[name] = {"run": f"{HELD_OUT}/{name}.run"}
        if len(chosen.topics.topics) < len(project.sides[side].topics):
            write_topics(chosen.topics.topics, place / HELD_OUT / "queries.jsonl")
            write_qrels(chosen.topics.qrels, place / HELD_OUT / "qrels.tsv", "beir")
            collection |= {"topics": f"{HELD_OUT}/queries.jsonl", "qrels": f"{HELD_OUT}/qrels.tsv"}
    raw = {key: value for key, value in base.raw.items() if key != "output"}
    index = {"folder": f"{RESULTS}/indexes", **raw.get("index", {})}
    report = {"baseline": BASELINE, **raw.get("report", {})}
    report["forms"] = list(dict.fromkeys([*report.get("forms", ["md", "json", "html"]), "tex"]))
    measures = list(report.get("measures", project.task.measures))
    if project.table.measure not in measures:
        measures = [project.table.measure, *measures]
    output = {} if kind == "unmeasured" else {"output": f"{RESULTS}/{side}"}
    tables = {"collection": collection, "index": index, "systems": systems, "report": {**report, "measures": measures}}
    path = place / (f"{HELD_OUT}.toml" if kind == HELD_OUT else f"{CHOSEN}-{side}.toml")
    comment = f"# Written by `fontes task run`: {COMMENTS[kind]}\n"
    write(path, [toml({**output, **raw, **tables}, comment).encode()])
    return path


def _why(project: TaskProject, chosen: Chosen, submitted: str, options: TaskOptions) -> str:
    roles = project.roles
    value = f"{project.table.measure} {chosen.values[submitted]:.4f}"
    if options.submit is None:
        return f"submitted: {submitted}, the best on the held-out topics of {roles.choose} ({value})"
    return f"submitted: {submitted}, as asked ({value} on the held-out topics of {roles.choose})"


def _submitted(
    project: TaskProject, final: Path, name: str, systems: Mapping[str, str], progress: ProgressCallback
) -> tuple[tuple[Path, ...], list[str]]:
    """Write the submission of a system, and check it."""
    file, place = ExperimentFile(final), project.folder
    sides = {side: project.sides[side] for side in project.roles.submit}
    runs: dict[str, Run] = {}
    for side, task_side in sides.items():
        stage = Expressions(file).made(_index(project, file, side, progress))[name]
        ready = reproducible({name: stage})[name]
        assert isinstance(ready, Stage)
        ready.prepare(progress)
        runs[side] = Searches(task_side.topics, Cache(place / "cache"), progress).of(name, ready).run
    folder = place / SUBMISSION
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    paths = tuple(project.task.submit(runs, folder, name, systems[name]))
    topics = {side: task_side.topics for side, task_side in sides.items()}
    return paths, [remark for path in paths for remark in project.task.check_submission(path, topics, None)]


def check_submission(project: TaskProject, path: Path) -> list[str]:
    """Check a submission against the topics and documents of a project.

    Returns:
        Remarks.

    Raises:
        InputError: It is invalid: a sentence for each fault, with line and remedy; or the file is missing.
    """
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    sides = {side: project.sides[side].topics for side in project.roles.submit}
    places = {project.corpora[side] for side in sides if side in project.corpora}
    ids = {doc.id for place in places for doc in corpus_of(str(place))} if places else None
    return project.task.check_submission(path, sides, ids)


def _snapshots(project: TaskProject, reports: Mapping[str, Report]) -> SnapshotReport:
    known = {name: ({s: system.run for s, system in report.systems.items()}, report.qrels) for name, report in reports.items()}
    measures = next(iter(reports.values())).measures
    report = compare_snapshots(known, BASELINE, measures)
    for form in ("md", "tex", "json", "html"):
        report.save(project.folder / RESULTS / f"snapshots.{form}")
    return report


def _paper(result: TaskResult, chosen: Chosen, sides: Mapping[str, TaskSide]) -> tuple[Path, ...]:
    place = result.project.folder
    folder = place / PAPER
    folder.mkdir(exist_ok=True)
    last = list(result.reports)[-1]
    table, paragraph = folder / "table.tex", folder / "notes.tex"
    shutil.copyfile(place / RESULTS / last / "report.tex", table)
    locks = {name: json.loads((place / RESULTS / name / LOCK).read_text(encoding="utf-8")) for name in result.reports}
    measure = str(parse(result.project.table.measure))
    text = notes_of(result.project, locks, chosen.systems, result.submitted, measure)
    write(paragraph, [text.encode()])
    paths = [table, paragraph]
    if result.snapshots is not None:
        paths.append(folder / "snapshots.tex")
        shutil.copyfile(place / RESULTS / "snapshots.tex", paths[-1])
    return tuple(paths)


__all__ = ["DATA", "TaskResult", "check_submission", "run_task"]
